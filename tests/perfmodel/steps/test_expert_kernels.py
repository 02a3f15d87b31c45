"""Experts that servers on Blackwell run by Triton."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.measured import needs_tables

from fleetplan.fleet.catalog import model_catalog
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.steps.expert_kernels import SLOWER_EXPERTS, expert_kernels


@pytest.mark.parametrize(
    ("framework", "system", "model_type", "date", "dtypes"),
    [
        ("vllm", "b200_sxm", "qwen3_moe", "2025-11", {"bf16"}),
        ("vllm", "b200_sxm", "qwen3_moe", "2026-04", set()),
        ("vllm", "b200_sxm", "qwen3_moe", "", set()),
        ("vllm", "h100_sxm", "qwen3_moe", "2025-11", set()),
        ("vllm", "b200_sxm", "minimax_m2", "2025-12", {"bf16"}),
        ("vllm", "b200_sxm", "minimax_m2", "2026-03", {"bf16", "fp8_block"}),
        ("vllm", "b200_sxm", "minimax_m2", "2026-04", set()),
        ("sglang", "b200_sxm", "deepseek_v3", "2025-06", {"bf16", "fp8_block"}),
        ("sglang", "b200_sxm", "deepseek_v3", "2025-11", {"bf16"}),
        ("sglang", "b200_sxm", "qwen3_moe", "2025-11", {"bf16", "fp8_block"}),
        ("sglang", "b200_sxm", "qwen3_moe", "2025-12", {"bf16"}),
        ("sglang", "gb300", "minimax_m2", "", {"fp8_block"}),
        ("trtllm", "b200_sxm", "minimax_m2", "2025-06", set()),
        ("sglang", None, "minimax_m2", "", set()),
    ],
)
def test_month_model_and_part_decide(
    framework: str, system: str | None, model_type: str, date: str, dtypes: set[str]
) -> None:
    assert expert_kernels(framework, system, model_type, date).triton == dtypes


def test_facts_have_a_source_and_name_known_decoders() -> None:
    types = {load_architecture(name, Path()).model_type for name in model_catalog()}
    for fact in SLOWER_EXPERTS:
        assert fact.source
        assert fact.model_types <= types


@pytest.mark.parametrize(
    ("framework", "system", "date", "dtypes"),
    [
        ("trtllm", "b200_sxm", "2025-12", {"fp8_block"}),
        ("trtllm", "gb200", "2025-06", {"fp8_block"}),
        ("trtllm", "b200_sxm", "2026-01", set()),
        ("trtllm", "b200_sxm", "", set()),
        ("trtllm", "h200_sxm", "2025-12", set()),
        ("sglang", "b200_sxm", "2025-12", set()),
        ("trtllm", None, "2025-12", set()),
    ],
)
def test_tensorrt_llm_had_one_kernel_for_experts_in_fp8_on_blackwell(
    framework: str, system: str | None, date: str, dtypes: set[str]
) -> None:
    assert expert_kernels(framework, system, "deepseek_v3", date).own == dtypes


@needs_tables
def test_a_server_before_the_other_kernel_is_slower() -> None:
    rows = [
        {
            "case_id": date,
            "model": "Qwen/Qwen3-30B-A3B",
            "hardware": "B200-SXM",
            "backend": "vllm",
            "weights": "bf16",
            "mode": "decode",
            "tp": 1,
            "input_tokens": 1000,
            "batch": 64,
            "iterations_ahead": 1,
            "software_date": date,
        }
        for date in ("2025-11", "2026-04")
    ]
    before, after = predict(pd.DataFrame(rows), Path())["tpot_ms"]
    assert 1.05 < before / after < 1.3
