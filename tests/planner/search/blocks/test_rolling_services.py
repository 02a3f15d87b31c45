"""Constructions that decide a moment service by service, on programs that are solved by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.planner.search.blocks.test_rolling import FREE, job

from fleetplan.planner.search.blocks.rolling import construct
from fleetplan.planner.search.solvers.highs_answers import solve
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job, Rows, no_programs


def test_a_service_that_finds_no_room_is_decided_together_with_those_before() -> None:
    # Service 0 runs in either region, for less in the first, where 1 and 2 need two replicas, or one and a
    # half if parts of them run; there is room for two and a half.
    program = job(
        rows=[[1, 0, 0, 1], [0, 2, 2, 0], [1, 1, 1, 0]],
        row_lower=[1, 3, -FREE],
        row_upper=[FREE, FREE, 2.5],
        cost=[1, 1, 3, 2],
        root=[1, 1.5, 0, 0],
        stage=[0, 0, 0, 0],
        region=[0, 0, 0, 1],
        growth=[0] * 4,
    )
    program = replace(program, service=np.array([0, 1, 2, 0]), by_service=True)
    found = construct(program, lambda asked: solve(asked, no_programs())).values
    assert np.round(found).astype(int).tolist() == [0, 2, 0, 1]


def test_a_service_that_added_to_the_cost_comes_first_the_next_time() -> None:
    # Service 0 takes two units for nothing or one for a tenth, service 1 half a unit, or one whole one.
    # There are two and a half: where 0 comes first 1 needs supply for five.
    moment = [[1, 1, 0], [0, 0, 1], [2, 1, 1]]
    nothing = [[0, 0, 0]] * 3
    rows = [[*first, *second, 0] for first, second in zip(moment, nothing, strict=True)]
    rows += [[*first, *second, 0] for first, second in zip(nothing, moment, strict=True)]
    rows[2][-1] = rows[5][-1] = -1
    program = job(
        rows=rows,
        row_lower=[1, 0.5, -FREE] * 2,
        row_upper=[FREE, FREE, 2.5] * 2,
        cost=[0, 0.1, 0, 0, 0.1, 0, 5],
        root=[1, 0, 0.5, 1, 0, 0.5, 0],
        stage=[0, 0, 0, 1, 1, 1, -1],
        region=[0] * 6 + [-1],
        growth=[0] * 6 + [1],
    )
    program = replace(program, service=np.array([0, 0, 1, 0, 0, 1, -1]), by_service=True)
    whole: list[list[bool]] = []

    def watched(asked: Job) -> Answer:
        assert isinstance(asked.rows, Rows)
        whole.append(asked.rows.whole.tolist())
        return solve(asked, no_programs())

    found = construct(program, watched).values
    assert np.round(found).astype(int).tolist() == [0, 1, 1, 0, 1, 1, 0]
    # Which variables are whole: service 0 comes first once, service 1 in all later passes.
    stages = [each for each in whole if len(each) == 4]
    assert stages == [[True, True, False, True], *[[False, False, True, True]] * 2]
