"""Maturity of a part's software at a date, and its effect."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.perfmodel.fakes import accelerator

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Maturity
from fleetplan.perfmodel.evaluator import matured, maturity_in_force
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.steps.latency import overhead_ms_per_kernel

KNOWN = (
    Maturity("sglang", "2026-02", 1.5, "later"),
    Maturity("sglang", "2025-12", 3.0, "earlier"),
    Maturity("vllm", "2025-08", 1.2, "another"),
)


@pytest.mark.parametrize(
    ("framework", "date", "factor"),
    [
        ("sglang", "", 1.5),
        ("sglang", "2026-02", 1.5),
        ("sglang", "2026-01", 3.0),
        # Software older than any that was measured is taken as the oldest.
        ("sglang", "2025-01", 3.0),
        ("vllm", "2027-01", 1.2),
        ("trtllm", "", None),
    ],
)
def test_the_last_that_had_begun_is_in_force(framework: str, date: str, factor: float | None) -> None:
    found = maturity_in_force(KNOWN, framework, date)
    assert (None if found is None else found.factor) == factor


def test_a_factor_for_a_format_holds_for_it_alone() -> None:
    blocks = Maturity("sglang", "2026-01", 4.0, "kernels for blocks", weights="fp8_block")
    known = (*KNOWN, blocks)
    assert maturity_in_force(known, "sglang", "", "fp8_block") is blocks
    assert maturity_in_force(known, "sglang", "", "bf16") is KNOWN[0]
    assert maturity_in_force((blocks,), "sglang", "", "bf16") is None


def test_kernels_for_blocks_slow_no_other_format() -> None:
    """The factor of block-scaled FP8 kernels leaves BF16 experts at their published time."""
    case = {"case_id": "a", "model": "meta-llama/Llama-4-Scout-17B-16E", "hardware": "MI300X", "tp": 8}
    loop = {"mode": "closed_loop", "input_tokens": 610, "output_tokens": 422, "concurrency": 1}
    found = predict(pd.DataFrame([case | loop | {"backend": "sglang", "weights": "bf16"}]), Path())
    # Published: 5.95 ms (sgl-project/sgl-cookbook@7b5bd9c).
    assert found["tpot_ms"][0] == pytest.approx(5.95, rel=0.3)


def test_maturity_multiplies_launches_and_gaps_alone() -> None:
    part = accelerators()["MI300X"]
    assert matured(part, "trtllm") is part
    newest = matured(part, "sglang")
    ratio = overhead_ms_per_kernel(newest) / overhead_ms_per_kernel(part)
    assert ratio == pytest.approx(newest.efficiency.maturity_factor)
    assert newest.efficiency.gemm_ratio == part.efficiency.gemm_ratio
    assert matured(accelerator(), "sglang") == accelerator()


def test_every_factor_names_its_framework_month_and_source() -> None:
    listed = [each for part in accelerators().values() for each in part.efficiency.maturity]
    assert listed
    for each in listed:
        assert each.framework in {"sglang", "vllm"}
        assert len(each.since) == 7
        # Software that has caught up ends the factors of what came before it.
        assert each.factor > 1 or (each.factor == 1 and "nothing fitted" in each.source)
        assert "median of" in each.source


def test_predict_prices_software_of_a_date() -> None:
    case = {
        "case_id": "a",
        "model": "deepseek-ai/DeepSeek-R1",
        "hardware": "MI300X",
        "backend": "sglang",
        "weights": "fp8",
        "mode": "decode",
        "tp": 8,
        "input_tokens": 1000,
        "output_tokens": 100,
        "batch": 4,
    }
    dates = ("", "2026-06", "2026-01", "January")
    found = predict(pd.DataFrame([case | {"software_date": date} for date in dates]), Path())
    assert found["status"].tolist() == ["ok", "ok", "ok", "rejected"]
    assert found["tpot_ms"][1] == found["tpot_ms"][0]
    # 61 layers of nine kernels, three of them dense, and the head: 11.8 us each by the fitted constants.
    kernels = 61 * 6 + 3 * 2 + 58 * 3 + 1
    later, earlier = (
        maturity_in_force(accelerators()["MI300X"].efficiency.maturity, "sglang", date, "fp8_block")
        for date in dates[1:3]
    )
    assert later is not None
    assert earlier is not None
    more_ms = kernels * 59 / 5 / 1e3 * (earlier.factor - later.factor)
    assert found["tpot_ms"][2] - found["tpot_ms"][1] == pytest.approx(more_ms, rel=1e-6)
    assert "not a year and month" in found["reason"][3]
