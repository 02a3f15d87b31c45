"""Requests stay in their own region unless leaving it saves more than a service may pay for that."""

from __future__ import annotations

import itertools
import random
from functools import cache

import pytest
from tests.parts import first_parts
from tests.planner.builders import (
    HOURS_PER_QUARTER,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    service,
)
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.report.decision import simpler
from fleetplan.planner.verify import verify

BOTH = ("east", "west")
GAP = 0.2
WAYS = {"east": {"west": 10.0}, "west": {"east": 10.0}}
RUNS = tuple(
    candidate(name, kind, rate) for name in ("chat", "code") for kind, rate in (("A", 1.0), ("B", 1.0))
)


def two_regions(east_usd: float, percents: dict[str, float], simpler_percent: float = 0.0) -> Fleet:
    """Five requests/s of each service in the east, which the west serves at 1 USD/h on other hardware."""
    return fleet(
        services=[
            service(name, 5.0, regions=("east",), serve_from={"east": ("west",)}, home_percent=percent)
            for name, percent in percents.items()
        ],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[
            rent_offer("east", east_usd, hardware="A", regions=("east",)),
            rent_offer("west", 1.0, hardware="B", regions=("west",)),
        ],
        regions=[region(place, round_trip_ms=WAYS[place]) for place in BOTH],
        policy={"simpler_percent": simpler_percent},
    )


def plan_of(solved: Solved) -> Plan:
    assert solved.plan is not None
    assert verify(solved.problem, solved.plan) == []
    return solved.plan


def away(plan: Plan, name: str | None = None) -> float:
    """Requests/s of a service, or of all, that another region serves."""
    return sum(
        sum(by_class.values())
        for row in plan.placements
        if name in (None, row.service)
        for by_class in row.requests_per_s_by_origin.values()
    )


@pytest.mark.parametrize(("percent", "served_away"), [(0.0, 5.0), (1.9, 5.0), (10.1, 0.0)])
def test_requests_stay_home_for_what_the_service_may_pay(percent: float, served_away: float) -> None:
    """Home costs 10 % more. No configuration of the cheapest plan runs there."""
    found = plan_of(solve(two_regions(1.1, {"chat": percent}), RUNS, gap=GAP))
    assert away(found) == pytest.approx(served_away)
    assert found.objective_usd == pytest.approx((5.0 if served_away else 5.5) * HOURS_PER_QUARTER)
    if served_away:
        assert found.simplification is None
        return
    stated = found.simplification
    assert stated is not None
    assert stated.home is not None
    assert stated.usd == stated.home.usd == pytest.approx(0.5 * HOURS_PER_QUARTER)
    assert (stated.home.away_requests_per_s, stated.home.away_requests_per_s_before) == (0.0, 5.0)
    text = simpler(found)
    assert text.startswith("0 instead of 5 requests/s served in another region on average, ")
    assert text.endswith("the cheapest plan found, $1.095 k of it to serve requests in their own region")


def test_as_many_stay_home_as_may_be_paid_for() -> None:
    """Each whole accelerator at home costs 2 % of the cheapest plan more."""
    found = plan_of(solve(two_regions(1.1, {"chat": 5.0}), RUNS, gap=GAP))
    assert away(found) == pytest.approx(3.0)


def test_services_that_may_pay_more_stay_home_before_others() -> None:
    """Of ten accelerators each costs 1 % more at home: five may be paid for, then two."""
    found = plan_of(solve(two_regions(1.1, {"chat": 2.0, "code": 5.0}), RUNS, gap=GAP))
    assert (away(found, "code"), away(found, "chat")) == (pytest.approx(0.0), pytest.approx(5.0))
    assert found.objective_usd == pytest.approx(10.5 * HOURS_PER_QUARTER)


def test_the_asked_gap_is_not_exceeded() -> None:
    found = plan_of(solve(two_regions(1.1, {"chat": 50.0}), RUNS, gap=0.03))
    assert found.gap <= 0.03
    assert away(found) == pytest.approx(4.0)


def random_fleet(seed: int, percents: dict[str, float]) -> Fleet:
    dice = random.Random(seed)
    return fleet(
        services=[
            service(
                name,
                dice.choice((3.0, 4.5, 7.0)),
                regions=BOTH,
                serve_from={"east": ("west",), "west": ("east",)},
                home_percent=percents.get(name, 0.0),
            )
            for name in ("chat", "code")
        ],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[
            rent_offer(
                f"{place}-{kind}",
                dice.uniform(1.0, 1.3),
                hardware=kind,
                regions=(place,),
                maximum=dice.choice((4, 9, 30)) if kind == "B" else None,
            )
            for place in BOTH
            for kind in "AB"
        ],
        regions=[region(place, round_trip_ms=WAYS[place]) for place in BOTH],
        policy={"simpler_percent": 0.0},
    )


@cache
def repeated(seed: int, **percents: float) -> Plan:
    """The plan of a random fleet, found by the same steps whatever may be paid."""
    runs = (candidate("chat", "A", 1.0), candidate("chat", "B", 1.4), *RUNS[2:])
    return plan_of(solve(random_fleet(seed, percents), runs, gap=GAP, reproducible=True))


@pytest.mark.parametrize("seed", first_parts(range(6), 0, more=3))
def test_a_larger_allowance_never_moves_more_away_and_none_changes_nothing(seed: int) -> None:
    cheapest = repeated(seed)
    served = [away(cheapest)]
    for percent in (1.0, 4.0, 15.0):
        found = repeated(seed, chat=percent, code=percent)
        served.append(away(found))
        assert found.objective_usd <= cheapest.objective_usd * (1 + percent / 100) * (1 + 1e-6)
    assert all(after <= before + 1e-6 for before, after in itertools.pairwise(served)), served
    none = repeated(seed, chat=0.0)
    assert (none.placements, none.purchases) == (cheapest.placements, cheapest.purchases)


@pytest.mark.parametrize("fleets", first_parts((3, 6), 0, more=1))
def test_the_law_has_cases(fleets: int) -> None:
    """At least two random fleets above serve more requests at home where that may cost more."""
    pairs = [(repeated(seed), repeated(seed, chat=15.0, code=15.0)) for seed in range(fleets)]
    assert sum(away(after) < away(before) for before, after in pairs) >= 2


def test_a_false_price_or_amount_is_noticed() -> None:
    solved = solve(two_regions(1.1, {"chat": 10.1}), RUNS, gap=GAP)
    stated = plan_of(solved).simplification
    assert stated is not None
    assert stated.home is not None
    for change, message in (
        ({"usd": stated.usd + 500.0}, "serving requests at home costs"),
        ({"usd": -500.0}, "serving requests at home costs"),
        ({"away_requests_per_s": 2.0}, "the plan states 2.0 requests/s; recomputed: 0.0 requests/s"),
        (
            {"away_requests_per_s_before": -1.0},
            "more requests are served away from home than in the cheapest plan",
        ),
    ):
        wrong = stated.model_copy(update={"home": stated.home.model_copy(update=change)})
        (violation,) = verify(solved.problem, plan_of(solved).model_copy(update={"simplification": wrong}))
        assert violation.family == "simplicity"
        assert message in violation.message
