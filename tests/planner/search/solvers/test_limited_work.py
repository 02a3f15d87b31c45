"""A solve with a work limit ends by it, presolve included, independent of the clock."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, rented_pool, service

from fleetplan.planner.candidates import prepare
from fleetplan.planner.formulation import build_model, goal_of, goal_units, unmet_demand
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.solvers import cpsat
from fleetplan.planner.search.solvers.cpsat import (
    LEAST_PRESOLVE_OPERATIONS,
    configured_solver,
    limit_work,
    solve_by_work,
)
from fleetplan.scenarios.load import load_fleet


def test_bounds_that_tighten_each_other_step_by_step_end_presolve() -> None:
    """Presolve stops where bounds tighten each other in ever smaller steps."""
    question = fleet(
        services=[service("chat", 9.966)],
        hardware=[hardware("B", 1)],
        pools=[rented_pool("P", 11, 1.0, hardware="B", per_host=1)],
        offers=[rent_offer("more", 2.31, hardware="B")],
        policy={"max_share_per_pool": 0.4684, "unmet": "penalise"},
    )
    runs = [candidate("chat", "B", 0.33), candidate("chat", "B", 0.7, accelerators=2)]
    planning = build_model(build_problem(question, runs), allow_unmet=True)
    unmet = unmet_demand(planning.problem, planning.variables, 1)
    planning.model.minimize(unmet)
    solver = configured_solver(math.inf, seed=1, workers=1)
    limit_work(solver, planning.model, 1.0)
    log: list[str] = []
    solver.log_callback = log.append
    solver.parameters.log_search_progress, solver.parameters.log_to_stdout = True, False
    assert solver.solve(planning.model) == cp_model.OPTIMAL
    applied = re.findall(r"^  - rule '(?!TODO).*' was applied ([\d']+) time", "\n".join(log), re.MULTILINE)
    assert sum(int(count.replace("'", "")) for count in applied) <= LEAST_PRESOLVE_OPERATIONS + len(applied)
    assert solver.response_proto.deterministic_time <= 1.0


CREEPING_FLEET = """\
version: 1
horizon: {periods: [one]}
regions: {r0: {pue: 1.5, energy_usd_per_kwh: 0.85}}
hardware:
  gpu-a: {accelerators_per_host: 8, all_in_w: 5058.89}
  gpu-b: {accelerators_per_host: 2, all_in_w: 603.0}
pools:
  - {name: p0, region: r0, hardware: gpu-a, hosts: 1, rented: {usd_per_accelerator_hour: 1.37}}
  - {name: p1, region: r0, hardware: gpu-a, hosts: 2, owned: {capex_usd_per_host: 58000}}
offers:
  - name: o0
    hardware: gpu-b
    regions: [r0]
    per: accelerator
    rent_usd_per_accelerator_hour: 3.45
    lot_accelerators: 2
services:
  - {name: s2, engines: rates.csv, headroom: 0.06, demand: {r0: {ca: 11.71, cb: 7.79, cc: 0.61}}}
policy: {max_configs_per_service_region: 1, kv_pairs: any}
objective: energy
"""

RATES = """\
phase,hardware,accelerators_per_replica,config,class,requests_per_s,power_kw
aggregated,gpu-a,1,c0,ca,1.11,0.646
aggregated,gpu-a,1,c0,cb,1.9,0.646
aggregated,gpu-a,1,c0,cc,1.27,0.646
aggregated,gpu-a,1,c1,ca,0.86,0.836
aggregated,gpu-a,1,c1,cb,0.99,0.836
aggregated,gpu-a,1,c1,cc,1.36,0.836
prefill,gpu-a,4,c0,ca,16.67,3.598
prefill,gpu-a,4,c0,cb,23.88,3.598
prefill,gpu-a,4,c0,cc,31.77,3.598
decode,gpu-a,1,c0,ca,2.18,0.568
decode,gpu-a,1,c0,cb,2.7,0.568
decode,gpu-a,1,c0,cc,3.11,0.568
decode,gpu-a,1,c1,ca,5.68,0.442
decode,gpu-a,1,c1,cb,13.32,0.442
decode,gpu-a,1,c1,cc,3.2,0.442
aggregated,gpu-b,8,c0,ca,31.02,4.107
aggregated,gpu-b,8,c0,cb,26.01,4.107
aggregated,gpu-b,8,c0,cc,26.46,4.107
aggregated,gpu-b,2,c1,ca,6.01,2.117
aggregated,gpu-b,2,c1,cb,2.26,2.117
aggregated,gpu-b,2,c1,cc,4.59,2.117
prefill,gpu-b,2,c0,ca,4.05,2.076
prefill,gpu-b,2,c0,cb,4.02,2.076
prefill,gpu-b,2,c0,cc,6.62,2.076
prefill,gpu-b,4,c1,ca,15.37,3.759
prefill,gpu-b,4,c1,cb,16.58,3.759
prefill,gpu-b,4,c1,cc,14.69,3.759
decode,gpu-b,8,c0,ca,16.7,9.507
decode,gpu-b,8,c0,cb,65.23,9.507
decode,gpu-b,8,c0,cc,11.59,9.507
"""


def test_a_search_that_creeps_along_begins_again(tmp_path: Path) -> None:
    """A search whose branches take little counted work restarts, and proves its optimum."""
    (tmp_path / "rates.csv").write_text(RATES)
    (tmp_path / "fleet.yaml").write_text(CREEPING_FLEET)
    _, problem = prepare(load_fleet(tmp_path / "fleet.yaml"), lambda _: None)
    planning, goal = build_model(problem, allow_unmet=False), goal_of(problem)
    assert goal is not None
    planning.model.minimize(goal_units(problem, planning.variables, goal))
    solver = configured_solver(math.inf, seed=1, workers=1)
    status, work = solve_by_work(solver, planning.model, 0.2)
    assert status == cp_model.OPTIMAL
    assert work <= 0.1
    assert solver.num_branches < 10_000


@pytest.mark.parametrize("creeping", [False, True])
def test_two_looks_at_a_search_take_no_more_than_its_work(
    creeping: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = cp_model.CpModel()
    taken = [model.new_int_var(0, 1, "") for _ in range(150)]
    for row in range(30):
        weights = [(17 * row + 31 * each) ** 2 % 97 + 3 for each in range(150)]
        model.add(sum(w * x for w, x in zip(weights, taken, strict=True)) >= sum(weights) // 3)
    model.minimize(sum((53 * each) ** 2 % 89 * x + 11 * x for each, x in enumerate(taken)))
    monkeypatch.setattr(cpsat, "CREEPING_BRANCHES", 0 if creeping else math.inf)
    monkeypatch.setattr(cpsat, "LOOK", 0.005)
    solver = configured_solver(math.inf, seed=1, workers=1)
    status, work = solve_by_work(solver, model, 0.02)
    assert status == cp_model.FEASIBLE
    assert 0.015 < work < 0.03
    assert solver.parameters.add_lp_constraints_lazily is not creeping
    # A stop ends it at the first look.
    _, stopped = solve_by_work(solver, model, 0.02, over=lambda: True)
    assert stopped < 0.01
