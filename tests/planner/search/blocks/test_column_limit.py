"""The number of columns in a restricted master follows from earlier results."""

from __future__ import annotations

import math

import pytest

from fleetplan.planner.search.blocks.column_limit import (
    FIRST_EXTRA,
    GROWTH,
    LEAST_EXTRA,
    MOST_EXTRA,
    ColumnLimit,
)
from fleetplan.planner.search.solvers.highs_jobs import Answer

N_BLOCKS = 100
FIRST = round(FIRST_EXTRA * N_BLOCKS)
START = 50.0


def answer(objective: float, bound: float = 0.0) -> Answer:
    return Answer(None, objective, bound)


def learned(*answers: Answer, extra: int = FIRST, start: float = START) -> float:
    column_limit = ColumnLimit(N_BLOCKS)
    column_limit.learn(extra, start, answers)
    return column_limit.extra


@pytest.mark.parametrize(
    "answers",
    [
        (answer(49.0, 48.99),),
        (answer(START, START),),
        (answer(49.0), answer(48.0)),
        (answer(math.inf), answer(48.0)),
    ],
    ids=["solved", "proved the best", "better than a narrower one", "alone with a plan"],
)
def test_more_columns_after_masters_that_made_use_of_them(answers: tuple[Answer, ...]) -> None:
    assert learned(*answers) == pytest.approx(GROWTH * FIRST)


@pytest.mark.parametrize(
    "answers",
    [
        (answer(START),),
        (answer(START), answer(START)),
        (answer(48.0), answer(49.0)),
        (answer(math.inf, math.inf),),
        (answer(48.0), answer(math.inf)),
    ],
    ids=["nothing", "nothing twice", "no better", "no plan", "no plan beside one"],
)
def test_fewer_columns_after_masters_that_were_lost_in_them(answers: tuple[Answer, ...]) -> None:
    assert learned(*answers) == pytest.approx(FIRST / GROWTH)


def test_as_many_where_nothing_is_learned() -> None:
    assert learned(answer(48.0)) == FIRST
    # A master without others says nothing of how many others there may be.
    assert learned(answer(START), extra=0) == FIRST
    # One that had fewer to look at than it might is no reason for fewer than that either.
    assert learned(answer(49.0, 48.99), extra=1) == FIRST


def test_never_fewer_than_the_least_nor_more_than_the_most() -> None:
    column_limit = ColumnLimit(N_BLOCKS)
    for _ in range(20):
        column_limit.learn(round(column_limit.extra), START, [answer(START)])
    assert column_limit.extra == LEAST_EXTRA * N_BLOCKS
    for _ in range(20):
        column_limit.learn(round(column_limit.extra), START, [answer(START, START)])
    assert column_limit.extra == MOST_EXTRA * N_BLOCKS
