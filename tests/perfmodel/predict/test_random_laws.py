"""Random monotone laws of `predict`, and single cases that broke one.

`python -m tests.perfmodel.predict.random_laws COUNT` compares as many as asked.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.perfmodel.predict import random_laws
from tests.perfmodel.predict.random_cases import ROWS_OF_A_GROUP, random_pairs
from tests.perfmodel.predict.random_laws import beyond_the_part, broken, laws

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.predict import predict

BASE = {
    "case_id": "a",
    "backend": "vllm",
    "weights": "bf16",
    "tp": 4,
    "input_tokens": 1000,
    "output_tokens": 100,
}


def check(groups: int, seed: int, folder: Path) -> int:
    """Compare cases of random groups; return how many were compared."""
    compared = 0
    for group in range(groups):
        pairs, parts = random_pairs(ROWS_OF_A_GROUP, seed + group, folder)
        for law, cases in laws(pairs):
            found, checked = law(cases, parts, folder)
            assert found.empty, found.to_dict("records")
            compared += checked
    return compared


@pytest.mark.more
def test_what_is_better_never_takes_longer(tmp_path: Path) -> None:
    assert check(16, 1, tmp_path) >= 4000


@pytest.mark.slow
def test_what_is_better_never_takes_longer_in_ten_thousand_cases(tmp_path: Path) -> None:
    assert check(90, 20_000, tmp_path) >= 20_000


@pytest.mark.parametrize(
    ("case", "clients", "places"),
    [
        ({"model": "microsoft/Phi-3-mini-4k-instruct", "hardware": "H100-SXM", "pp": 2}, 330, 512),
        ({"model": "mistralai/Mistral-7B-v0.1", "hardware": "L4", "backend": "sglang", "pp": 4}, 584, 64),
    ],
)
def test_windows_of_attention_pass_no_peak(case: dict[str, object], clients: int, places: int) -> None:
    """With windowed attention a closed loop serves no more than generation alone."""
    row = BASE | case | {"weights": "int8", "tp": 2, "input_tokens": 59, "prefix_tokens": 2841}
    row |= {"output_tokens": 660}
    served = row | {"mode": "closed_loop", "max_sequences": places, "concurrency": clients}
    alone = [row | {"mode": "decode", "batch": each} for each in (places // 4, places // 2, places)]
    frame = pd.DataFrame([served, *alone]).assign(case_id=range(4))
    found = predict(frame)["requests_per_s"]
    assert found[0] <= 1.01 * found[1:].max()


@pytest.mark.parametrize(
    "case",
    [
        {"model": "Qwen/Qwen3-VL-2B-Instruct", "hardware": "RTX-4090", "backend": "trtllm", "weights": "int8"}
        | {"kv": "fp8", "tp": 2, "pp": 2, "input_tokens": 197, "prefix_tokens": 5070},
        {"model": "llama3-8b", "hardware": "H100-SXM", "input_tokens": 200, "prefix_tokens": 20_000},
        {"model": "llama3-8b", "hardware": "H100-SXM", "input_tokens": 1000, "prefix_tokens": 60_000},
        {"model": "gpt-oss-20b", "hardware": "H100-SXM", "input_tokens": 4000, "prefix_tokens": 60_000},
        {"model": "deepseek-v3", "hardware": "H200-SXM", "backend": "sglang", "weights": "fp8", "tp": 8}
        | {"input_tokens": 4000, "prefix_tokens": 60_000},
    ],
)
def test_prompts_after_a_prefix_pass_no_peak(case: dict[str, object]) -> None:
    """A closed loop of prompts after a prefix serves no more than prompts alone."""
    row = BASE | {"tp": 1, "output_tokens": 1} | case
    served = row | {"mode": "closed_loop", "max_batched_tokens": 4096, "concurrency": 400}
    prompt = int(str(row["input_tokens"]))
    alone = [row | {"mode": "prefill", "batch": max(1, each * 4096 // prompt)} for each in (0, 1, 2)]
    found = predict(pd.DataFrame([served, *alone]).assign(case_id=range(4)))["requests_per_s"]
    assert found[0] <= 1.01 * found[1:].max()


def test_short_prompts_that_run_apart_are_served_no_slower_among_more_of_them() -> None:
    """Latency grows with the output length, and throughput with the number of clients."""
    row = BASE | {"model": "Qwen/Qwen3.5-397B-A17B", "hardware": "TPU-7x", "backend": "sglang", "pp": 2}
    row |= {"mode": "closed_loop", "input_tokens": 283, "max_sequences": 1024, "max_batched_tokens": 2048}
    outputs, clients = [2, 3, 4, 6, 8, 12, 16, 24], [50, 100, 200, 300, 400, 600]
    loops = [{"output_tokens": each, "concurrency": 783} for each in outputs]
    loops += [{"output_tokens": 6, "concurrency": each} for each in clients]
    frame = pd.DataFrame([row | loop for loop in loops]).assign(case_id=range(len(loops)))
    found = predict(frame)
    assert found["latency_ms"][: len(outputs)].is_monotonic_increasing
    assert found["requests_per_s"][len(outputs) :].is_monotonic_increasing


@pytest.mark.parametrize(
    ("served", "column", "less_and_more"),
    [
        (
            {"model": "zai-org/GLM-4.6", "hardware": "MI325X", "pp": 4, "max_sequences": 1024}
            | {"max_batched_tokens": 16_384, "input_tokens": 234, "output_tokens": 1, "prefix_tokens": 4207},
            "concurrency",
            (540, 1159),
        ),
        (
            {"model": "nvidia/Nemotron-H-56B-Base-8K", "hardware": "H20-SXM", "backend": "trtllm", "pp": 2}
            | {"weights": "mxfp4", "max_sequences": 16, "input_tokens": 276, "output_tokens": 1},
            "concurrency",
            (9, 11),
        ),
        (
            {"model": "HuggingFaceTB/SmolLM2-1.7B", "hardware": "H20-SXM", "weights": "mxfp4", "pp": 2}
            | {"max_sequences": 256, "max_batched_tokens": 2048, "input_tokens": 9157, "output_tokens": 50},
            "concurrency",
            (182, 521),
        ),
        (
            {"model": "Qwen/Qwen3.5-4B", "hardware": "MI300X", "weights": "int4", "tp": 8}
            | {"max_sequences": 128, "max_batched_tokens": 2048, "input_tokens": 879, "concurrency": 1777},
            "output_tokens",
            (91, 117),
        ),
        (
            {"model": "deepseek-ai/DeepSeek-V4-Pro", "hardware": "TPU-7x", "tp": 16, "pp": 4}
            | {"max_sequences": 128, "max_batched_tokens": 4096, "input_tokens": 10_031, "concurrency": 159},
            "output_tokens",
            (11, 14),
        ),
    ],
)
def test_loops_serve_more_with_less_to_do(
    served: dict[str, object], column: str, less_and_more: tuple[int, int]
) -> None:
    """A closed loop serves more requests with shorter answers or more clients."""
    row = BASE | {"backend": "sglang", "kv": "fp8", "mode": "closed_loop"} | served
    found = predict(pd.DataFrame([row | {column: each, "case_id": each} for each in less_and_more]))
    # Shorter answers are served at a higher rate, and so are more clients.
    slow, fast = found["requests_per_s"][:: -1 if column == "output_tokens" else 1]
    assert fast >= slow


def test_prompts_of_single_tokens_pass_no_peak() -> None:
    """A closed loop of single-token prompts serves no more than prompts alone, Mamba-2 states included."""
    row = BASE | {"model": "nvidia/Nemotron-H-56B-Base-8K", "hardware": "H20-SXM", "pp": 4, "input_tokens": 1}
    row |= {"output_tokens": 1}
    loops = [
        row | {"mode": "closed_loop", "max_sequences": 2048, "concurrency": each} for each in (512, 2048)
    ]
    alone = [row | {"mode": "prefill", "batch": each} for each in (256, 512, 1024, 4096)]
    found = predict(pd.DataFrame(loops + alone).assign(case_id=range(6)))["requests_per_s"]
    assert found[:2].max() <= found[2:].max()


def test_the_laws_find_a_part_whose_bandwidth_makes_it_slower(tmp_path: Path) -> None:
    pairs, parts = random_pairs(30, 41, tmp_path, 30)
    pairs = [pair for pair in pairs if pair.better["hardware"] != pair.row["hardware"]]
    better = {pair.better["hardware"] for pair in pairs} - {pair.row["hardware"] for pair in pairs}
    assert better
    worse = {name: accelerators()["TPU-v6e"] if name in better else part for name, part in parts.items()}
    assert not broken(pairs, worse, tmp_path)[0].empty


def test_the_laws_find_tokens_that_come_before_their_weights_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, parts = random_pairs(30, 41, tmp_path, 30)
    found, compared = beyond_the_part(pairs, parts, tmp_path)
    assert found.empty
    assert compared
    parameters = random_laws._parameters_met
    monkeypatch.setattr(random_laws, "_parameters_met", lambda *model: 10 * parameters(*model))
    assert not beyond_the_part(pairs, parts, tmp_path)[0].empty


def test_all_requests_at_once_take_as_long_as_the_last_one() -> None:
    """The duration of a burst is that of its last request, not of the mean request."""
    row = BASE | {"model": "llama3-70b", "hardware": "H100-SXM", "mode": "offline", "n_requests": 3000}
    found = predict(pd.DataFrame([row]))
    assert found["latency_ms"][0] == pytest.approx(3000 / found["requests_per_s"][0] * 1e3)


@pytest.mark.more
def test_a_faster_part_misses_no_request_of_an_offline_run(tmp_path: Path) -> None:
    """More FLOPS never lengthen an offline run."""
    part = accelerators()["GB200-NVL72"]
    figures = {name: getattr(part, name) for name in ("bf16_tflops", "fp8_tflops", "fp4_tflops", "int8_tops")}
    row = BASE | {"model": "gpt-oss-20b", "kv": "fp8", "tp": 1, "dp": 4, "ep": 4, "mode": "offline"}
    row |= {"max_sequences": 256, "max_batched_tokens": 16384, "input_tokens": 238, "output_tokens": 9}
    parts, rows = {}, []
    for factor in (1.0, 1.05, 1.2, 1.5, 2.0, 4.0):
        faster = {name: value * factor for name, value in figures.items() if value is not None}
        parts[f"faster {factor}"] = replace(part.with_figures(**faster), name=part.name)
        for requests in (5, 20, 52, 200):
            rows.append(row | {"n_requests": requests, "hardware": f"faster {factor}"})
    frame = pd.DataFrame(rows).assign(case_id=[str(each) for each in range(len(rows))])
    found = predict(frame, tmp_path, parts=parts)["latency_ms"].to_numpy().reshape(6, 4)
    assert (found[1:] <= found[:-1] * (1 + 1e-9)).all()


def test_a_burst_of_single_tokens_serves_no_more_than_prompts_alone() -> None:
    """A burst ends with its last prompt, so it serves no more than prompts alone."""
    row = BASE | {"model": "llama3-8b", "hardware": "MI325X", "input_tokens": 8000, "output_tokens": 1}
    together = predict(pd.DataFrame([row | {"mode": "burst", "concurrency": 64}]))
    alone = predict(pd.DataFrame([row | {"mode": "prefill", "batch": batch} for batch in (1, 2, 4)]))
    assert together["requests_per_s"][0] <= 1.01 * alone["requests_per_s"].max()


def test_clients_beyond_the_batch_wait_no_less_than_those_within() -> None:
    """Clients beyond the places of the batch pay for the front end too."""
    row = BASE | {"model": "qwen3-next-80b", "hardware": "MI355X", "input_tokens": 27, "output_tokens": 2}
    loop = row | {"mode": "closed_loop", "max_sequences": 128}
    clients = [32, 64, 100, 127, 128, 129, 151, 200, 400, 1000]
    found = predict(pd.DataFrame([loop | {"concurrency": each, "case_id": each} for each in clients]))
    assert found["latency_ms"].is_monotonic_increasing
    assert (found["requests_per_s"].diff().dropna() >= -1e-3 * found["requests_per_s"][0]).all()


def test_tokens_come_no_slower_at_a_smaller_rate() -> None:
    """An iteration with a mean below one sequence costs what one sequence costs, not what prompts cost."""
    row = BASE | {"model": "nemotron-3-nano", "hardware": "H200-SXM", "mode": "open_loop", "tp": 1, "dp": 4}
    rates = [0.05, 0.5, 1.0, 2.0, 4.0, 8.0]
    rows = [row | {"ep": 4, "requests_per_s": rate, "case_id": rate} for rate in rates]
    assert predict(pd.DataFrame(rows))["tpot_ms"].is_monotonic_increasing


def test_a_short_prefix_spares_no_launch_of_attention() -> None:
    """A prompt after any prefix pays every launch of attention that it pays without one."""
    row = BASE | {"model": "gpt-oss-20b", "hardware": "B200-SXM", "mode": "closed_loop", "concurrency": 25}
    prefixes = [0, 2, 8, 15, 16, 32, 200]
    rows = [row | {"input_tokens": 117, "output_tokens": 9, "prefix_tokens": each} for each in prefixes]
    assert predict(pd.DataFrame(rows).assign(case_id=prefixes))["latency_ms"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("part", "model", "kv"),
    [
        ("B200-SXM", "gpt-oss-20b", "bf16"),
        ("Arc-Pro-B60", "gemma3-12b", "fp8"),
        ("Arc-Pro-B60", "llama3-8b", "fp8"),
    ],
)
def test_prompts_take_no_less_after_a_longer_prefix(part: str, model: str, kv: str) -> None:
    """A longer prefix never shortens a prompt."""
    row = BASE | {"model": model, "hardware": part, "kv": kv, "tp": 1, "mode": "closed_loop"}
    backend = "trtllm" if model == "gemma3-12b" else "vllm"
    prefixes = [0, 16, 19, 27, 64, 91, 128, 181, 256]
    for prompt in (30, 200):
        rows = [
            row | {"backend": backend, "input_tokens": prompt, "output_tokens": 9, "prefix_tokens": each}
            for each in prefixes
        ]
        found = predict(pd.DataFrame(rows).assign(case_id=prefixes, concurrency=25))["latency_ms"]
        assert (found.to_numpy()[1:] >= (1 - 1e-3) * found.cummax().to_numpy()[:-1]).all()


def test_a_faster_network_makes_no_dispatch_slower() -> None:
    """A faster network never slows a dispatch, and the catalogue's own network changes nothing."""
    part, parts = accelerators()["H20-SXM"], {}
    assert part.scale_out_gb_per_s is not None
    for factor in (1.0, 1.5, 4.0):
        faster = part.with_figures(scale_out_gb_per_s=part.scale_out_gb_per_s * factor)
        parts[f"network*{factor}"] = replace(faster, name=part.name)
    row = BASE | {"model": "deepseek-v3", "weights": "fp8", "tp": 1, "dp": 16, "ep": 16, "mode": "decode"}
    rows = [row | {"hardware": name, "batch": batch} for batch in (1, 64) for name in parts]
    frame = pd.DataFrame(rows).assign(case_id=range(6))
    found = predict(frame, Path(), parts=parts)["latency_ms"].to_numpy().reshape(2, 3)
    assert (found[:, 1:] < found[:, :-1]).all()
    # As measured: the catalogue's own network changes nothing.
    own = predict(frame.assign(hardware="H20-SXM"), Path())["latency_ms"].to_numpy().reshape(2, 3)
    assert own[:, 0] == pytest.approx(found[:, 0])


def test_a_burst_whose_last_requests_wait_takes_no_less_than_a_smaller_one() -> None:
    """Requests of a second wave wait for the first wave, and for the front end."""
    row = BASE | {"model": "llama3-8b", "hardware": "MI300X", "mode": "burst", "max_sequences": 32}
    sizes = [100, 120, 128, 129, 132, 140, 146, 192, 256, 400]
    row |= {"pp": 4, "input_tokens": 2577, "output_tokens": 850}
    rows = [row | {"concurrency": each, "case_id": each} for each in sizes]
    found = predict(pd.DataFrame(rows))["latency_ms"]
    assert found.is_monotonic_increasing


def test_a_loop_has_the_same_answer_beside_ranks_of_attention_data_parallelism() -> None:
    """A closed loop has the same latency whichever rows are predicted with it."""
    row = BASE | {"model": "gpt-oss-120b", "hardware": "NextGen-Pod", "backend": "sglang", "tp": 8}
    row |= {"mode": "closed_loop", "input_tokens": 11_257, "output_tokens": 15, "concurrency": 57}
    row |= {"max_sequences": 128, "max_batched_tokens": 2048, "pp": 2}
    beside = row | {"tp": 1, "dp": 8, "ep": 8, "pp": 1, "case_id": "b"}
    alone, together = predict(pd.DataFrame([row])), predict(pd.DataFrame([row | {"ep": 1, "dp": 1}, beside]))
    assert together["status"].eq("ok").all()
    assert together["latency_ms"][0] == pytest.approx(alone["latency_ms"][0])
