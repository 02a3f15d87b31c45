"""Terms, lots and spot capacity."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.oracles.highs import highs_usd
from tests.planner.builders import buy_offer, candidate, fleet, hardware, rent_offer, service
from tests.planner.solving import Solved, is_infeasible, solve

from fleetplan.fleet.inventory import Fleet, Offer
from fleetplan.planner.problem import build_problem
from fleetplan.planner.verify import verify

PERIODS = ("2027Q1", "2027Q2", "2027Q3", "2027Q4")
RUNS = (candidate("chat", "A", 1.0),)
HOURS = 2190.0


def asked(rates: tuple[float, ...], *offers: Offer) -> Fleet:
    demand = {("here", quarter, "all"): rate for quarter, rate in zip(PERIODS, rates, strict=True)}
    return fleet(
        services=[service("chat", demand, periods=PERIODS)],
        hardware=[hardware("A", 1)],
        offers=list(offers),
        periods=PERIODS,
    )


def taken(solved: Solved) -> list[tuple[str, str, str, int]]:
    assert solved.plan is not None
    return [(row.offer, row.kind, row.period, row.units) for row in solved.plan.purchases]


def reserved(usd_per_hour: float, term: int, maximum: int | None = None) -> Offer:
    offer = rent_offer("reserve", usd_per_hour, hardware="A", maximum=maximum, periods=PERIODS)
    return replace(offer, term_periods=term)


def test_a_term_is_paid_to_its_end() -> None:
    by_quarter = rent_offer("rent", 1.0, hardware="A", periods=PERIODS)
    question = asked((2.0, 1.0, 1.0, 0.0), by_quarter, reserved(0.6, 3))
    solved = solve(question, RUNS)
    # For the second of the first quarter, one at 1.0 beats three at 0.6.
    assert solved.usd == pytest.approx((3 * 0.6 + 1.0) * HOURS)
    assert highs_usd(build_problem(question, RUNS)) == pytest.approx(solved.usd)
    assert {kind for _, kind, _, _ in taken(solved)} == {"rent", "reserve"}


def test_a_term_that_is_too_long_is_not_taken() -> None:
    by_quarter = rent_offer("rent", 1.0, hardware="A", periods=PERIODS)
    question = asked((0.0, 1.0, 0.0, 0.0), by_quarter, reserved(0.6, 2))
    assert taken(solve(question, RUNS)) == [("rent", "rent", "2027Q2", 1)]


def test_only_the_horizon_of_a_term_is_charged() -> None:
    solved = solve(asked((0.0, 0.0, 0.0, 1.0), reserved(0.6, 8)), RUNS)
    assert solved.usd == pytest.approx(0.6 * HOURS)


def test_the_price_of_the_first_quarter_holds_for_the_term() -> None:
    prices = (1.0, 2.0, 2.0, 2.0)
    offer = replace(reserved(1.0, 4), rent_usd_per_accelerator_hour=prices)
    assert solve(asked((1.0,) * 4, offer), RUNS).usd == pytest.approx(4 * HOURS)


def test_the_maximum_holds_for_what_is_held() -> None:
    offer = reserved(1.0, 2, maximum=1)
    solved = solve(asked((1.0,) * 4, offer), RUNS)
    assert taken(solved) == [("reserve", "reserve", "2027Q1", 1), ("reserve", "reserve", "2027Q3", 1)]
    assert is_infeasible(asked((1.0, 2.0, 1.0, 1.0), offer), RUNS)
    assert solved.plan is not None
    twice = solved.plan.purchases[0].model_copy(update={"period": "2027Q2"})
    tampered = solved.plan.model_copy(update={"purchases": (*solved.plan.purchases, twice)})
    assert "purchases" in {violation.family for violation in verify(solved.problem, tampered)}


def test_a_term_starts_after_its_lead_time() -> None:
    offer = replace(reserved(1.0, 4), lead_time_periods=1)
    assert taken(solve(asked((0.0, 1.0, 1.0, 1.0), offer), RUNS)) == [("reserve", "reserve", "2027Q2", 1)]
    assert is_infeasible(asked((1.0,) * 4, offer), RUNS)


def test_hosts_come_in_lots() -> None:
    lot = replace(buy_offer("buy", 1_600.0, hardware="A", per_unit=1, periods=PERIODS), lot_units=4)
    question = asked((5.0,) * 4, lot)
    solved = solve(question, RUNS)
    assert taken(solved) == [("buy", "buy", "2027Q1", 8)]
    assert solved.usd == pytest.approx(8 * 4 * 100.0)
    assert highs_usd(build_problem(question, RUNS)) == pytest.approx(solved.usd)
    # A maximum of seven is one lot of four.
    assert is_infeasible(asked((5.0, 0.0, 0.0, 0.0), replace(lot, max_units=(7,) * 4)), RUNS)
    assert solved.plan is not None
    five = solved.plan.purchases[0].model_copy(update={"units": 5})
    tampered = solved.plan.model_copy(update={"purchases": (five,)})
    assert "purchases" in {violation.family for violation in verify(solved.problem, tampered)}


def test_spot_serves_its_share_of_a_service() -> None:
    spot = replace(rent_offer("spot", 0.2, hardware="A", periods=PERIODS), spot_max_share=0.3)
    safe = rent_offer("rent", 1.0, hardware="A", periods=PERIODS)
    solved = solve(asked((10.0,) * 4, spot, safe), RUNS)
    assert solved.usd == pytest.approx(4 * (3 * 0.2 + 7 * 1.0) * HOURS)
    assert {(name, kind, units) for name, kind, _, units in taken(solved)} == {
        ("rent", "rent", 7),
        ("spot", "spot", 3),
    }
    assert is_infeasible(asked((10.0,) * 4, spot), RUNS)


def test_a_plan_with_too_much_on_spot_is_rejected() -> None:
    spot = replace(rent_offer("spot", 0.2, hardware="A", periods=PERIODS), spot_max_share=0.5)
    safe = rent_offer("rent", 1.0, hardware="A", periods=PERIODS)
    solved = solve(asked((10.0,) * 4, spot, safe), RUNS)
    assert solved.plan is not None
    stricter = asked((10.0,) * 4, replace(spot, spot_max_share=0.4), safe)
    problem = build_problem(stricter, RUNS)
    assert "placement" in {violation.family for violation in verify(problem, solved.plan)}
