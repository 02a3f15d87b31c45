"""Numbers at the ends of the ranges that fleet files allow: a plan or one sentence, never an overflow."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.planner.builders import buy_offer, candidate, fleet, hardware, rent_offer, rented_pool, service
from tests.planner.questions.tiny import EXACT, engine_table
from tests.planner.solving import solve

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.schema.values import (
    LEAST_REQUESTS_PER_S,
    MOST_BUDGET_USD,
    MOST_REQUESTS_PER_S,
    MOST_USD_PER_HOST,
    MOST_USD_PER_HOUR,
)
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.problem import build_problem
from fleetplan.planner.questions.conflict.explain import explain_conflict
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search import Deadline
from fleetplan.planner.search.result import SearchLimits
from fleetplan.planner.search.shortage import find_shortages
from fleetplan.scenarios.load import load_fleet

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
    with pytest.raises(
        InputError, match=r"offers.A: it may cost up to 2.2e\+14 USD, .* up to 4.6e\+12 USD; lower"
    ):
        solve(question, [candidate("chat", "A", 1.0)])


@pytest.mark.parametrize("rate", [LEAST_REQUESTS_PER_S, 1.0, 1e6])
def test_the_shortage_of_the_largest_and_the_smallest_service_is_told(rate: float) -> None:
    """Sums over services of such sizes, and loads without a limit on hardware, stay within 64 bits."""
    services = [service("large", MOST_REQUESTS_PER_S), service("small", LEAST_REQUESTS_PER_S)]
    question = fleet(
        services=services,
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 1, MOST_USD_PER_HOUR, per_host=1)],
    )
    problem = build_problem(question, [candidate("large", "A", rate), candidate("small", "A", 1.0)])
    found = find_shortages(problem, (), seed=1, workers=1)
    large = next(row for row in found.rows if row.service == "large")
    assert large.unmet_requests_per_s == pytest.approx(MOST_REQUESTS_PER_S, rel=0.01)


def test_hosts_too_dear_to_be_counted_do_not_end_the_search_for_a_resolution() -> None:
    rates = engine_table([("aggregated", "A", 1, 1.0)])
    question = fleet(
        services=[service("chat", 1e6, engines=rates)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 10_000, MOST_USD_PER_HOUR, per_host=1)],
    )
    found = explain_conflict(question, (), Resolver(EXACT), Deadline.after(120.0))
    assert found is not None
    stated = found.record()
    assert stated.requirements == (
        "pool A has 10,000 accelerators of A",
        "chat in here is served, 1,000,000 requests/s",
    )
    assert [give.change for way in stated.ways_out for give in way.gives] == [
        "99.0% of chat in here unserved (990,000 of 1,000,000 requests/s)"
    ]


DEAR = """\
version: 1
hardware:
  gpu-a: {accelerators_per_host: 1}
offers:
- {name: cheap, hardware: gpu-a, per: accelerator, rent_usd_per_accelerator_hour: 1.0}
- name: dear
  hardware: gpu-a
  per: accelerator
  rent_usd_per_accelerator_hour: 1.0e+5
services:
- {name: chat, engines: rates.csv, demand: 1.0e+6}
"""


def test_costs_beyond_that_are_said_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(DEAR, encoding="utf-8")
    rates = (
        "phase,hardware,accelerators_per_replica,config,class,requests_per_s\naggregated,gpu-a,1,x,all,1.0\n"
    )
    (tmp_path / "rates.csv").write_text(rates, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        plan_fleet(load_fleet(path), SearchLimits(2.0, 0.01))
    (issue,) = refused.value.issues
    assert (issue.path, issue.line, issue.column, issue.key_path) == (str(path), 6, 3, "offers.dear")
