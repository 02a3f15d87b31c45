"""The same configuration with the same workload has the same figures in `predict` and in the landscape."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.parts import each_once, first_parts

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Offload, Precision, SpeculativeDecoding, Techniques
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.landscape import LatencyTarget, RequestShape, SearchSpace, service_landscape
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving import Scheduling, default_scheduling

FIGURES = ["ttft_ms", "tpot_ms", "requests_per_s"]
CASES = (
    ("H100-SXM", "vllm", "fp8", "llama3.3-70b", (2000, 150)),
    ("H200-SXM", "trtllm", "fp8", "llama3.3-70b", (20000, 500)),
    ("B200-SXM", "sglang", "fp8", "deepseek-r1", (200, 50)),
    ("MI300X", "vllm", "bf16", "llama3.1-8b", (1000, 1)),
)
StressCase = tuple[str, str, str, str, tuple[int, int]]
TECHNIQUES = {
    "none": (Techniques(), {}),
    "chunks": (Techniques(chunk_tokens=512), {"chunk_tokens": 512}),
    "speculative": (
        Techniques(speculative=SpeculativeDecoding(3, 0.7, 0.1)),
        {"draft_tokens": 3, "acceptance_ratio": 0.7, "draft_cost_ratio": 0.1},
    ),
    "offload": (
        Techniques(offload=Offload(0.1, 0.2, 50.0)),
        {"offload_weights_ratio": 0.1, "offload_kv_ratio": 0.2, "offload_gb_per_s": 50.0},
    ),
}


@cache
def usable(case: StressCase, techniques: Techniques) -> pd.DataFrame:
    """The landscape of a case, for all tests that look at some of its rows."""
    hardware, framework, weights, model, lengths = case
    part = accelerators()[hardware]
    evaluator = build_evaluator(model, part, framework, Precision(weights, "bf16"), Path(), techniques)
    return service_landscape(
        evaluator,
        RequestShape(*lengths),
        LatencyTarget(),
        SearchSpace(max_accelerators=16),
        framework,
        default_scheduling(framework, part, chunk_tokens=techniques.chunk_tokens),
    ).usable


def stages_sharing(scheduling: Scheduling, rows: pd.DataFrame) -> pd.Series:
    """Micro-batches among which a server shares out its limit of sequences: those of all stages, or one."""
    return rows["pp"] if scheduling.stages_share_sequences else rows["pp"].clip(upper=1)


def predicted(case: StressCase, rows: pd.DataFrame, mode: str, columns: dict[str, float]) -> pd.DataFrame:
    hardware, framework, weights, model, lengths = case
    has_experts = model == "deepseek-r1"
    default = default_scheduling(framework, accelerators()[hardware])
    shared_by = stages_sharing(default, rows)
    own_limit = rows["batch"] * shared_by > default.max_sequences
    # A plan's server has the tokens of an iteration for each rank, which SGLang's would share.
    tokens = columns.get("chunk_tokens", default.iteration_tokens)
    table = pd.DataFrame(
        {
            "case_id": rows.index,
            "mode": mode,
            "tp": rows["tp"],
            "pp": rows["pp"],
            "dp": rows["dp"],
            "cp": rows["cp"],
            "ep": rows["ep"],
            "moe_tp": rows["ffn_tp"] if has_experts else "",
            "batch": rows["batch"],
            "concurrency": rows["batch"] * rows["dp"] * rows["pp"],
            # The server is started for all sequences of its pipeline, as `plan export` writes it.
            "max_sequences": (8192 * shared_by).where(own_limit),
            "max_batched_tokens": [tokens] * len(rows),
        }
    ).assign(hardware=hardware, backend=framework, weights=weights, kv="bf16", model=model)
    table = table.assign(input_tokens=lengths[0], output_tokens=lengths[1], **columns)
    limits = ["max_sequences", "max_batched_tokens"]
    others = ["batch"] if mode == "closed_loop" else ["concurrency", *limits]
    return predict(table.drop(columns=others))


@pytest.mark.parametrize("count", first_parts((12, 40), 1))
@pytest.mark.parametrize(("technique", "at"), each_once(TECHNIQUES, range(len(CASES))))
def test_aggregated_rows_are_closed_loops(technique: str, at: int, count: int) -> None:
    case = CASES[at]
    techniques, columns = TECHNIQUES[technique]
    rows = usable(case, techniques)
    rows = rows[rows["phase"] == "aggregated"]
    rows = rows.sample(min(count, len(rows)), random_state=np.random.RandomState(7))
    found = predicted(case, rows, "closed_loop", columns)
    assert (found["status"] == "ok").all(), found["reason"].unique()
    assert found["fits"].all()
    for name in FIGURES:
        np.testing.assert_allclose(found[name], rows[name], rtol=1e-6, err_msg=name)


def test_front_ends_stand_before_prompts() -> None:
    case = CASES[0]
    rows = usable(case, Techniques())
    rows = rows[rows["phase"] == "prefill"].head(20)
    found = predicted(case, rows, "prefill", {})
    # 10 ms a request and 10 us a token under vLLM; the cache then travels.
    expected = found["ttft_ms"].to_numpy() + 10.0 + 2000 * 10e-3 + rows["kv_transfer_ms"].to_numpy()
    np.testing.assert_allclose(rows["ttft_ms"], expected, rtol=1e-9)


def test_decode_rows_are_decode_steps() -> None:
    case = CASES[0]
    rows = usable(case, Techniques())
    rows = rows[rows["phase"] == "decode"].head(20)
    found = predicted((*case[:4], (2075, 150)), rows, "decode", {})
    np.testing.assert_allclose(rows["tpot_ms"], found["tpot_ms"], rtol=1e-9)


PAIRS = (
    ("H200-SXM", "vllm", "fp8", "llama3.3-70b", (2000, 150)),
    ("B200-SXM", "sglang", "fp8", "deepseek-r1", (4096, 200)),
    ("MI300X", "vllm", "bf16", "llama3.1-8b", (4000, 40)),
)
REPLICAS = ((3, 2), (1, 500))
"""Of prefill and of decode: deployments that are limited by the one and by the other."""


def in_pairs(
    case: StressCase,
    prefill: pd.DataFrame,
    decode: pd.DataFrame,
    replicas: tuple[int, int],
    **columns: int | IntArray,
) -> pd.DataFrame:
    """Return the predictions of deployments of such replicas, row by row."""
    hardware, framework, weights, model, lengths = case
    degrees = ["tp", "pp", "dp", "cp", "ep"] + (["ffn_tp"] if model == "deepseek-r1" else [])
    names = {name: name.replace("ffn_tp", "moe_tp") for name in degrees}
    table = decode[degrees].reset_index(drop=True).rename(columns=names)
    of_prompts = prefill[degrees].reset_index(drop=True)
    table = table.join(of_prompts.rename(columns={name: f"prefill_{names[name]}" for name in degrees}))
    table = table.assign(
        case_id=table.index, hardware=hardware, backend=framework, weights=weights, kv="bf16"
    )
    table = table.assign(model=model, mode="disaggregated", input_tokens=lengths[0], output_tokens=lengths[1])
    table = table.assign(prefill_replicas=replicas[0], decode_replicas=replicas[1], **columns)
    found = predict(table)
    assert (found["status"] == "ok").all(), found["reason"].unique()
    return found


@pytest.mark.parametrize(("case", "replicas"), each_once(PAIRS, REPLICAS, pytest.mark.more))
def test_deployments_reach_the_rates_of_their_rows(case: StressCase, replicas: tuple[int, int]) -> None:
    rows = usable(case, Techniques())
    scheduling = default_scheduling(case[1], accelerators()[case[0]])
    most = scheduling.iteration_tokens // case[4][0]
    prefill = rows[(rows["phase"] == "prefill") & (rows["batch"] == most)]
    decode = rows[(rows["phase"] == "decode") & (rows["batch"] == 32)]
    random = np.random.RandomState(3)
    prefill, decode = (each.sample(30, random_state=random, replace=True) for each in (prefill, decode))
    # So many clients that one of the phases is full all the time, and its rate is that of the deployment.
    limits = 32 * stages_sharing(scheduling, decode).to_numpy()
    found = in_pairs(case, prefill, decode, replicas, concurrency=2_000_000, max_sequences=limits)
    rates = [
        count * each["requests_per_s"].to_numpy()
        for count, each in zip(replicas, (prefill, decode), strict=True)
    ]
    np.testing.assert_allclose(found["requests_per_s"], np.minimum(*rates), rtol=1e-6)
    full = rates[1] <= rates[0]
    np.testing.assert_allclose(found["tpot_ms"][full], decode["tpot_ms"][full], rtol=1e-6)
    assert full.any() if replicas == REPLICAS[0] else not full.all()


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: f"{case[0]} {case[1]}")
def test_one_client_meets_single_prompts_and_sequences(
    case: StressCase,
) -> None:
    rows = usable(case, Techniques())
    alone = [rows[(rows["phase"] == phase) & (rows["batch"] == 1)] for phase in ("prefill", "decode")]
    prefill, decode = (each.head(8) for each in alone)
    count = min(len(prefill), len(decode))
    prefill, decode = prefill.head(count), decode.head(count)
    found = in_pairs(case, prefill, decode, REPLICAS[0], concurrency=1)
    np.testing.assert_allclose(found["tpot_ms"], decode["tpot_ms"], rtol=1e-6)
    # Its own request is the load: it never waits for another.
    busy = found["requests_per_s"] / (REPLICAS[0][0] * prefill["requests_per_s"].to_numpy())
    lone_ms = prefill["ttft_ms"].to_numpy() + 0.5 * busy * prefill["latency_ms"].to_numpy()
    assert (found["ttft_ms"] >= prefill["ttft_ms"].to_numpy() * (1 - 1e-9)).all()
    assert (found["ttft_ms"] <= lone_ms * 1.05).all()
