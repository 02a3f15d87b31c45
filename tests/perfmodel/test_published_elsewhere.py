"""Published figures of other pages: the bars, and which rows of a lab say nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import accuracy_elsewhere
from benchmarks.accuracy_blind import predicted_blind
from benchmarks.accuracy_elsewhere import bars, predicted_elsewhere
from benchmarks.accuracy_rows import packaged_file
from benchmarks.blind_rows import blind_rows
from benchmarks.elsewhere_rows import elsewhere_rows
from benchmarks.offline_rows import offline_rows
from tests.parts import first_parts

FEW_REQUESTS = 200
"""Requests of an offline run that are enough to see that it is predicted."""


def test_typed_figures_are_whole() -> None:
    rows = elsewhere_rows()
    assert rows.groupby("set").size().to_dict() == {"gaudi3": 24, "trtllm-1.0": 140, "trtllm-1.2": 123}
    assert rows["case_id"].is_unique
    # One accelerator of 70B in FP8 on eight; the page of 1.2 prints rates of one accelerator.
    alike = rows[(rows["model"] == "meta-llama/Llama-3.1-70B") & (rows["hardware"] == "H100-SXM")]
    of_1000 = alike[alike["input_tokens"].eq(1000) & alike["output_tokens"].eq(1000)].set_index("set")
    assert of_1000["measured"].to_dict() == {"trtllm-1.0": 4205, "trtllm-1.2": 2 * 2209}


@pytest.mark.parametrize("every", first_parts((4, 1), 0, 1))
def test_gaudi3_and_gb200_meet_their_bars(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if packaged_file() is None:
        pytest.skip("aiconfigurator-core is not installed")
    asked = elsewhere_rows()
    # Of the parts that other tables test as well, some rows say it.
    kept = ~asked["hardware"].isin(accuracy_elsewhere.PLAIN_PARTS) | (np.arange(len(asked)) % every == 0)
    monkeypatch.setattr(accuracy_elsewhere, "elsewhere_rows", lambda: asked[kept].reset_index(drop=True))
    rows = predicted_elsewhere()
    assert (rows["status"] == "ok").all()
    found = {bar.name: bar for bar in bars(rows)}
    assert found["GB200 aggregated, tokens/s"].n_rows == 79
    assert found["Gaudi3, static batches, end to end"].n_rows == 24
    assert all(bar.met for bar in found.values()), {name: bar.median for name, bar in found.items()}


@pytest.mark.more
@pytest.mark.parametrize("every", first_parts((6, 1), 1))
def test_blind_loops_of_sglang_are_as_near_as_stated(every: int) -> None:
    if packaged_file() is None:
        pytest.skip("aiconfigurator-core is not installed")
    asked = blind_rows()
    # Of the other sets only whether they are predicted is asked: a few of their thousands of requests say it,
    # and `make test-more` asks some of their rows, of each set one at least.
    other = asked["set"] != "sglang-cookbook"
    asked.loc[other, "n_requests"] = asked.loc[other, "n_requests"].clip(upper=FEW_REQUESTS)
    kept = asked[~other | (asked.groupby("set").cumcount() % every == 0)]
    rows = predicted_blind(kept.reset_index(drop=True))
    assert (rows["status"] == "ok").all()
    cookbook = rows[rows["set"] == "sglang-cookbook"]
    assert len(cookbook) == 70
    # 28.5 and 66 % without the launches of prompts.
    assert cookbook["error"].abs().median() < 0.21
    assert cookbook["ttft_error"].abs().median() < 0.20


def lab(**changes: object) -> dict[str, object]:
    """Return a row of GPUStack's performance lab, in the columns of a table of published serving."""
    plain: dict[str, object] = {
        "row_id": "a",
        "source": "GPUStack performance lab",
        "where": "gpustack/gpustack@1/docs/performance-lab/qwen3-32b/a100.md line 9",
        "date": "2026-01-06",
        "hardware": "A100-SXM4-80GB",
        "framework": "vLLM",
        "version": "0.11.0",
        "model": "Qwen/Qwen3-32B",
        "weights_precision": "bf16",
        "scenario": "offline max throughput (all requests at once)",
        "tier": "burst",
        "spec_decode": "no",
        "notes": "serve: vllm serve Qwen/Qwen3-32B",
    }
    plain |= {"n_accelerators": 1, "tp": 1, "input_tokens": 2000, "output_tokens": 100, "n_requests": 500}
    plain |= {"ttft_ms": 100.0, "tpot_ms": 10.0, "requests_per_s": 5.0}
    plain |= dict.fromkeys(("pp", "dp", "ep", "concurrency", "output_tok_s_total"), np.nan)
    plain |= {"kv_precision": "bf16"}
    return plain | changes


def read(tmp_path: Path, *rows: dict[str, object]) -> pd.DataFrame:
    path = tmp_path / "published.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return offline_rows(path)


def test_a_page_that_contradicts_itself_is_left_out(tmp_path: Path) -> None:
    other_part = {"where": "x/docs/performance-lab/qwen3-32b/h100.md line 9", "hardware": "H100"}
    found = read(
        tmp_path,
        lab(ttft_ms=7.0),
        lab(ttft_ms=8.0, model="Qwen/Qwen3-14B"),
        lab(ttft_ms=9.0),
        lab(ttft_ms=9.0, **other_part),
        lab(ttft_ms=5.0, where="x/docs/performance-lab/glm-4.x/a100.md line 9", model="zai-org/GLM-4.6"),
    )
    copied = "the same figures under two accelerators"
    other = "serves another model than its page is of"
    assert found["left_out"].tolist() == ["", other, copied, copied, ""]


def test_versions_have_months(tmp_path: Path) -> None:
    found = read(tmp_path, lab(), lab(version="9.9"))
    assert found["software_date"].tolist() == ["2025-10", "2026-01"]
