"""The price of unmet demand puts priorities in their order and serves what can be served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, rented_pool, service

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.formulation.build import PlanningModel, build_model
from fleetplan.planner.formulation.objective.tco import unmet_demand
from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.search import unmet_prices as shortage_price
from fleetplan.planner.search.solvers.cpsat import configured_solver
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.unmet_prices import (
    hint_nothing,
    least_shortage,
    prices_of_unmet,
    strict_prices,
    weigh,
)


def prices_found(planning: PlanningModel) -> Mapping[int, float]:
    """Prices of unmet demand of a model."""
    least = least_shortage(planning, Stop(), 20.0)
    assert least is not None
    return prices_of_unmet(planning, least, Stop(), 20.0).by_priority


def unmet(question: Fleet, runs: list[Candidate]) -> dict[str, float]:
    """Unmet requests per second by service, of the best plan of the weighed cost."""
    problem = build_problem(question, tuple(runs))
    planning = build_model(problem, allow_unmet=True)
    prices = prices_found(planning)
    planning.model.minimize(weigh(planning, prices).objective)
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


def test_supply_that_costs_nothing_leaves_prices_that_rank() -> None:
    question = fleet(
        services=[service("batch", 40.0, priority=2), service("chat", 11.0, priority=1)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 0.0, maximum=4)],
        policy={"unmet": "penalise"},
    )
    runs = [candidate("batch", "A", 7.0), candidate("chat", "A", 3.0)]
    strict = strict_prices(build_problem(question, tuple(runs)))
    assert 0 < strict[2] < strict[1]
    assert unmet(question, runs) == {"batch": pytest.approx(40.0)}


def lumpy() -> tuple[Fleet, list[Candidate]]:
    """Two priorities and too few hosts; renting more is limited and costs."""
    question = fleet(
        services=[
            service("batch", 40.0, priority=2),
            service("chat", 11.0, priority=1),
            service("mail", 9.0, priority=2),
        ],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 123.4567891, maximum=9)],
        policy={"unmet": "penalise"},
    )
    runs = [candidate("batch", "A", 7.0), candidate("chat", "A", 3.0), candidate("mail", "A", 2.0)]
    return question, runs


@pytest.mark.parametrize("log_rate", [None, 0.5, 50.0])
def test_prices_are_no_higher_than_strict_ones_and_leave_as_little_of_each_priority(
    log_rate: float | None,
) -> None:
    question, runs = lumpy()
    if log_rate is not None:
        # Of a third priority, which gets nothing but what the others cannot use.
        log = service("log", 5 * log_rate, priority=3)
        question = replace(question, services=(*question.services, log))
        runs.append(candidate("log", "A", log_rate))
    problem = build_problem(question, tuple(runs))
    planning = build_model(problem, allow_unmet=True)
    strict = strict_prices(problem)
    prices = prices_found(planning)
    priorities = sorted({each.priority for each in question.services})
    assert list(prices) == list(strict) == priorities[::-1]
    assert all(0 < prices[each] <= strict[each] * (1 + 1e-9) for each in strict)
    assert prices[1] < 0.5 * strict[1]
    left = {}
    for name, own in (("strict", strict), ("own", prices)):
        planning.model.minimize(weigh(planning, own).objective)
        solver = configured_solver(20.0, seed=1, workers=1)
        assert solver.solve(planning.model) == cp_model.OPTIMAL
        left[name] = [solver.value(unmet_demand(problem, planning.variables, each)) for each in priorities]
    assert left["own"] == left["strict"]
    assert left["own"][0] == 0
    assert all(left["own"][1:])


@pytest.mark.parametrize("most", [2**60, 2**40])
def test_a_bound_on_the_weighed_cost_bounds_the_cost_of_plans_that_leave_no_more(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortage_price, "LARGEST_OBJECTIVE", most)
    question, runs = lumpy()
    problem = build_problem(question, tuple(runs))
    planning = build_model(problem, allow_unmet=True)
    variables = planning.variables
    weighing = weigh(planning, prices_found(planning))
    assert (weighing.coarse > 1) == (most == 2**40)
    planning.model.minimize(weighing.objective)
    solver = configured_solver(20.0, seed=1, workers=1)
    assert solver.solve(planning.model) == cp_model.OPTIMAL
    values = list(solver.response_proto.solution)
    shortage = weighing.shortage(values)
    assert 0 < shortage < weighing.shortage([10**9] * len(values))
    cost = solver.value(planning.total_cost)
    # What rounding to coarse units takes away is less than one of them a variable.
    whole = weighing.cost(solver.value(weighing.objective), shortage)
    assert cost - weighing.coarse * sum(values) <= whole <= cost
    bound = weighing.cost(solver.best_objective_bound, shortage)
    for priority in (1, 2):
        unmet = unmet_demand(problem, variables, priority)
        planning.model.add(unmet <= solver.value(unmet))
    planning.model.minimize(planning.total_cost)
    again = configured_solver(20.0, seed=1, workers=1)
    assert again.solve(planning.model) == cp_model.OPTIMAL
    assert bound <= again.objective_value


def test_priorities_that_ask_for_nothing_have_no_price() -> None:
    question, runs = lumpy()
    silent = service("silent", 0.0, priority=3)
    problem = build_problem(replace(question, services=(*question.services, silent)), tuple(runs))
    problem = replace(problem, cells=tuple(cell for cell in problem.cells if cell.service != "silent"))
    planning = build_model(problem, allow_unmet=True)
    assert list(prices_found(planning)) == [2, 1]


def test_who_stops_the_search_gets_strict_prices() -> None:
    question, runs = lumpy()
    problem = build_problem(question, tuple(runs))
    stop = Stop()
    stop.request()
    planning = build_model(problem, allow_unmet=True)
    assert least_shortage(planning, stop, 20.0) is None
    assert prices_of_unmet(planning, None, stop, 20.0).by_priority == strict_prices(problem)
    least = least_shortage(planning, Stop(), 20.0)
    stopped = prices_of_unmet(planning, least, stop, 20.0)
    assert stopped.by_priority == strict_prices(problem)
    assert stopped.row_duals is None


def test_what_a_relaxation_lacks_no_plan_serves() -> None:
    question, runs = lumpy()
    problem = build_problem(question, tuple(runs))
    planning = build_model(problem, allow_unmet=True)
    least = least_shortage(planning, Stop(), 20.0)
    assert least is not None
    # Priority 1 is served in full, the second lacks.
    assert least.lacking == (2,)
    assert least.impossible
    first, units = (unmet_demand(problem, planning.variables, each) for each in (1, 2))
    planning.model.add(first <= 0)
    planning.model.minimize(units)
    solver = configured_solver(20.0, seed=1, workers=1)
    assert solver.solve(planning.model) == cp_model.OPTIMAL
    assert 0 < 0.9 * least.limits[2] <= solver.objective_value
    enough = replace(question, offers=(rent_offer("A", 123.4567891, maximum=90),))
    problem = build_problem(enough, tuple(runs))
    plenty = build_model(problem, allow_unmet=True)
    found = least_shortage(plenty, Stop(), 20.0)
    assert found is not None
    assert found.lacking == ()
    assert not found.impossible
    # What limits are worth where everything is served is known where it can be.
    assert found.all_served_duals is not None
    assert least.all_served_duals is None
    assert len(found.all_served_duals) == len(plenty.model.proto.constraints)


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
