"""Saturation: `plan predict` against offline benchmarks, GPUStack's performance lab and vLLM's blogs.

    python benchmarks/offline.py --measurements published_serving.csv [--by model]

Nothing is fitted. Exit 0 if every bar is met, else 1; 2 without the table, which is not distributed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
import pandas as pd
from benchmarks.offline_rows import offline_rows
from benchmarks.queueing_bars import QueueingBar

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.architecture import UnsupportedArchitecture, load_architecture
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT
from fleetplan.perfmodel.predict import predict

ROOT: Final = Path(__file__).resolve().parent.parent

_MS_PER_S: Final = 1e3


def predicted(rows: pd.DataFrame) -> pd.DataFrame:
    """Add what `plan predict` says: `status`, `reason`, and `error`, predicted over measured less one.

    An error above zero is too slow for a time, and too fast for tokens a second.
    """
    found = predict(rows.drop(columns=["set", "measured", "quantity", "left_out"]), ROOT)
    ours = pd.Series(np.nan, index=rows.index)
    ours = ours.where(rows["quantity"] != "tpot_ms", found["tpot_ms"])
    ours = ours.where(rows["quantity"] != "makespan_s", rows["n_requests"] / found["requests_per_s"])
    ours = ours.where(rows["quantity"] != "tokens_per_s", found["requests_per_s"] * rows["output_tokens"])
    # The row is of another layout, or of other weights, than it says.
    impossible = (rows["left_out"] == "") & (found["status"] == "ok") & (_weights_ratio(rows) > 1)
    left_out = rows["left_out"].mask(impossible, "weights exceed the memory")
    usable = (left_out == "") & (found["status"] == "ok")
    return rows.assign(
        left_out=left_out,
        status=found["status"],
        reason=found["reason"],
        fits=found["fits"],
        error=(ours / rows["measured"] - 1.0).where(usable),
    )


def _weights_ratio(rows: pd.DataFrame) -> pd.Series[float]:
    """Weights of an accelerator over its memory, nothing else counted; NaN for models of no catalogue."""
    ratios = []
    for model, weights, hardware, accelerators_used in zip(
        rows["model"], rows["weights"], rows["hardware"], rows["tp"] * rows["dp"] * rows["pp"], strict=True
    ):
        part = accelerators().get(hardware)
        if part is None or weights not in BYTES_PER_ELEMENT:
            ratios.append(np.nan)
            continue
        try:
            parameters = load_architecture(model, ROOT).total_parameters
        except (InputError, UnsupportedArchitecture):
            ratios.append(np.nan)
            continue
        # Ranks of attention hold their own copies; the experts' share alone is a lower bound.
        ratios.append(parameters * BYTES_PER_ELEMENT[weights] / accelerators_used / 2**30 / part.hbm_gib)
    return pd.Series(ratios, index=rows.index)


def bars(rows: pd.DataFrame) -> list[QueueingBar]:
    """Return every bar with the errors of its rows."""
    older = rows["set"].isin(["trtllm-0.13", "trtllm-0.14"])
    wide_l40s = (rows["hardware"] == "L40S") & (rows["tp"] > 1)
    gpustack, closed = rows["set"] == "gpustack", rows["mode"] == "closed_loop"
    selected = {
        ("TensorRT-LLM 0.19, tokens/s", 9.0, 22.0): rows["set"] == "trtllm-0.19",
        ("TensorRT-LLM 0.13 and 0.14 without L40S, tokens/s", 18.0, 45.0): older
        & (rows["hardware"] != "L40S"),
        ("L40S with TP above 1, tokens/s", 20.0, np.inf): older & wide_l40s,
        ("GPUStack, closed loops, TPOT", 15.0, np.inf): gpustack & closed,
        ("GPUStack, all at once, makespan", 25.0, np.inf): gpustack & (rows["mode"] == "offline"),
        ("Arc Pro B60, TPOT", 15.0, np.inf): rows["set"] == "arc-b60",
        ("FP8 cache under vLLM, TPOT", 15.0, np.inf): rows["set"] == "vllm-fp8-kv",
    }
    return [
        QueueingBar(name, rows.loc[chosen & rows["error"].notna(), "error"].to_numpy(), median, p90)
        for (name, median, p90), chosen in selected.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measurements", type=Path, required=True, help="table of published serving rows")
    parser.add_argument("--by", help="also print the errors by this column, such as model or hardware")
    options = parser.parse_args()
    if not options.measurements.is_file():
        print(f"{options.measurements}: no such file", file=sys.stderr)
        return 2
    rows = predicted(offline_rows(options.measurements))
    found = bars(rows)
    for bar in found:
        print(bar)
    print(f"left out: {rows.loc[rows['left_out'] != '', 'left_out'].value_counts().to_dict()}")
    refused = rows[(rows["left_out"] == "") & (rows["status"] != "ok")]
    print(f"refused: {refused['reason'].value_counts().to_dict()}")
    if options.by:
        groups = rows[rows["error"].notna()].groupby(["set", "quantity", options.by])["error"]
        print(groups.describe()[["count", "25%", "50%", "75%"]].round(2).to_string())
    return 0 if all(bar.met for bar in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
