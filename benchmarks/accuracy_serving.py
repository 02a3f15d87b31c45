"""Saturation, GPUStack's lab and vLLM's blogs as a class of `benchmarks/accuracy.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.accuracy_bars import AccuracyBar
from benchmarks.accuracy_table import error_figures, groups_text, markdown_table
from benchmarks.offline import bars, predicted
from benchmarks.offline_rows import offline_rows

QUANTITIES = {"tpot_ms": "TPOT", "tokens_per_s": "tokens/s", "makespan_s": "makespan"}
"""What a row measured, and what its column is called."""


def serving_sections(path: Path) -> tuple[dict[str, str], list[AccuracyBar]]:
    """Tabulate the errors on a table of published serving, and return the bars."""
    rows = predicted(offline_rows(path))
    found = [
        AccuracyBar(each.name, pd.Series(each.errors), each.median_limit, _limit(each.p90_limit))
        for each in bars(rows)
    ]
    sections = {
        "Errors by group of rows": groups_text(found),
        "Errors by hardware": _slices(rows, "hardware"),
        "Errors by set": _slices(rows, "set"),
        "Rows left out": _left_out(rows),
    }
    return sections, found


def _limit(percentile: float) -> float | None:
    return percentile if np.isfinite(percentile) else None


def _slices(rows: pd.DataFrame, by: str) -> str:
    body = [
        [str(name), *(error_figures(group["error"].where(group["quantity"] == each)) for each in QUANTITIES)]
        for name, group in rows[rows["error"].notna()].groupby(by, sort=True)
    ]
    return markdown_table([by, *QUANTITIES.values()], body)


def _left_out(rows: pd.DataFrame) -> str:
    refused = rows["reason"].where(rows["status"] != "ok", "")
    reason = rows["left_out"].where(rows["left_out"] != "", refused)
    counts = reason[reason != ""].value_counts()
    return markdown_table(["reason", "rows"], [[str(name), str(count)] for name, count in counts.items()])
