"""A search begins with the plan in force, where the problem allows its decisions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ortools.sat.python import cp_model
from tests.parts import first_parts
from tests.planner.random_fleets import large_case, several_periods_case
from tests.planner.solving import solve

from fleetplan.planner.formulation.build import build_model
from fleetplan.planner.formulation.objective.tco import fixed_usd
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.solve import START_LIMIT_S, START_SHARE_OF_TIME
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.result import Progress, SearchLimits
from fleetplan.planner.search.solvers.cpsat import configured_solver
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.warm_start import hint_known_plan
from fleetplan.planner.units import USD_RESOLUTION


def planned(problem: Problem, gap: float = 0.02) -> Plan:
    solved = solve(problem.fleet, list(problem.candidates), gap=gap, time_limit_s=8.0)
    assert solved.plan is not None
    return solved.plan


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_the_hints_of_a_plan_are_the_plan(seed: int) -> None:
    case = several_periods_case(seed)
    problem = build_problem(case.fleet, case.candidates)
    plan = planned(problem)
    planning = build_model(replace(problem, begins_with=plan), allow_unmet=False)
    hint_known_plan(planning)
    hinted = planning.model.proto.solution_hint
    values = dict(zip(hinted.vars, hinted.values, strict=True))
    rows = {row.replicas for row in plan.placements}
    assert rows <= set(values.values())
    for variable, value in values.items():
        planning.model.add(planning.model.get_int_var_from_proto_index(variable) == value)
    planning.model.minimize(planning.total_cost)
    solver = configured_solver(20.0, seed=1, workers=1)
    assert solver.solve(planning.model) == cp_model.OPTIMAL
    usd = solver.objective_value / USD_RESOLUTION + fixed_usd(problem)
    assert usd == pytest.approx(plan.objective_usd, rel=1e-6)


def test_names_that_the_problem_does_not_have_are_left_out() -> None:
    case = several_periods_case(1)
    problem = build_problem(case.fleet, case.candidates)
    plan = planned(problem)
    strange = [row.model_copy(update={"pool": "elsewhere", "config": "another"}) for row in plan.placements]
    changed = plan.model_copy(update={"placements": tuple(strange)})
    planning = build_model(replace(problem, begins_with=changed), allow_unmet=False)
    hint_known_plan(planning)
    hinted = planning.model.proto.solution_hint
    replicas = {variable.index for variable in planning.variables.replicas.values()}
    known = zip(hinted.vars, hinted.values, strict=True)
    assert {value for variable, value in known if variable in replicas} == {0}


@pytest.mark.parametrize(
    ("seed", "services", "regions", "kinds"),
    first_parts(((1, 2, 2, 1), (1, 6, 2, 3)), 1),
    ids=("small", "large"),
)
def test_a_search_over_blocks_begins_with_the_plan_in_force(
    seed: int, services: int, regions: int, kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = large_case(seed, services, regions, kinds)
    problem = build_problem(case.fleet, case.candidates)
    plan = planned(problem, gap=0.2)
    monkeypatch.setattr(block_solve, "LEAST_VARIABLES", 0)
    monkeypatch.setattr(block_solve, "LEAST_BLOCKS", 1)
    monkeypatch.setattr(block_solve, "LARGEST_BLOCK_SHARE", 1.0)
    seen: list[Progress] = []
    stop = Stop()

    def watch(progress: Progress) -> None:
        seen.append(progress)
        stop.request()

    # The start has all of its time, which a busy machine needs; the search ends with it.
    limits = SearchLimits(START_LIMIT_S / START_SHARE_OF_TIME, 0.0, 1, 2)
    search(replace(problem, begins_with=plan), limits, watch, stop)
    assert seen[0].source == "warm start"
    assert seen[0].objective_usd == pytest.approx(plan.objective_usd, rel=0.01)
