"""The price of unmet demand puts priorities in their order and serves what can be served."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, rented_pool, service

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.model import build_model
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.shortage_price import hint_nothing, prices_of_unmet, weigh
from fleetplan.planner.solvers.cpsat import configured_solver
from fleetplan.planner.solvers.interrupt import Stop
from fleetplan.planner.variables import rate_scales


def unmet(question: Fleet, runs: list[Candidate]) -> dict[str, float]:
    """Unmet requests per second by service, of the best plan of the weighed cost."""
    problem = build_problem(question, tuple(runs))
    planning = build_model(problem, allow_unmet=True)
    prices = prices_of_unmet(planning, Stop(), 20.0)
    planning.model.minimize(weigh(problem, planning.variables, prices).objective)
    solver = configured_solver(20.0, seed=1, workers=1)
    assert solver.solve(planning.model) == cp_model.OPTIMAL
    scales = rate_scales(problem)
    found = {}
    for (cell, _), variable in planning.variables.unmet.items():
        name = problem.cells[cell].service
        found[name] = found.get(name, 0.0) + scales[name].requests_per_s(solver.value(variable))
    return {name: rate for name, rate in found.items() if rate > 1e-6}


@pytest.mark.parametrize("batch_rate", [2.0, 100.0])
def test_no_number_of_cheap_requests_outweighs_a_dear_one_of_a_higher_priority(batch_rate: float) -> None:
    question = fleet(
        services=[service("batch", 4 * batch_rate, priority=2), service("chat", 2.0, priority=1)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 3, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    runs = [candidate("batch", "A", batch_rate), candidate("chat", "A", 1.0)]
    assert unmet(question, runs) == {"batch": pytest.approx(3 * batch_rate)}


def test_many_priorities_of_very_different_requests_fit_the_integers_of_a_solver() -> None:
    services = [service(f"s{each}", 10.0**each, priority=6 - each) for each in range(6)]
    question = fleet(
        services=services,
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 5, 900.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    runs = [candidate(f"s{each}", "A", 10.0**each) for each in range(6)]
    # Each service needs one accelerator; the one of the lowest priority goes without.
    assert unmet(question, runs) == {"s0": pytest.approx(1.0)}


def test_serving_is_worth_the_dearest_offer() -> None:
    question = fleet(
        services=[service("chat", 10.0), service("odd", 1.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 500.0), rent_offer("B", 900.0)],
        policy={"unmet": "penalise"},
    )
    runs = [candidate("chat", "A", 5.0), candidate("chat", "B", 10.0)]
    assert unmet(question, runs) == {"odd": pytest.approx(1.0)}


def test_the_plan_that_serves_nothing_is_a_plan() -> None:
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        policy={"unmet": "penalise"},
    )
    problem = build_problem(question, (candidate("chat", "A", 5.0),))
    planning = build_model(problem, allow_unmet=True)
    hint_nothing(planning.model, planning.variables)
    solver = configured_solver(20.0, seed=1, workers=1)
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(planning.model) == cp_model.OPTIMAL
