"""Fixtures of the tests of the decomposition."""

from __future__ import annotations

import pytest
from tests.parts import first_parts
from tests.planner.search.blocks.forced import send_all_to_blocks

from fleetplan.planner.search.blocks.plan_search import PlanSearch


@pytest.fixture
def blocks_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model goes to the blocks, however small."""
    send_all_to_blocks(monkeypatch)


@pytest.fixture(params=first_parts((False, True), 1), ids=("pricing alone", "whole search"))
def whole_search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether a search improves plans, or only prices blocks and solves masters.

    Neighbourhoods on the variables of these fleets are nearly the whole program, and take most of the time.
    """
    is_whole: bool = request.param
    if not is_whole:
        monkeypatch.setattr(PlanSearch, "repair", lambda *_: None)
        monkeypatch.setattr(PlanSearch, "improve_while_it_pays", lambda *_: None)
        monkeypatch.setattr(PlanSearch, "improve_while_far", lambda *_: None)
        monkeypatch.setattr(PlanSearch, "improve", lambda *_: None)
    return is_whole


@pytest.fixture(params=first_parts((False, True), 1), ids=("four blocks", "six blocks"))
def large(request: pytest.FixtureRequest) -> bool:
    """Return whether a fleet has six blocks, as `in_parts` makes them."""
    is_large: bool = request.param
    return is_large
