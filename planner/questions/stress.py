"""What breaks when the world is not as planned, and what keeping every promise would cost.

Two questions to each case. *Held*: the plan's own hardware and no more, as purchases take a while and budgets
are spent; what it can no longer serve are the promises that break. *Kept*: everything may be decided again,
everything must be served; what the fleet then costs more than the plan is the price of keeping them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import pandas as pd

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import NoPlanFoundError
from fleetplan.planner.formulation import fixed_usd
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, Cell, Problem
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.fleet_question import Change, FleetAnswer, FleetQuestion
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search import Verge

STRESS_COLUMNS: Final = (
    "case", "service", "region", "period", "unserved_requests_per_s", "asked_requests_per_s",
    "kept_least_usd", "kept_most_usd",
)  # fmt: skip
"""Of the table that `plan stress --csv` writes."""


class StressKind(StrEnum):
    """What is not as planned."""

    DEMAND = "demand"
    PRICE = "price"
    LATE = "late delivery"
    REGION = "lost region"
    SLOWER = "slower model"


@dataclass(frozen=True, slots=True)
class Stress:
    """How much of what is not as planned.

    Attributes
    ----------
    demand_ratios : tuple[float, ...]
        Shares that demand is more (less where negative).
    price_ratios : tuple[float, ...]
        Shares that the prices of all offers are more.
    late_quarters : int
        Quarters that purchases arrive later; 0 leaves the case out.
    regions : tuple[str, ...]
        Regions that are lost, one at a time.
    slower_ratios : tuple[float, ...]
        Shares that every step takes longer.
    """

    demand_ratios: tuple[float, ...]
    price_ratios: tuple[float, ...]
    late_quarters: int
    regions: tuple[str, ...]
    slower_ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is not as planned.

    Attributes
    ----------
    kind : StressKind
        What.
    name : str
        With its amount.
    fleet : Fleet
        As it is then.
    change : callable or None
        What becomes of the candidates.
    """

    kind: StressKind
    name: str
    fleet: Fleet
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that the plan's hardware no longer keeps.

    Attributes
    ----------
    service, region, period : str
        Whose, where and when.
    unserved, asked : float
        What it cannot serve of what is asked, over all classes. [requests/s]
    """

    service: str
    region: str
    period: str
    unserved: float
    asked: float


@dataclass(frozen=True, slots=True)
class StressOutcome:
    """What a case does to a plan.

    Attributes
    ----------
    case : Case
        What is not as planned.
    broken : tuple[Broken, ...] or None
        Promises that break on the plan's own hardware; None where that was not decided in the time.
    least_usd, most_usd : float or None
        What keeping every promise costs more than the plan, between two amounts that the gaps leave; None
        where no plan keeps them, or none was found. [USD]
    reasons : tuple[str, ...]
        Why there is none.
    """

    case: Case
    broken: tuple[Broken, ...] | None
    least_usd: float | None
    most_usd: float | None
    reasons: tuple[str, ...]


def cases_of(fleet: Fleet, stress: Stress) -> Iterator[Case]:
    """The cases of a stress, one thing at a time."""
    for ratio in stress.demand_ratios:
        yield Case(StressKind.DEMAND, f"demand {ratio:+.0%}", fleet_edits.demand_scaled(fleet, 1 + ratio))
    for ratio in stress.price_ratios:
        yield Case(
            StressKind.PRICE, f"prices of offers {ratio:+.0%}", fleet_edits.price_scaled(fleet, 1 + ratio)
        )
    if stress.late_quarters:
        quarters = counted(stress.late_quarters, "quarter")
        name = f"purchases {quarters} late"
        yield Case(StressKind.LATE, name, fleet_edits.delivered_late(fleet, stress.late_quarters))
    for region in stress.regions:
        yield Case(StressKind.REGION, f"{region} lost", fleet_edits.region_lost(fleet, region))
    for ratio in stress.slower_ratios:
        slower = fleet_edits.served_slower(fleet, ratio)
        yield Case(StressKind.SLOWER, f"model {ratio:.0%} slower", slower, Slower(ratio))


@dataclass(frozen=True, slots=True)
class Slower:
    """Candidates whose every step takes longer by a share."""

    ratio: float

    def __call__(self, candidate: Candidate) -> Candidate:
        """The candidate at its lower rates."""
        rates = tuple(rate / (1 + self.ratio) for rate in candidate.requests_per_s)
        return replace(candidate, requests_per_s=rates)


def stressed(cases: Sequence[Case], plan: Plan, fleet: Fleet, resolver: Resolver) -> Iterator[StressOutcome]:
    """Yield what each case does to a plan, as it is solved.

    Parameters
    ----------
    cases : Sequence[Case]
        What is not as planned.
    plan : Plan
        Of the fleet; serves everything at the least TCO.
    fleet : Fleet
        As planned.
    resolver : Resolver
        Solves, at most twice a case.
    """
    before = resolver.problem(fleet)[1]
    holds = [_holds_as_it_is(case, before, resolver) for case in cases]
    asked: list[FleetQuestion] = []
    for case, held in zip(cases, holds, strict=True):
        asked.append(FleetQuestion(case.fleet, case.change, begin=plan))
        if not held:
            asked.append(_held(case, plan, before))
    answers = resolver.answers(asked)
    for case, held in zip(cases, holds, strict=True):
        yield _outcome(case, plan, before, next(answers), None if held else next(answers))


def _outcome(
    case: Case, plan: Plan, before: Problem, kept: FleetAnswer, held: FleetAnswer | None
) -> StressOutcome:
    """What a case does, by the answer that keeps every promise, and by that on the plan's own hardware."""
    # What stood in a lost region is paid for all the same.
    lost_usd = fixed_usd(before) - fixed_usd(kept.problem) if case.kind is StressKind.REGION else 0.0
    least = most = None
    if kept.plan is not None:
        least = kept.least_usd + lost_usd - plan.objective_usd
        most = kept.most_usd + lost_usd - plan.bound_usd
    broken: tuple[Broken, ...] | None = ()
    if held is not None:
        broken = None if held.plan is None else tuple(_unserved(held))
    return StressOutcome(case, broken, least, most, kept.reasons)


def _holds_as_it_is(case: Case, before: Problem, resolver: Resolver) -> bool:
    """Whether a plan serves everything under a case as well: prices alone have changed, or demand fell."""
    if case.kind not in (StressKind.DEMAND, StressKind.PRICE):
        return False
    try:
        (_, after), _ = resolver.problem_in_time(case.fleet, case.change)
    except NoPlanFoundError:
        return False
    if after.candidates != before.candidates:
        return False
    asked = {(cell.service, cell.region, cell.moment): cell.most_requests_per_s for cell in before.cells}

    def fits(cell: Cell) -> bool:
        planned = asked.get((cell.service, cell.region, cell.moment), ())
        return len(planned) == len(cell.most_requests_per_s) and all(
            rate <= most for rate, most in zip(cell.most_requests_per_s, planned, strict=True)
        )

    return all(map(fits, after.cells))


def _held(case: Case, plan: Plan, problem: Problem) -> FleetQuestion:
    """What the plan's own hardware can serve, the first priority served first."""
    fleet = problem.fleet
    held = fleet_edits.limited_to(fleet, plan, problem)
    # Hardware that the plan rents or buys is taken as it stands: budgets do not forbid what is paid already.
    held = fleet_edits.with_budget(
        held,
        lambda budget: replace(
            budget,
            capex_usd=None,
            opex_usd=None,
            tco_usd=None,
            capex_usd_by_period=tuple(None for _ in fleet.periods),
        ),
    )
    # Hardware that no longer survives the loss of a region serves all the same.
    held = fleet_edits.with_policy(
        held, lambda policy: replace(policy, unmet="penalise", survive_region_loss=())
    )
    # What it costs is not asked: any plan that leaves the least unserved will do.
    return FleetQuestion(
        _as_in(case, held),
        case.change,
        begin=plan,
        verge=Verge(math.inf, math.inf),
        with_baseline=False,
    )


def _as_in(case: Case, held: Fleet) -> Fleet:
    """The held fleet under the case."""
    if case.kind is StressKind.LATE:
        late = {offer.name: offer.lead_time_periods for offer in case.fleet.offers}
        offers = tuple(
            replace(offer, lead_time_periods=late[offer.name.removesuffix(f" in {offer.regions[0]}")])
            for offer in held.offers
        )
        return replace(held, offers=offers)
    if case.kind is StressKind.REGION:
        places = {pool.region for pool in case.fleet.pools} | {
            region for offer in case.fleet.offers for region in offer.regions
        }
        # Plans count on hosts in reserve then, and on pools for all of a service.
        policy = replace(
            held.policy, reserve_hosts_per_pool=0, reserve_percent_per_pool=0.0, max_share_per_pool=None
        )
        return replace(
            held,
            services=case.fleet.services,
            pools=tuple(replace(pool, reserve_hosts=None, reserve_percent=None) for pool in case.fleet.pools),
            offers=tuple(offer for offer in held.offers if offer.regions[0] in places),
            policy=policy,
        )
    return replace(held, services=case.fleet.services)


def _unserved(answer: FleetAnswer) -> Iterator[Broken]:
    """Unmet demand of a plan by service, region and period, in its worst moment, what is most first."""
    if answer.plan is None:
        return
    worst: dict[tuple[str, str, str], dict[tuple[str, ...], float]] = {}
    for row in answer.plan.shortages:
        by_moment = worst.setdefault((row.service, row.region, row.period), {})
        key = tuple(str(part) for part in row.moment_key)
        by_moment[key] = by_moment.get(key, 0.0) + row.requests_per_s
    rows = []
    for (service, region, period), by_moment in worst.items():
        asked = sum(
            rate
            for (where, when, _), rate in answer.problem.services[service].demand.peak.items()
            if (where, when) == (region, period)
        )
        rows.append(Broken(service, region, period, max(by_moment.values()), asked))
    yield from sorted(rows, key=lambda row: -row.unserved)


def stress_table(found: Sequence[StressOutcome]) -> pd.DataFrame:
    """One row a case and promise that breaks; a case without any has one row. [requests/s; USD]"""
    rows: list[list[object]] = []
    for outcome in found:
        cost: list[object] = [outcome.least_usd, outcome.most_usd]
        broken = outcome.broken or ()
        for row in broken:
            rows.append(
                [outcome.case.name, row.service, row.region, row.period, row.unserved, row.asked, *cost]
            )
        if not broken:
            rows.append([outcome.case.name, "", "", "", None if outcome.broken is None else 0.0, None, *cost])
    return pd.DataFrame(rows, columns=list(STRESS_COLUMNS))
