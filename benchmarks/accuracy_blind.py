"""`plan predict` against measurements that it was held against before it was changed with them in view.

Rows that were in view since are named "used", apart from the blind ones.

    python benchmarks/accuracy_blind.py             errors by set, part and model
    python benchmarks/accuracy_blind.py --rows      ours beside theirs, row by row

There are no bars: the errors say what a stranger will find. Exit 1 where a row is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import pandas as pd
from benchmarks.accuracy_table import error_figures, markdown_table, print_refused, sections_text
from benchmarks.blind_rows import blind_rows
from benchmarks.blind_used import is_used

from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.predict import predict

ROOT: Final = Path(__file__).resolve().parent.parent

RECENT: Final = "2025-07"
"""Month from which software is like that of a plan, in a chosen rule: rows of older software are off by twice
as much, and too fast."""

ENOUGH_ROWS: Final = 10
"""Rows from which a group of them is a figure of its own, chosen."""


def predicted_blind(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return all rows, or these, with `error` and `ttft_error`, predicted over measured less one."""
    rows = blind_rows() if rows is None else rows
    found = predict(rows.drop(columns=["set", "page", "quantity", "measured", "ttft_ms"]), ROOT)
    ours = {
        "tpot_ms": found["tpot_ms"],
        "tokens_per_s": found["requests_per_s"] * rows["output_tokens"],
        "latency_ms": found["latency_ms"],
    }
    chosen = pd.concat([column[rows["quantity"] == name] for name, column in ours.items()]).sort_index()
    usable = found["status"] == "ok"
    return rows.assign(
        status=found["status"],
        reason=found["reason"],
        predicted=chosen,
        error=(chosen / rows["measured"] - 1.0).where(usable),
        ttft_error=(found["ttft_ms"] / rows["ttft_ms"] - 1.0).where(usable),
    )


def blind_sections(rows: pd.DataFrame) -> dict[str, str]:
    """Tabulate the errors of blind rows by hardware, family and mode, and of all rows by set and model."""
    blind = rows[~is_used(rows)]
    apart = {
        f"Errors of blind figures by {by}": markdown_table(
            [by, "error"],
            [[str(name), error_figures(group["error"])] for name, group in blind.groupby(by, sort=True)],
        )
        for by in ("hardware", "mode")
    }
    recent = blind[blind["software_date"] >= RECENT]
    families = recent["model"].map(lambda name: load_architecture(name, ROOT).model_type)
    whole = markdown_table(
        ["blind rows", "error"],
        [["any part", error_figures(blind["error"])], [f"since {RECENT}", error_figures(recent["error"])]],
    )
    of_now = {
        f"Errors of recent blind figures by {by}": markdown_table(
            [f"{by}, software since {RECENT}", "error"],
            [
                [str(name), error_figures(group["error"])]
                for name, group in recent.groupby(keys, sort=True)
                if len(group) >= ENOUGH_ROWS
            ],
        )
        for by, keys in (("hardware", recent["hardware"]), ("family", families))
    }
    rows = rows.assign(rows=is_used(rows).map({True: "used", False: "blind"}))
    keys = ["set", "rows", "quantity", "hardware", "model"]
    by_set = [
        [*labels, error_figures(group["error"]), error_figures(group["ttft_error"])]
        for labels, group in rows.groupby(keys[:3], sort=True)
    ]
    by_model = [
        [*map(str, labels), error_figures(group["error"]), f"{group['error'].median():+.0%}"]
        for labels, group in rows.groupby(keys, sort=True)
    ]
    return {
        "Errors of blind figures": whole,
        **of_now,
        **apart,
        "Errors by set": markdown_table([*keys[:3], "error", "error of TTFT"], by_set),
        "Errors by set and model": markdown_table([*keys, "error", "bias"], by_model),
    }


def rows_text(rows: pd.DataFrame) -> str:
    """Every row with the published figure, ours and the error, as Markdown."""
    load = rows[["concurrency", "n_requests", "requests_per_s", "batch"]].bfill(axis=1).iloc[:, 0]
    shown = rows.assign(load=load, at=rows["mode"].str.cat(load.map("{:g}".format), sep=" "))
    keys = ["set", "page", "hardware", "model", "at", "input_tokens", "output_tokens", "quantity"]
    lines = [
        [*map(str, row[keys]), f"{row['measured']:.4g}", f"{row['predicted']:.4g}", f"{row['error']:+.0%}"]
        for _, row in shown.iterrows()
    ]
    return markdown_table([*keys, "published", "ours", "error"], lines)


def main() -> int:
    rows = predicted_blind()
    print(rows_text(rows) if "--rows" in sys.argv[1:] else sections_text(blind_sections(rows)))
    return 1 if print_refused(rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
