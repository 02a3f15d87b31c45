"""A tiny fleet that shows one constraint family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fleetplan.fleet.inventory import (
    Fleet,
)
from fleetplan.planner.problem import Candidate, Problem, build_problem
from fleetplan.planner.problem.scenarios import ScenarioOptimum


@dataclass(frozen=True, slots=True)
class Example:
    """A fleet that a family limits, its optimum, and a change without a plan.

    `unlimited` is a fleet whose plan breaks the family's rule where the family is left out of the model;
    the fleet itself where that is None. The verifier reports that plan under the name of the family, or as
    `reported`: a family that only counts what costs is missed in the cost. `scenario_optima` is what would be
    best for each demand scenario.
    """

    fleet: Fleet
    candidates: tuple[Candidate, ...]
    usd: float
    infeasible: Fleet
    unlimited: Fleet | None = None
    scenario_optima: Mapping[str, ScenarioOptimum] | None = None
    reported: str | None = None

    def problem(self) -> Problem:
        """The problem of the fleet."""
        return replace(build_problem(self.fleet, self.candidates), scenario_optima=self.scenario_optima)
