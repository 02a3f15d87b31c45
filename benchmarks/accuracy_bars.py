"""The accuracy that is asked for, slice by slice, and whether it is met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd
from benchmarks.accuracy_fits import after_maturity, after_own_rows, roofline_left_out

PERCENT: Final = 100.0
SETTLED_MONTH: Final = "2026-01"
"""Since when the software of MI355X does not change by half within days."""

_LOOPS: Final = ("closed_loop", "burst")

FEWEST_ROWS: Final = 8
"""Rows that a bar needs to say anything; those with fewer are left out of the list."""


@dataclass(frozen=True, slots=True)
class AccuracyBar:
    """One slice of the published rows and its limits.

    Attributes
    ----------
    name : str
        What is compared.
    errors : pandas.Series
        Signed relative errors; NaN does not count.
    median_limit : float
        Largest median of the absolute errors. [%]
    percentile_limit : float or None
        Largest 90th percentile; None where none is asked for. [%]
    """

    name: str
    errors: pd.Series[float]
    median_limit: float
    percentile_limit: float | None = None

    @property
    def n_rows(self) -> int:
        """Rows that count."""
        return int(self.errors.notna().sum())

    @property
    def median(self) -> float:
        """Median of the absolute errors; NaN without rows. [%]"""
        return float(self.errors.abs().median() * PERCENT)

    @property
    def percentile(self) -> float:
        """90th percentile of the absolute errors; NaN without rows. [%]"""
        return float(self.errors.abs().quantile(0.9) * PERCENT)

    @property
    def bias(self) -> float:
        """Median of the signed errors: above zero, predictions are too slow. [%]"""
        return float(self.errors.median() * PERCENT)

    @property
    def met(self) -> bool:
        """Whether the rows keep the limits."""
        within = self.percentile_limit is None or self.percentile <= self.percentile_limit
        return self.median <= self.median_limit and within


def bars(rows: pd.DataFrame) -> list[AccuracyBar]:
    """Return every bar that has rows enough, given rows with their errors."""
    best = rows[rows["quality"] == "A"]
    found = [*tpot_bars(best), *_static_bars(rows), *fitted_bars(best)]
    return [bar for bar in found if bar.n_rows >= FEWEST_ROWS]


def tpot_bars(best: pd.DataFrame) -> list[AccuracyBar]:
    """Return the bars of closed loops, given rows of quality A."""
    amd = best["hardware"].str.startswith("MI")
    dense = best["model_class"] == "dense"
    seventy = best["model"] == "meta-llama/Llama-3.1-70B"

    def bar(name: str, chosen: pd.Series[bool], median: float, percentile: float) -> AccuracyBar:
        return AccuracyBar(f"TPOT, {name}", best["tpot_error"][chosen], median, percentile)

    def of_70b(framework: str, hardware: str) -> pd.Series[bool]:
        return seventy & (best["framework"] == framework) & (best["hardware"] == hardware)

    everything = pd.Series(data=True, index=best.index)
    return [
        bar("all quality-A closed loops", everything, 8.5, 26.0),
        bar("all on parts with operator tables", ~amd, 8.5, 26.0),
        bar("dense", dense, 6.5, 17.0),
        bar("MoE on parts with operator tables", ~dense & ~amd, 10.5, 30.0),
        bar("70B vLLM H100", of_70b("vllm", "H100-SXM"), 4.0, 10.0),
        bar("70B vLLM H200", of_70b("vllm", "H200-SXM"), 4.0, 10.0),
        bar("70B vLLM B200", of_70b("vllm", "B200-SXM"), 6.5, 17.0),
        bar("70B TensorRT-LLM H200", of_70b("trtllm", "H200-SXM"), 10.0, 16.0),
        bar("70B TensorRT-LLM B200", of_70b("trtllm", "B200-SXM"), 6.5, 17.0),
        bar("SGLang on parts with operator tables", (best["framework"] == "sglang") & ~amd, 9.0, 28.0),
        bar("gpt-oss", best["model_class"] == "gpt-oss", 9.5, 32.0),
        bar("DeepSeek on parts with operator tables", (best["model_class"] == "DeepSeek") & ~amd, 10.0, 30.0),
    ]


def _static_bars(rows: pd.DataFrame) -> list[AccuracyBar]:
    docs = rows[rows["source"] == "trtllm_docs"]
    long = docs[(docs["mode"] == "prefill") & (docs["nominal_input_tokens"] >= 2000)]
    seventy = docs[(docs["mode"] == "static") & docs["model"].str.contains("Llama-2-70b")]
    hopper = ["H100-SXM", "H200-SXM"]

    def on(selected: pd.DataFrame, hardware: list[str], column: str) -> pd.Series[float]:
        return selected[column][selected["hardware"].isin(hardware)]

    return [
        AccuracyBar(
            "static prefill of 2,000 tokens and more, H100/H200", on(long, hopper, "prefill_error"), 4.0
        ),
        AccuracyBar(
            "static prefill of 2,000 tokens and more, A100", on(long, ["A100-SXM-80GB"], "prefill_error"), 7.0
        ),
        AccuracyBar("static end to end, 70B H100/H200", on(seventy, hopper, "latency_error"), 6.0),
    ]


def fitted_bars(best: pd.DataFrame) -> list[AccuracyBar]:
    """Return the bars of corrections from few rows, given rows of quality A."""
    dense = best[best["model_class"] == "dense"]
    left_out = roofline_left_out(best)
    joined = pd.concat(left_out.values()) if left_out else pd.Series(dtype=float)
    found = [
        AccuracyBar("TPOT, dense, after three rows of one's own", after_own_rows(dense), 5.5),
        AccuracyBar("TPOT, dense by roofline, hardware left out of the fit", joined, 10.0),
    ]
    found += [
        AccuracyBar(f"TPOT, dense by roofline, {name} left out", errors, 10.0)
        for name, errors in left_out.items()
    ]
    for part in ("MI300X", "MI325X", "MI355X"):
        errors = after_maturity(best[best["hardware"] == part])
        found.append(AccuracyBar(f"TPOT, {part} with one factor from eight rows", errors, 12.0))
    amd = best["hardware"].str.startswith("MI") & (best["month"] < SETTLED_MONTH)
    found.append(AccuracyBar("TPOT, AMD of 2025", best["tpot_error"][amd & best["mode"].isin(_LOOPS)], 15.0))
    settled = best[(best["hardware"] == "MI355X") & (best["month"] >= SETTLED_MONTH)]
    name = f"TPOT, MI355X since {SETTLED_MONTH} with one factor from eight rows"
    found.append(AccuracyBar(name, after_maturity(settled), 12.0))
    return found
