"""Explain an infeasible fleet: minimal conflict, resolutions, and the cost of each resolution."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import OutOfTimeError
from fleetplan.planner.plan import ConcessionRow, Conflict, Infeasible, Plan, Shortage, StatedWayOut
from fleetplan.planner.questions.conflict.core import Core, CoreSearch
from fleetplan.planner.questions.conflict.requirement import Requirement, RequirementKind
from fleetplan.planner.questions.conflict.requirements import requirements_of
from fleetplan.planner.questions.conflict.ways_out import Concession, WayOut, named, ways_out
from fleetplan.planner.questions.fleet_question import FleetAnswer
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search import Deadline, Verdict, least_power

SHARE_FOR_POWER: Final = 0.5
"""Share of the time for finding the least extra power, if power is short."""

SHARE_FOR_CORE: Final = 0.5
"""Share of the remaining time after which the minimisation of the conflict ends."""


MOST_BUILDING_S: Final = 2.0
"""Maximum time of a question in addition to its search, which obeys the time limit. [s]"""


@dataclass(frozen=True, slots=True)
class ExplainedConflict:
    """The conflict of a fleet and its resolutions.

    Attributes
    ----------
    core : Core or None
        Minimal conflict; None if the time was too short to find one.
    ways : tuple[tuple[WayOut, FleetAnswer], ...]
        Resolutions, each with its plan: those that serve all demand first, then by cost.
    complete : bool
        Whether the time was enough to examine everything.
    """

    core: Core | None
    ways: tuple[tuple[WayOut, FleetAnswer], ...]
    complete: bool

    def record(self) -> Conflict:
        """Return the conflict in the format of plan.json."""
        return Conflict(
            requirements=() if self.core is None else tuple(each.name for each in self.core.requirements),
            minimal=self.core is not None and self.core.minimal,
            ways_out=tuple(
                _way_record(way, answer.plan) for way, answer in self.ways if answer.plan is not None
            ),
            complete=self.complete,
        )


@dataclass(slots=True)
class _Clock:
    """Feasibility oracle with a deadline: a question that cannot finish in time has an unknown answer."""

    resolver: Resolver
    deadline: Deadline
    late: bool = False
    last_s: float = 0.0
    """Duration of the last question, including the construction of its fleet and model. [s]"""

    @property
    def own(self) -> Resolver:
        """The resolver with solves limited by the deadline."""
        return replace(self.resolver, limits=replace(self.resolver.limits, latest=self.deadline))

    def out_of_time(self) -> bool:
        """Return whether no further question can finish before the deadline, and record it."""
        late = self.deadline.left_s <= min(self.last_s, MOST_BUILDING_S)
        self.late = self.late or late
        return late

    def feasible(self, fleet: Fleet) -> Verdict:
        if self.out_of_time():
            return Verdict.UNKNOWN
        left_s = self.deadline.left_s
        try:
            verdict = self.own.feasible(fleet)
        except OutOfTimeError:
            verdict = Verdict.UNKNOWN
        self.last_s = left_s - self.deadline.left_s
        self.late = self.late or verdict is Verdict.UNKNOWN
        return verdict


def explain_conflict(
    fleet: Fleet,
    shortages: Sequence[Shortage],
    resolver: Resolver,
    deadline: Deadline,
    proven: bool = False,
) -> ExplainedConflict | None:
    """Find the conflict of a fleet that is proven infeasible, and its resolutions.

    Parameters
    ----------
    fleet : Fleet
        Fleet that is infeasible if all demand must be served.
    shortages : Sequence[Shortage]
        Demand that remains unserved at best; the first guess at the location of the conflict.
    resolver : Resolver
        Solves changed fleets, with the limits of one solve.
    deadline : Deadline
        Deadline for the whole analysis.
    proven : bool
        Whether the full set of requirements is already known to be infeasible.

    Returns
    -------
    ExplainedConflict or None
        None if the time was too short, or if no requirement that can be dropped is in conflict.
    """
    forbidden = replace(fleet, policy=replace(fleet.policy, unmet="forbid"))
    universe = requirements_of(forbidden)
    if forbidden.policy.must_use:
        # Must-use rules need demand to serve: without demand there is nothing to use the hardware for.
        universe = tuple(each for each in universe if each.kind is not RequirementKind.DEMAND)
    by_name = named(universe)
    clock = _Clock(resolver, deadline)
    ways = _Ways(forbidden, clock)
    # Without any shortage, even idle hardware exceeds the power limit.
    if not shortages or any(row.power_short_kw is not None for row in shortages):
        # No other requirement is needed to determine the least extra power.
        clock.deadline = deadline.share(SHARE_FOR_POWER)
        way = _more_power(forbidden, universe, clock)
        clock.deadline = deadline
        ways.solve(way)

    def oracle(kept: frozenset[str]) -> Verdict:
        reduced = forbidden
        for name, requirement in by_name.items():
            if name not in kept:
                reduced = requirement.drop(reduced)
        return clock.feasible(reduced)

    cores = CoreSearch(oracle, lambda: clock.late)
    if proven and not forbidden.policy.must_use:
        cores.note(by_name, Verdict.NO)
    clock.deadline = deadline.share(SHARE_FOR_CORE)
    guess = _first_guess(universe, shortages)
    core = cores.core(guess) if len(guess) < len(universe) else None
    core = core or cores.core(universe)
    clock.deadline = deadline
    if core is not None:
        # Demand is dropped last: with little time, requirements that money can lift come first.
        first = sorted(core.requirements, key=lambda each: each.kind is RequirementKind.DEMAND)
        for way in ways_out(forbidden, universe, first, cores, clock.feasible):
            ways.solve(way)
    if core is None and not ways.known:
        return None
    return ExplainedConflict(core, ways.best_first(), core is not None and not clock.late)


class _Ways:
    """Resolutions, each solved once when it is found."""

    def __init__(self, fleet: Fleet, clock: _Clock) -> None:
        self._fleet, self._clock = fleet, clock
        self._solved: dict[frozenset[str], tuple[WayOut, FleetAnswer]] = {}

    @property
    def known(self) -> bool:
        """Return whether any resolution has a plan."""
        return any(answer.plan is not None for _, answer in self._solved.values())

    def solve(self, way: WayOut | None) -> None:
        """Find the cheapest plan of a resolution, unless it is known or the time is over."""
        if way is None or self._clock.out_of_time():
            return
        given = frozenset(give.requirement.name for give in way.gives)
        if given not in self._solved:
            resolver = self._clock.own
            resolver.say(f"{'; '.join(give.text for give in way.gives)}: solving")
            with suppress(OutOfTimeError):
                self._solved[given] = way, resolver.solve(way.laid_on(self._fleet))

    def best_first(self) -> tuple[tuple[WayOut, FleetAnswer], ...]:
        """Return resolutions that serve all demand first, then by cost."""
        return tuple(
            sorted(self._solved.values(), key=lambda pair: (not pair[0].serves_everything, pair[1].most_usd))
        )


def _more_power(fleet: Fleet, universe: Sequence[Requirement], clock: _Clock) -> WayOut | None:
    """Return the least extra power that resolves the conflict; None if no power is enough."""
    limited = [each for each in universe if each.power_limit is not None]
    for requirement in limited:
        fleet = requirement.drop(fleet)
    if not limited or clock.out_of_time():
        return None
    resolver = clock.own
    asked = [each.power_limit for each in limited if each.power_limit is not None]
    try:
        found = least_power(resolver.problem(fleet)[1], asked, resolver.limits)
    except OutOfTimeError:
        return None
    if found is None or not found.steps:
        return None
    short = [each for each in limited if each.power_limit and each.power_limit.region in found.steps]
    return WayOut(
        tuple(
            Concession(each, found.steps[each.power_limit.region], found.least)
            for each in short
            if each.power_limit is not None
        )
    )


def with_conflict(outcome: Infeasible, fleet: Fleet, resolver: Resolver, deadline: Deadline) -> Infeasible:
    """Return the outcome with its conflict, if the time is enough to find it."""
    found = explain_conflict(fleet, outcome.shortages, resolver, deadline, proven=True)
    return outcome if found is None else outcome.model_copy(update={"conflict": found.record()})


def _first_guess(universe: Sequence[Requirement], shortages: Sequence[Shortage]) -> list[Requirement]:
    """Return requirements near the unserved demand, that demand first, then those that money can lift."""
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
            ConcessionRow(requirement=give.requirement.name, change=give.text, least=give.least)
            for give in way.gives
        ),
        objective_usd=plan.objective_usd,
        bound_usd=plan.bound_usd,
    )
