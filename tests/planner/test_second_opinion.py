"""A proof of infeasibility is asked for twice: CP-SAT's presolve has been wrong once."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.solving import solve

from fleetplan.planner.solution import SolveStatus
from fleetplan.planner.solvers import race


def test_a_false_proof_of_infeasibility_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    first = race._run
    calls = []

    def lies_once(*arguments: object, **named: object) -> tuple[cp_model.CpSolver, int]:
        calls.append(1)
        if len(calls) == 1:
            impossible = cp_model.CpModel()
            impossible.add(impossible.new_bool_var("x") >= 2)
            solver = cp_model.CpSolver()
            return solver, solver.solve(impossible)
        return first(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(race, "_run", lies_once)
    small = fleet(services=[service("chat", 6.0)], hardware=[hardware("G", 1)], offers=[rent_offer("G", 2.0)])
    solved = solve(small, [candidate("chat", "G", 3.0)])
    assert solved.result.status is SolveStatus.OPTIMAL
    assert solved.result.objective_usd == pytest.approx(2 * 2.0 * 2190)
