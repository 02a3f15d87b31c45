"""Closed loops of disaggregated deployments, by `predict`: laws, limits, and what is refused."""

from pathlib import Path

import pandas as pd
import pytest
from benchmarks.accuracy_disaggregated import disaggregated_rows, predicted_pools
from benchmarks.accuracy_rows import packaged_file
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.parts import first_parts

from fleetplan.perfmodel.predict import predict

BASE: dict[str, object] = {
    "case_id": "a",
    "model": "llama3-70b",
    # Without measured tables: the tests need no package of them.
    "hardware": "MI300X",
    "backend": "vllm",
    "weights": "fp8",
    "mode": "disaggregated",
    "tp": 4,
    "prefill_tp": 2,
    "prefill_replicas": 2,
    "decode_replicas": 3,
    "input_tokens": 2000,
    "output_tokens": 200,
    "concurrency": 64,
    "front_end_ms": 0,
    "front_end_token_us": 0,
}


def run(*changes: dict[str, object]) -> pd.DataFrame:
    frame = pd.DataFrame([{**BASE, "case_id": f"case-{at}", **each} for at, each in enumerate(changes)])
    found = predict(frame, Path())
    assert found["status"].tolist() == ["ok"] * len(changes), found["reason"].tolist()
    return found


def peaks() -> tuple[float, float]:
    """Requests a second that all prefill and all decode replicas complete alone."""
    prefill = run({"mode": "prefill", "tp": 2, "batch": 8, **_ALONE})["requests_per_s"][0]
    batches = [{"mode": "decode", "input_tokens": 2100, "batch": 2**power, **_ALONE} for power in range(11)]
    decode = run(*batches)["requests_per_s"].max()
    return 2 * prefill, 3 * decode


_ALONE: dict[str, object] = dict.fromkeys(
    (
        "prefill_tp",
        "prefill_replicas",
        "decode_replicas",
        "concurrency",
        "front_end_ms",
        "front_end_token_us",
    )
)
"""Columns of the deployment that single steps do not have."""


@examples(25, 4, 12)
@given(st.integers(1, 4000), st.integers(1, 4000))
def test_more_clients_never_lower_the_rate_which_stays_below_the_peaks(one: int, other: int) -> None:
    fewer, more = sorted((one, other))
    found = run({"concurrency": fewer}, {"concurrency": more})
    rates, tpots = found["requests_per_s"], found["tpot_ms"]
    assert rates[0] <= rates[1] * (1 + 1e-6)
    assert tpots[0] <= tpots[1] * (1 + 1e-4)
    prefill, decode = peaks()
    assert rates[1] <= prefill * (1 + 1e-9)
    assert rates[1] <= decode * 1.05
    # By Little's law all clients are somewhere.
    for at, clients in enumerate((fewer, more)):
        around_s = (found["ttft_ms"][at] + 199 * tpots[at]) / 1e3
        assert rates[at] * around_s == pytest.approx(clients, rel=0.01)


def test_one_client_meets_idle_replicas() -> None:
    alone = run({"concurrency": 1})
    prefill = run({"mode": "prefill", "tp": 2, "batch": 1, **_ALONE})["ttft_ms"][0]
    decode = run({"mode": "decode", "input_tokens": 2100, "batch": 1, **_ALONE})["tpot_ms"][0]
    assert alone["tpot_ms"][0] == pytest.approx(decode)
    cache_ms = 2000 * 2 * 8 * 128 * 2 * 80 / (2 * 50e6)
    # The formula of the queue counts half of the share that prompts have of the loop, here 5 %.
    assert alone["ttft_ms"][0] == pytest.approx(prefill + cache_ms, rel=0.03)


def test_what_the_servers_hold_back_is_seen_late() -> None:
    found = run({}, {"streamed_tokens": 20})
    assert found["ttft_ms"][1] == pytest.approx(found["ttft_ms"][0] + 19 * found["tpot_ms"][0])
    assert found["tpot_ms"][1] == pytest.approx(found["tpot_ms"][0] * 180 / 199)
    assert found["requests_per_s"][0] == found["requests_per_s"][1]


def test_a_benchmark_holds_the_burst_at_its_start() -> None:
    # Replicas enough that prompts do not fill them in the long run.
    wide = {"prefill_replicas": 4}
    found = run(wide, {**wide, "n_requests": 64 * 10}, {**wide, "n_requests": 64})
    assert found["ttft_ms"][0] < found["ttft_ms"][1] < found["ttft_ms"][2]
    # 16 prompts a rank, eight an iteration: one and a half iterations in the mean.
    iteration = run({"mode": "prefill", "tp": 2, "batch": 8, **_ALONE})["ttft_ms"][0]
    assert found["ttft_ms"][2] == pytest.approx((16 / 8 + 1) / 2 * iteration, rel=0.05)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mode": "closed_loop"}, "prefill_tp: has no effect in closed_loop mode"),
        ({"prefill_tp": 3}, "prefill_tp: .*3"),
        ({"decode_replicas": 0}, "decode_replicas: 0 is not a whole number from 1"),
        ({"output_tokens": None}, "output_tokens: at least 1 is needed"),
        ({"concurrency": None}, "concurrency: missing"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change: dict[str, object], reason: str) -> None:
    found = predict(pd.DataFrame([{**BASE, **change}]), Path())
    assert found["status"].tolist() == ["rejected"]
    assert found["reason"].str.contains(reason).all(), found["reason"].tolist()


@pytest.mark.parametrize("every", first_parts((3, 1), 1))
def test_published_deployments_with_stated_replicas(every: int) -> None:
    path = packaged_file()
    if path is None:
        pytest.skip("aiconfigurator-core is not installed")
    rows = disaggregated_rows(path)
    # 274 count their replicas; 7 of them do not say how many clients there were.
    assert (len(rows), int(rows["stated"].sum())) == (1602, 267)
    found = predicted_pools(rows[::every].reset_index(drop=True), Path())
    assert (found["status"] == "ok").all()
    tpot, ttft = (found[f"{name}_error"].abs() for name in ("tpot", "ttft"))
    assert tpot.median() <= 0.08
    assert tpot.quantile(0.9) <= 0.25
    assert ttft.median() <= 0.35
