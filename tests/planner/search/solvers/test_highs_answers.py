"""HiGHS's answers to integer programs that begin with a known solution."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

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
    """What HiGHS answers with a start."""
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
