"""Values of a model's variables, and the goal value they reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.groups import KEPT, members
from fleetplan.planner.formulation.objective.goals import Goal
from fleetplan.planner.formulation.variables import Decisions, Variables


@dataclass(frozen=True, slots=True)
class Solution(Decisions[int]):
    """Values of a model's variables, for every group that is `kept`, without zeros."""

    def add(
        self, part: Solution, moments: Sequence[int] | None = None, cells: Sequence[int] | None = None
    ) -> None:
        """Add the decisions on a part of the problem.

        Parameters
        ----------
        part : Solution
            Decisions by the keys of the part.
        moments, cells : Sequence[int] or None
            Index here of each moment and cell of the part; None if they are the same.
        """
        for group in KEPT:
            getattr(self, group.name).update(group.renumbered(getattr(part, group.name), moments, cells))

    def of_part(self, cells: Sequence[int]) -> Solution:
        """Return the decisions on a part of the problem: those of its cells, and of the pools of all parts.

        Parameters
        ----------
        cells : Sequence[int]
            Index here of each cell of the part.
        """
        return Solution(**{group.name: group.of_part(getattr(self, group.name), cells) for group in KEPT})


@dataclass(frozen=True, slots=True)
class ReachedGoal:
    """Value of a goal that a plan reaches.

    Attributes
    ----------
    goal : Goal
        The goal.
    value, bound : float
        Value of the plan, and bound proven for all plans. [unit of the goal]
    """

    goal: Goal
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Return the gap to the best plan, as a share of the larger value."""
        return self.goal.told_gap(self.value, self.bound)


def values_of(variables: Variables, solver: cp_model.CpSolver) -> Solution:
    """Return the values of a model's variables in a solver's best solution."""
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
