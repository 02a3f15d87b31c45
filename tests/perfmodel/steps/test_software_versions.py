"""Kernels that older software lacks."""

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
from fleetplan.perfmodel.steps.software_versions import OLDER_KERNELS, as_run, older_kernels


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
        ("vllm", "2023-10", 0),
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
    assert "trtllm with weights fp8 alone" in found["reason"][2]
    assert "'sometimes' is not known" in found["reason"][4]
    # Without tables there is nothing to take off.
    assert (found["ttft_ms"][0] != found["ttft_ms"][1]) == (data_folder() is not None)
