"""Recurrent states have slots of their own under SGLang, which limit the requests that run at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving import Load, cache_limit, default_scheduling
from fleetplan.perfmodel.steps import Software, StepShape, state_slots
from fleetplan.perfmodel.steps.host_gaps import SYNCHRONOUS_GAP
from fleetplan.perfmodel.steps.memory import state_gib_per_sequence
from fleetplan.perfmodel.steps.state_slots import STATE_SLOTS

HYBRID, NEMOTRON, DENSE = "Qwen/Qwen3.6-27B", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", "qwen3-32b"
ONE = Parallelism(1, 1, 1, 1, 1)


def slots_of(model: str, month: str = "", vendor: str = "NVIDIA", framework: str = "sglang") -> object:
    found = state_slots(framework, vendor, load_architecture(model, Path()), month)
    return None if found is None else (found.slots, found.pipeline_slots, found.overlaps_host)


@pytest.mark.parametrize(
    ("model", "month", "vendor", "expected"),
    [
        (HYBRID, "2025-10", "NVIDIA", None),
        (HYBRID, "2025-11", "NVIDIA", (3, 3, False)),
        (HYBRID, "2026-06", "NVIDIA", (3, 3, False)),
        (HYBRID, "2026-07", "NVIDIA", (5, 4, True)),
        (HYBRID, "", "NVIDIA", (5, 4, True)),
        (HYBRID, "", "AMD", (3, 3, False)),
        # Mamba-2 had no prefix cache for two months more.
        (NEMOTRON, "2025-12", "NVIDIA", None),
        (NEMOTRON, "2026-01", "NVIDIA", (3, 3, False)),
        (DENSE, "", "NVIDIA", None),
    ],
)
def test_slots_of_a_request_by_month_model_and_vendor(
    model: str, month: str, vendor: str, expected: object
) -> None:
    assert slots_of(model, month, vendor) == expected


def test_others_and_servers_without_prefixes_share_the_memory() -> None:
    assert slots_of(HYBRID, framework="vllm") is slots_of(HYBRID, framework="trtllm") is None
    architecture = load_architecture(HYBRID, Path())
    assert state_slots("sglang", "NVIDIA", architecture, prefix_cache=False) is None


def test_every_size_names_its_source() -> None:
    assert all(row.source and row.memory_ratio > 0 for row in STATE_SLOTS)


def evaluator(
    model: str = HYBRID, hbm_gib: float | None = None, software: Software | None = None, vendor: str = ""
) -> Evaluator:
    part = accelerators()["H200-SXM"]
    part = replace(part, hbm_gib=part.hbm_gib if hbm_gib is None else hbm_gib, vendor=vendor or part.vendor)
    precision = Precision("bf16", "bf16")
    return build_evaluator(model, part, "sglang", precision, Path(), software=software or Software())


def most(built: Evaluator, layout: Parallelism = ONE, input_tokens: int = 1000, output: int = 1000) -> int:
    """Sequences of a rank and micro-batch that the memory holds."""

    def one(value: int) -> np.ndarray:
        return np.array([value], dtype=np.int64)

    scheduling = default_scheduling("sglang", built.accelerator)
    load = Load(Layouts.of([layout]), one(input_tokens), one(0), one(output), scheduling)
    return int(cache_limit(built, load, np.array([4000.0]))[0][0])


def test_a_state_is_as_large_as_servers_print_it() -> None:
    # 13.5 GiB of 257 slots of Kimi-K3 on eight accelerators (sgl-project/sglang@305c272, compute-mamba-
    # ratio), 15.9 GiB of 435 slots of Qwen3.5-122B on four (issue 25993). Ours has convolutions in FP32.
    for model, tp, published_gib in (
        ("moonshotai/Kimi-K3", 8, 13.5 / 257),
        ("Qwen/Qwen3.5-122B-A10B", 4, 15.9 / 435),
    ):
        architecture = load_architecture(model, Path())
        state = state_gib_per_sequence(architecture, Layouts.of([Parallelism(1, tp, 1, tp, 1)]))
        assert float(state[0]) == pytest.approx(published_gib, rel=0.04)


@pytest.mark.parametrize(
    ("model", "tp", "slots", "requests"),
    # Boot logs: the same page and sgl-project/sglang issue 38846.
    [("moonshotai/Kimi-K3", 8, 257, 51), ("moonshotai/Kimi-K3", 8, 451, 90), (HYBRID, 1, 47, 9)],
)
def test_requests_are_those_of_published_servers(model: str, tp: int, slots: int, requests: int) -> None:
    layouts = Layouts.of([Parallelism(1, tp, 1, tp, 1)])
    built = evaluator(model)
    state = state_gib_per_sequence(built.architecture, layouts)
    # The pool of so many slots, one that pads batches, and the cache beside them.
    room = (slots + 1.5) * state * 1.9 / 0.9
    assert built.most_states(layouts, room).tolist() == [requests]


def test_slots_and_tokens_split_the_memory() -> None:
    built = evaluator()
    shape = StepShape(Layouts.of([ONE]), *(np.array([each]) for each in (1, 1000, 0, 10, 1000)))
    sequences, tokens = np.array([10]), np.array([1000])
    use = built.memory(shape, sequences, tokens)
    state = float(state_gib_per_sequence(built.architecture, Layouts.of([ONE]))[0])
    assert float(np.asarray(use.slots_gib)[0]) == pytest.approx((5 * 10 + 1) * state * 1.9 / 0.9)
    of_tokens = 16 * 2 * 4 * 256 * 2 * 10 * 1000 / 2**30
    assert use.kv_gib[0] == pytest.approx(1.9 * of_tokens)
    assert use.total_gib[0] - use.without_kv_gib[0] == pytest.approx(float(np.asarray(use.slots_gib)[0]))
    shared = built.generating().memory(shape, sequences, tokens)
    assert shared.kv_gib[0] == pytest.approx(of_tokens + 10 * state)


def test_the_pool_that_ends_first_limits_the_batch() -> None:
    built = evaluator()
    layouts = Layouts.of([ONE])
    by_slots, by_tokens = most(built), most(built, input_tokens=100_000)
    assert by_slots == most(built, input_tokens=2000)
    assert by_tokens < by_slots
    room = np.array([built.accelerator.hbm_gib * 0.9 - 51.0])
    assert by_slots == pytest.approx(built.most_states(layouts, room)[0], abs=2)


@settings(max_examples=40, deadline=None)
@given(
    model=st.sampled_from([HYBRID, "Qwen/Qwen3-Next-80B-A3B-Instruct", NEMOTRON]),
    hbm_gib=st.floats(60.0, 300.0),
    more=st.floats(0.0, 100.0),
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2]),
    lengths=st.tuples(st.integers(10, 50_000), st.integers(2, 5000)),
)
def test_more_memory_never_holds_fewer(
    model: str, hbm_gib: float, more: float, tp: int, pp: int, lengths: tuple[int, int]
) -> None:
    layout = Parallelism(pp, tp, 1, tp, 1)
    small, large = (most(evaluator(model, gib), layout, *lengths) for gib in (hbm_gib, hbm_gib + more))
    assert small <= large


@examples(20, 3, 20, derandomize=True)
@given(lengths=st.tuples(st.integers(10, 20_000), st.integers(64, 2000)), tp=st.sampled_from([1, 2]))
def test_fewer_slots_never_serve_more(lengths: tuple[int, int], tp: int) -> None:
    """Without a prefix cache, with five slots a request, and with less memory for these.

    Of few tokens prompts take most of the time, and how many of them fill an iteration is not monotone.
    """
    settings_of = [
        {"prefix_cache": 0, "memory_ratio": 0.9},
        {"memory_ratio": 0.9, "software_date": "2026-07"},
        {"memory_ratio": 0.8, "software_date": "2026-07"},
        {"memory_ratio": 0.7, "software_date": "2026-07"},
    ]
    frame = pd.DataFrame(
        [
            {
                "case_id": str(place),
                "model": HYBRID,
                "hardware": "H200-SXM",
                "backend": "sglang",
                "weights": "bf16",
                "mode": "closed_loop",
                "tp": tp,
                "input_tokens": lengths[0],
                "output_tokens": lengths[1],
                "concurrency": 2000,
                **each,
            }
            for place, each in enumerate(settings_of)
        ]
    )
    found = predict(frame)
    assert (found["status"] == "ok").all(), found["reason"].tolist()
    rates = found["requests_per_s"].to_numpy()
    # How well whole prompts fill iterations is not monotone in their number.
    assert (rates[1:] / rates[:-1] - 1 <= 0.02).all(), rates


def test_three_slots_hold_more_than_five_and_one_most() -> None:
    found = [
        most(evaluator(software=software))
        for software in (Software(prefix_cache=False), Software("2026-06"), Software("2026-07"))
    ]
    assert found[0] > found[1] > found[2]
    assert found[1] / found[2] == pytest.approx(5 / 3, rel=0.05)


def test_pipelines_keep_a_slot_less() -> None:
    built = evaluator("Qwen/Qwen3-Next-80B-A3B-Instruct")
    layouts = Layouts.of([Parallelism(2, 2, 1, 2, 1), Parallelism(1, 2, 1, 2, 1)])
    of_request = built.state_slots.of_request(layouts.pp, 1)  # type: ignore[union-attr]
    assert of_request.tolist() == [4, 5]
    assert built.state_slots.of_request(layouts.pp, 4).tolist() == [8, 9]  # type: ignore[union-attr]


@pytest.mark.parametrize("pp", [1, 2, 4])
def test_sequences_that_have_slots_fit_the_memory_and_one_more_does_not(pp: int) -> None:
    """A pipeline has as many micro-batches as stages, whose sequences share the slots."""
    built = evaluator("Qwen/Qwen3-Next-80B-A3B-Instruct")
    layouts = Layouts.of([Parallelism(pp, 2, 1, 2, 1)])
    shape = StepShape(layouts, *(np.array([each]) for each in (1, 1000, 0, 10, 1000)))
    room = np.array([30.0])
    most_sequences = built.most_states(layouts, room).astype(np.int64)
    assert most_sequences[0] > 1
    needed = [
        float(np.asarray(built.memory(shape, sequences, np.array([0])).slots_gib)[0])
        for sequences in (most_sequences, most_sequences + 1)
    ]
    assert needed[0] <= room[0] < needed[1]


def case(mode: str, **more: object) -> dict[str, object]:
    return {
        "case_id": mode,
        "model": HYBRID,
        "hardware": "H200-SXM",
        "backend": "sglang",
        "weights": "bf16",
        "mode": mode,
        "tp": 1,
        "input_tokens": 1000,
        "output_tokens": 1000,
        **more,
    }


@pytest.mark.parametrize(
    ("mode", "load"), [("closed_loop", "concurrency"), ("burst", "concurrency"), ("offline", "n_requests")]
)
def test_every_loop_runs_no_more_than_there_are_slots(mode: str, load: str) -> None:
    rows = [case(mode, **{load: 1500}), case(mode, **{load: 1500, "prefix_cache": 0})]
    found = predict(pd.DataFrame(rows))
    assert (found["status"] == "ok").all(), found["reason"].tolist()
    # By Little's law, those that generate.
    running = found["requests_per_s"] * found["tpot_ms"] * 1000 / 1e3
    limit = most(evaluator())
    assert running[0] <= 1.02 * limit
    assert running[1] > 1.5 * limit


def test_an_open_loop_sustains_less_with_slots() -> None:
    rows = [case("open_loop", requests_per_s=1000), case("open_loop", requests_per_s=1000, prefix_cache=0)]
    with_slots, without = predict(pd.DataFrame(rows))["reason"].str.extract(r"at most|sustains ([\d.]+)")[0]
    assert float(with_slots) < float(without)


def test_a_server_that_generates_alone_has_none() -> None:
    pools = {"prefill_tp": 1, "prefill_replicas": 40, "decode_replicas": 1, "n_accelerators": 1}
    rows = [case("disaggregated", concurrency=400, prefix_cache=each, **pools) for each in (0, 1)]
    found = predict(pd.DataFrame(rows))
    assert (found["status"] == "ok").all(), found["reason"].tolist()
    assert found["requests_per_s"][0] == pytest.approx(found["requests_per_s"][1])


def test_steps_wait_for_the_host_where_the_cache_of_states_keeps_it_from_working_ahead() -> None:
    older, newest = (evaluator(software=Software(month)) for month in ("2026-03", "2026-08"))
    off = evaluator(software=Software("2026-03", prefix_cache=False))
    ahead = evaluator(software=Software("2026-03", iterations_ahead=1))
    none = np.array([0])
    shape = StepShape(Layouts.of([ONE]), none, none, none, np.array([20]), np.array([500]))
    waits = SYNCHRONOUS_GAP.step_ms + 20 * SYNCHRONOUS_GAP.sequence_us / 1e3
    plain = newest.step(shape).latency_ms[0]
    assert older.step(shape).latency_ms[0] == pytest.approx(plain + waits)
    assert off.step(shape).latency_ms[0] == pytest.approx(plain)
    assert ahead.step(shape).latency_ms[0] == pytest.approx(plain)
    assert not older.overlaps_host
    assert newest.overlaps_host
    scheduling = default_scheduling("sglang", older.accelerator, "2026-03", overlaps_host=False)
    assert scheduling.admission.iterations_ahead == 0


def test_a_part_of_the_memory_holds_as_much_as_a_smaller_part() -> None:
    whole = accelerators()["H200-SXM"].hbm_gib
    taken = most(evaluator(software=Software(memory_ratio=0.8)))
    assert taken < most(evaluator())
    assert taken == most(evaluator(hbm_gib=whole * 0.8 / 0.9))


def test_columns_that_are_no_settings_are_refused() -> None:
    rows = [
        case("closed_loop", concurrency=4, prefix_cache=2),
        case("closed_loop", concurrency=4, memory_ratio=1.5),
    ]
    found = predict(pd.DataFrame(rows))
    assert (found["status"] == "rejected").all()
    assert "prefix_cache" in found["reason"][0]
    assert "memory_ratio" in found["reason"][1]
