"""Turns of bound and plan once rounds have had their share of the time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fleetplan.planner.search.blocks import pricing_search
from fleetplan.planner.search.blocks.pricing_search import PricingSearch


def turns(settled: bool, prices_settled: bool, round_s: float = 10.0, limit_s: float = 40.0) -> list[str]:
    """Return what is done until time is over: a round of ten seconds, or improvements of five."""
    done: list[str] = []
    spent = 0.0

    def takes(name: str, seconds: float) -> bool:
        nonlocal spent
        done.append(name)
        spent += seconds
        return True

    state = SimpleNamespace(
        finished=lambda: spent >= limit_s,
        hopeless=lambda _rounds: False,
        incumbent=SimpleNamespace(selection=object()),
    )
    search: Any = SimpleNamespace(
        _parts=None,
        _master=None,
        _lagrangian=None,
        _pool=None,
        _seed=0,
        _round_s=round_s,
        _state=state,
        _clock=SimpleNamespace(spent_s=lambda: spent, left_s=lambda: limit_s - spent),
        _plans=SimpleNamespace(
            plan_repair=SimpleNamespace(decide_supply=lambda _workers: None),
            improve=lambda _workers: takes("plan", 5.0),
        ),
        _supply=SimpleNamespace(round=lambda _workers, _prices: takes("bound", round_s)),
        _masters=SimpleNamespace(choose_pending=lambda _workers: None),
        _rounds=lambda _workers, _prices: takes("bound", round_s),
        _improve=lambda *_: None,
    )
    prices: Any = SimpleNamespace(rounds=1, bound=1.0, settled=prices_settled)
    PricingSearch._alternate(search, None, prices, settled)  # type: ignore[arg-type]
    return done


@pytest.mark.parametrize(
    ("settled", "prices_settled", "first"),
    [
        pytest.param(True, True, "bound", id="prices are settled"),
        pytest.param(True, False, "plan", id="the share of rounds is spent"),
        pytest.param(False, False, "plan", id="rounds wait for a better plan"),
    ],
)
def test_plans_come_first_unless_prices_are_settled(
    monkeypatch: pytest.MonkeyPatch, settled: bool, prices_settled: bool, first: str
) -> None:
    monkeypatch.setattr(pricing_search, "Neighbourhoods", lambda *_: None)
    done = turns(settled, prices_settled)
    assert done[0] == first
    assert "bound" in done
    # A round that would end too late does not begin.
    assert done[-1] == "plan"
