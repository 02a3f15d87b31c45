"""Published measurements against predictions: the bars that are met, and the rules of exclusion."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.accuracy_bars import AccuracyBar, fitted_bars, tpot_bars
from benchmarks.accuracy_fits import MATURITY_DRAWS, MATURITY_ROWS, after_maturity, after_own_rows
from benchmarks.accuracy_launches import activation_scales, cache_dtypes, release_months, samplings
from benchmarks.accuracy_prediction import predicted
from benchmarks.accuracy_rows import COLUMNS, packaged_file, published_rows
from benchmarks.accuracy_rules import RULES, excluded, least_latency_s
from benchmarks.accuracy_table import units_text


@cache
def packaged() -> pd.DataFrame:
    path = packaged_file()
    if path is None:
        pytest.skip("aiconfigurator-core is not installed")
    return predicted(published_rows(path), Path())


@cache
def packaged_bars() -> dict[str, AccuracyBar]:
    rows = packaged()
    return {bar.name: bar for bar in tpot_bars(rows[rows["quality"] == "A"])}


@pytest.mark.parametrize(
    ("name", "median", "percentile"),
    [
        ("TPOT, all quality-A closed loops", 8.5, 26.0),
        ("TPOT, dense", 6.5, 17.0),
        ("TPOT, MoE on parts with operator tables", 10.5, 30.0),
        ("TPOT, 70B vLLM H100", 4.0, 10.0),
        ("TPOT, 70B vLLM H200", 4.0, 10.0),
        ("TPOT, 70B vLLM B200", 6.5, 17.0),
        ("TPOT, 70B TensorRT-LLM H200", 10.0, 16.0),
        ("TPOT, 70B TensorRT-LLM B200", 6.5, 17.0),
        ("TPOT, SGLang on parts with operator tables", 9.0, 28.0),
        ("TPOT, gpt-oss", 9.5, 32.0),
    ],
)
def test_tpot_of_published_closed_loops(name: str, median: float, percentile: float) -> None:
    bar = packaged_bars()[name]
    assert bar.n_rows >= 40
    assert bar.median <= median
    assert bar.percentile <= percentile


def test_three_rows_of_ones_own_bring_dense_decoders_within_the_bar() -> None:
    rows = packaged()
    dense = rows[(rows["quality"] == "A") & (rows["model_class"] == "dense")]
    assert after_own_rows(dense).abs().median() <= 0.055


@pytest.mark.slow
def test_a_roofline_fitted_elsewhere_holds_within_a_tenth() -> None:
    rows = packaged()
    found = {bar.name: bar for bar in fitted_bars(rows[rows["quality"] == "A"])}
    assert found["TPOT, dense by roofline, hardware left out of the fit"].median <= 10.0


def test_nearly_every_row_that_counts_is_predicted() -> None:
    rows = packaged()
    kept = rows[(rows["quality"] == "A") & (rows["rule"] == "")]
    assert (kept["status"] == "ok").mean() >= 0.99
    # One row of six stands there twice; 182 more are copies with two decimals.
    assert (rows["rule"] == "duplicate").sum() == 595 + 182
    assert (~rows["rule"].isin(["", "duplicate"])).mean() < 0.05
    refused = rows[(rows["rule"] == "") & (rows["status"] != "ok")]
    assert (refused["reason"] != "").all()


def test_rows_of_several_engines_and_of_unknown_load_are_no_loops_of_one_engine() -> None:
    rows = packaged()
    counted = rows["rule"].value_counts()
    # Eleven of NVFP4 checkpoints, thirteen of GB200 and five of gpt-oss on H100; twelve runs of January 2026.
    assert (counted["router"], counted["load"]) == (29, 12)
    # One engine with one client: what is left of the aggregated rows of GB200.
    alone = rows[(rows["hardware"] == "GB200-NVL72") & (rows["rule"] == "")]
    assert alone["load"].tolist() == [1, 1]
    assert alone["tpot_error"].abs().max() <= 0.05


def row(**changes: object) -> dict[str, object]:
    """Llama-3.1-70B FP8 on two H200 under vLLM, 16 requests of 1024 + 1024 tokens (InferenceX, 2025-10)."""
    plain = dict.fromkeys(COLUMNS, "") | {
        "model": "meta-llama/Llama-3.1-70B",
        "model_class": "dense",
        "hardware": "H200-SXM",
        "framework": "vllm",
        "weights": "fp8",
        "mode": "closed_loop",
        "tp": 2,
        "dp": 1,
        "ep": 1,
        "moe_tp": 1,
        "n_accelerators": 2,
        "nominal_input_tokens": 1024,
        "input_tokens": 922,
        "output_tokens": 922,
        "load": 16,
        "engine_load": np.nan,
        "load_is_stated": True,
        "ttft_ms": 160.0,
        "tpot_ms": 15.0,
        "latency_s": np.nan,
        "predicted_memory_gib": 90.0,
    }
    return plain | changes


MIXTURE = {"source": "argonne", "model_class": "other MoE", "moe_tp": 2}


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("", {}),
        ("offline", {"mode": "offline"}),
        ("framework", {"framework": "llama.cpp"}),
        ("rack-label", {"hardware": "GB200-NVL72", "tp": 36}),
        ("host-label", {"tp": 4, "dp": 4, "ep": 16}),
        ("degrees", {"model_class": "other MoE", "moe_tp": 4}),
        ("router", {"engine_load": 8}),
        ("router", {"model": "nvidia/DeepSeek-R1-NVFP4"}),
        ("load", {"load_is_stated": False}),
        ("starved", {"ttft_ms": 60_000.0}),
        ("impossible-prefill", {"load": 4000}),
        # 70 GB of weights for 922 tokens of both accelerators: 6.8 s, whatever the prompts take.
        ("ended-early", {"mode": "static", "latency_s": 5.0, "tpot_ms": np.nan}),
        # 14 s by its own TPOT.
        ("ended-early", {"mode": "static", "latency_s": 10.0}),
        ("", {"mode": "static", "latency_s": 14.0}),
        ("same-prompt", MIXTURE | {"framework": "trtllm"}),
        ("", MIXTURE | {"framework": "vllm"}),
        ("does-not-fit", {"predicted_memory_gib": 160.0}),
        ("request-batch", {"model": "mistralai/Mistral-7B-v0.1", "source": "trtllm_docs", "mode": "static"}),
    ],
)
def test_rows_are_left_out_by_rule(code: str, changes: dict[str, object]) -> None:
    assert excluded(pd.DataFrame([row(**changes)])).tolist() == [code]


@pytest.mark.parametrize(
    ("changes", "kv", "sampling"),
    [
        # InferenceX asks for an FP8 cache by its launch scripts, and for the likeliest token.
        ({"source": "inferencex", "hardware": "B200-SXM"}, "fp8", "greedy"),
        ({"source": "inferencex", "framework": "trtllm"}, "fp8", "greedy"),
        ({"source": "inferencex"}, "", "greedy"),
        ({"source": "inferencex", "framework": "sglang", "hardware": "B200-SXM"}, "", "greedy"),
        # NVIDIA's comparisons take what the model's generation_config.json names.
        ({"source": "gap_analysis", "model": "Qwen/Qwen3-32B"}, "", "top-p"),
        ({"source": "gap_analysis", "model": "Qwen/Qwen3-32B", "framework": "trtllm"}, "", "greedy"),
        ({"source": "gap_analysis", "model": "openai/gpt-oss-120b"}, "", "greedy"),
    ],
)
def test_how_servers_were_launched(changes: dict[str, object], kv: str, sampling: str) -> None:
    rows = pd.DataFrame([row(**changes)])
    assert (cache_dtypes(rows)[0], samplings(rows)[0]) == (kv, sampling)


@pytest.mark.parametrize(
    ("changes", "month", "scales"),
    [
        ({"source": "trtllm_docs", "version": "v0.6.1", "framework": "trtllm"}, "2023-12", ""),
        ({"source": "trtllm_docs", "version": "v9", "framework": "trtllm"}, "", ""),
        # Static batches of Argonne do not name it; their scripts and requirements do.
        ({"source": "argonne", "framework": "vllm"}, "2024-09", ""),
        ({"source": "argonne", "framework": "trtllm"}, "2024-07", ""),
        ({"source": "splitwise", "framework": "vllm"}, "2023-11", ""),
        ({"source": "inferencex", "month": "2025-10", "framework": "trtllm"}, "2025-10", ""),
        # The name of a checkpoint in BF16 with weights in FP8, and that of one in FP8.
        ({"source": "gap_analysis", "framework": "trtllm", "model": "Qwen/Qwen3-32B"}, "", "dynamic"),
        ({"source": "gap_analysis", "framework": "vllm", "model": "Qwen/Qwen3-32B"}, "", ""),
        (
            {"source": "gap_analysis", "framework": "trtllm", "model": "Qwen/Qwen3-32B", "weights": "bf16"},
            "",
            "",
        ),
        ({"source": "inferencex", "framework": "trtllm", "model": "Qwen/Qwen3-32B"}, "", ""),
    ],
)
def test_which_software_served(changes: dict[str, object], month: str, scales: str) -> None:
    rows = pd.DataFrame([row(**changes)])
    assert (release_months(rows)[0], activation_scales(rows)[0]) == (month, scales)


def test_a_unit_is_read_in_a_way_that_is_possible() -> None:
    static = {"mode": "static", "model": "llama2-70b", "hardware": "H100-SXM", "tp": 4, "n_accelerators": 4}
    static |= {"load": 64, "input_tokens": 128, "output_tokens": 128, "unit_is_ambiguous": True}
    rows = pd.DataFrame([row(**static, latency_s=seconds, latency_error=-0.2) for seconds in (2.47, 4.0)])
    # 69 GB over four memories of 3.35 TB/s, 128 times; 1.1 PFLOP at 0.8 of four times 1.98 PFLOP/s.
    assert least_latency_s(rows).tolist() == pytest.approx([0.66 + 0.18] * 2, rel=0.02)
    (line,) = [line for line in units_text(rows).splitlines() if line.startswith("| H100")]
    assert line == "| H100-SXM | llama2-70b | -20 (2) | +220 (2) | 1 |"


def test_one_factor_is_judged_on_many_draws() -> None:
    errors = 0.5 * (1.0 + np.linspace(-0.05, 0.05, 20)) - 1.0
    rows = pd.DataFrame({"hardware": "MI300X", "tpot_error": errors})
    corrected = after_maturity(rows)
    assert len(corrected) == MATURITY_DRAWS * (len(rows) - MATURITY_ROWS)
    assert corrected.abs().max() <= 0.11


def test_degrees_that_were_multiplied_fit_a_host_again() -> None:
    rows = packaged()
    one_host = rows[~rows["hardware"].str.startswith("GB") & (rows["rule"] == "")]
    assert (one_host["tp"] * one_host["dp"] * one_host["pp"]).max() == 8
    # Every row of gpt-oss with experts in eight groups stands at tensor parallelism of 8.
    split = rows[(rows["model"] == "openai/gpt-oss-120b") & (rows["ep"] == 8) & (rows["dp"] == 1)]
    assert len(split) > 4
    assert set(split["tp"]) == {8}


def test_a_measurement_under_two_names_counts_once() -> None:
    twice = pd.DataFrame([row(model_class="DeepSeek", moe_tp=2)] * 2)
    assert excluded(twice).tolist() == ["", "duplicate"]
    # A copy is printed with two decimals, and its nominal lengths stand as means.
    copied = {"tpot_ms": 6.33, "ttft_ms": 120.46, "source": "gap_analysis", "output_tokens": 1024}
    original = row(model_class="DeepSeek", moe_tp=2, tpot_ms=6.332719, ttft_ms=120.457)
    pair = pd.DataFrame([original, original | copied])
    assert excluded(pair).tolist() == ["", "duplicate"]
    other = pd.DataFrame([original, original | copied | {"tpot_ms": 6.34}])
    assert excluded(other).tolist() == ["", ""]
    assert len({rule.code for rule in RULES}) == len(RULES)


def test_own_rows_are_left_out_of_what_they_correct() -> None:
    deployment = {"hardware": "H200-SXM", "framework": "vllm", "version": "1", "model": "m", "weights": "fp8"}
    errors = 1.2 * (1.0 + np.linspace(-0.05, 0.05, 11)) - 1.0
    rows = pd.DataFrame([{**deployment, "tpot_error": error} for error in errors])
    corrected = after_own_rows(rows)
    assert len(corrected) == 8
    assert corrected.abs().max() <= 0.11
