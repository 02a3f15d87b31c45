"""Duration of plan improvement between two pricing rounds, and the choice of the plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fleetplan.planner.search.blocks.direct_neighbourhoods import Change
from fleetplan.planner.search.blocks.effort import GainRate
from fleetplan.planner.search.blocks.plan_search import FAR_PATIENCE, PlanSearch


def improvements(raised: float, round_s: float) -> int:
    """Return how many improvements of a second run, with gains of 8, 4, 2, 1 and so on."""
    spent: list[float] = []

    def open_cost() -> float:
        return 16.0 * 0.5 ** len(spent)

    search: Any = SimpleNamespace(
        _direct=object(),
        _direct_rate=GainRate(),
        _clock=SimpleNamespace(spent_s=lambda: float(len(spent))),
        _state=SimpleNamespace(incumbent=SimpleNamespace(values=[1]), finished=lambda: False),
        open_cost=open_cost,
        improve=lambda _workers: spent.append(1.0),
    )
    PlanSearch.improve_while_it_pays(search, None, raised, round_s)  # type: ignore[arg-type]
    return len(spent)


@pytest.mark.parametrize(
    ("raised", "round_s", "most"),
    [
        # Rates after one to four: 8, 6, 4, 2.5. The bound rose by 3 a second, or by next to nothing.
        pytest.param(30.0, 10.0, 4, id="until they gain less than the bound"),
        pytest.param(0.0, 3.0, 3, id="for no longer than the round"),
        pytest.param(1000.0, 10.0, 1, id="once where nobody knows what they gain"),
    ],
)
def test_a_plan_is_improved_while_that_gains_more_than_the_bound_did(
    raised: float, round_s: float, most: int
) -> None:
    assert improvements(raised, round_s) == most


class Direct:
    """Neighbourhoods that each save one of a plan of one variable, whose value is its cost."""

    @staticmethod
    def objective(values: np.ndarray) -> float:
        return float(values[0])

    @staticmethod
    def holds(values: np.ndarray) -> bool:
        return bool(values[0] > 0)

    @staticmethod
    def improve(_workers: object, _clock: object, values: np.ndarray) -> list[Change]:
        return [Change(np.array([0]), values - 1.0, 1.0, "one")]


class Promising:
    """A search with a plan of 10 and a bound of 5, after so much of its 40 s."""

    def __init__(self) -> None:
        self.spent_s, self.told = 0.0, 0
        self.search: Any = SimpleNamespace(
            _direct=Direct(),
            _promising=None,
            _promising_until_s=0.0,
            _clock=SimpleNamespace(limit_s=40.0, spent_s=lambda: self.spent_s),
            _state=SimpleNamespace(tell=self.tell),
            offer=lambda values: 0 < values[0] < 10.0,
            _scaled=lambda: np.array([10.0]),
            open_cost=lambda: 5.0,
        )

    def tell(self, _source: str, _detail: str) -> None:
        self.told += 1

    def offer(self, cost: float) -> bool:
        return PlanSearch.offer_promising(self.search, np.array([cost]))

    def improve(self) -> None:
        PlanSearch._improve_promising(self.search, None, self.search._direct, self.search._promising)  # type: ignore[arg-type]


def test_a_plan_that_is_not_the_best_is_improved_until_it_is() -> None:
    searched = Promising()
    assert not searched.offer(11.5)
    searched.improve()
    assert searched.search._promising == 10.5
    assert not searched.told
    searched.improve()
    assert searched.search._promising is None
    assert searched.told == 1


def test_a_plan_that_does_not_become_the_best_in_its_time_is_given_up() -> None:
    searched = Promising()
    searched.offer(14.5)
    searched.spent_s = 5.9
    searched.improve()
    assert searched.search._promising == 13.5
    searched.spent_s = 6.0
    searched.improve()
    assert searched.search._promising is None


@pytest.mark.parametrize("cost", [9.5, 15.5, -1.0], ids=("the best", "too dear", "beyond limits"))
def test_no_other_plan_is_improved_before_the_best(cost: float) -> None:
    searched = Promising()
    assert searched.offer(cost) == (cost == 9.5)
    assert searched.search._promising is None


def improved_while_far(gains: list[float], limit_s: float, good: bool = True) -> int:
    """Return how many improvements of a second a plan 20 above its bound has; it is near at 10."""
    spent: list[float] = []

    def open_cost() -> float:
        return 20.0 - sum(gains[: len(spent)])

    search: Any = SimpleNamespace(
        _direct=object(),
        _clock=SimpleNamespace(limit_s=limit_s, spent_s=lambda: float(len(spent))),
        _state=SimpleNamespace(far=lambda: open_cost() > 10.0, finished=lambda: False, good=lambda: good),
        open_cost=open_cost,
        improve=lambda _workers: spent.append(1.0),
    )
    PlanSearch.improve_while_far(search, None)  # type: ignore[arg-type]
    return len(spent)


@pytest.mark.parametrize(
    ("gains", "limit_s", "times"),
    [
        pytest.param([4.0, 0.0, 4.0, 0.0, 4.0, 4.0], 1e3, 5, id="until it is near"),
        pytest.param([1.0] * 9, 15.0, 3, id="for a share of the time"),
        pytest.param([1.0, *[0.0] * 30], 1e3, 1 + FAR_PATIENCE, id="until several in a row gain nothing"),
        pytest.param([0.0] * 7 + [10.0], 1e3, 8, id="past some that gain nothing"),
    ],
)
def test_a_first_plan_is_improved_while_it_is_far(gains: list[float], limit_s: float, times: int) -> None:
    assert improved_while_far(gains, limit_s) == times
    assert improved_while_far(gains, limit_s, good=False) == 0
