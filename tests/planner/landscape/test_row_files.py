"""Files of landscape rows: blocks without rows, and columns without values."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fleetplan.planner.landscape.files import row_writer

ROWS = pd.DataFrame({"row": [3, 4], "request": ["all", "all"], "ttft_ms": [1.5, 2.0]})


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("blocks", [[], [ROWS], [ROWS, ROWS]])
def test_blocks_without_rows_change_nothing(
    tmp_path: Path, columnar: bool, blocks: list[pd.DataFrame]
) -> None:
    rowless = pd.DataFrame({"row": [], "request": [], "ttft_ms": []})
    path = tmp_path / "rows"
    with row_writer(path, columnar) as writer:
        for block in (rowless, *blocks, ROWS[:0], rowless):
            writer.write(block)
    found = pd.read_parquet(path) if columnar else pd.read_csv(path)
    assert list(found) == list(ROWS)
    assert found.to_numpy().tolist() == [row for block in blocks for row in block.to_numpy().tolist()]
