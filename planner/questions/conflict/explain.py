"""The conflict of an infeasible fleet in full: core, ways out, and what each way out costs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import OutOfTimeError
from fleetplan.planner.plan import Conflict, GivenWay, Infeasible, Plan, Shortage, StatedWayOut
from fleetplan.planner.questions.conflict.core import Core, CoreSearch
from fleetplan.planner.questions.conflict.requirement import Requirement, RequirementKind
from fleetplan.planner.questions.conflict.requirements import requirements_of
from fleetplan.planner.questions.conflict.ways_out import Give, WayOut, named, ways_out
from fleetplan.planner.questions.fleet_question import FleetAnswer
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search import Deadline, Verdict, least_power

SHARE_FOR_POWER: Final = 0.5
"""Share of the time for the least power that would do, where power is short."""

SHARE_FOR_CORE: Final = 0.5
"""Share of the time left after which the core is taken as it is."""


MOST_BUILDING_S: Final = 2.0
"""What a question takes at the most but for its search, which ends in time. [s]"""


@dataclass(frozen=True, slots=True)
class Explained:
    """The conflict of a fleet.

    Attributes
    ----------
    core : Core or None
        What cannot hold together; None where the time was too short to find it.
    ways : tuple[tuple[WayOut, FleetAnswer], ...]
        What could give, each with the plan that there is then; what serves everything first, then the
        cheapest plan.
    complete : bool
        Whether the time was enough to look at everything.
    """

    core: Core | None
    ways: tuple[tuple[WayOut, FleetAnswer], ...]
    complete: bool

    def record(self) -> Conflict:
        """As plan.json states it."""
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
    """Feasibility until a deadline: what comes too late, or would end too late, is unknown."""

    resolver: Resolver
    deadline: Deadline
    late: bool = False
    last_s: float = 0.0
    """What the last question took; a fleet and its model have to be built for each. [s]"""

    @property
    def own(self) -> Resolver:
        """The resolver whose solves end by then."""
        return replace(self.resolver, limits=replace(self.resolver.limits, latest=self.deadline))

    def out_of_time(self) -> bool:
        """Whether no question ends before the deadline, which is noted."""
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
    deadline : Deadline
        For everything together.
    proven : bool
        Whether it is known already that all requirements together have no plan.

    Returns
    -------
    Explained or None
        None where the time was too short for anything, or nothing that can be given up is in conflict.
    """
    forbidden = replace(fleet, policy=replace(fleet.policy, unmet="forbid"))
    universe = requirements_of(forbidden)
    if forbidden.policy.must_use:
        # What must be used serves demand: without the demand there is nothing to use it for.
        universe = tuple(each for each in universe if each.kind is not RequirementKind.DEMAND)
    by_name = named(universe)
    clock = _Clock(resolver, deadline)
    ways = _Ways(forbidden, clock)
    # Without any shortage not even what stands idle has its power.
    if not shortages or any(row.power_short_kw is not None for row in shortages):
        # Nothing else is needed to say how much of it would do.
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
        # Demand is given up last: where time is short, what money can lift is looked at.
        first = sorted(core.requirements, key=lambda each: each.kind is RequirementKind.DEMAND)
        for way in ways_out(forbidden, universe, first, cores, clock.feasible):
            ways.solve(way)
    if core is None and not ways.known:
        return None
    return Explained(core, ways.best_first(), core is not None and not clock.late)


class _Ways:
    """Ways out that are solved as they are found, each once."""

    def __init__(self, fleet: Fleet, clock: _Clock) -> None:
        self._fleet, self._clock = fleet, clock
        self._solved: dict[frozenset[str], tuple[WayOut, FleetAnswer]] = {}

    @property
    def known(self) -> bool:
        """Whether there is any with a plan."""
        return any(answer.plan is not None for _, answer in self._solved.values())

    def solve(self, way: WayOut | None) -> None:
        """Find the cheapest plan of a way out, unless there is one or no time."""
        if way is None or self._clock.out_of_time():
            return
        given = frozenset(give.requirement.name for give in way.gives)
        if given not in self._solved:
            resolver = self._clock.own
            resolver.say(f"{'; '.join(give.text for give in way.gives)}: solving")
            with suppress(OutOfTimeError):
                self._solved[given] = way, resolver.solve(way.laid_on(self._fleet))

    def best_first(self) -> tuple[tuple[WayOut, FleetAnswer], ...]:
        """What serves everything first, then the cheapest plan."""
        return tuple(
            sorted(self._solved.values(), key=lambda pair: (not pair[0].serves_everything, pair[1].most_usd))
        )


def _more_power(fleet: Fleet, universe: Sequence[Requirement], clock: _Clock) -> WayOut | None:
    """The fewest kilowatts more, all else as it is; None where no power is enough."""
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
            Give(each, found.steps[each.power_limit.region], found.least)
            for each in short
            if each.power_limit is not None
        )
    )


def with_conflict(outcome: Infeasible, fleet: Fleet, resolver: Resolver, deadline: Deadline) -> Infeasible:
    """The outcome with its conflict, as far as that is found within the time."""
    found = explain_conflict(fleet, outcome.shortages, resolver, deadline, proven=True)
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
