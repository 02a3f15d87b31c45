"""`plan predict` against published figures that are in no table of measurements.

    python benchmarks/accuracy_elsewhere.py

Nothing is fitted, and nothing was decided with these figures in view. Exit 0 if every bar is met, else 1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
import pandas as pd
from benchmarks.accuracy_bars import AccuracyBar
from benchmarks.accuracy_table import (
    error_figures,
    groups_text,
    markdown_table,
    print_refused,
    sections_text,
)
from benchmarks.elsewhere_rows import elsewhere_rows

from fleetplan.perfmodel.predict import predict

ROOT: Final = Path(__file__).resolve().parent.parent

_MS_PER_S: Final = 1e3


def predicted_elsewhere() -> pd.DataFrame:
    """Return the rows with `error`, predicted over measured less one.

    Of output tokens a second, and of the time of static batches, as elsewhere on the page.
    """
    rows = elsewhere_rows()
    found = predict(rows.drop(columns=["set", "measured"]), ROOT)
    static = rows["batch"] * rows["output_tokens"] / found["latency_ms"] * _MS_PER_S
    offline = found["requests_per_s"] * rows["output_tokens"]
    is_static = rows["mode"] == "static"
    ours = static.where(is_static, offline)
    sign = np.where(is_static, -1.0, 1.0)
    return rows.assign(
        status=found["status"],
        reason=found["reason"],
        predicted=ours,
        error=((ours / rows["measured"]) ** sign - 1.0).where(found["status"] == "ok"),
    )


def bars(rows: pd.DataFrame) -> list[AccuracyBar]:
    """Return the bars, and the other parts of the same pages beside them."""
    tensorrt = rows["set"] != "gaudi3"

    def bar(name: str, chosen: pd.Series[bool], limit: float) -> AccuracyBar:
        return AccuracyBar(name, rows["error"][chosen], limit)

    on = {part: tensorrt & (rows["hardware"] == part) for part in rows["hardware"].unique()}
    return [
        bar("GB200 aggregated, tokens/s", on["GB200-NVL72"], 20.0),
        bar("Gaudi3, static batches, end to end", ~tensorrt, 18.0),
        *(bar(f"{part}, TensorRT-LLM 1.0 and 1.2, tokens/s", on[part], 20.0) for part in PLAIN_PARTS),
    ]


SOURCES: Final = """\
Sources: NVIDIA/TensorRT-LLM, docs/source/performance/perf-overview.md at 00f37686 (1.0, September 2025) and
docs/source/developer-guide/perf-overview.md at 03e27c7d (1.2, December 2025), output tokens a second, all
requests at once; intel.com, Model Performance Data for Intel Gaudi 3 AI Accelerators, software 1.18, time of
static batches. An error above zero is too many tokens a second, or too much time."""

PLAIN_PARTS: Final = ("H100-SXM", "H200-SXM", "B200-SXM")
"""Parts that other tables test as well."""


def elsewhere_sections(rows: pd.DataFrame) -> dict[str, str]:
    """Tabulate the errors by bar, by hardware and by model."""
    by_part = [
        [str(part), error_figures(group["error"])] for part, group in rows.groupby("hardware", sort=True)
    ]
    keys = ["set", "hardware", "model"]
    body = [
        [*map(str, labels), error_figures(group["error"]), f"{group['error'].median():+.0%}"]
        for labels, group in rows.groupby(keys, sort=True)
    ]
    return {
        "Errors by group of rows": groups_text(bars(rows)),
        "Errors by hardware": markdown_table(["hardware", "error"], by_part),
        "Errors by set and model": f"{SOURCES}\n\n{markdown_table([*keys, 'error', 'bias'], body)}",
    }


def main() -> int:
    rows = predicted_elsewhere()
    print(sections_text(elsewhere_sections(rows)))
    refused = print_refused(rows)
    return 0 if all(bar.met for bar in bars(rows)) and not refused else 1


if __name__ == "__main__":
    raise SystemExit(main())
