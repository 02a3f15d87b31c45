"""A reduced program has the solutions of the program, and blocks own rows that fixed variables linked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from ortools.sat.python import cp_model
from tests.parts import first_of

from fleetplan.planner.search.blocks.split import split
from fleetplan.planner.search.solvers.matrix import UNBOUNDED, Program, read_program
from fleetplan.planner.search.solvers.reduction import reduced

MOST = 3


def random_program(seed: int) -> Program:
    """Three variables and six rows, half of which have one entry."""
    random = np.random.default_rng(seed)
    entries = random.integers(-3, 4, (6, 3))
    entries[:3] *= np.eye(3, dtype=np.int64)[random.integers(0, 3, 3)]
    limits = np.sort(random.integers(-8, 9, (6, 2)), axis=1)
    limits[random.random((6, 2)) < 0.4] = UNBOUNDED
    lower, upper = limits[:, 0].copy(), limits[:, 1]
    lower[lower == UNBOUNDED] = -UNBOUNDED
    bounds = np.sort(random.integers(-MOST, MOST + 1, (3, 2)), axis=1)
    return Program(
        rows=sp.csr_array(entries),
        row_lower=lower,
        row_upper=upper,
        lower=bounds[:, 0],
        upper=bounds[:, 1],
        cost=random.integers(-5, 6, 3),
    )


TRIED = np.array([*itertools.product(range(-MOST - 1, MOST + 2), repeat=3)])
"""Small values, those outside of the bounds included."""


def solutions(program: Program) -> list[list[int]]:
    """All of them among small values."""
    sums = TRIED @ program.rows.toarray().T
    holds = [
        np.all(lower <= values, axis=1) & np.all(values <= upper, axis=1)
        for values, lower, upper in (
            (TRIED, program.lower, program.upper),
            (sums, program.row_lower, program.row_upper),
        )
    ]
    found: list[list[int]] = TRIED[np.logical_and(*holds)].tolist()
    return found


@pytest.mark.parametrize("first", first_of((0, 100, 200), 1))
def test_the_solutions_are_the_same(first: int) -> None:
    fewer = 0
    for seed in range(first, first + 100):
        program = random_program(seed)
        before = program.rows.copy()
        found = reduced(program)
        assert solutions(found) == solutions(program)
        assert found.rows.shape == program.rows.shape
        assert (found.cost == program.cost).all()
        assert (program.rows != before).nnz == 0
        fewer += found.rows.nnz < before.nnz
    assert fewer > 20


def test_what_one_row_fixes_leaves_the_others() -> None:
    """As the work of a day that has one moment: what arises is put off to where it arises, and done there."""
    model = cp_model.CpModel()
    load, worked, put_off = (model.new_int_var(0, 9, name) for name in ("load", "worked", "put_off"))
    model.add(2 * put_off >= 18)
    model.add(2 * worked >= put_off)
    model.add(load >= worked)
    program = read_program(model)
    keys = [0, 0, -1]
    assert split(program, keys).linking_rows.tolist() == [0, 1]
    found = reduced(program)
    assert found.lower.tolist() == [0, 5, 9]
    assert np.diff(found.rows.indptr).tolist() == [0, 0, 2]


def test_contradictory_bounds_are_left_to_solvers() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(0, 9, "x")
    model.add(2 * x >= 5)
    model.add(3 * x <= 7)
    program = read_program(model)
    assert reduced(program) is program
