"""Answers of HiGHS to integer programs: those that begin with a known solution, or have nothing to spare."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import highspy
import numpy as np
import pytest
import scipy.sparse as sp

from fleetplan.planner.search.solvers import highs_model
from fleetplan.planner.search.solvers.highs_answers import solve
from fleetplan.planner.search.solvers.highs_jobs import (
    ANY_NODES,
    Answer,
    Array,
    Effort,
    Job,
    Rows,
    no_programs,
)

GAP = 1e-4
EXACT = Effort(10.0, ANY_NODES, GAP)


def program(rows: Array, row_lower: Array, row_upper: Array, upper: Array) -> Rows:
    """A program of whole variables from zero up to some limits."""
    zero, whole = np.zeros(len(upper)), np.ones(len(upper), dtype=bool)
    return Rows(sp.csr_array(rows), row_lower, row_upper, zero, upper, whole)


def answer(rows: Rows, cost: Array, start: Array | None) -> Answer:
    """Return HiGHS's answer for a start."""
    return solve(Job(rows, cost, EXACT, start), no_programs())


def test_a_start_is_not_taken_for_a_cheaper_one() -> None:
    # HiGHS 1.16.0 itself takes this start of 66 for 33, and calls it the optimum.
    rows = program(
        np.array([[0.125, 0.5, 0, 0, 0, -0.25], [2, 1, -2, 0, -1, 0], [0, 0, 1, 1, 1, 0]]),
        np.array([-np.inf, 0, 1]),
        np.array([0.5, np.inf, 1]),
        np.array([1.0, 1, 1, 1, 1, 36]),
    )
    cost = np.array([30.0, 33, 30, 38, 33, 772])
    found = answer(rows, cost, np.array([0.0, 1, 0, 0, 1, 0]))
    assert found.objective == 38
    assert found.bound == pytest.approx(38, rel=GAP)


def test_any_start_leads_to_the_optimum_of_random_programs() -> None:
    draw = np.random.default_rng(0)
    tried = 0
    for _ in range(150):
        matrix = draw.choice([-2.0, -1, -0.25, 0, 0, 0.5, 1, 2], size=(3, 5))
        upper = draw.choice([1.0, 1, 1, 3], size=5)
        row_upper = matrix @ np.minimum(upper, draw.integers(0, 2, size=5)) + draw.integers(0, 2, size=3)
        row_lower = np.where(draw.random(3) < 0.5, row_upper, -np.inf)
        cost = draw.integers(-9, 30, size=5).astype(float)
        points = np.array(list(product(*(range(int(most) + 1) for most in upper))), dtype=float)
        used = points @ matrix.T
        solutions = points[((used <= row_upper) & (used >= row_lower)).all(axis=1)]
        if not len(solutions):
            continue
        tried += 1
        least = float((solutions @ cost).min())
        found = answer(
            program(matrix, row_lower, row_upper, upper), cost, solutions[draw.integers(len(solutions))]
        )
        assert found.objective == pytest.approx(least, abs=GAP * abs(least))
        assert found.bound <= least + 1e-6
        assert found.bound >= least - GAP * max(abs(found.objective), 1.0) - 1e-6
    assert tried > 75


def test_the_best_start_is_the_answer_and_its_gap_is_told() -> None:
    rows = program(np.array([[1.0, 1]]), np.array([1.0]), np.array([np.inf]), np.ones(2))
    found = answer(rows, np.array([3.0, 5]), np.array([1.0, 0]))
    assert found.values is not None
    assert found.values.tolist() == [1, 0]
    assert not found.infeasible
    assert 3 * (1 - GAP) <= found.bound <= 3


def test_nothing_is_proven_above_what_was_looked_for() -> None:
    """With a limit on the objective HiGHS calls a plan above it the optimum: 338 where 335 is the least."""
    draw = random.Random(1)
    rows = np.array([[draw.randrange(5, 40) for _ in range(30)] for _ in range(6)], dtype=float)
    cost = np.array([draw.randrange(20, 60) for _ in range(30)], dtype=float)
    cover = program(rows, np.full(6, 300.0), np.full(6, np.inf), np.full(30, 3.0))
    least = answer(cover, cost, None).objective
    dearer = solve(Job(cover, cost, replace(EXACT, gap_ratio=0.1)), no_programs())
    assert dearer.values is not None
    assert dearer.objective > least
    for looked_for in (0.5, 0.1, 1.5, 3.0):
        gap = (dearer.objective - least + looked_for) / dearer.objective
        found = solve(Job(cover, cost, replace(EXACT, gap_ratio=gap), dearer.values), no_programs())
        assert found.bound <= least * (1 + 1e-9)


@pytest.mark.parametrize("start", [[0.0, 0.0], [0.5, 0.5]])
def test_a_start_that_is_no_solution_is_none(start: list[float]) -> None:
    rows = program(np.array([[1.0, 1]]), np.array([1.0]), np.array([np.inf]), np.ones(2))
    found = answer(rows, np.array([3.0, 5]), np.array(start))
    assert found.objective == 3
    assert found.bound == pytest.approx(3)


def test_a_program_without_a_solution_is_infeasible_whatever_it_begins_with() -> None:
    rows = program(np.array([[1.0, 1]]), np.array([3.0]), np.array([np.inf]), np.ones(2))
    found = answer(rows, np.array([3.0, 5]), np.ones(2))
    assert found.values is None
    assert found.infeasible


def seven_variables(share: float) -> tuple[Rows, Array]:
    """The smallest known program of which HiGHS proves a false optimum, and its cost.

    One demand, just below 1, is carried by q or r, each of 1 at the most; what r carries takes n and what q
    carries m, in whole numbers. r alone carries it for n = 2; HiGHS says 3 (benchmarks/highs-presolve.md).
    """
    n, y, m, p, q, r, d = np.eye(7)
    rows = np.array([share * (q + r) - d, p - q, y - r, n - 0.3 * y, m - 0.5 * p, d])
    least = np.array([0.0, 0.0, 0.0, 0.8, 0.0, share])
    upper = np.array([3.0, 1, 3, 1, 1, 1, 1])
    whole = np.array([True, False, True, False, False, False, False])
    program = Rows(sp.csr_array(rows), least, np.full(6, np.inf), np.zeros(7), upper, whole)
    return program, n + 2 * m


SHARES = (0.9, 1 - 1e-5, *(1 - 10.0**exponent for exponent in np.arange(-9, -5.9, 0.1)), 1.0)


@pytest.mark.parametrize("share", SHARES)
def test_a_demand_with_nothing_to_spare_has_no_false_optimum(share: float) -> None:
    rows, cost = seven_variables(share)
    found = solve(Job(rows, cost, EXACT), no_programs())
    assert found.objective == 2
    assert found.bound <= 2 * (1 + GAP)


def unit_coefficients() -> tuple[Rows, Array]:
    """The smallest known program that HiGHS calls infeasible if its presolve skips probing, and its cost.

    A fleet's least cost is its limit. Every coefficient is a whole number, a half or 0.3, and the optimum
    is 1 (benchmarks/highs-presolve.md).
    """
    x = np.eye(20)
    rows: list[tuple[Array, float, float]] = [
        (x[0], 1, 1),
        (x[1] + x[2], 1, 1),
        (x[3] + x[4] + x[5], 1, 1),
        *((x[each] - x[each + 10], -np.inf, 0) for each in range(5)),
        (x[10] - x[15], -np.inf, 0),
        (x[15] - x[7] - x[8], -np.inf, 0),
        (x[12] - x[18], -np.inf, 0),
        (0.5 * x[11] + x[13] - x[16] - 0.5 * x[17], -np.inf, 0),
        (x[16] + x[17] + x[18] - x[6], -np.inf, 0),
        (x[14] - x[19], -np.inf, 0),
        (x[19] - x[9], -np.inf, 0),
        (x[6] + x[7], -np.inf, 1),
        (x[5] + 0.3 * x[9], -np.inf, 1),
    ]
    matrix, least, most = (np.array(column) for column in zip(*rows, strict=True))
    upper = np.full(20, np.inf)
    upper[6:15] = 1
    whole = np.isin(np.arange(20), [6, 7, 9, 16, 18, 19])
    return Rows(sp.csr_array(matrix), least, most, np.zeros(20), upper, whole), x[8]


def test_a_program_that_presolve_calls_infeasible_is_solved() -> None:
    rows, cost = unit_coefficients()
    found = solve(Job(rows, cost, EXACT), no_programs())
    assert found.objective == pytest.approx(1)
    assert found.bound == pytest.approx(1, rel=GAP)


@pytest.mark.parametrize("basic_presolve", [False, True])
def test_bounds_of_both_programs_are_true(basic_presolve: bool) -> None:
    programs = [(unit_coefficients(), 1), *((seven_variables(share), 2) for share in SHARES)]
    for (rows, cost), least in programs:
        model = highs_model.integer_model(rows, cost, basic_presolve=basic_presolve)
        assert model is not None
        model[0].run()
        assert model[0].getInfo().mip_dual_bound == pytest.approx(least, rel=GAP)


def proven(rows: Rows, cost: Array, options: dict[str, int | float]) -> float:
    """The bound of HiGHS as it comes, but for some options; infinite for infeasibility."""
    solver = highs_model.linear_model(rows, cost)
    for variable in np.flatnonzero(rows.whole):
        solver.changeColIntegrality(int(variable), highspy.HighsVarType.kInteger)
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return np.inf
    return round(solver.getInfo().mip_dual_bound)


def test_presolve_of_highs_proves_what_is_false() -> None:
    """If this fails with a newer HiGHS, its presolve may be tried again."""
    rows, cost = seven_variables(1 - 1.5e-7)
    fine = {"mip_feasibility_tolerance": highs_model.INTEGER_TOLERANCE}
    assert [proven(rows, cost, {}), proven(rows, cost, fine)] == [3, 2]
    rows, cost = unit_coefficients()
    no_probing = {"presolve_rule_off": 1 << 15 | 1 << 17}
    assert [proven(rows, cost, {}), proven(rows, cost, no_probing)] == [1, np.inf]
