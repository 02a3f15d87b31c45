"""Columns of blocks: their whole values keep the block's rows, and they are found again."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.planner.random_fleets import large_case
from tests.planner.search.blocks.test_bound import EXACT, built, parts_of

from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.bound import Lagrangian
from fleetplan.planner.search.blocks.columns import Column, ColumnMemory, ColumnPool
from fleetplan.planner.search.blocks.exact_columns import ExactColumns
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import Job
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import Relaxation, relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers


@pytest.fixture(scope="module")
def program() -> tuple[Split, Relaxation]:
    planning = built(large_case(1, 4, 2, 2))
    parts = parts_of(planning)
    return parts, relax(parts.program, continuous_indices(planning.variables))


Priced = list[tuple[int, FloatArray]]
"""Numbers of blocks, and what each costs least at some prices."""


@pytest.fixture(scope="module")
def priced(program: tuple[Split, Relaxation]) -> Priced:
    return priced_blocks(program)


def priced_blocks(program: tuple[Split, Relaxation]) -> Priced:
    """The cheapest values of each block at no prices and at others."""
    parts, relaxation = program
    lagrangian = Lagrangian(parts, relaxation)
    programs = Programs.of(block_programs(parts, relaxation))
    found: Priced = []
    with Workers(ProcessSeats(1, programs)) as workers:
        for factor in (0.0, 1e6, -1e6):
            reduced = lagrangian.price(np.full(len(parts.linking_rows), factor)).reduced_cost
            jobs = [Job(number, reduced[each.variables], EXACT) for number, each in enumerate(parts.blocks)]
            for number, answer in enumerate(workers.solve(jobs)):
                assert answer.values is not None
                answer.values.flags.writeable = False
                found.append((number, answer.values))
    return found


def filled(program: tuple[Split, Relaxation], priced: Priced) -> ColumnPool:
    """A pool with these columns."""
    parts, relaxation = program
    pool = ColumnPool(parts, relaxation, Lagrangian(parts, relaxation).cost)
    for number, values in priced:
        pool.add(number, values)
    return pool


def kept(parts: Split, block: int, values: np.ndarray) -> bool:
    own = parts.blocks[block]
    used = parts.program.rows[own.rows][:, own.variables] @ values
    lower, upper = parts.program.row_lower[own.rows], parts.program.row_upper[own.rows]
    return bool((used >= lower).all() and (used <= upper).all())


def test_whole_values_keep_the_rows_and_the_whole_variables(
    program: tuple[Split, Relaxation], priced: Priced
) -> None:
    parts, relaxation = program
    pool, exact = filled(program, priced), ExactColumns(*program)
    assert len(pool.columns) > len(parts.blocks)
    for column in pool.columns:
        values = exact.values(column)
        assert values is not None
        assert kept(parts, column.block, values)
        whole = relaxation.whole[parts.blocks[column.block].variables]
        assert (values[whole] == np.round(column.values[whole])).all()


def test_a_column_that_lacks_a_replica_gets_one(program: tuple[Split, Relaxation], priced: Priced) -> None:
    parts, relaxation = program
    exact, mended = ExactColumns(*program), 0
    for column in filled(program, priced).columns:
        whole = relaxation.whole[parts.blocks[column.block].variables]
        values = column.values.copy()
        largest = int(np.argmax(np.where(whole, values, 0)))
        values[largest] -= 1
        short = Column(column.block, values, column.cost, column.entries)
        found = exact.values(short)
        if found is None:
            continue
        assert kept(parts, column.block, found)
        assert exact.mended(column) is None
        mended += exact.mended(short) is not None
    assert mended > 0


def test_a_mended_column_stands_for_the_one_that_lacked_a_replica(
    program: tuple[Split, Relaxation], priced: Priced
) -> None:
    pool = filled(program, priced)
    first = pool.columns[0]
    more = first.values + 1.0
    before = len(pool.columns)
    pool.replace(first, more)
    pool.replace(first, more + 1.0)
    assert first not in pool.columns
    assert len(pool.columns) == before
    assert (pool.known(first.block, first.values).values == more).all()
    assert first not in list(pool.of([first.block]))


def test_a_program_of_the_stack_is_the_part_of_the_whole(program: tuple[Split, Relaxation]) -> None:
    parts, relaxation = program
    programs = block_programs(parts, relaxation)
    for number, block in enumerate(parts.blocks):
        found, part = programs.program(number), relaxation.rows[block.rows][:, block.variables]
        matrix = found.rows
        rebuilt = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        assert (rebuilt.toarray() == part.toarray()).all()
        assert (parts.own_rows(relaxation.rows, block).toarray() == part.toarray()).all()
        for name in ("row_lower", "row_upper"):
            assert (getattr(found, name) == getattr(relaxation, name)[block.rows]).all()
        for name in ("lower", "upper", "whole"):
            assert (getattr(found, name) == getattr(relaxation, name)[block.variables]).all()


def test_a_pool_takes_no_memory_for_rows_that_a_block_does_not_touch(
    program: tuple[Split, Relaxation],
) -> None:
    parts, relaxation = program
    small = ColumnPool(parts, relaxation, np.zeros(len(parts.block_of)))
    # A hundred times as many linking rows, in none of which a block has entries.
    n_rows, n_more = relaxation.rows.shape[0], 100 * len(parts.linking_rows)
    large = ColumnPool(
        replace(parts, linking_rows=np.concatenate([parts.linking_rows, n_rows + np.arange(n_more)])),
        replace(
            relaxation, rows=sp.vstack([relaxation.rows, sp.csr_array((n_more, len(parts.block_of)))]).tocsr()
        ),
        small.cost,
    )
    assert large.link_bytes == small.link_bytes


def test_a_memory_gives_back_what_other_bounds_allow_in_their_scale(
    program: tuple[Split, Relaxation],
    priced: Priced,
) -> None:
    parts, relaxation = program
    pool, memory = filled(program, priced), ColumnMemory()
    memory.keep(pool)
    scaled = [np.array([each.values for each in pool.of([number])]) for number in range(len(parts.blocks))]
    # The load that columns of a block use most differently may be half of the most from now on.
    spread = [
        np.where(relaxation.whole[block.variables], -1.0, np.ptp(values, axis=0))
        for block, values in zip(parts.blocks, scaled, strict=True)
    ]
    number = int(np.argmax([each.max() for each in spread]))
    block, held = parts.blocks[number], int(np.argmax(spread[number]))
    used = scaled[number] * relaxation.variable_scale[block.variables]
    upper = parts.program.upper.copy()
    upper[block.variables[held]] = used[:, held].max() // 2
    tighter = relax(replace(parts.program, upper=upper), np.flatnonzero(~relaxation.whole).tolist())
    empty = ColumnPool(parts, tighter, pool.cost)
    memory.recall(empty)
    found = list(empty.of([number]))
    given = [column.values * tighter.variable_scale[block.variables] for column in found]
    assert 0 < len(found) < len(used)
    assert all(values[held] <= upper[block.variables[held]] for values in given)
    assert all(any(np.allclose(values, each) for each in used) for values in given)


def test_a_memory_gives_back_what_it_was_given(program: tuple[Split, Relaxation], priced: Priced) -> None:
    pool, memory = filled(program, priced), ColumnMemory()
    empty = ColumnPool(*program, pool.cost)
    assert not memory.recall(empty)
    memory.keep(pool)
    assert memory.recall(empty)
    found = {(each.block, each.values.tobytes()) for each in empty.columns}
    assert found == {(each.block, each.values.tobytes()) for each in pool.columns}


def test_a_memory_knows_no_blocks_of_other_rows(program: tuple[Split, Relaxation], priced: Priced) -> None:
    parts, relaxation = program
    pool, memory = filled(program, priced), ColumnMemory()
    memory.keep(pool)
    first = replace(parts.blocks[0], rows=parts.blocks[0].rows[1:])
    other = ColumnPool(replace(parts, blocks=(first, *parts.blocks[1:])), relaxation, pool.cost)
    assert not memory.recall(other)
    assert 0 not in {each.block for each in other.columns}


def test_promising_columns_are_the_cheapest_and_the_chosen(
    program: tuple[Split, Relaxation], priced: Priced
) -> None:
    parts, _ = program
    pool = filled(program, priced)
    prices = np.zeros(len(parts.linking_rows))
    dearest = [
        max(pool.of([block]), key=lambda each: each.reduced_cost(prices))
        for block in range(len(parts.blocks))
    ]
    found = pool.promising(range(len(parts.blocks)), prices, 1, [*dearest, *dearest])
    assert len({id(each) for each in found}) == len(found)
    assert {each.block for each in pool.promising([1], prices, 1, dearest)} == {1}
    for block in range(len(parts.blocks)):
        own = [each for each in found if each.block == block]
        assert own[0].reduced_cost(prices) == min(each.reduced_cost(prices) for each in pool.of([block]))
        assert dearest[block] in own
        assert len(own) <= 2


def test_extra_columns_are_those_of_the_least_reduced_cost_above_the_cheapest_of_their_block(
    program: tuple[Split, Relaxation],
    priced: Priced,
) -> None:
    parts, _ = program
    pool = filled(program, priced)
    prices = np.full(len(parts.linking_rows), 1e5)
    least = [
        min(each.reduced_cost(prices) for each in pool.of([block])) for block in range(len(parts.blocks))
    ]
    excess = {id(each): each.reduced_cost(prices) - least[each.block] for each in pool.columns}
    besides = pool.columns[:3]
    for more in (0, 2, len(pool.columns)):
        found = pool.by_reduced_cost(range(len(parts.blocks)), prices, more, [*besides, besides[0]])
        assert found[:3] == besides
        others = [excess[id(each)] for each in found[3:]]
        left_out = [excess[id(each)] for each in pool.columns if each not in found]
        assert len(others) == min(more, len(pool.columns) - 3)
        assert max(others, default=0.0) <= min(left_out, default=math.inf)
    of_last = pool.by_reduced_cost([len(parts.blocks) - 1], prices, len(pool.columns), besides)
    assert {each.block for each in of_last[3:]} <= {len(parts.blocks) - 1}
