"""DeepSeek over many accelerators, by `predict`, beside the rates that its operators published."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.predict import predict

LARGEST_ERROR = 0.20

HOPPER = "LMSYS blog, 5 May 2025: DeepSeek with PD disaggregation and large-scale EP on 96 H100"
RACK = "LMSYS blog, 16 June 2025: DeepSeek on GB200 NVL72, part I"
RACK_AGAIN = "LMSYS blog, 25 September 2025: DeepSeek on GB200 NVL72, part II"
PRODUCTION = "DeepSeek, Day 6 of the open source week, February 2025: inference system overview"
ANT = "LMSYS blog of Ant Group, 26 September 2025: DeepSeek-R1 on H20-96G"
MTP = {"draft_tokens": 1, "acceptance_ratio": 0.6, "draft_cost_ratio": 0.0}


@dataclass(frozen=True)
class Published:
    """A rate of one phase with the other unlimited. [tokens/s an accelerator]."""

    source: str
    tokens_per_s: float
    hardware: str
    weights: str
    kv: str
    mode: str
    ranks: int
    batch: int
    tokens: int
    overlap: str
    balance: str = "eplb"
    speculation: bool = False
    tp: int = 1


ROWS = (
    # 16,384 tokens an accelerator, which the article prints for prompts of 4,096.
    Published(HOPPER, 57_674 / 8, "H100-SXM", "fp8", "bf16", "prefill", 32, 16, 1024, "two-batch"),
    Published(HOPPER, 54_543 / 8, "H100-SXM", "fp8", "bf16", "prefill", 32, 8, 2048, "two-batch"),
    Published(HOPPER, 50_302 / 8, "H100-SXM", "fp8", "bf16", "prefill", 32, 4, 4096, "two-batch"),
    Published(HOPPER, 59_337 / 8, "H100-SXM", "fp8", "bf16", "prefill", 32, 4, 4096, "two-batch", "perfect"),
    Published(HOPPER, 22_282 / 8, "H100-SXM", "fp8", "bf16", "decode", 72, 256, 2000, "two-batch"),
    # The same without overlap: 22,310 tokens/s a host are 25.5 % more.
    Published(HOPPER, 22_310 / 1.255 / 8, "H100-SXM", "fp8", "bf16", "decode", 72, 256, 2000, "none"),
    # Simulated speculation: one drafted token, accepted in 60 % of the steps.
    Published(
        HOPPER, 17_373 / 8, "H100-SXM", "fp8", "bf16", "decode", 72, 128, 4000, "two-batch", "eplb", True
    ),
    Published(
        HOPPER, 12_929 / 8, "H100-SXM", "fp8", "bf16", "decode", 72, 128, 4000, "none", speculation=True
    ),
    # Batches are those that fill the cache; the articles print them for the series.
    Published(RACK, 7_583, "GB200-NVL72", "fp8", "bf16", "decode", 48, 768, 2000, "none"),
    Published(RACK_AGAIN, 9_087, "GB200-NVL72", "fp8", "bf16", "decode", 48, 768, 2000, "single-batch"),
    Published(RACK_AGAIN, 13_386, "GB200-NVL72", "fp4", "fp8", "decode", 48, 1408, 2000, "single-batch"),
    Published(RACK_AGAIN, 18_471, "GB200-NVL72", "fp8", "bf16", "prefill", 4, 8, 2000, "single-batch"),
    Published(RACK_AGAIN, 26_156, "GB200-NVL72", "fp4", "fp8", "prefill", 2, 8, 2000, "single-batch"),
    # 20 to 22 tokens/s a user make 88 sequences an accelerator, over 4,989 cached tokens in the mean.
    Published(PRODUCTION, 1_850, "H800-SXM", "fp8", "bf16", "decode", 144, 88, 4989, "two-batch"),
    # Chunks of 16,384 tokens; attention in FP8, which is not modelled.
    Published(ANT, 2_062.5, "H20-SXM", "fp8", "bf16", "prefill", 1, 4, 4096, "none", "auto", False, 8),
)


def predicted() -> list[float]:
    cases = []
    for at, row in enumerate(ROWS):
        case = {
            "case_id": at,
            "model": "deepseek-ai/DeepSeek-V3",
            "hardware": row.hardware,
            "backend": "sglang",
            "weights": row.weights,
            "kv": row.kv,
            "mode": row.mode,
            "tp": row.tp,
            "dp": row.ranks,
            "ep": row.ranks,
            "input_tokens": row.tokens,
            "batch": row.batch,
            "expert_balance": row.balance,
            "expert_overlap": row.overlap,
        }
        cases.append(case | (MTP if row.speculation else {}))
    found = predict(pd.DataFrame(cases), Path())
    assert found["status"].tolist() == ["ok"] * len(ROWS), found["reason"].tolist()
    prompts = [row.batch * row.tokens / row.tp for row in ROWS] / found["ttft_ms"] * 1e3
    return prompts.where(found["ttft_ms"].notna(), found["output_tokens_per_s_per_accelerator"]).tolist()


def test_published_rates_of_wide_expert_parallelism_are_met_within_a_fifth() -> None:
    if data_folder() is None:
        pytest.skip("the measured tables are not installed")
    errors = [ours / row.tokens_per_s - 1 for ours, row in zip(predicted(), ROWS, strict=True)]
    listed = [f"{error:+.1%} {row}" for error, row in zip(errors, ROWS, strict=True)]
    assert max(map(abs, errors)) <= LARGEST_ERROR, "\n".join(listed)
    # Errors have both signs.
    assert abs(sum(errors)) / len(errors) <= LARGEST_ERROR / 2, "\n".join(listed)


def test_overlap_gains_what_is_published() -> None:
    if data_folder() is None:
        pytest.skip("the measured tables are not installed")
    rates = dict(zip(ROWS, predicted(), strict=True))
    two, one = (rates[ROWS[at]] for at in (4, 5))
    # 25.5 % at 256 sequences an accelerator.
    assert two / one == pytest.approx(1.255, abs=0.1)


@pytest.mark.parametrize(("hardware", "within"), [("H100-SXM", "tp"), ("H200-SXM", "ep")])
def test_experts_over_hosts_raise_decode_throughput(hardware: str, within: str) -> None:
    if data_folder() is None:
        pytest.skip("the measured tables are not installed")
    one = {"tp": 16, "batch": 128} if within == "tp" else {"tp": 1, "dp": 8, "ep": 8, "batch": 128}
    over = {"tp": 1, "dp": 72, "ep": 72, "batch": 256, "expert_overlap": "two-batch"}
    shared = {
        "model": "deepseek-ai/DeepSeek-V3",
        "hardware": hardware,
        "backend": "sglang",
        "weights": "fp8",
        "kv": "bf16",
        "mode": "decode",
        "input_tokens": 2000,
    }
    found = predict(
        pd.DataFrame([{"case_id": at, **shared, **each} for at, each in enumerate((one, over))]), Path()
    )
    assert found["fits"].all()
    rates = found["output_tokens_per_s_per_accelerator"]
    assert rates[1] > 1.2 * rates[0]
