"""Rows that rounding breaks are kept again, or nothing is said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fleetplan.planner.search.blocks.row_repair import RowRepair
from fleetplan.planner.search.solvers.matrix import Program

FULL = 55_440


def two_replicas(demand: int, capacity: int = FULL) -> Program:
    """Return loads of a class on two replicas; another class fills a part of the second."""
    return Program(
        rows=sp.csr_array(np.array([[7, 5, 0], [0, 0, 3], [1, 0, 0], [0, 1, 1]])),
        row_lower=np.array([demand, 3 * 100, -(2**62), -(2**62)]),
        row_upper=np.array([2**62, 2**62, capacity, capacity]),
        lower=np.zeros(3, dtype=np.int64),
        upper=np.full(3, FULL),
        cost=np.ones(3, dtype=np.int64),
    )


FREE = np.ones(3, dtype=bool)


def test_what_is_missing_goes_where_there_is_room() -> None:
    program = two_replicas(demand=7 * FULL + 5 * 1000 + 1)
    found = RowRepair(program, FREE).repaired(np.array([FULL, 1000, 99]))
    assert found is not None
    assert program.holds(found)
    assert np.abs(found - [FULL, 1000, 99]).sum() <= 3


def test_variables_that_are_not_free_stay() -> None:
    program = two_replicas(demand=7 * 10 + 5 * 10 + 1)
    start = np.array([10, 10, 100])
    only_second = RowRepair(program, np.array([False, True, False])).repaired(start)
    assert only_second is not None
    assert (only_second == [10, 11, 100]).all()
    assert RowRepair(program, np.array([False, False, True])).repaired(start) is None


def test_more_than_everything_holds_is_not_repaired() -> None:
    assert RowRepair(two_replicas(demand=12 * FULL + 1), FREE).repaired(np.array([FULL, FULL, 100])) is None


def test_values_beyond_their_bounds_are_refused() -> None:
    assert RowRepair(two_replicas(demand=1), FREE).repaired(np.array([-1, 5, 100])) is None


@pytest.mark.parametrize("seed", range(20))
def test_rounded_values_of_random_programs_are_repaired_or_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = sp.csr_array(random.integers(0, 9, (6, 8)) * (random.random((6, 8)) < 0.5))
    values = random.uniform(0, 50, 8)
    used = rows @ values
    program = Program(
        rows=rows,
        row_lower=np.floor(used - random.uniform(0, 3, 6)).astype(np.int64),
        row_upper=np.ceil(used + random.uniform(0, 30, 6)).astype(np.int64),
        lower=np.zeros(8, dtype=np.int64),
        upper=np.full(8, 60),
        cost=np.ones(8, dtype=np.int64),
    )
    found = RowRepair(program, np.ones(8, dtype=bool)).repaired(np.round(values).astype(np.int64))
    assert found is None or program.holds(found)


def test_a_part_that_cannot_be_kept_is_no_matter_to_the_others() -> None:
    full, few = two_replicas(demand=12 * FULL + 1), two_replicas(demand=7 * FULL + 5 * 1000 + 1)
    none = few.rows.shape
    parts = (few, full, few)
    together = Program(
        rows=sp.csr_array(sp.block_diag([each.rows for each in parts])),
        row_lower=np.concatenate([each.row_lower for each in parts]),
        row_upper=np.concatenate([each.row_upper for each in parts]),
        lower=np.concatenate([each.lower for each in parts]),
        upper=np.concatenate([each.upper for each in parts]),
        cost=np.concatenate([each.cost for each in parts]),
    )
    repair = RowRepair(together, np.tile(FREE, 3), np.repeat(np.arange(3), none[0]))
    start = np.array([FULL, 1000, 99])
    found, failed = repair.repaired_parts(np.concatenate([start, [FULL, FULL, 100], [-1, 1000, 99]]))
    assert failed.tolist() == [False, True, True]
    alone = RowRepair(few, FREE).repaired(start)
    assert alone is not None
    assert found[:3].tolist() == alone.tolist()
