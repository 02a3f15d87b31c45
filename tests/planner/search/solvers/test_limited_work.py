"""A solve that work limits, not the clock, ends after it, presolve included, which nobody counts."""

from __future__ import annotations

import math
import re

from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, rented_pool, service

from fleetplan.planner.formulation import build_model, unmet_demand
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.solvers.cpsat import (
    LEAST_PRESOLVE_OPERATIONS,
    configured_solver,
    limit_work,
)


def test_bounds_that_tighten_each_other_step_by_step_end_presolve() -> None:
    """Six variables took 22,496 rules; models of a thousand took up to 12 s for a tenth of a unit of work."""
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
