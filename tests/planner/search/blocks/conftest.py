"""What tests of the decomposition share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleetplan.planner.search.blocks import solve as block_solve


@pytest.fixture
def blocks_for_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every model goes to the blocks, however small."""
    monkeypatch.setattr(block_solve, "LEAST_VARIABLES", 0)
    monkeypatch.setattr(block_solve, "LEAST_BLOCKS", 1)
    monkeypatch.setattr(block_solve, "LARGEST_BLOCK_SHARE", 1.0)
    monkeypatch.setattr(block_solve, "CONFIRMATION_LIMIT_S", 3.0)
    return
