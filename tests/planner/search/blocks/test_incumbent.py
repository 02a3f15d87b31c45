"""Exact columns become a plan after the master's other variables are rounded with them."""

from __future__ import annotations

import numpy as np
import pytest
from ortools.sat.python import cp_model

from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.master import Master
from fleetplan.planner.search.blocks.split import MASTER, split
from fleetplan.planner.search.solvers.matrix import IntArray, read_program
from fleetplan.planner.search.solvers.relaxation import relax


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        pytest.param(30, [2, 5, 6, 9], id="raised, and what depends on it"),
        pytest.param(5, None, id="no room: left to others"),
    ],
)
def test_a_row_that_rounding_breaks_is_kept_by_variables_of_the_master(
    most: int, expected: list[int] | None
) -> None:
    model = cp_model.CpModel()
    a, b = model.new_int_var(0, 9, "a"), model.new_int_var(0, 9, "b")
    beside, after = model.new_int_var(0, most, "beside"), model.new_int_var(0, 30, "after")
    model.add(a + b == 7)
    model.add(beside >= 3 * a)
    model.add(2 * after - 3 * beside >= 0)
    model.minimize(beside + after)
    program = read_program(model)
    parts = split(program, [0, 0, MASTER, MASTER])
    relaxed = relax(program, [2, 3])
    cost = program.cost * relaxed.variable_scale
    asked: list[IntArray] = []

    def complete(values: IntArray) -> None:
        asked.append(values)

    incumbent = Incumbent(parts, relaxed, complete)
    pool = ColumnPool(parts, relaxed, cost)
    column = pool.known(0, np.array([2.0, 5.0]))
    # A third of a unit too little, and a value that would do for it.
    master = np.array([min(17 / 3, most), 8.4]) / relaxed.variable_scale[2:]
    selection = Master(parts, relaxed, cost).selection([column], master)
    assert incumbent.offer(selection) == (expected is not None)
    assert bool(asked) == (expected is None)
    if expected is not None:
        assert incumbent.values is not None
        assert incumbent.values.tolist() == expected
        assert incumbent.objective == 15
