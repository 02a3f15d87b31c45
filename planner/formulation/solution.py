"""Raw values of a model's variables, and the value that they reach of an objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.groups import KEPT, members
from fleetplan.planner.formulation.objective.goals import Goal
from fleetplan.planner.formulation.variables import Decisions, Variables


@dataclass(frozen=True, slots=True)
class Solution(Decisions[int]):
    """Raw values of a model's variables, of every group that is `kept`; zeros are left out."""

    def add(
        self, part: Solution, moments: Sequence[int] | None = None, cells: Sequence[int] | None = None
    ) -> None:
        """Take in what is decided for a part of the problem.

        Parameters
        ----------
        part : Solution
            By the keys of the part.
        moments, cells : Sequence[int] or None
            For each moment and cell of the part its index here; None where they are the same.
        """
        for group in KEPT:
            getattr(self, group.name).update(group.renumbered(getattr(part, group.name), moments, cells))

    def of_part(self, cells: Sequence[int]) -> Solution:
        """What is decided for a part of the problem, with some of its cells, and for pools of all parts.

        Parameters
        ----------
        cells : Sequence[int]
            For each cell of the part its index here.
        """
        return Solution(**{group.name: group.of_part(getattr(self, group.name), cells) for group in KEPT})


@dataclass(frozen=True, slots=True)
class Reached:
    """Value that a plan reaches of an objective before TCO.

    Attributes
    ----------
    goal : Goal
        The objective.
    value, bound : float
        Of the plan, and proven of all plans. [unit of the goal]
    """

    goal: Goal
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the plan may be from the best one, as a share of the larger figure."""
        return self.goal.told_gap(self.value, self.bound)


def values_of(variables: Variables, solver: cp_model.CpSolver) -> Solution:
    """The values of a model's variables in a solver's best solution."""
    return Solution(
        **{
            group.name: {
                key: value
                for key, variable in members(group, variables).items()
                if (value := solver.value(variable))
            }
            for group in KEPT
        }
    )
