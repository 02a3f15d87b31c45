"""Family 6: capital, operating cost and TCO stay within their limits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import is_infeasible, solve

from fleetplan.fleet.inventory import Budget, Fleet
from fleetplan.planner.formulation import build_model
from fleetplan.planner.formulation.objective.tco import load_usd
from fleetplan.planner.formulation.objective.traffic import traffic_sum
from fleetplan.planner.formulation.scaling import whole_limit
from fleetplan.planner.problem import build_problem
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA


@pytest.mark.parametrize(
    ("budget", "usd"),
    [
        ({}, 3_000.0),
        ({"capex_usd": 32_000.0}, 2_000.0 + 2_190.0),
        ({"capex_usd_by_period": (16_000.0,)}, 1_000.0 + 2 * 2_190.0),
        ({"capex_usd": 0.0}, 3 * 2_190.0),
        ({"opex_usd": 0.0}, 3_000.0),
        ({"tco_usd": 3_000.0}, 3_000.0),
        ({"tco_usd": 2_999.0}, None),
        ({"capex_usd": 0.0, "opex_usd": 6_000.0}, None),
    ],
)
def test_each_budget_limits_its_kind_of_spending(budget: dict[str, object], usd: float | None) -> None:
    example = EXAMPLES["budgets"]()
    none: dict[str, object] = {
        "capex_usd_by_period": (None,),
        "capex_usd": None,
        "opex_usd": None,
        "tco_usd": None,
    }
    question = replace(example.fleet, budget=Budget(**{**none, **budget}))  # type: ignore[arg-type]
    solved = solve(question, example.candidates)
    assert solved.usd == (None if usd is None else pytest.approx(usd))


def test_a_plan_that_costs_exactly_the_budget_is_allowed_with_energy() -> None:
    here = region(pue=1.2, energy_usd_per_kwh=(0.1,))
    question = fleet(
        services=[service("chat", 7.7)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        regions=[here],
    )
    runs = [candidate("chat", "A", 3.0, power_kw=1.0)]
    usd = solve(question, runs).usd
    assert usd is not None
    assert usd == pytest.approx(3 * 2190 + 7.7 / 3.0 * 1.2 * 0.1 * 2190)
    limits = replace(question.budget, tco_usd=usd)
    assert solve(replace(question, budget=limits), runs).usd == pytest.approx(usd)
    assert is_infeasible(replace(question, budget=replace(limits, tco_usd=usd * 0.999)), runs)


def two_kinds(**changes: object) -> Fleet:
    """Traffic that whole load units do not fit, on hot accelerators, or on frugal ones that are dear."""
    asked = fleet(
        services=[service("chat", 7.7013)],
        hardware=[hardware("hot", 1), hardware("frugal", 1)],
        offers=[rent_offer("hot", 1.0), rent_offer("frugal", 90.0)],
        regions=[region(pue=1.2, energy_usd_per_kwh=(0.1,))],
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


RUNS = [candidate("chat", "hot", 2.9, power_kw=7.0), candidate("chat", "frugal", 2.9, power_kw=2.0)]


@pytest.mark.parametrize("kind", ["opex_usd", "tco_usd"])
def test_the_own_cost_of_a_plan_is_a_budget_that_it_keeps(kind: str) -> None:
    usd = solve(two_kinds(), RUNS).usd
    assert usd is not None
    limits = replace(two_kinds().budget, **{kind: usd})
    assert solve(two_kinds(budget=limits), RUNS).usd == pytest.approx(usd)
    less = replace(limits, **{kind: usd * (1 - 1e-5)})
    assert is_infeasible(two_kinds(budget=less), RUNS)


def test_a_budget_of_the_own_cost_serves_as_much() -> None:
    """Of the best that is served nothing is lost to rounding."""
    asked = two_kinds(objective="served", pools=(), offers=(rent_offer("hot", 1.0, maximum=2),))
    first = solve(asked, RUNS).plan
    assert first is not None
    assert first.goal is not None
    limits = replace(asked.budget, tco_usd=first.objective_usd)
    again = solve(replace(asked, budget=limits), RUNS).plan
    assert again is not None
    assert again.goal is not None
    assert again.goal.value == pytest.approx(first.goal.value, rel=1e-7)


def test_no_plan_takes_the_load_units_that_a_budget_leaves() -> None:
    """Money decides what is served: all of the budget is spent, and no more."""
    asked = two_kinds(objective="served")
    limits = replace(asked.budget, tco_usd=2 * 2190.0 + 2500.0)
    found = solve(replace(asked, budget=limits), RUNS)
    # Within the energy of a load unit.
    assert found.usd == pytest.approx(6880.0, abs=7.0 * 1.2 * 0.1 * 2190.0 / LOAD_UNITS_PER_REPLICA)
    assert found.usd <= 6880.0 * (1 + 1e-6)


def test_a_whole_row_rounds_what_is_served_of_a_huge_demand_not_what_is_unmet() -> None:
    """Rounding 1e8 unmet units of 200 USD allowed 3 USD too much, though nothing of them was served."""
    unmet, usd, limit, error = 10**8, Fraction("200.123456789"), Fraction(10**6), Fraction(1, 2)
    load, each = 10**7, Fraction("0.125")
    weights, most = whole_limit([-usd, each], [unmet, load], limit - unmet * usd, error)
    allowed = (most - weights[0] * unmet) // weights[1]
    assert limit <= (allowed + 1) * each
    assert allowed * each <= limit + error


def test_demand_of_half_a_rate_unit_takes_no_more_off_than_it_costs() -> None:
    here = region(pue=1.2, energy_usd_per_kwh=(0.3,))
    question = fleet(
        services=[service("chat", {"many": 1e9 - 1, "few": 5.0}, classes={"many": 0.5, "few": 0.5})],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        regions=[here],
    )
    problem = build_problem(question, [candidate("chat", "A", (40.0, 30.0), power_kw=0.7)])
    variables = build_model(problem, allow_unmet=True).variables
    traffic = traffic_sum(problem, variables, partial(load_usd, problem))
    assert traffic.constant == 0
    kwh = 0.7 * 1.2 * 2190
    costs = {unmet.name.split(",")[1]: units * each for unmet, units, each in traffic.served}
    assert costs == {
        "many": pytest.approx((1e9 - 1) / 40.0 * kwh * 0.3),
        "few": pytest.approx(5.0 / 30.0 * kwh * 0.3),
    }


def test_energy_that_a_load_unit_hardly_needs_counts() -> None:
    """A load unit costs less than half an objective unit, ten replicas more than the limit leaves."""
    here = region(pue=1.0, energy_usd_per_kwh=(0.1,))
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 0.001)],
        regions=[here],
        budget={"tco_usd": 10 * 2.19 + 0.1},
    )
    # 0.0219 USD a replica and quarter.
    runs = [candidate("chat", "A", 1.0, power_kw=0.0001)]
    assert is_infeasible(question, runs)
    enough = replace(question.budget, tco_usd=10 * 2.19 + 0.22)
    assert solve(replace(question, budget=enough), runs).usd == pytest.approx(10 * (2.19 + 0.0219))


def test_a_limit_of_tco_below_zero_is_a_limit() -> None:
    """Sales of hosts may bring more than everything costs: a traceback, "math domain error"."""
    asked = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("a", 1.0, hardware="A")],
        budget={"tco_usd": -1000.0},
    )
    solved = solve(asked, [candidate("chat", "A", 1.0)])
    assert solved.result.status.value == "infeasible"
