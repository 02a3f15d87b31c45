"""Numbers at the ends of the ranges that fleet files allow: a plan or one sentence, never an overflow."""

from __future__ import annotations

import itertools

import pytest
from tests.planner.builders import buy_offer, candidate, fleet, hardware, rent_offer, rented_pool, service
from tests.planner.solving import solve

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.schema.values import (
    LEAST_REQUESTS_PER_S,
    MOST_BUDGET_USD,
    MOST_REQUESTS_PER_S,
    MOST_USD_PER_HOST,
    MOST_USD_PER_HOUR,
)

ENDS = (LEAST_REQUESTS_PER_S, 1.0, MOST_REQUESTS_PER_S)


@pytest.mark.parametrize(("demand", "rate"), list(itertools.product(ENDS, ENDS)))
def test_a_demand_and_a_rate_at_any_ends_have_a_plan_or_none(demand: float, rate: float) -> None:
    question = fleet(
        services=[service("chat", demand)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    solved = solve(question, [candidate("chat", "A", rate)])
    needed = demand / rate
    # An offer without a limit brings a million units; replicas of less than 1e-8 of the demand are none.
    assert (solved.plan is not None) == (needed <= 1e6)
    if solved.plan is not None:
        assert solved.plan.pools[0].accelerators == max(1, round(needed))


def test_unmet_demand_of_the_largest_and_the_smallest_service_is_weighed() -> None:
    question = fleet(
        services=[service("large", MOST_REQUESTS_PER_S), service("small", LEAST_REQUESTS_PER_S)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 2, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    candidates = [candidate("large", "A", 1e8), candidate("small", "A", 1.0)]
    solved = solve(question, candidates)
    assert solved.plan is not None
    left = {row.service: row.requests_per_s for row in solved.plan.unmet}
    # Two accelerators for eleven: the small service's demand is less than a rounding of the large one's.
    assert left["large"] == pytest.approx(8e8, rel=0.2)
    assert solved.plan.unmet_gaps[0].gap == pytest.approx(0.0, abs=1e-5)


def test_the_dearest_prices_and_the_largest_budgets_have_a_plan() -> None:
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[
            rent_offer("A", MOST_USD_PER_HOUR, maximum=100),
            buy_offer("B", MOST_USD_PER_HOST, per_unit=1, maximum=100),
        ],
        budget=dict.fromkeys(("tco_usd", "opex_usd", "capex_usd"), MOST_BUDGET_USD),
    )
    solved = solve(question, [candidate("chat", "A", 1.0), candidate("chat", "B", 1.0)])
    assert solved.plan is not None
    assert solved.plan.objective_usd == pytest.approx(10 * MOST_USD_PER_HOST / 16)


def test_costs_beyond_what_is_computed_exactly_are_said_with_the_offer() -> None:
    question = fleet(
        services=[service("chat", 1e6)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", MOST_USD_PER_HOUR)],
    )
    with pytest.raises(InputError, match=r"add up to .* USD .* is acquired\[A,here,now\]; lower max_hosts"):
        solve(question, [candidate("chat", "A", 1.0)])
