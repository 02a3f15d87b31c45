"""Questions that solve a changed fleet, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, KnownBound, Problem
from fleetplan.planner.search import CostThresholds

Change = Callable[[Candidate], Candidate | None]
"""Changes a candidate for a question; None removes it."""


@dataclass(frozen=True, slots=True)
class FleetQuestion:
    """A fleet to solve, with prior knowledge.

    Attributes
    ----------
    fleet : Fleet
        Fleet to plan.
    change : callable or None
        Changes the candidates.
    begin : Plan or None
        Plan from which the search starts.
    bound : KnownBound or None
        Lower bound that is valid for the fleet.
    verge : CostThresholds or None
        Threshold of the lowest TCO; the search ends once its side is decided.
    shown : bool
        Whether the plan is shown to the user; it is then simplified to few configurations.
    same_as : Problem or None
        Problem with a known optimum; a fleet with the same integer program is not solved.
    with_baseline : bool
        Whether changes are counted from the plan in force.
    """

    fleet: Fleet
    change: Change | None = None
    begin: Plan | None = None
    bound: KnownBound | None = None
    thresholds: CostThresholds | None = None
    shown: bool = False
    same_as: Problem | None = None
    with_baseline: bool = True


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """Result of solving a changed fleet.

    Attributes
    ----------
    problem : Problem
        Problem that was solved.
    plan : Plan or None
        Verified plan, or None.
    infeasible : bool
        Whether it is proven that no plan exists.
    reasons : tuple[str, ...]
        Reasons for no plan, as far as known without analysis, or that the time was short.
    known : bool
        Whether the program equals that of the named problem, so that nothing was solved.
    """

    problem: Problem
    plan: Plan | None
    infeasible: bool
    reasons: tuple[str, ...] = ()
    known: bool = False

    @property
    def most_usd(self) -> float:
        """Upper bound on the optimum; infinite without a plan. [USD]"""
        return float("inf") if self.plan is None else self.plan.objective_usd

    @property
    def least_usd(self) -> float:
        """Lower bound on the optimum; infinite if infeasible, 0 if nothing is known. [USD]"""
        if self.plan is not None:
            return self.plan.bound_usd
        return float("inf") if self.infeasible else 0.0
