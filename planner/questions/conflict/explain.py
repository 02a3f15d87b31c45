"""The conflict of an infeasible fleet in full: core, ways out, and what each way out costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Conflict, GivenWay, Infeasible, Plan, Shortage, StatedWayOut
from fleetplan.planner.questions.conflict.core import Core, CoreSearch
from fleetplan.planner.questions.conflict.requirement import Requirement, RequirementKind
from fleetplan.planner.questions.conflict.requirements import requirements_of
from fleetplan.planner.questions.conflict.ways_out import WayOut, named, ways_out
from fleetplan.planner.questions.resolving import FleetAnswer, Resolver
from fleetplan.planner.search import Verdict

SHARE_FOR_CORE: Final = 0.5
"""Share of the time after which the core is taken as it is."""


@dataclass(frozen=True, slots=True)
class Explained:
    """The conflict of a fleet.

    Attributes
    ----------
    core : Core
        What cannot hold together.
    ways : tuple[tuple[WayOut, FleetAnswer], ...]
        What could give, each with the plan that there is then; what serves everything first, then the
        cheapest plan.
    complete : bool
        Whether the time was enough to look at everything.
    """

    core: Core
    ways: tuple[tuple[WayOut, FleetAnswer], ...]
    complete: bool

    def record(self) -> Conflict:
        """As plan.json states it."""
        return Conflict(
            requirements=tuple(each.name for each in self.core.requirements),
            minimal=self.core.minimal,
            ways_out=tuple(
                _way_record(way, answer.plan) for way, answer in self.ways if answer.plan is not None
            ),
            complete=self.complete,
        )


@dataclass(slots=True)
class _Clock:
    """Feasibility within a time box: what comes too late is unknown."""

    resolver: Resolver
    deadline: float
    late: bool = False

    def feasible(self, fleet: Fleet) -> Verdict:
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            self.late = True
            return Verdict.UNKNOWN
        limits = replace(self.resolver.limits, time_limit_s=min(left_s, self.resolver.limits.time_limit_s))
        own = replace(self.resolver, limits=limits)
        verdict = own.feasible(fleet)
        self.late = self.late or verdict is Verdict.UNKNOWN
        return verdict


def explain_conflict(
    fleet: Fleet, shortages: Sequence[Shortage], resolver: Resolver, time_box_s: float
) -> Explained | None:
    """Find the conflict of a fleet that is proven infeasible, and the ways out of it.

    Parameters
    ----------
    fleet : Fleet
        Infeasible while unmet demand is forbidden.
    shortages : Sequence[Shortage]
        What stays unserved at best: the first guess at where the conflict is.
    resolver : Resolver
        Solves, with the limits of one solve.
    time_box_s : float
        For everything together. [s]

    Returns
    -------
    Explained or None
        None where the time was too short for any core, or nothing that can be given up is in conflict.
    """
    started = time.monotonic()
    forbidden = replace(fleet, policy=replace(fleet.policy, unmet="forbid"))
    universe = requirements_of(forbidden)
    if forbidden.policy.must_use:
        # What must be used serves demand: without the demand there is nothing to use it for.
        universe = tuple(each for each in universe if each.kind is not RequirementKind.DEMAND)
    by_name = named(universe)
    clock = _Clock(resolver, started + time_box_s * SHARE_FOR_CORE)

    def oracle(kept: frozenset[str]) -> Verdict:
        reduced = forbidden
        for name, requirement in by_name.items():
            if name not in kept:
                reduced = requirement.drop(reduced)
        return clock.feasible(reduced)

    cores = CoreSearch(oracle)
    guess = _first_guess(universe, shortages)
    core = cores.core(guess) if len(guess) < len(universe) else None
    core = core or cores.core(universe)
    if core is None:
        return None
    clock.deadline = started + time_box_s
    # Demand is given up last: where time is short, what money can lift is looked at.
    first = sorted(core.requirements, key=lambda each: each.kind is RequirementKind.DEMAND)
    ways = ways_out(forbidden, universe, first, cores, clock.feasible)
    solved = []
    for way in ways:
        resolver.say(f"{'; '.join(give.text for give in way.gives)}: solving")
        solved.append((way, resolver.solve(way.laid_on(forbidden))))
    solved.sort(key=lambda pair: (not pair[0].serves_everything, pair[1].most_usd))
    return Explained(core, tuple(solved), not clock.late)


def with_conflict(outcome: Infeasible, fleet: Fleet, resolver: Resolver, time_box_s: float) -> Infeasible:
    """The outcome with its conflict, as far as that is found within the time."""
    found = explain_conflict(fleet, outcome.shortages, resolver, time_box_s)
    return outcome if found is None else outcome.model_copy(update={"conflict": found.record()})


def _first_guess(universe: Sequence[Requirement], shortages: Sequence[Shortage]) -> list[Requirement]:
    """What holds where demand stays unserved; the demand that does, and what money lifts, first."""
    short = {(row.service, row.region) for row in shortages}
    regions = {region for _, region in short}
    unserved = {f"{service} in {region} is served" for service, region in short}
    near = [each for each in universe if not each.places or each.places & regions]

    def rank(requirement: Requirement) -> int:
        if requirement.kind is RequirementKind.DEMAND:
            return 0 if any(requirement.name.startswith(name) for name in unserved) else 2
        return 1

    return sorted(near, key=rank)


def _way_record(way: WayOut, plan: Plan) -> StatedWayOut:
    return StatedWayOut(
        gives=tuple(
            GivenWay(requirement=give.requirement.name, change=give.text, least=give.least)
            for give in way.gives
        ),
        objective_usd=plan.objective_usd,
        bound_usd=plan.bound_usd,
    )
