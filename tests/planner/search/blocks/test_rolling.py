"""Stages of a construction, on programs of a few variables with known solutions."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fleetplan.planner.search.blocks.composite_jobs import RollingJob
from fleetplan.planner.search.blocks.rolling import LEAST_ROUGH_S, ROUGH_SHARE, construct
from fleetplan.planner.search.solvers.highs_answers import solve
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job, Rows, no_programs
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

FREE = np.inf


def job(
    *,
    rows: list[list[float]],
    row_lower: list[float],
    row_upper: list[float],
    cost: list[float],
    root: list[float],
    stage: list[int],
    region: list[int],
    growth: list[int],
    penalty: float = 1000.0,
    rank: list[float] | None = None,
) -> RollingJob:
    """Return an integer program with values up to 9; a variable of stage -1 is supply or links stages.

    With ranks each variable is a slot of its own, and only the last attempt looks at all of them.
    """
    count = len(cost)
    staged = np.array(stage)
    return RollingJob(
        program=Rows(
            sp.csr_array(np.array(rows, dtype=float)),
            np.array(row_lower, dtype=float),
            np.array(row_upper, dtype=float),
            np.zeros(count),
            np.full(count, 9.0),
            np.ones(count, dtype=bool),
        ),
        cost=np.array(cost, dtype=float),
        root=np.array(root, dtype=float),
        stages=tuple(np.flatnonzero(staged == number) for number in range(max(stage) + 1)),
        service=np.where(staged >= 0, 0, -1),
        region=np.array(region),
        growth=np.array(growth),
        slot=np.full(count, -1) if rank is None else np.arange(count),
        rank=np.zeros(1) if rank is None else np.array(rank),
        widths=(0.0, 1.0, FREE),
        moment_share=1.5,
        follow_slots=False,
        by_service=False,
        period_of_stage=np.arange(max(stage) + 1),
        # What supply costs is told as it is.
        helps=sp.csr_array((int(np.count_nonzero(growth)), max(stage) + 1)),
        linking=np.ones(len(rows), dtype=bool),
        penalty=np.full(len(rows), penalty),
        effort=Effort(20.0, 1_000_000, 0.0),
    )


def constructed(of: RollingJob) -> np.ndarray:
    with Workers(ProcessSeats(1)) as workers:
        answer: Answer = workers.solve_one(of)
    assert answer.values is not None
    return np.round(answer.values).astype(int)


def test_what_the_relaxation_sells_may_leave_later_and_still_leaves() -> None:
    # One host, a replica in the first moment, none in the second: x0 + l0 <= 1, x1 + l0 + l1 <= 1, and the
    # host has left by then: l0 + l1 >= 1. The relaxation sells six tenths of it at once, which pays more.
    found = constructed(
        job(
            rows=[[1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1], [1, 0, 0, 0]],
            row_lower=[-FREE, -FREE, 1, 0.4],
            row_upper=[1, 1, FREE, FREE],
            cost=[1, 1, -10, -9],
            root=[0.4, 0.0, 0.6, 0.4],
            stage=[0, 1, -1, -1],
            region=[0, 0, 0, 0],
            growth=[0, 0, -1, -1],
        )
    )
    assert found.tolist() == [1, 0, 0, 1]


def test_regions_that_cannot_be_decided_one_by_one_are_decided_together() -> None:
    # The relaxation serves half of each region's demand from the other; whole, 2 a + b >= 3 and a + 2 b >= 3
    # take one replica of each where there is room for one: with b held at a half, a would have to be two.
    found = constructed(
        job(
            rows=[[2, 1], [1, 2], [1, 0], [0, 1]],
            row_lower=[3, 3, -FREE, -FREE],
            row_upper=[FREE, FREE, 1, 1],
            cost=[1, 1],
            root=[1.0, 0.5],
            stage=[0, 0],
            region=[0, 1],
            growth=[0, 0],
        )
    )
    assert found.tolist() == [1, 1]


def test_a_moment_that_few_slots_cannot_serve_is_decided_among_all() -> None:
    # As above, with a demand that takes a third slot as well, which ranks far behind.
    found = constructed(
        job(
            rows=[[2, 1, 1], [1, 2, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
            row_lower=[4, 3, -FREE, -FREE, -FREE],
            row_upper=[FREE, FREE, 1, 1, 1],
            cost=[1, 1, 1],
            root=[1.0, 0.5, 0.0],
            stage=[0, 0, 0],
            region=[0, 1, 0],
            growth=[0, 0, 0],
            rank=[0.0, 0.0, 5.0],
        )
    )
    assert found.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("follow", "took_s", "second"), [(False, 12.0, [1, 0]), (True, 0.0, [1, 0]), (True, 12.0, [0, 1])]
)
def test_a_late_moment_looks_at_the_slots_of_the_one_before(
    follow: bool, took_s: float, second: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Slots 0 and 1 in two moments. The relaxation uses slot 0 alone, which cannot serve the first moment; the
    # second is served by either, and slot 1 costs less.
    program = job(
        rows=[[0, 1, 0, 0], [0, 0, 1, 1]],
        row_lower=[1, 1],
        row_upper=[FREE, FREE],
        cost=[5, 1, 5, 1],
        root=[1, 0, 1, 0],
        stage=[0, 0, 1, 1],
        region=[0, 0, 0, 0],
        growth=[0, 0, 0, 0],
        rank=[0.0, 0.5, 0.0, 0.0],
    )
    program = replace(program, slot=np.array([0, 1, 0, 1]), rank=np.array([0.0, 0.5]), follow_slots=follow)
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)

    def solved(asked: Job) -> Answer:
        nonlocal now_s
        answer = solve(asked, no_programs())
        # The first moment has a plan after 12 of 20 s.
        now_s = max(now_s, took_s if answer.values is not None and answer.values.any() else 0.0)
        return answer

    assert np.round(construct(program, solved).values).astype(int).tolist() == [0, 1, *second]


def test_where_many_slots_leave_no_time_for_a_plan_few_may() -> None:
    # Slot 1 would cost less, and no program with it has an answer in its time.
    program = job(
        rows=[[1, 1]],
        row_lower=[1],
        row_upper=[FREE],
        cost=[5, 1],
        root=[0.5, 0.5],
        stage=[0, 0],
        region=[0, 0],
        growth=[0, 0],
        rank=[0.0, 0.5],
    )
    wide = replace(program, widths=(1.0, FREE))

    def slow(asked: Job) -> Answer:
        assert isinstance(asked.rows, Rows)
        many = len(asked.rows.upper) > 1 and asked.rows.upper[1] > 0
        return Answer(None, np.inf, -np.inf) if many else solve(asked, no_programs())

    assert np.round(construct(wide, slow).values).astype(int).tolist() == [1, 0]


def test_a_lot_that_the_relaxation_parts_stands_in_one_region() -> None:
    # Four hosts in lots of four, of which the relaxation has two in each region: x <= a, a = 4 m, b = 4 n,
    # a + b <= 4. Four replicas need those of the first, or cost a hundred each without a host.
    found = constructed(
        job(
            rows=[
                [1, 1, 0, 0, 0, 0],
                [1, 0, -1, 0, 0, 0],
                [0, 0, 0.25, 0, -1, 0],
                [0, 0, 0, 0.25, 0, -1],
                [0, 0, 1, 1, 0, 0],
            ],
            row_lower=[4, -FREE, 0, 0, -FREE],
            row_upper=[FREE, 0, 0, 0, 4],
            cost=[1, 100, 1, 1, 0, 0],
            root=[2.0, 2.0, 2.0, 2.0, 0.5, 0.5],
            stage=[0, 0, -1, -1, -1, -1],
            region=[0, 0, 0, 1, 0, 1],
            growth=[0, 0, 1, 1, 1, 1],
        )
    )
    assert found.tolist() == [4, 0, 4, 0, 1, 0]


@pytest.mark.parametrize("room", [1, 2])
def test_a_stage_that_passes_a_limit_lets_no_other_pass_its_own(room: int) -> None:
    # The first moment needs three units of a budget of one, which supply is paid from as well. The second has
    # its own limit, and takes the dear variable where the cheap one has no room.
    found = constructed(
        job(
            rows=[[2, 0, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 0]],
            row_lower=[6, -FREE, 2, -FREE],
            row_upper=[FREE, 1, FREE, room],
            cost=[1, 1, 5000, 1],
            root=[0.0, 0.0, 0.0, 0.0],
            stage=[0, 1, 1, -1],
            region=[0, 0, 0, 0],
            growth=[0, 0, 0, 1],
        )
    )
    assert found.tolist() == [3, room, 2 - room, 0]


def test_the_end_keeps_all_limits_where_the_stages_did() -> None:
    # Two replicas, and a host for each, which costs more than it is fined to be without.
    found = constructed(
        job(
            rows=[[1, 0], [1, -1]],
            row_lower=[2, -FREE],
            row_upper=[FREE, 0],
            cost=[1, 5000],
            root=[2.0, 2.0],
            stage=[0, -1],
            region=[0, -1],
            growth=[0, 1],
        )
    )
    assert found.tolist() == [2, 2]


def test_a_stage_without_time_left_is_decided_with_limits_that_give_and_not_rounded_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The relaxation runs half of each replica, and the limit allows one of them.
    halves = job(
        rows=[[1, 1], [1, 1]],
        row_lower=[1, -FREE],
        row_upper=[FREE, 1],
        cost=[1, 2],
        root=[0.5, 0.5],
        stage=[0, 0],
        region=[0, 0],
        growth=[0, 0],
    )
    late = replace(halves, effort=replace(halves.effort, time_limit_s=LEAST_ROUGH_S / ROUGH_SHARE))
    clock = itertools.count(0.0, late.effort.time_limit_s or 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))

    def slow(asked: Job) -> Answer:
        seconds = asked.effort.time_limit_s if asked.effort is not None else None
        enough = seconds is None or seconds >= LEAST_ROUGH_S
        return solve(asked, no_programs()) if enough else Answer(None, np.inf, -np.inf)

    assert np.round(construct(late, slow).values).astype(int).tolist() == [1, 0]
