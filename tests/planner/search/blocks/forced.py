"""Small models that are solved as large ones are."""

from __future__ import annotations

import pytest

from fleetplan.planner.search.blocks import area_master_lp, areas
from fleetplan.planner.search.blocks import solve as block_solve


def send_all_to_blocks(changed: pytest.MonkeyPatch) -> None:
    """Let every model go to the blocks, however small."""
    changed.setattr(block_solve, "LEAST_VARIABLES", 0)
    changed.setattr(block_solve, "LEAST_BLOCKS", 1)
    changed.setattr(block_solve, "LARGEST_BLOCK_SHARE", 1.0)
    changed.setattr(block_solve, "CONFIRMATION_LIMIT_S", 3.0)


def send_all_to_areas(changed: pytest.MonkeyPatch) -> None:
    """Let every model that falls into areas be searched by areas, however few, with all of its master LPs."""
    changed.setattr(areas, "LEAST_AREAS", 2)
    changed.setattr(area_master_lp, "LEAST_COLUMNS", 0)
