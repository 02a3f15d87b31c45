"""Stress a plan: find the demand that its hardware cannot serve, and the cost of serving everything.

Each case has two solves. *Held* keeps the plan's hardware, because purchases take time and budgets are spent;
unserved demand is a broken promise. *Kept* may change every decision but must serve everything; its extra
cost over the plan is the price of keeping all promises.
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
from fleetplan.planner.search import CostThresholds

STRESS_COLUMNS: Final = (
    "case", "service", "region", "period", "unserved_requests_per_s", "asked_requests_per_s",
    "kept_least_usd", "kept_most_usd",
)  # fmt: skip
"""Columns of the table of `plan stress --csv`."""


class StressKind(StrEnum):
    """Kind of deviation from the plan."""

    DEMAND = "demand"
    PRICE = "price"
    LATE = "late delivery"
    REGION = "lost region"
    SLOWER = "slower model"


@dataclass(frozen=True, slots=True)
class Stress:
    """Deviations to test.

    Attributes
    ----------
    demand_ratios : tuple[float, ...]
        Relative changes of demand; negative for less demand.
    price_ratios : tuple[float, ...]
        Relative changes of the prices of all offers.
    late_quarters : int
        Delay of purchases in quarters; 0 omits the case.
    regions : tuple[str, ...]
        Regions to lose, one at a time.
    slower_ratios : tuple[float, ...]
        Relative increases of the duration of every step.
    """

    demand_ratios: tuple[float, ...]
    price_ratios: tuple[float, ...]
    late_quarters: int
    regions: tuple[str, ...]
    slower_ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StressCase:
    """One deviation from the plan.

    Attributes
    ----------
    kind : StressKind
        Kind of deviation.
    name : str
        Description with the amount.
    fleet : Fleet
        Fleet under the deviation.
    change : callable or None
        Changes the candidates.
    """

    kind: StressKind
    name: str
    fleet: Fleet
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class BrokenTarget:
    """Demand that the plan's hardware can no longer serve.

    Attributes
    ----------
    service, region, period : str
        Service, region and period of the demand.
    unserved, asked : float
        Unserved demand and total demand, over all classes. [requests/s]
    """

    service: str
    region: str
    period: str
    unserved: float
    asked: float


@dataclass(frozen=True, slots=True)
class StressOutcome:
    """Result of a case.

    Attributes
    ----------
    case : StressCase
        Deviation from the plan.
    broken : tuple[BrokenTarget, ...] or None
        Broken promises on the plan's hardware; None if undecided within the time.
    least_usd, most_usd : float or None
        Range of the extra cost of keeping every promise, from the optimality gaps; None without a plan. [USD]
    reasons : tuple[str, ...]
        Reasons why there is no plan.
    """

    case: StressCase
    broken: tuple[BrokenTarget, ...] | None
    least_usd: float | None
    most_usd: float | None
    reasons: tuple[str, ...]


def cases_of(fleet: Fleet, stress: Stress) -> Iterator[StressCase]:
    """Yield the cases of a stress test, one deviation each."""
    for ratio in stress.demand_ratios:
        yield StressCase(
            StressKind.DEMAND, f"demand {ratio:+.0%}", fleet_edits.demand_scaled(fleet, 1 + ratio)
        )
    for ratio in stress.price_ratios:
        yield StressCase(
            StressKind.PRICE, f"prices of offers {ratio:+.0%}", fleet_edits.price_scaled(fleet, 1 + ratio)
        )
    if stress.late_quarters:
        quarters = counted(stress.late_quarters, "quarter")
        name = f"purchases {quarters} late"
        yield StressCase(StressKind.LATE, name, fleet_edits.delivered_late(fleet, stress.late_quarters))
    for region in stress.regions:
        yield StressCase(StressKind.REGION, f"{region} lost", fleet_edits.region_lost(fleet, region))
    for ratio in stress.slower_ratios:
        slower = fleet_edits.served_slower(fleet, ratio)
        yield StressCase(StressKind.SLOWER, f"model {ratio:.0%} slower", slower, SlowerCandidates(ratio))


@dataclass(frozen=True, slots=True)
class SlowerCandidates:
    """Slows down candidates: every step takes longer by a share."""

    ratio: float

    def __call__(self, candidate: Candidate) -> Candidate:
        """Return the candidate with lower rates."""
        rates = tuple(rate / (1 + self.ratio) for rate in candidate.requests_per_s)
        return replace(candidate, requests_per_s=rates)


def stressed(
    cases: Sequence[StressCase], plan: Plan, fleet: Fleet, resolver: Resolver
) -> Iterator[StressOutcome]:
    """Yield the result of each case, as soon as it is solved.

    Parameters
    ----------
    cases : Sequence[StressCase]
        Deviations to test.
    plan : Plan
        Plan of the fleet that serves all demand at the lowest TCO.
    fleet : Fleet
        Fleet as planned.
    resolver : Resolver
        Solves changed fleets, at most two per case.
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
    case: StressCase, plan: Plan, before: Problem, kept: FleetAnswer, held: FleetAnswer | None
) -> StressOutcome:
    """Return the result of a case from its two answers: with new decisions, and on the plan's hardware."""
    # Hardware of a lost region still costs money.
    lost_usd = fixed_usd(before) - fixed_usd(kept.problem) if case.kind is StressKind.REGION else 0.0
    least = most = None
    if kept.plan is not None:
        least = kept.least_usd + lost_usd - plan.objective_usd
        most = kept.most_usd + lost_usd - plan.bound_usd
    broken: tuple[BrokenTarget, ...] | None = ()
    if held is not None:
        broken = None if held.plan is None else tuple(_unserved(held))
    return StressOutcome(case, broken, least, most, kept.reasons)


def _holds_as_it_is(case: StressCase, before: Problem, resolver: Resolver) -> bool:
    """Return whether the plan also serves everything under a case: only prices change, or demand falls."""
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


def _held(case: StressCase, plan: Plan, problem: Problem) -> FleetQuestion:
    """Return the question for the plan's own hardware, which serves priorities in order."""
    fleet = problem.fleet
    held = fleet_edits.limited_to(fleet, plan, problem)
    # Hardware bought or rented in the plan is given: budgets do not forbid what is already paid.
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
    # Hardware that would not survive the loss of a further region still serves.
    held = fleet_edits.with_policy(
        held, lambda policy: replace(policy, unmet="penalise", survive_region_loss=())
    )
    # The cost does not matter: any plan with the least unserved demand will do.
    return FleetQuestion(
        _as_in(case, held),
        case.change,
        begin=plan,
        thresholds=CostThresholds(math.inf, math.inf),
        with_baseline=False,
    )


def _as_in(case: StressCase, held: Fleet) -> Fleet:
    """Return the held fleet under the case."""
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


def _unserved(answer: FleetAnswer) -> Iterator[BrokenTarget]:
    """Yield the unmet demand of a plan by service, region and period in its worst moment, largest first."""
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
        rows.append(BrokenTarget(service, region, period, max(by_moment.values()), asked))
    yield from sorted(rows, key=lambda row: -row.unserved)


def stress_table(found: Sequence[StressOutcome]) -> pd.DataFrame:
    """Return one row per case and broken promise, or one for a case without any. [requests/s; USD]"""
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
