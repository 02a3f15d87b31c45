"""Prices between rounds: how far they may go, and when rounds wait for a better plan."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.planner.random_fleets import large_case

from fleetplan.planner.decomposition import search as block_search
from fleetplan.planner.decomposition.rounds import Prices
from fleetplan.planner.decomposition.search import BlockSearch
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search import search
from fleetplan.planner.solution import SearchLimits


def prices_at(*best: float, reach: float = 0.5) -> Prices:
    return Prices(np.zeros(len(best)), np.array(best), 90.0, reach=reach)


def test_a_price_of_zero_reaches_as_far_as_the_linear_masters() -> None:
    near = prices_at(0.0, 0.0, -2.0, 4.0).near(np.array([-100.0, 0.0, 0.0, 1.0]))
    # The median of those that are not zero is 3, which the second reaches as far as.
    assert near.lower.tolist() == [-50.0, -1.5, -3.5, 2.0]
    assert near.upper.tolist() == [50.0, 1.5, -0.5, 6.0]


def test_next_prices_are_between_the_best_and_the_linear_masters() -> None:
    prices = prices_at(10.0, -10.0)
    assert prices.to_gain == prices.spread == math.inf
    prices.follow(100.0, np.array([20.0, 0.0]))
    assert prices.current.tolist() == pytest.approx([17.0, -3.0])
    assert (prices.to_gain, prices.spread) == (10.0, 0.1)


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(("lead_share", "waits"), [(math.inf, True), (0.0, False)])
def test_rounds_wait_for_better_plans_where_these_have_most_to_gain(
    monkeypatch: pytest.MonkeyPatch, lead_share: float, waits: bool
) -> None:
    monkeypatch.setattr(block_search, "LEAD_SHARE", lead_share)
    monkeypatch.setattr(block_search, "SETTLED_RATIO", 0.0)
    steps: list[str] = []
    for name in ("_price_blocks", "_improve"):
        whole = getattr(BlockSearch, name)

        def noted(self: BlockSearch, *given: object, name: str = name, whole: object = whole) -> object:
            steps.append(name)
            return whole(self, *given)  # type: ignore[operator]

        monkeypatch.setattr(BlockSearch, name, noted)
    case = large_case(2, 4, 2, 3)
    problem = build_problem(case.fleet, case.candidates)
    result = search(problem, SearchLimits(3.0, 0.0, 1, 2, reproducible=True))
    assert result.objective_usd is not None
    assert result.bound_usd is not None
    assert result.bound_usd <= result.objective_usd
    later = steps[steps.index("_improve") :] if "_improve" in steps else []
    assert ("_price_blocks" in later) == waits
