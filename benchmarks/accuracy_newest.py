"""`plan predict` against published loops of DeepSeek-V4, MiniMax-M3 and Kimi-K3.

    python benchmarks/accuracy_newest.py [--rows]

No bar is set on them and nothing is fitted. Exit 1 where a row is refused.
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
from benchmarks.newest_rows import newest_rows

from fleetplan.perfmodel.predict import predict

ROOT: Final = Path(__file__).resolve().parent.parent

INTRODUCTION: Final = """\
Closed loops without drafted tokens, TPOT and tokens a second and accelerator, prompts included, from SGLang's
cookbook and pull requests and from InferenceX's articles, June to September 2026 (`benchmarks/newest_rows.py`
names each). The rows of DeepSeek-V4 with attention-DP were in view when ranks in step were modelled; nothing
was fitted, and all others are as they were found."""

_MEASURED: Final = ["measured_tpot_ms", "measured_tokens_per_s"]


def predicted_newest() -> pd.DataFrame:
    """Return the rows with `tpot_error` and `rate_error`, predicted over measured less one."""
    rows = newest_rows()
    found = predict(rows.drop(columns=["set", *_MEASURED]), ROOT)
    usable = found["status"] == "ok"
    accelerators = rows["tp"] * rows["dp"]
    tokens = rows["input_tokens"] + rows["output_tokens"]
    rate = found["requests_per_s"] * tokens / accelerators
    return rows.assign(
        status=found["status"],
        reason=found["reason"],
        fits=found["fits"],
        predicted_tpot_ms=found["tpot_ms"],
        predicted_tokens_per_s=rate,
        tpot_error=(found["tpot_ms"] / rows["measured_tpot_ms"] - 1.0).where(usable),
        rate_error=(rate / rows["measured_tokens_per_s"] - 1.0).where(usable),
    )


def newest_sections(rows: pd.DataFrame) -> dict[str, str]:
    """Tabulate the errors by model and by deployment."""
    by_model = [[str(model), *_figures(group)] for model, group in rows.groupby("model", sort=True)]
    keys = ["set", "model", "hardware", "weights"]
    by_deployment = [
        [*map(str, labels), _layout(group), *_figures(group), _bias(group["rate_error"])]
        for labels, group in rows.groupby(keys, sort=True)
    ]
    deployments = markdown_table([*keys, "layout", "TPOT", "tokens/s", "bias of tokens/s"], by_deployment)
    return {
        "Errors by model": markdown_table(["model", "TPOT", "tokens/s"], by_model),
        "Errors by deployment": f"{INTRODUCTION}\n\n{deployments}",
    }


def _figures(group: pd.DataFrame) -> list[str]:
    return [error_figures(group["tpot_error"]), error_figures(group["rate_error"])]


def _bias(errors: pd.Series[float]) -> str:
    return f"{errors.median():+.0%}" if errors.notna().any() else ""


def _layout(group: pd.DataFrame) -> str:
    first = group.iloc[0]
    return f"DP{first['dp']}-EP{first['ep']}" if first["dp"] > 1 else f"TP{first['tp']}"


def rows_text(rows: pd.DataFrame) -> str:
    """Every row with the published figures, ours and the errors, as Markdown."""
    keys = ["set", "hardware", "model", "weights", "input_tokens", "output_tokens", "concurrency"]
    lines = [
        [
            *map(str, row[keys]),
            *(f"{row[name]:.4g}" for name in (_MEASURED[0], "predicted_tpot_ms")),
            f"{row['tpot_error']:+.0%}",
            *(f"{row[name]:.5g}" for name in (_MEASURED[1], "predicted_tokens_per_s")),
            f"{row['rate_error']:+.0%}",
        ]
        for _, row in rows.iterrows()
    ]
    return markdown_table([*keys, "TPOT", "ours", "error", "tokens/s", "ours", "error"], lines)


def main() -> int:
    rows = predicted_newest()
    print(rows_text(rows) if "--rows" in sys.argv[1:] else sections_text(newest_sections(rows)))
    return 1 if print_refused(rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
