"""How long plans are improved between two rounds of pricing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fleetplan.planner.search.blocks.effort import GainRate
from fleetplan.planner.search.blocks.plan_search import PlanSearch


def improvements(raised: float, round_s: float) -> int:
    """How many there are of one second each, which gain 8, 4, 2, 1 and so on."""
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
