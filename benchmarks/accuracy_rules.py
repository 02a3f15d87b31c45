"""Which published rows say nothing about a model of performance, by rule and never by error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_launches import HOST_ACCELERATORS

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.architecture import UnsupportedArchitecture, load_architecture
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT
from fleetplan.perfmodel.steps.memory import FRAMEWORK_RESERVE_RATIO

PEAK_SHARE: Final = 0.8
"""Share of the dense peak that no prefill sustains: the fastest GEMMs of the measured tables reach 0.75."""

STARVED_RATIO: Final = 3.0
"""TTFT over the time of all output tokens; above it, most requests wait instead of running."""

COPIED_DECIMALS: Final = 2
"""Decimals of milliseconds up to which a copy of a measurement agrees with it: NVIDIA's comparisons print
rows of InferenceX with two (6.33 ms for 6.332719), and read their nominal lengths as means."""

ENDED_RATIO: Final = 0.9
"""Share of the time that all output tokens take at the TPOT of the row; below it, generation ended earlier.

Of 76 batches of Splitwise 59 take 0.96 to 1.01 of it, and 17 of 512 output tokens and more 0.05 to 0.80."""

_CLOSED: Final = ("closed_loop", "burst")


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason to leave rows out.

    Attributes
    ----------
    code : str
        What the table calls it.
    reason : str
        Why such a row cannot test a model.
    applies : Callable[[pandas.DataFrame], pandas.Series]
        Which rows it takes, given rows with their predictions.
    """

    code: str
    reason: str
    applies: Callable[[pd.DataFrame], pd.Series[bool]]


def _impossible_prefill(rows: pd.DataFrame) -> pd.Series[bool]:
    """Prompts would have to be processed above `PEAK_SHARE` of the peak."""
    billions = {name: _active_parameters_billion(name) for name in rows["model"].unique()}
    # 2 operations a parameter and token; attention is left out, so the rule takes too few rightly.
    flops_per_token = rows["model"].map(billions) * 2e9
    closed = rows["mode"].isin(_CLOSED)
    cycle_ms = rows["ttft_ms"] + rows["output_tokens"] * rows["tpot_ms"]
    seconds = np.where(closed, cycle_ms, np.where(rows["mode"] == "prefill", rows["ttft_ms"], np.nan)) / 1e3
    rate = rows["load"] * rows["input_tokens"] / seconds / rows["n_accelerators"]
    peak = [
        _peak_flops(hardware, weights)
        for hardware, weights in zip(rows["hardware"], rows["weights"], strict=True)
    ]
    above: pd.Series[bool] = rate * flops_per_token > PEAK_SHARE * np.array(peak)
    return above


def least_latency_s(rows: pd.DataFrame) -> pd.Series[float]:
    """Least time of a static batch of a dense decoder, which no software can beat, in s.

    Prompts at `PEAK_SHARE` of the peak, then the weights once from memory for every token; the cache is left
    out. NaN where a figure is unknown.
    """
    billions = rows["model"].map({name: _active_parameters_billion(name) for name in rows["model"].unique()})
    kinds = zip(rows["hardware"], rows["weights"], strict=True)
    peak = np.array([_peak_flops(hardware, weights) for hardware, weights in kinds])
    prompts = 2e9 * billions * rows["load"] * rows["input_tokens"] / (PEAK_SHARE * peak)
    gb = billions * rows["weights"].map(BYTES_PER_ELEMENT)
    bandwidth = rows["hardware"].map({name: part.hbm_gb_per_s for name, part in accelerators().items()})
    least: pd.Series[float] = (prompts + rows["output_tokens"] * gb / bandwidth) / rows["n_accelerators"]
    return least


def _active_parameters_billion(model: str) -> float:
    try:
        return load_architecture(model, Path()).active_parameters / 1e9
    except (InputError, UnsupportedArchitecture):
        return float("nan")


def _peak_flops(hardware: str, weights: str) -> float:
    part = accelerators().get(hardware)
    peak = None if part is None or weights not in BYTES_PER_ELEMENT else part.peak_tflops(weights)
    return np.nan if peak is None else peak * 1e12


def _ended_early(rows: pd.DataFrame) -> pd.Series[bool]:
    """Static batches that end before all tokens, by their own TPOT or by the reads of the weights."""
    by_tpot_s = (rows["ttft_ms"] + (rows["output_tokens"] - 1) * rows["tpot_ms"]) / 1e3
    least_s = np.fmax(ENDED_RATIO * by_tpot_s, least_latency_s(rows))
    early: pd.Series[bool] = (rows["mode"] == "static") & (rows["latency_s"] < least_s)
    return early


def _same_prompt(rows: pd.DataFrame) -> pd.Series[bool]:
    """Mixtures whose batches are one prompt many times, so that all sequences choose the same experts.

    Source: generate_input() of argonne-lcf/LLM-Inference-Bench@4211f5d4, TensorRT-LLM/A100/
    Benchmarking_Throughput/run_precision_bench.py: one word, repeated, for every sequence. The scripts of
    vLLM draw tokens at random.
    """
    repeated = (rows["source"] == "argonne") & (rows["framework"] == "trtllm") & (rows["load"] > 1)
    return repeated & (rows["model_class"] != "dense")


def _does_not_fit(rows: pd.DataFrame) -> pd.Series[bool]:
    capacity = rows["hardware"].map({name: part.hbm_gib for name, part in accelerators().items()})
    needed = rows["predicted_memory_gib"] - FRAMEWORK_RESERVE_RATIO * capacity
    more: pd.Series[bool] = needed > capacity
    return more


def _starved(rows: pd.DataFrame) -> pd.Series[bool]:
    decoding_ms = rows["output_tokens"] * rows["tpot_ms"]
    waits: pd.Series[bool] = rows["mode"].isin(_CLOSED) & (rows["ttft_ms"] > STARVED_RATIO * decoding_ms)
    return waits


def _router(rows: pd.DataFrame) -> pd.Series[bool]:
    """Rows whose clients are 2, 4, 8 or 32 times what one engine holds: a router spread them over engines.

    Tables without the load of an engine have the same rows under names of checkpoints in NVFP4 alone.
    """
    names = rows["model"]
    unsaid = rows["engine_load"].isna() & names.str.startswith("nvidia/") & names.str.endswith("-NVFP4")
    return rows["mode"].isin(_CLOSED) & (unsaid | (rows["load"] > rows["engine_load"]))


def _unstated_load(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["mode"].isin(_CLOSED) & ~rows["load_is_stated"].astype(bool)


def _rack_label(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["hardware"].str.startswith("GB") & (rows["tp"] >= 12)


def _request_batch(rows: pd.DataFrame) -> pd.Series[bool]:
    mistral = rows["model"].str.contains("Mistral-7B") & (rows["source"] == "trtllm_docs")
    return mistral & (rows["mode"] == "static")


def _offline(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["mode"] == "offline"


def _degrees_differ(rows: pd.DataFrame) -> pd.Series[bool]:
    stated = (rows["moe_tp"] > 0) & (rows["model_class"] != "dense")
    return stated & (rows["tp"] * rows["dp"] != rows["moe_tp"] * rows["ep"])


def _duplicate(rows: pd.DataFrame) -> pd.Series[bool]:
    same = ["hardware", "framework", "weights", "tp", "dp", "ep", "load", "nominal_input_tokens"]
    measured = rows[["ttft_ms", "tpot_ms"]].round(COPIED_DECIMALS)
    # The first of them is the original: InferenceX comes before the comparisons.
    return rows["mode"].isin(_CLOSED) & rows.assign(**measured).duplicated([*same, *measured])


def _host_label(rows: pd.DataFrame) -> pd.Series[bool]:
    return ~rows["hardware"].str.startswith("GB") & (rows["tp"] * rows["dp"] > HOST_ACCELERATORS)


def _unserved_framework(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["framework"].isin(["llama.cpp", "Deepspeed-MII"])


RULES: Final = (
    Rule("offline", "all requests at once, of mixed lengths, without TTFT and TPOT", _offline),
    Rule("duplicate", "the same measurement under another name", _duplicate),
    Rule(
        "framework", "llama.cpp and DeepSpeed-MII schedule in ways that are not modelled", _unserved_framework
    ),
    Rule("rack-label", "GB200 rows whose tp is the size of the whole disaggregated system", _rack_label),
    Rule("host-label", "aggregated rows whose tp x dp exceeds a host of eight", _host_label),
    Rule("degrees", "attention and experts would not take the same accelerators", _degrees_differ),
    Rule("router", "several engines behind a router, which the row does not count", _router),
    Rule("load", "the row does not say how many clients there were", _unstated_load),
    Rule("starved", "TTFT above 3 x output tokens x TPOT: most requests wait", _starved),
    Rule(
        "impossible-prefill",
        "prompts above 0.8 of the peak: they cannot have been computed",
        _impossible_prefill,
    ),
    Rule("ended-early", "static batches whose generation ended before the output length", _ended_early),
    Rule(
        "same-prompt", "mixtures whose sequences have one prompt, and choose the same experts", _same_prompt
    ),
    Rule("does-not-fit", "weights and cache exceed the memory, without any reserve", _does_not_fit),
    Rule("request-batch", "Mistral-7B tables whose batch is not the running batch", _request_batch),
)
"""Every rule, in the order in which they take rows: a row is counted at the first that takes it."""


def excluded(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the code of the rule that takes each row; '' where it stays."""
    codes = pd.Series("", index=rows.index)
    for rule in RULES:
        taken = rule.applies(rows).fillna(value=False).astype(bool)
        codes = codes.where((codes != "") | ~taken, rule.code)
    return codes
