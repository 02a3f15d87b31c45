"""Broken promises under stress and the cost of keeping them, against hand calculations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import buy_offer, fleet, hardware, owned_pool, region, rent_offer, service
from tests.planner.questions.tiny import EXACT, engine_table

from fleetplan.fleet.inventory import Fleet, LatencyLimit, OutsideLatency, Traffic
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.stress import (
    BrokenTarget,
    Stress,
    StressCase,
    StressKind,
    StressOutcome,
    cases_of,
    stress_table,
    stressed,
)

HOURS = 2190.0
NOTHING = Stress((), (), 0, (), ())


def best_plan(question: Fleet) -> Plan:
    plan = Resolver(EXACT).solve(question).plan
    assert plan is not None
    return plan


def outcomes(question: Fleet, stress: Stress) -> list[StressOutcome]:
    plan = best_plan(question)
    return list(stressed(list(cases_of(question, stress)), plan, question, Resolver(EXACT)))


def rented(**changes: object) -> Fleet:
    """Return a fleet of 4 cards of 10 requests/s each; the plan rents 6 more at 2 USD/h."""
    fields: dict[str, object] = {
        "services": [service("chat", 100.0, engines=engine_table([("aggregated", "A", 1, 10.0)]))],
        "hardware": [hardware("A", 1)],
        "pools": [owned_pool("own", 4, 16_000.0, hardware="A", per_host=1)],
        "offers": [rent_offer("rent", 2.0, hardware="A")],
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]


def test_more_demand_breaks_what_the_hardware_cannot_carry() -> None:
    more, less = outcomes(rented(), replace(NOTHING, demand_ratios=(0.2, -0.2)))
    assert more.broken == (BrokenTarget("chat", "here", "now", pytest.approx(20.0), pytest.approx(120.0)),)
    assert more.least_usd == pytest.approx(2 * 2.0 * HOURS)
    assert more.most_usd == pytest.approx(2 * 2.0 * HOURS)
    assert less.broken == ()
    assert less.most_usd == pytest.approx(-2 * 2.0 * HOURS)


def test_dearer_offers_break_nothing_and_cost_their_rent() -> None:
    (found,) = outcomes(rented(), replace(NOTHING, price_ratios=(0.25,)))
    assert found.broken == ()
    assert found.most_usd == pytest.approx(6 * 0.5 * HOURS)


def test_a_slower_model_breaks_throughput_and_latency() -> None:
    (found,) = outcomes(rented(), replace(NOTHING, slower_ratios=(0.25,)))
    # A card carries 8 requests/s: 10 carry 80, and 13 are needed.
    assert found.broken is not None
    assert found.broken[0].unserved == pytest.approx(20.0)
    assert found.most_usd == pytest.approx(3 * 2.0 * HOURS)
    late = engine_table([("aggregated", "A", 1, 10.0)])
    late["ttft_ms"] = [110.0]
    for limit_ms, fails in ((129.9, True), (130.1, False)):
        # 30 ms of the limit are spent elsewhere and stay: 80 ms of 100 may take 80 * 1.25.
        late["ttft_ms"] = [80.0]
        asked = service("chat", 100.0, engines=late, ttft_ms=limit_ms, outside_ms=OutsideLatency(30.0))
        (found,) = outcomes(rented(services=[asked]), replace(NOTHING, slower_ratios=(0.25,)))
        assert (found.most_usd is None) is fails


def test_purchases_that_arrive_late() -> None:
    periods = ("2027Q1", "2027Q2")
    demand = {("here", "2027Q1", "all"): 40.0, ("here", "2027Q2", "all"): 60.0}
    rates = engine_table([("aggregated", "A", 1, 10.0)])
    question = rented(
        services=[service("chat", demand, engines=rates, periods=periods)],
        offers=[
            buy_offer("buy", 16_000.0, hardware="A", per_unit=1, lead=1, periods=periods),
            rent_offer("rent", 3.0, hardware="A", periods=periods),
        ],
        periods=periods,
    )
    (found,) = outcomes(question, replace(NOTHING, late_quarters=1))
    assert found.broken == (BrokenTarget("chat", "here", "2027Q2", pytest.approx(20.0), pytest.approx(60.0)),)
    # Two cards are rented for the quarter that two bought ones (1,000 USD each) do not come.
    assert found.most_usd == pytest.approx(2 * (3.0 * HOURS - 1_000.0))


def test_a_lost_region_moves_its_demand_and_is_still_paid_for() -> None:
    places = ["east", "west"]
    demand = {("east", "now", "all"): 60.0, ("west", "now", "all"): 40.0}
    rates = engine_table([("aggregated", "A", 1, 10.0)])
    question = rented(
        services=[service("chat", demand, engines=rates, regions=places)],
        regions=[region("east"), region("west")],
        pools=[
            owned_pool("own-east", 6, 16_000.0, hardware="A", per_host=1, region="east"),
            owned_pool("own-west", 5, 16_000.0, hardware="A", per_host=1, region="west"),
        ],
        offers=[rent_offer("rent", 2.0, hardware="A", regions=["west"])],
    )
    east, west = outcomes(question, replace(NOTHING, regions=("east", "west")))
    assert east.broken == (BrokenTarget("chat", "west", "now", pytest.approx(50.0), pytest.approx(100.0)),)
    assert east.most_usd == pytest.approx(5 * 2.0 * HOURS)
    assert west.broken == (BrokenTarget("chat", "east", "now", pytest.approx(40.0), pytest.approx(100.0)),)
    assert west.most_usd is None


def protected(**changes: object) -> Fleet:
    """Two regions of ten and twelve cards, either of which carries the 100 requests/s of both."""
    places = ["east", "west"]
    demand = {("east", "now", "all"): 60.0, ("west", "now", "all"): 40.0}
    rates = engine_table([("aggregated", "A", 1, 10.0)])
    fields: dict[str, object] = {
        "services": [service("chat", demand, engines=rates, regions=places)],
        "regions": [region("east"), region("west")],
        "pools": [
            owned_pool("own-east", 10, 16_000.0, hardware="A", per_host=1, region="east"),
            owned_pool("own-west", 12, 16_000.0, hardware="A", per_host=1, region="west"),
        ],
        "offers": [],
        "policy": {"survive_region_loss": ("chat",)},
    }
    return rented(**{**fields, **changes})


def test_what_survives_the_loss_of_a_region_is_served_after_it() -> None:
    """A fleet that has lost a region need not survive the loss of another."""
    for found in outcomes(protected(), replace(NOTHING, regions=("east", "west"))):
        assert found.broken == ()
        assert found.most_usd == pytest.approx(0.0)


def test_reserve_and_shares_of_pools_yield_when_a_region_is_lost() -> None:
    """As the plan counts on: hosts in reserve may serve then, and one pool all of a service."""
    rules = {"survive_region_loss": ("chat",), "reserve_hosts_per_pool": 3, "max_share_per_pool": 0.7}
    question = protected(policy=rules)
    for found in outcomes(question, replace(NOTHING, regions=("east", "west"))):
        assert found.broken == ()


def test_hardware_that_no_longer_survives_a_loss_still_serves() -> None:
    """A fleet that cannot survive a loss, because its hardware is late, still serves its demand."""
    periods = ("2027Q1", "2027Q2")
    places = ("east", "west")
    demand = {("east", "2027Q2", "all"): 60.0, ("west", "2027Q2", "all"): 40.0}
    rates = engine_table([("aggregated", "A", 1, 10.0)])
    question = protected(
        services=[service("chat", demand, engines=rates, regions=places, periods=periods)],
        pools=[
            owned_pool("own-east", 10, 16_000.0, hardware="A", per_host=1, region="east"),
            owned_pool("own-west", 8, 16_000.0, hardware="A", per_host=1, region="west"),
        ],
        offers=[
            buy_offer("buy", 16_000.0, hardware="A", per_unit=1, lead=1, periods=periods, regions=["west"])
        ],
        periods=periods,
    )
    (found,) = outcomes(question, replace(NOTHING, late_quarters=1))
    assert found.broken == ()


def test_demand_that_nobody_else_asks_stays_and_breaks() -> None:
    (found,) = outcomes(
        rented(regions=[region("here"), region("there")]), replace(NOTHING, regions=("here",))
    )
    assert found.broken == (BrokenTarget("chat", "here", "now", pytest.approx(100.0), pytest.approx(100.0)),)
    assert "chat" in found.reasons[0]


def test_held_hardware_stays_where_the_plan_has_it() -> None:
    """The plan rents in the east; more demand in the west cannot take those cards."""
    places = ["east", "west"]
    demand = {("east", "now", "all"): 60.0, ("west", "now", "all"): 10.0}
    rates = engine_table([("aggregated", "A", 1, 10.0)])
    question = rented(
        services=[service("chat", demand, engines=rates, regions=places)],
        regions=[region("east"), region("west")],
        pools=[],
        offers=[rent_offer("rent", 2.0, hardware="A", regions=places)],
    )
    plan = best_plan(question)
    resolver = Resolver(EXACT)
    shifted = fleet_edits.demand_scaled(
        fleet_edits.demand_scaled(question, 0.5, region="east"), 2, region="west"
    )
    (found,) = stressed([StressCase(StressKind.DEMAND, "shifted", shifted)], plan, question, resolver)
    assert found.broken == (BrokenTarget("chat", "west", "now", pytest.approx(10.0), pytest.approx(20.0)),)
    assert found.most_usd == pytest.approx((5 - 7) * 2.0 * HOURS)


def test_limits_under_load_are_tightened_too() -> None:
    limits = Traffic(ttft=(LatencyLimit(0.95, 200.0),), tpot=(LatencyLimit(None, 50.0),))
    question = rented(services=[service("chat", 10.0, ttft_ms=200.0, tpot_ms=50.0, traffic=limits)])
    (slower,) = fleet_edits.served_slower(question, 0.25).services
    assert slower.traffic == Traffic(ttft=(LatencyLimit(0.95, 160.0),), tpot=(LatencyLimit(None, 40.0),))
    assert (slower.ttft_ms, slower.tpot_ms) == (160.0, 40.0)
    (free,) = fleet_edits.latency_limits_changed(
        question, "chat", lambda _: None, ttft=True, tpot=False
    ).services
    assert free.traffic == Traffic(tpot=(LatencyLimit(None, 50.0),))


def test_the_table_has_every_case() -> None:
    table = stress_table(outcomes(rented(), Stress((0.2, -0.2), (0.1,), 1, (), (0.1,))))
    assert list(table["case"]) == [
        "demand +20%",
        "demand -20%",
        "prices of offers +10%",
        "purchases 1 quarter late",
        "model 10% slower",
    ]
    assert table["unserved_requests_per_s"].tolist()[:2] == pytest.approx([20.0, 0.0])


def test_the_demand_of_a_lost_region_moves_slice_by_slice() -> None:
    places = ("here", "there")
    by_night = {("here", "now", "all"): 0.2, ("there", "now", "all"): 0.5}
    chat = service("chat", 10.0, regions=places, ratios={("night", None): by_night})
    moved = fleet_edits.region_lost(replace(rented(), services=(chat,)), "here").services[0].demand
    assert list(moved.of(("day", None)).values()) == [0.0, 20.0]
    assert list(moved.of(("night", None)).values()) == [0.0, 7.0]
