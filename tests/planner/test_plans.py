"""Whole plans, each compared with an optimum that is worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from tests.parts import first_of, first_parts
from tests.planner.builders import (
    HOURS_PER_QUARTER,
    buy_offer,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.random_fleets import large_case, tiny_case
from tests.planner.solving import solve

from fleetplan.planner.candidates.engine import engine_candidates, engine_rows
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.search.result import Progress, SolveStatus


def test_engine_table_of_four_classes_costs_4_68_an_hour() -> None:
    # 30 requests/s split .2/.1/.5/.2. One replica of the large kind carries 6/20 + 3/20 + 15/40 of load with
    # the small requests that are left over; the small kind takes one more replica.
    rows = [
        {
            "phase": "aggregated",
            "hardware": kind,
            "config": "x1",
            "accelerators_per_replica": 1,
            "class": name,
            "requests_per_s": rate,
        }
        for kind, rates in (("small", (2, 1, 5, 2)), ("large", (20, 20, 40, 20)))
        for name, rate in zip("abcd", rates, strict=True)
    ]
    table = pd.DataFrame(rows)
    chat = service("chat", 30.0, classes={"a": 0.2, "b": 0.1, "c": 0.5, "d": 0.2}, engines=table)
    question = fleet(
        services=[chat],
        hardware=[hardware("small", 1), hardware("large", 1)],
        offers=[rent_offer("small", 1.01), rent_offer("large", 3.67)],
    )
    solved = solve(question, engine_candidates(question, chat, engine_rows(table), RejectionLog()))
    assert solved.usd == pytest.approx(4.68 * HOURS_PER_QUARTER)
    assert {row.hardware: row.replicas for row in solved.rows()} == {"small": 1, "large": 1}


@pytest.mark.parametrize(("prefill_rate", "decode_rate"), [(10.0, 10.0), (10.0, 2.5), (2.0, 9.0), (7.3, 3.1)])
def test_accelerators_of_the_phases_follow_their_rates(prefill_rate: float, decode_rate: float) -> None:
    question = fleet(
        services=[service("chat", 4000.0)],
        hardware=[hardware("P", 1), hardware("D", 1)],
        offers=[rent_offer("P", 2.0), rent_offer("D", 1.0)],
    )
    runs = [
        candidate("chat", "P", prefill_rate, phase="prefill"),
        candidate("chat", "D", decode_rate, phase="decode"),
    ]
    solved = solve(question, runs)
    assert solved.plan is not None
    (ratio,) = solved.plan.phase_ratios
    assert ratio.ratio == pytest.approx(decode_rate / prefill_rate, rel=0.005)
    assert ratio.prefill_accelerators == -(-4000 // prefill_rate)
    assert ratio.decode_accelerators == -(-4000 // decode_rate)


@pytest.mark.parametrize(
    ("decode_price", "decode_hardware"), [(1.5, "D"), (9.0, "P")], ids=["mixed", "one kind"]
)
def test_phases_run_on_two_kinds_of_hardware_when_that_is_cheaper(
    decode_price: float, decode_hardware: str
) -> None:
    question = fleet(
        services=[service("chat", 100.0)],
        hardware=[hardware("P", 1), hardware("D", 1)],
        offers=[rent_offer("P", 4.0), rent_offer("D", decode_price)],
    )
    runs = [
        candidate("chat", "P", 10.0, phase="prefill"),
        candidate("chat", "P", 8.0, phase="decode"),
        candidate("chat", "D", 3.0, phase="prefill"),
        candidate("chat", "D", 7.0, phase="decode"),
    ]
    solved = solve(question, runs)
    assert {row.phase: row.hardware for row in solved.rows()} == {"prefill": "P", "decode": decode_hardware}


def test_scarce_supply_goes_to_the_first_priority() -> None:
    question = fleet(
        services=[service("batch", 8.0, priority=2), service("chat", 3.0, priority=1)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 5, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    # Batch uses an accelerator twice as well, and still waits.
    solved = solve(question, [candidate("batch", "A", 2.0), candidate("chat", "A", 1.0)])
    assert solved.plan is not None
    assert {row.service: row.requests_per_s for row in solved.rows()} == pytest.approx(
        {"chat": 3.0, "batch": 4.0}
    )
    assert [(row.service, row.requests_per_s) for row in solved.plan.unmet] == [("batch", pytest.approx(4.0))]


def test_unmet_demand_is_less_important_than_nothing_else() -> None:
    # Serving costs 100 times what it brings; it is served all the same.
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 500.0)],
        policy={"unmet": "penalise"},
    )
    solved = solve(question, [candidate("chat", "A", 1.0)])
    assert solved.plan is not None
    assert solved.plan.unmet == ()
    assert solved.usd == pytest.approx(500.0 * HOURS_PER_QUARTER)


def test_a_service_that_cannot_run_at_all_stays_unmet_where_that_is_allowed() -> None:
    question = fleet(
        services=[service("chat", 1.0), service("odd", 2.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        policy={"unmet": "penalise"},
    )
    solved = solve(question, [candidate("chat", "A", 1.0)])
    assert solved.plan is not None
    assert [(row.service, row.requests_per_s) for row in solved.plan.unmet] == [("odd", pytest.approx(2.0))]
    assert solved.usd == pytest.approx(HOURS_PER_QUARTER)


@pytest.mark.parametrize("number", first_of((3, 5, 8, 13, 21, 34), 2))
def test_the_same_seed_costs_the_same(number: int) -> None:
    case = tiny_case(number)
    costs = {solve(case.fleet, case.candidates, workers=4, seed=7).usd for _ in range(3)}
    assert len(costs) == 1


@pytest.mark.parametrize(
    ("size", "limit_s"), first_parts((((6, 2, 4), 0.5), ((8, 3, 5), 1.0)), 1), ids=("small", "large")
)
def test_the_time_limit_returns_the_best_plan_so_far(size: tuple[int, int, int], limit_s: float) -> None:
    case = large_case(1, *size)
    seen: list[Progress] = []
    solved = solve(case.fleet, case.candidates, gap=0.0, workers=2, time_limit_s=limit_s, watch=seen.append)
    assert solved.result.status in (SolveStatus.LIMIT, SolveStatus.OPTIMAL)
    assert solved.plan is not None
    assert solved.result.wall_s < 20.0
    assert 0.0 <= solved.plan.gap < 1.0
    assert solved.plan.bound_usd <= solved.plan.objective_usd
    assert any(step.objective_usd is not None for step in seen)


def test_a_wider_gap_stops_within_it() -> None:
    case = large_case(5, n_services=3, n_regions=1, n_hardware=3)
    solved = solve(case.fleet, case.candidates, gap=0.3, workers=1)
    assert solved.plan is not None
    assert solved.plan.gap <= 0.3
    assert solved.plan.status in ("optimal", "within_gap")


def test_energy_is_paid_for_traffic_and_not_for_headroom() -> None:
    question = fleet(
        services=[service("chat", 8.0, headroom=0.25)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        regions=[region(pue=1.5, energy_usd_per_kwh=(0.2,))],
    )
    solved = solve(question, [candidate("chat", "A", 10.0, power_kw=2.0)])
    assert solved.plan is not None
    energy = 0.8 * 2.0 * 1.5 * 0.2 * HOURS_PER_QUARTER
    assert solved.plan.cost_breakdown == pytest.approx({"rent": HOURS_PER_QUARTER, "energy": energy})


def test_regions_that_share_nothing_cost_what_they_cost_alone() -> None:
    places = ("east", "west")
    question = fleet(
        services=[service("chat", 5.0, regions=places)],
        hardware=[hardware("A", 1)],
        offers=[
            rent_offer("A", 1.0, regions=places),
            buy_offer("buy", 16_000, hardware="A", per_unit=1, regions=places),
        ],
        regions=[region("east"), region("west", energy_usd_per_kwh=(0.1,))],
    )
    runs = [candidate("chat", "A", 2.0, power_kw=1.0)]
    alone = [
        replace(
            question,
            regions=(place,),
            offers=tuple(replace(o, regions=(place.name,)) for o in question.offers),
            services=(service("chat", 5.0, regions=(place.name,)),),
        )
        for place in question.regions
    ]
    parts = [solve(part, runs).usd for part in alone]
    assert solve(question, runs).usd == pytest.approx(sum(usd or 0.0 for usd in parts))


def test_a_fleet_without_demand_costs_what_stands() -> None:
    question = fleet(
        services=[service("chat", 0.0)],
        hardware=[hardware("A", 8)],
        pools=[rented_pool("A", 2, 1.0)],
        offers=[rent_offer("A", 1.0, unit="host", per_unit=8)],
    )
    solved = solve(question, [candidate("chat", "A", 1.0)])
    assert solved.usd == pytest.approx(2 * 8 * 2190)
    assert solved.plan is not None
    assert not solved.plan.placements
    assert not solved.plan.purchases
