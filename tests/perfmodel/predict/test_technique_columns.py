"""Technique columns of `plan predict`: each has an effect, or is refused by name."""

from pathlib import Path

import pandas as pd
import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.predict import NUMBER_COLUMNS, predict
from fleetplan.perfmodel.predict.technique_columns import COLUMNS

BASE: dict[str, object] = {
    "case_id": "a",
    "model": "llama3-8b",
    # Without measured tables: the tests need no package of them.
    "hardware": "MI300X",
    "weights": "bf16",
    "mode": "decode",
    "tp": 1,
    "input_tokens": 2048,
    "output_tokens": 100,
    "batch": 4,
    "concurrency": 16,
}
DRAFT = {"draft_tokens": 4, "acceptance_ratio": 0.8, "draft_cost_ratio": 0.0}
WIDE = {
    "model": "deepseek-ai/DeepSeek-V3",
    "weights": "fp8",
    "mode": "prefill",
    "dp": 32,
    "ep": 32,
    "batch": 4,
}
MIXTRAL = {"model": "mistralai/Mixtral-8x7B-v0.1", "tp": 8}


def run(*changes: dict[str, object]) -> pd.DataFrame:
    frame = pd.DataFrame([{**BASE, "case_id": f"case-{at}", **each} for at, each in enumerate(changes)])
    return predict(frame, Path())


@pytest.mark.parametrize(
    ("base", "switch", "column", "sign"),
    [
        ({"mode": "prefill"}, {"chunk_tokens": 256}, "memory_gib_per_accelerator", -1),
        ({"mode": "closed_loop"}, {"chunk_tokens": 256}, "ttft_ms", 1),
        ({"mode": "burst", "concurrency": 64}, {"chunk_tokens": 256}, "ttft_ms", 1),
        ({"mode": "open_loop", "requests_per_s": 2}, {"chunk_tokens": 256}, "ttft_ms", 1),
        ({"mode": "open_loop", "requests_per_s": 2}, DRAFT, "tpot_ms", -1),
        ({}, {"samples_per_prompt": 4}, "requests_per_s", -1),
        ({"prefix_tokens": 4096}, {"shared_prefix_tokens": 4096}, "memory_gib_per_accelerator", -1),
        ({}, DRAFT, "tpot_ms", -1),
        ({"mode": "static"}, DRAFT, "latency_ms", -1),
        ({"mode": "closed_loop"}, DRAFT, "tpot_ms", -1),
        (
            {"mode": "prefill", "prefix_tokens": 4096},
            {"session_hit_ratio": 0.5, "session_gb_per_s": 50},
            "ttft_ms",
            1,
        ),
        ({}, {"offload_weights_ratio": 0.5, "offload_gb_per_s": 50}, "tpot_ms", 1),
        ({}, {"offload_weights_ratio": 0.5, "offload_gb_per_s": 50}, "memory_gib_per_accelerator", -1),
        ({}, {"offload_kv_ratio": 1, "offload_gb_per_s": 1}, "tpot_ms", 1),
        (MIXTRAL, {"expert_activation": "balanced"}, "tpot_ms", 1),
        (
            MIXTRAL,
            {"expert_activation": "log-linear", "log_linear_intercept": 2, "log_linear_slope": 0},
            "tpot_ms",
            -1,
        ),
        (
            {**MIXTRAL, "mode": "prefill", "ep": 8},
            {"busiest_expert_ratio": 0.3, "expert_placement": "sorted"},
            "ttft_ms",
            1,
        ),
        ({"mode": "prefill"}, {"power_cap_w": 500}, "ttft_ms", 1),
        (WIDE, {"expert_balance": "perfect"}, "ttft_ms", -1),
        (WIDE, {"redundant_experts": 64}, "memory_gib_per_accelerator", 1),
        (WIDE, {"expert_overlap": "two-batch"}, "ttft_ms", -1),
        (WIDE, {"expert_overlap": "single-batch"}, "ttft_ms", -1),
    ],
)
def test_a_switch_acts(base: dict[str, object], switch: dict[str, object], column: str, sign: int) -> None:
    found = run(base, {**base, **switch})
    assert found["status"].tolist() == ["ok", "ok"], found["reason"].tolist()
    off, on = found[column]
    assert (on - off) * sign > 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"chunk_tokens": 0}, "chunk_tokens: 0 is not a whole number from 1"),
        ({"chunk_tokens": 512}, "chunk_tokens: has no effect in decode mode"),
        ({"draft_tokens": 4}, "acceptance_ratio: missing, draft_tokens needs it; draft_cost_ratio: missing"),
        ({**DRAFT, "acceptance_ratio": 1.5}, "acceptance_ratio: 1.5 is not a number from 0 to 1"),
        ({**DRAFT, "acceptance_ratio": "nan?"}, "acceptance_ratio: 'nan\\?' is not a number"),
        ({**DRAFT, "mode": "prefill"}, "draft_tokens: has no effect in prefill mode"),
        ({**DRAFT, "mode": "burst"}, "draft_tokens: has no effect in burst mode"),
        ({"shared_prefix_tokens": 10, "prefix_tokens": 5}, "shared_prefix_tokens: exceeds prefix_tokens"),
        ({"expert_activation": "even"}, "expert_activation: 'even' is not known; allowed: uniform, balanced"),
        ({"expert_activation": "log-linear"}, "log_linear_slope: is for expert_activation log-linear"),
        ({"offload_gb_per_s": 5}, "offload_gb_per_s: has no effect without offload_weights_ratio"),
        ({"expert_activation": "balanced"}, "experts: .* has none, so their routing has no effect"),
        ({"offload_weights_ratio": 0.5}, "offload_gb_per_s: missing, offload_weights_ratio needs it"),
        ({"expert_placement": "sorted"}, "busiest_expert_ratio: missing"),
        ({"power_cap_w": 5}, "power_cap_w: a cap of 5.0 W is outside the range for 750"),
        ({"expert_overlap": "two-batch"}, "expert_overlap: .* has no experts, so it has no effect"),
        ({"expert_balance": "even"}, "expert_balance: 'even' is not known; allowed: auto, eplb, none"),
        (
            {**MIXTRAL, "expert_balance": "eplb", "busiest_expert_ratio": 0.2},
            "busiest_expert_ratio: cannot be combined with expert_balance eplb",
        ),
        (
            {**MIXTRAL, "expert_balance": "none", "redundant_experts": 2},
            "redundant_experts: needs expert_balance",
        ),
        ({**MIXTRAL, "busiest_expert_ratio": 0.9}, "busiest_expert_ratio: 0.9 is outside 0.125 to 0.5"),
    ],
)
def test_what_cannot_act_is_refused_by_name(change: dict[str, object], reason: str) -> None:
    (row,) = run(change).itertuples()
    assert row.status == "rejected"
    assert pd.Series([row.reason]).str.contains(reason).item(), row.reason


def test_a_misspelt_switch_is_refused_and_other_columns_are_not() -> None:
    with pytest.raises(InputError, match="chunk_token: unknown column; did you mean 'chunk_tokens'"):
        run({"chunk_token": 512})
    others = run({"total_tokens": 5, "draft": "x", "context_tokens": 3, "session": 1})
    assert others["status"].tolist() == ["ok"]


def test_empty_cells_switch_nothing_on() -> None:
    plain = run({}, {"mode": "prefill"})
    empty = run(dict.fromkeys(COLUMNS), {"mode": "prefill", **dict.fromkeys(COLUMNS, "")})
    assert plain[list(NUMBER_COLUMNS)].equals(empty[list(NUMBER_COLUMNS)])


def test_rows_with_different_switches_keep_their_order() -> None:
    found = run(DRAFT, {}, DRAFT, {"samples_per_prompt": 2})
    assert found["case_id"].tolist() == ["case-0", "case-1", "case-2", "case-3"]
    first, plain, third, _ = found["tpot_ms"]
    assert first == third < plain


def test_the_documented_columns_are_those_that_are_read() -> None:
    pages = "".join(page.read_text() for page in (Path(__file__).parents[3] / "docs").glob("*.md"))
    assert not [name for name in COLUMNS if f"`{name}`" not in pages]
