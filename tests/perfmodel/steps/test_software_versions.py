"""Kernels that older software versions do not have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.operators import Operator
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.steps import (
    ConfigurationBatch,
    decode_shape,
    part_dtypes,
    prefill_shape,
    step_operators,
)
from fleetplan.perfmodel.steps.software_versions import AMD, NVIDIA, OLDER_KERNELS, as_run, older_kernels


def operators(model: str, *dates: str) -> list[dict[str, Operator]]:
    """Operators of a step with prompts and of one without under TensorRT-LLM, in FP8 on four accelerators."""
    architecture = load_architecture(model, Path())
    dtypes = part_dtypes(architecture, Precision("fp8", "fp8"))
    layouts = Layouts.of([Parallelism(1, 4, 1, 4, 1)])
    of_one = [np.array([count]) for count in (64, 2048, 0, 3072, 1)]
    batch = ConfigurationBatch(layouts, *of_one)
    steps = [*step_operators(architecture, dtypes, prefill_shape(batch))]
    steps += step_operators(architecture, dtypes, decode_shape(batch))
    return [{each.name: each for each in as_run(steps, architecture, "trtllm", date)} for date in dates]


@pytest.mark.parametrize(
    ("framework", "date", "count"),
    [
        ("trtllm", "", 0),
        ("trtllm", "2026-01", 0),
        ("trtllm", "2024-06", 0),
        ("trtllm", "2024-05", 2),
        ("trtllm", "2024-02", 2),
        ("trtllm", "2024-01", 3),
        ("vllm", "2023-10", 2),
        ("vllm", "2025-10", 2),
        ("vllm", "2025-11", 3),
        ("vllm", "2025-12", 3),
        ("vllm", "2026-01", 2),
        ("vllm", "2026-02", 1),
        ("vllm", "2026-03", 1),
        ("vllm", "2026-05", 0),
        ("sglang", "2025-12", 1),
        ("sglang", "2026-01", 0),
    ],
)
def test_a_month_decides_what_is_missing(framework: str, date: str, count: int) -> None:
    assert len(older_kernels(framework, date)) == count
    assert all(kernel.source and kernel.what and len(kernel.until) == 7 for kernel in OLDER_KERNELS)


def test_operators_run_as_older_software_runs_them() -> None:
    today, old = operators("llama2-70b", "", "2023-10")
    assert today.keys() == old.keys()
    changed = {name for name in today if today[name] is not old[name]}
    assert changed == {"prefill_attention", "decode_attention", "ffn_gate_up"}
    # 64 query heads and 8 key-value heads on four accelerators.
    assert today["decode_attention"].dims["kv_heads"].tolist() == [2]
    assert old["decode_attention"].dims["kv_heads"].tolist() == [16]
    assert old["decode_attention"].dtype == "fp8"
    assert (today["prefill_attention"].dtype, old["prefill_attention"].dtype) == ("fp8", "bf16")
    whole, half = today["ffn_gate_up"], old["ffn_gate_up"]
    assert half.dims["n"] * 2 == whole.dims["n"]
    assert half.count == 2 * whole.count


def test_a_block_without_a_gate_stays_one_product() -> None:
    today, old = operators("EleutherAI/gpt-j-6b", "", "2023-10")
    assert old["ffn_gate_up"] is today["ffn_gate_up"]
    assert old["prefill_attention"].dtype == "bf16"


def case(**changes: object) -> dict[str, object]:
    plain = {"case_id": "a", "hardware": "H100-SXM", "backend": "trtllm", "weights": "fp8", "kv": "fp8"}
    plain |= {"mode": "decode", "tp": 4, "input_tokens": 2048, "output_tokens": 2048, "batch": 64}
    return plain | {"model": "llama2-70b"} | changes


def test_long_contexts_of_grouped_heads_were_slow_to_decode() -> None:
    long, short = {"input_tokens": 4096}, {"input_tokens": 16, "output_tokens": 16}
    rows = [
        case(software_date=date, **lengths)
        for lengths in (long, short)
        for date in ("", "2024-01", "2024-02")
    ]
    tpot = predict(pd.DataFrame(rows), Path())["tpot_ms"].to_numpy().reshape(2, 3)
    assert tpot[0, 1] > 1.5 * tpot[0, 0]
    assert tpot[1, 1] < 1.2 * tpot[1, 0]
    # Two products instead of one are all that is left of it a month later.
    assert tpot[:, 2] == pytest.approx(tpot[:, 0], rel=0.1)


def test_dynamic_scales_are_known_of_one_framework_in_fp8() -> None:
    rows = [
        case(activation_scales="static", mode="prefill", batch=1),
        case(activation_scales="dynamic", mode="prefill", batch=1),
        case(activation_scales="dynamic", backend="vllm"),
        case(activation_scales="dynamic", weights="bf16"),
        case(activation_scales="sometimes"),
    ]
    found = predict(pd.DataFrame(rows), Path())
    assert found["status"].tolist() == ["ok", "ok", "rejected", "rejected", "rejected"]
    assert found["reason"][2] == found["reason"][3]
    assert "trtllm with weights fp8 only" in found["reason"][2]
    assert "'sometimes' is not known" in found["reason"][4]
    # Without tables there is nothing to take off.
    assert (found["ttft_ms"][0] != found["ttft_ms"][1]) == (data_folder() is not None)


QWEN_FP8 = "Qwen/Qwen3-235B-A22B-FP8"


def experts_of(software_date: str, tokens: int, tp: int, ep: int) -> dict[str, Operator]:
    """Return the operators of a vLLM step that generates `tokens`, by name."""
    architecture = load_architecture(QWEN_FP8, Path())
    dtypes = part_dtypes(architecture, Precision("fp8", "bf16"))
    layouts = Layouts.of([Parallelism(1, tp, 1, tp // ep, ep)])
    batch = ConfigurationBatch(layouts, *(np.array([count]) for count in (tokens, 1, 0, 1000, 1)))
    steps = step_operators(architecture, dtypes, decode_shape(batch))
    return {each.name: each for each in as_run(steps, architecture, "vllm", software_date)}


@pytest.mark.parametrize(
    ("date", "tp", "ep", "is_padded"),
    [
        ("2025-10", 4, 4, False),
        ("2025-11", 4, 4, True),
        ("2025-11", 8, 8, True),
        ("2025-12", 8, 8, False),
        ("2025-12", 8, 1, False),
        ("2026-01", 2, 1, True),
        ("2026-02", 4, 4, False),
        ("", 4, 4, False),
    ],
)
def test_experts_in_blocks_are_padded_for_three_months(date: str, tp: int, ep: int, is_padded: bool) -> None:
    found = experts_of(date, 16, tp, ep)
    assert ("padded_down" in found and found["padded_down"].count.sum() > 0) == is_padded


def test_padding_is_what_the_tokens_do_not_fill() -> None:
    few, many, split = (
        experts_of("2025-11", 8, 4, 4),
        experts_of("2025-11", 8192, 4, 4),
        experts_of("2025-11", 8, 4, 1),
    )
    # 32 of 128 experts on each of four accelerators, 128 rows each; 8 tokens of 8 experts fill 16 of them.
    assert few["padded_gate_up"].dims["m"].tolist() == [32 * 128 - 16]
    assert few["padded_gate_up"].dims["n"].tolist() == [2 * 1536]
    assert few["padded_down"].dims["k"].tolist() == [1536]
    assert few["padded_down"].count.tolist() == [94]
    assert many["padded_down"].count.tolist() == [0]
    # All experts, a quarter of each: as much work.
    assert split["padded_down"].dims["m"].tolist() == [32 * 128 - 16]


@pytest.mark.skipif(data_folder() is None, reason="no measured tables")
def test_padding_makes_up_for_what_a_step_lacked() -> None:
    """With the padding of vLLM 0.12, two of NVIDIA's closed loops on H200 come within 12 % of their TPOT."""
    plain = {"case_id": "a", "model": QWEN_FP8, "hardware": "H200-SXM", "backend": "vllm", "weights": "fp8"}
    plain |= {"mode": "closed_loop", "input_tokens": 8000, "output_tokens": 2000, "sampling": "top-p"}
    rows = [
        plain | {"software_date": date, "tp": tp, "ep": ep, "concurrency": clients, "iterations_ahead": 1}
        for date in ("", "2025-12")
        for tp, ep, clients in ((2, 2, 9), (4, 4, 15))
    ]
    tpot = predict(pd.DataFrame(rows), Path())["tpot_ms"].to_numpy().reshape(2, 2)
    measured = np.array([55.01, 34.04])
    assert (tpot[0] < 0.7 * measured).all()
    assert tpot[1] == pytest.approx(measured, rel=0.12)


def test_sampling_became_faster_twice() -> None:
    shared = {"backend": "vllm", "weights": "bf16", "kv": "bf16", "batch": 256, "model": "llama3-8b", "tp": 1}
    dates = ("2025-12", "2026-03", "")
    rows = [
        case(software_date=date, iterations_ahead=1, sampling=sampling, **shared)
        for sampling in ("greedy", "top-p")
        for date in dates
    ]
    tpot = predict(pd.DataFrame(rows), Path())["tpot_ms"].to_numpy().reshape(2, 3)
    ns_per_logit = (tpot[1] - tpot[0]) * 1e6 / (256 * 128_256)
    assert ns_per_logit == pytest.approx([0.2146, 0.030, 0.0159], rel=1e-3)


def generated_by(model: str, software_date: str, tp: int, vendor: str = NVIDIA) -> dict[str, Operator]:
    """Operators of a step that generates 16 tokens under SGLang, by name."""
    architecture = load_architecture(model, Path())
    dtypes = part_dtypes(architecture, Precision("fp8", "bf16"))
    layouts = Layouts.of([Parallelism(1, tp, 1, tp, 1)])
    batch = ConfigurationBatch(layouts, *(np.array([count]) for count in (16, 1, 0, 1000, 1)))
    steps = step_operators(architecture, dtypes, decode_shape(batch))
    return {each.name: each for each in as_run(steps, architecture, "sglang", software_date, vendor)}


def test_ranks_that_norm_all_heads_as_one_vector_add_up_their_squares_first() -> None:
    model = "MiniMaxAI/MiniMax-M2.5"
    today, apart = (generated_by(model, date, 4) for date in ("", "2025-12"))
    exchange = today["query_key_all_reduce"]
    # Two sums in FP32 of each of 16 tokens, in each of 62 layers.
    assert (exchange.dims["message_bytes"].tolist(), exchange.count.tolist()) == ([16 * 8], [62])
    # 12 of 48 query heads and 2 of 8 key heads are read.
    assert today["query_key_sums"].dims["traffic_bytes"].tolist() == [16 * (12 + 2) * 128 * 2]
    exchanges = apart["query_key_all_reduce"]
    assert (exchanges.dims["message_bytes"].tolist(), exchanges.count.tolist()) == ([16 * 4], [2 * 62])
    # Sums of both, and the norm of the second.
    assert apart["query_key_sums"].count.tolist() == [3 * 62]
    assert "query_key_all_reduce" not in generated_by(model, "", 1)
    # Others norm each head by itself.
    assert "query_key_all_reduce" not in generated_by("Qwen/Qwen3-235B-A22B-FP8", "", 4)


def test_norms_like_gemmas_ran_operation_by_operation_on_amd() -> None:
    model = "Qwen/Qwen3.5-397B-A17B"
    before, after = (generated_by(model, date, 8, AMD) for date in ("2026-03", "2026-04"))
    assert set(before) - set(after) == {
        f"{norm}_{kernels}"
        for norm in ("attention_norm", "ffn_norm", "final_norm", "query_key_norm")
        for kernels in ("passes", "scalars")
    }
    # Ten kernels besides the one that is left, in each of 60 layers; queries and keys have one norm each, in
    # the 15 layers with softmax attention.
    assert before["ffn_norm_passes"].count + before["ffn_norm_scalars"].count == 10 * 60
    assert before["query_key_norm_passes"].count + before["query_key_norm_scalars"].count == 20 * 15
    assert set(generated_by(model, "2026-03", 8)) == set(after)
    assert not older_kernels("vllm", "2025-12", AMD)
