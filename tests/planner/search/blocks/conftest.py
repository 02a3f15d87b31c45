"""What tests of the decomposition share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.parts import first_parts

from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.search import BlockSearch


@pytest.fixture
def blocks_for_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every model goes to the blocks, however small."""
    monkeypatch.setattr(block_solve, "LEAST_VARIABLES", 0)
    monkeypatch.setattr(block_solve, "LEAST_BLOCKS", 1)
    monkeypatch.setattr(block_solve, "LARGEST_BLOCK_SHARE", 1.0)
    monkeypatch.setattr(block_solve, "CONFIRMATION_LIMIT_S", 3.0)
    return


@pytest.fixture(params=first_parts((False, True), 1), ids=("pricing alone", "whole search"))
def whole_search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a search does all that it does to its plans, or only prices blocks and solves masters.

    Neighbourhoods on the variables of these fleets are nearly the whole program, and take most of the time.
    """
    is_whole: bool = request.param
    if not is_whole:
        monkeypatch.setattr(BlockSearch, "_repair", lambda *_: None)
        monkeypatch.setattr(BlockSearch, "_improve_while_it_pays", lambda *_: None)
        monkeypatch.setattr(BlockSearch, "_improve_directly", lambda *_: None)
    return is_whole
