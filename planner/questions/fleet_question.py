"""A changed fleet that is to be solved, and what solving it gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, KnownBound, Problem
from fleetplan.planner.search import Verge

Change = Callable[[Candidate], Candidate | None]
"""What becomes of a candidate in a question; None leaves it out."""


@dataclass(frozen=True, slots=True)
class FleetQuestion:
    """A fleet to be solved, and what is known of it before.

    Attributes
    ----------
    fleet : Fleet
        What is planned.
    change : callable or None
        What becomes of the candidates.
    begin : Plan or None
        A plan that the search begins with.
    bound : KnownBound or None
        A bound that holds for the fleet.
    verge : Verge or None
        What the least TCO is held against, where no more has to be known of it.
    shown : bool
        Whether somebody sees the plan, not only what it costs: it is then one of few configurations.
    program : str
        Hash of a program whose optimum is known: an equal one is not solved.
    with_baseline : bool
        Whether changes are counted from the plan in force.
    """

    fleet: Fleet
    change: Change | None = None
    begin: Plan | None = None
    bound: KnownBound | None = None
    verge: Verge | None = None
    shown: bool = False
    program: str = ""
    with_baseline: bool = True


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """What solving a changed fleet gave.

    Attributes
    ----------
    problem : Problem
        What was solved.
    plan : Plan or None
        The verified plan; None where there is none.
    infeasible : bool
        Whether it is proven that there is none.
    reasons : tuple[str, ...]
        Why there is none, as far as a glance shows it, or that the time was short.
    known : bool
        Whether the program is the one that was named, so that nothing was solved.
    """

    problem: Problem
    plan: Plan | None
    infeasible: bool
    reasons: tuple[str, ...] = ()
    known: bool = False

    @property
    def most_usd(self) -> float:
        """The optimum costs no more; infinite without a plan. [USD]"""
        return float("inf") if self.plan is None else self.plan.objective_usd

    @property
    def least_usd(self) -> float:
        """The optimum costs no less; infinite where infeasible, 0 where nothing is known. [USD]"""
        if self.plan is not None:
            return self.plan.bound_usd
        return float("inf") if self.infeasible else 0.0
