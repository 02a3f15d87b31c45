"""Programs without their decided variables and rows have the same solutions, and HiGHS the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from tests.parts import first_of

from fleetplan.planner.search.solvers.highs_answers import solve
from fleetplan.planner.search.solvers.highs_jobs import ANY_NODES, Array, Effort, Job, Rows, no_programs
from fleetplan.planner.search.solvers.highs_reduction import ReducedRows, reduced_rows

PROGRAMS = (100, 300)
"""Random programs of a test in `make test` and in `make test-more`."""

EXACT = Effort(10.0, ANY_NODES, 0.0)


def random_program(draw: np.random.Generator) -> Rows:
    """A program of four variables; many are fixed, and many rows have one variable."""
    matrix = draw.choice([-2.0, -1, 0, 0, 0, 0, 0.5, 1, 2], size=(4, 4))
    lower = draw.integers(0, 2, 4).astype(float)
    upper = lower + draw.choice([0, 0, 1, 2], 4)
    least = np.where(draw.random(4) < 0.5, -np.inf, draw.integers(-2, 2, 4))
    most = np.where(draw.random(4) < 0.5, np.inf, draw.integers(0, 4, 4))
    return Rows(sp.csr_array(matrix), least, most, lower, upper, np.ones(4, dtype=bool))


def solutions(rows: Rows) -> set[tuple[float, ...]]:
    """Every solution of a program of whole variables."""
    ranges = [np.arange(low, high + 1) for low, high in zip(rows.lower, rows.upper, strict=True)]
    found = set()
    for values in product(*ranges):
        used = rows.rows @ np.array(values)
        if (used >= rows.row_lower).all() and (used <= rows.row_upper).all():
            found.add(tuple(float(each) for each in values))
    return found


def left(reduced: ReducedRows) -> Rows:
    """What is left, with scipy's operators."""
    matrix = reduced.rows.rows
    plain = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), matrix.shape)
    rows = reduced.rows
    return Rows(plain, rows.row_lower, rows.row_upper, rows.lower, rows.upper, rows.whole)


def programs(count: int) -> Iterator[tuple[Rows, Array]]:
    """Random programs and costs."""
    draw = np.random.default_rng(5)
    for _ in range(count):
        yield random_program(draw), draw.integers(-5, 6, 4).astype(float)


@pytest.mark.parametrize("count", first_of(PROGRAMS, 1))
def test_a_reduced_program_has_the_same_solutions(count: int) -> None:
    smaller = none = 0
    for rows, cost in programs(count):
        reduced = reduced_rows(rows)
        expected = solutions(rows)
        if reduced is None:
            assert not expected
            none += 1
            continue
        within = solutions(left(reduced))
        assert {tuple(reduced.whole(np.array(values)).tolist()) for values in within} == expected
        for values in within:
            own = cost[reduced.kept] @ np.array(values)
            assert reduced.constant(cost) + own == pytest.approx(cost @ reduced.whole(np.array(values)))
        smaller += len(reduced.kept) < 4
    assert smaller > count // 2
    assert none > count // 20


@pytest.mark.parametrize("count", first_of(PROGRAMS, 1))
def test_highs_answers_reduced_programs_in_terms_of_the_whole(count: int) -> None:
    begun = 0
    for number, (rows, cost) in enumerate(programs(count)):
        expected = solutions(rows)
        costs = sorted(float(cost @ np.array(values)) for values in expected)
        # Every other program begins with a solution, which need not be a good one.
        start = np.array(max(expected, key=lambda each: cost @ np.array(each))) if expected else None
        start = start if number % 2 else None
        begun += start is not None
        found = solve(Job(rows, cost, EXACT, start), no_programs())
        assert found.infeasible == (not expected)
        if expected:
            assert found.objective == pytest.approx(costs[0])
            assert found.bound == pytest.approx(costs[0], abs=1e-5)
            assert found.values is not None
            assert tuple(found.values.tolist()) in expected
    assert begun > count // 5


def test_the_bound_of_an_integer_is_rounded_and_that_of_a_rate_is_not() -> None:
    rows = Rows(
        sp.csr_array(np.array([[3.0, 0], [0, 3]])),
        np.array([-np.inf, -np.inf]),
        np.array([5.0, 5]),
        np.zeros(2),
        np.full(2, 9.0),
        np.array([True, False]),
    )
    reduced = reduced_rows(rows)
    assert reduced is not None
    assert reduced.rows.upper.tolist() == [1.0, 5 / 3]
    assert reduced.rows.rows.shape == (0, 2)


def test_limits_that_are_missed_by_rounding_alone_do_not_contradict() -> None:
    def within(limit: float) -> ReducedRows | None:
        matrix = sp.csr_array(np.array([[1.0, 1.0, 0.0]]))
        ones = np.ones(3)
        # The third variable is open, in no row.
        upper = np.array([1.0, 1, 2])
        return reduced_rows(Rows(matrix, np.array([limit]), np.array([np.inf]), ones, upper, ones > 0))

    assert within(2 + 1e-7) is not None
    assert within(2 + 1e-5) is None
