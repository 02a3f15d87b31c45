"""Chunked prefill, kept sessions, and the way of the cache to decode, against calculations by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.parts import first_of
from tests.perfmodel.fakes import (
    CountingSource,
    WorkSource,
    accelerator,
    configurations,
    dense_model,
    mixture_model,
    whole,
)

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import (
    ExpertRouting,
    KvTier,
    KvTransfer,
    Offload,
    PersistentKv,
    Precision,
    SpeculativeDecoding,
    Techniques,
)
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import RequestShape
from fleetplan.perfmodel.landscape.grid import full_grid
from fleetplan.perfmodel.operators import attended_pairs
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.perfmodel.steps import decode_shape, mixed_shape, prefill_shape, steady_shape
from fleetplan.perfmodel.techniques.chunked_prefill import chunks_of
from fleetplan.perfmodel.techniques.session_cache import held_sessions, resident_gib, tier_hits

BF16 = Precision("bf16", "bf16")
DENSE_KV_BYTES_PER_TOKEN = 4 * 2 * 2 * 64 * 2
"""4 layers, keys and values, 2 heads of 64, 2 bytes."""


def evaluator(**switches: object) -> Evaluator:
    techniques = Techniques(**switches)  # type: ignore[arg-type]
    return Evaluator(dense_model(), accelerator(), WorkSource(), BF16, techniques=techniques)


@examples(100, 10, 25)
@given(st.integers(1, 64), st.integers(1, 500), st.integers(0, 10_000))
def test_equal_chunks_attend_to_as_many_pairs_as_the_whole_prompt(count: int, size: int, prefix: int) -> None:
    chunks = chunks_of(whole(count * size), whole(prefix), size)
    assert (chunks.count.tolist(), chunks.new_tokens.tolist()) == ([count], [size])
    none = whole(0)
    one_by_one = sum(
        float(attended_pairs(whole(size), whole(prefix + at * size), none)[0]) for at in range(count)
    )
    assert one_by_one == attended_pairs(whole(count * size), whole(prefix), none)[0]
    mean = count * attended_pairs(whole(size), chunks.prefix_tokens, none)[0]
    # The mean prefix is rounded down to whole tokens.
    assert mean == pytest.approx(one_by_one, abs=count * size / 2)


def test_a_chunked_prompt_takes_its_chunks_one_after_the_other() -> None:
    batch = configurations(("TP1",), (1,), input_tokens=2048)
    plain = evaluator()
    chunk = replace(prefill_shape(batch), new_tokens=whole(512), prefix_tokens=whole(768))
    found = evaluator(chunk_tokens=512).prefill(batch)
    assert found.ttft_ms[0] == pytest.approx(4 * plain.step(chunk).latency_ms[0])
    assert found.requests_per_s[0] == pytest.approx(1000 / found.ttft_ms[0])
    assert found.by_provenance_ms.sum(axis=0) == pytest.approx(found.ttft_ms)


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
def test_chunks_of_a_prompt_follow_each_other_through_a_pipeline(framework: str) -> None:
    part = accelerators()["MI300X"]
    one = build_evaluator(
        "llama3-70b", part, framework, Precision("fp8", "fp8"), Path(), Techniques(chunk_tokens=4096)
    )
    stages = (1, 2, 4)
    batch = configurations(("TP8", "PP2-TP8", "PP4-TP8"), (1, 1, 1), input_tokens=65_536)
    found = one.prefill(batch)
    for row, count in enumerate(stages):
        shape = prefill_shape(configurations((f"PP{count}-TP8",), (1,), input_tokens=65_536))
        chunks = [
            float(one.step(replace(shape, new_tokens=whole(4096), prefix_tokens=whole(at))).latency_ms[0])
            for at in range(0, 65_536, 4096)
        ]
        # Each stage begins a chunk when it has finished the one before, and the stage before has finished it.
        free = [0.0] * count
        for took in chunks:
            done = 0.0
            for stage in range(count):
                done = free[stage] = max(done, free[stage]) + took / count
        expected = sum(chunks) if framework == "trtllm" else free[-1]
        assert found.ttft_ms[row] == pytest.approx(expected, rel=0.03)
        # What a stage is busy with is the same.
        assert found.requests_per_s[row] == pytest.approx(1000 * count / sum(chunks), rel=0.03)


def test_a_chunk_as_long_as_the_prompt_changes_nothing() -> None:
    batch = configurations(("TP1", "TP8"), (1, 4), input_tokens=2048)
    for phase in ("prefill", "decode"):
        chunked, plain = (getattr(each, phase)(batch) for each in (evaluator(chunk_tokens=2048), evaluator()))
        assert chunked.latency_ms.tolist() == plain.latency_ms.tolist()


def test_chunks_share_iterations_with_decode() -> None:
    # 30 sequences of 4 iterations of prompt and 149 of decode: 0.196 prompts are due, each takes 4 of them.
    batch = configurations(("TP1",), (30,), input_tokens=2048, context_tokens=2123, output_tokens=150)
    plain = evaluator()
    decode_ms = plain.step(decode_shape(batch)).latency_ms[0]
    chunk = replace(steady_shape(batch, whole(1)), new_tokens=whole(512), prefix_tokens=whole(768))
    carrying_ms = plain.step(chunk).latency_ms[0]
    found = evaluator(chunk_tokens=512).aggregated(batch)
    carrying = 4 * 30 / 153
    assert found.tpot_ms[0] == pytest.approx((1 - carrying) * decode_ms + carrying * carrying_ms)
    assert found.ttft_ms[0] == pytest.approx(4 * carrying_ms)
    assert found.requests_per_s[0] == pytest.approx(30_000 / (found.ttft_ms[0] + 149 * found.tpot_ms[0]))
    # No iteration is as long as the one that carries a whole prompt: that is what chunks are for.
    assert carrying_ms < plain.aggregated(batch).ttft_ms[0]


def test_prompts_set_the_rate_where_chunks_cannot_keep_up() -> None:
    # 75 sequences of 150 tokens: half a prompt is due an iteration, and each takes 4. So a request starts
    # every fourth iteration, and 149 / 4 of them generate.
    batch = configurations(("TP1",), (75,), input_tokens=2048, context_tokens=2123, output_tokens=150)
    found = evaluator(chunk_tokens=512).aggregated(batch)
    chunk = mixed_shape(batch, whole(1), whole(38))
    chunk = replace(chunk, new_tokens=whole(512), prefix_tokens=whole(768))
    carrying_ms = evaluator().step(chunk).latency_ms[0]
    assert found.tpot_ms[0] == pytest.approx(carrying_ms)
    assert found.requests_per_s[0] == pytest.approx(1000 / (4 * carrying_ms))
    # Little's law: 75 requests are in the system.
    in_system_s = (found.ttft_ms[0] + 149 * found.tpot_ms[0]) / 1000
    assert found.requests_per_s[0] * in_system_s == pytest.approx(75)


def test_short_prompts_share_a_chunk() -> None:
    # 300 sequences of 10 tokens: 30 prompts are due an iteration, and 8 of 64 fit 512 tokens.
    batch = configurations(("TP1",), (300,), input_tokens=64, context_tokens=69, output_tokens=10)
    found = evaluator(chunk_tokens=512).aggregated(batch)
    # Eight an iteration keep 72 generating.
    carrying_ms = evaluator().step(mixed_shape(batch, whole(8), whole(72))).latency_ms[0]
    assert found.requests_per_s[0] == pytest.approx(8000 / carrying_ms)


def test_chunks_need_less_memory_for_activations() -> None:
    batch = configurations(("TP1",), (1,), input_tokens=65_536)
    chunked, plain = evaluator(chunk_tokens=2048).prefill_memory(batch), evaluator().prefill_memory(batch)
    assert chunked.activations_gib[0] < plain.activations_gib[0] / 16
    assert chunked.kv_gib == plain.kv_gib


TIERS = (KvTier("hbm", 10.0, None), KvTier("dram", 20.0, 50.0), KvTier("flash", 1000.0, 5.0))


def test_sessions_fill_the_tiers_in_order() -> None:
    persistent = PersistentKv(hit_ratio=0.8, sessions_per_accelerator=100, tiers=TIERS)
    session = np.array([0.5, 0.1, 20.0])
    assert np.stack(held_sessions(persistent, session)).T.tolist() == [
        [20.0, 40.0, 40.0],
        [100.0, 0.0, 0.0],
        [0.5, 1.0, 50.0],
    ]
    assert resident_gib(persistent, session).tolist() == pytest.approx([10.0, 10.0, 10.0])
    hits = tier_hits(persistent, session, whole(2, 2, 2), np.array([8.0, 8.0, 8.0]))
    assert [float(each.hit_ratio[0]) for each in hits] == pytest.approx([0.16, 0.32, 0.32])
    # What no tier holds is lost: half of the third session kind.
    assert sum(float(each.hit_ratio[2]) for each in hits) == pytest.approx(0.8 * 0.515)
    # Two sessions of half a GiB over 8 links of 50 GB/s.
    assert hits[1].load_ms[0] == pytest.approx(2 * 0.5 * 2**30 / (8 * 50e6))
    assert hits[0].load_ms.tolist() == [0.0, 0.0, 0.0]


def sessions(hit_ratio: float, gb_per_s: float) -> Evaluator:
    tier = KvTier("dram", 1e6, gb_per_s)
    return evaluator(persistent_kv=PersistentKv(hit_ratio, 10.0, (tier,)))


def test_a_hit_loads_and_a_miss_computes_the_whole_prompt() -> None:
    batch = configurations(("TP1",), (1,), input_tokens=1000, prefix_tokens=7000)
    cold = replace(batch, input_tokens=whole(8000), prefix_tokens=whole(0))
    warm_ms, cold_ms = (evaluator().prefill(each).ttft_ms[0] for each in (batch, cold))
    load_ms = 7000 * DENSE_KV_BYTES_PER_TOKEN / 50e6
    found = sessions(0.75, 50.0).prefill(batch)
    assert found.ttft_ms[0] == pytest.approx(0.75 * (warm_ms + load_ms) + 0.25 * cold_ms)
    assert found.by_provenance_ms.sum(axis=0) == pytest.approx(found.ttft_ms)
    assert found.names[-1] == "session_load"
    assert sessions(0.0, 50.0).prefill(batch).ttft_ms[0] == pytest.approx(cold_ms)


def test_what_is_slower_to_load_is_computed_again() -> None:
    batch = configurations(("TP1",), (1,), input_tokens=1000, prefix_tokens=7000)
    cold = replace(batch, input_tokens=whole(8000), prefix_tokens=whole(0))
    cold_ms = evaluator().prefill(cold).ttft_ms[0]
    warm_ms = evaluator().prefill(batch).ttft_ms[0]
    even_gb_per_s = 7000 * DENSE_KV_BYTES_PER_TOKEN / 1e6 / (cold_ms - warm_ms)
    assert sessions(1.0, 0.9 * even_gb_per_s).prefill(batch).ttft_ms[0] == pytest.approx(cold_ms)
    assert sessions(1.0, 1.1 * even_gb_per_s).prefill(batch).ttft_ms[0] < cold_ms


def test_kept_sessions_take_memory_where_they_are_in_hbm() -> None:
    batch = configurations(("TP1",), (1,), input_tokens=1000, prefix_tokens=7000)
    persistent = PersistentKv(0.5, 20.0, (KvTier("hbm", 50.0, None),))
    kept = evaluator(persistent_kv=persistent).prefill_memory(batch).kv_gib
    session_gib = 7000 * DENSE_KV_BYTES_PER_TOKEN / 2**30
    assert kept - evaluator().prefill_memory(batch).kv_gib == pytest.approx(20 * session_gib)


def test_sessions_in_continuous_batching() -> None:
    batch = configurations(("TP1",), (30,), input_tokens=1000, prefix_tokens=7000, output_tokens=150)
    found = [sessions(hit_ratio, 50.0).aggregated(batch) for hit_ratio in (0.0, 0.5, 1.0)]
    assert found[0].requests_per_s[0] < found[1].requests_per_s[0] < found[2].requests_per_s[0]
    always = evaluator().aggregated(batch)
    load_ms = 7000 * DENSE_KV_BYTES_PER_TOKEN / 50e6
    assert found[2].ttft_ms[0] == pytest.approx(always.ttft_ms[0] + load_ms)
    assert found[2].tpot_ms[0] == pytest.approx(always.tpot_ms[0])


def test_the_cache_travels_over_all_links_of_the_replica() -> None:
    batch = configurations(("TP4",), (1,), input_tokens=2048)
    sent_bytes = 2048 * DENSE_KV_BYTES_PER_TOKEN
    assert evaluator().kv_transfer_ms(batch)[0] == pytest.approx(sent_bytes / (4 * 50e6))
    stated = evaluator(kv_transfer=KvTransfer(gb_per_s=10.0))
    assert stated.kv_transfer_ms(batch)[0] == pytest.approx(sent_bytes / (4 * 10e6))


def test_an_overlapped_transfer_hides_behind_the_prompt() -> None:
    batch = configurations(("TP4",), (1,), input_tokens=2048)
    overlapped = evaluator(kv_transfer=KvTransfer(overlap=True))
    sent_ms = evaluator().kv_transfer_ms(batch)[0]
    slow, fast = np.array([100 * sent_ms]), np.array([0.4 * sent_ms])
    # The last of 4 layers is never hidden; of a fast prompt three quarters hide their own length.
    assert overlapped.kv_transfer_ms(batch, slow)[0] == pytest.approx(sent_ms / 4)
    assert overlapped.kv_transfer_ms(batch, fast)[0] == pytest.approx(0.7 * sent_ms)
    with pytest.raises(ValueError, match="needs the time of the prompt"):
        overlapped.kv_transfer_ms(batch)


def test_switched_off_nothing_is_computed_twice() -> None:
    batch = configurations(("TP1",), (1,))
    source = CountingSource()
    Evaluator(dense_model(), accelerator(), source, BF16).prefill(batch)
    kinds = [(kind, dtype) for kind, dtype, _ in source.asked]
    assert len(kinds) == len(set(kinds))


def test_the_links_of_a_rank_send_the_prompts_of_its_micro_batch() -> None:
    one, four = (configurations((label,), (batch,)) for label, batch in (("TP4", 1), ("TP4DP2-TP8", 4)))
    plain = evaluator()
    assert plain.kv_transfer_ms(four)[0] == pytest.approx(4 * plain.kv_transfer_ms(one)[0])
    # Two ranks of four links each.
    sent_bytes = 2048 * DENSE_KV_BYTES_PER_TOKEN
    assert plain.transfer_requests_per_s(four)[0] == pytest.approx(8 * 50e9 / sent_bytes)


def test_loads_overlap_with_the_prompts_of_others() -> None:
    batch = configurations(("TP1",), (1,), input_tokens=1000, prefix_tokens=7000)
    found = sessions(1.0, 50.0).prefill(batch)
    always = evaluator().prefill(batch)
    load_ms = found.ttft_ms[0] - always.ttft_ms[0]
    assert found.requests_per_s[0] == pytest.approx(1000 / max(load_ms, always.ttft_ms[0]))


SWITCHES = {
    "chunked": {"chunk_tokens": 300},
    "samples": {"samples_per_prompt": 4},
    "shared": {"shared_prefix_tokens": 500},
    "speculative": {"speculative": SpeculativeDecoding(3, 0.7, 0.05, 1.0)},
    "sessions": {
        "persistent_kv": PersistentKv(0.6, 4.0, (KvTier("hbm", 1e-3, None), KvTier("dram", 5.0, 20.0)))
    },
    "offload": {"offload": Offload(0.5, 0.5, 100.0)},
    "experts": {"experts": ExpertRouting("balanced", None, None, 0.2, "sorted")},
}


@pytest.mark.parametrize("names", first_of([list(SWITCHES), *([name] for name in SWITCHES)], 3), ids="+".join)
def test_a_cross_product_gives_the_same_numbers(names: list[str]) -> None:
    switches = {key: value for name in names for key, value in SWITCHES[name].items()}
    techniques = Techniques(**switches)  # type: ignore[arg-type]
    one = Evaluator(mixture_model(), accelerator(), WorkSource(), BF16, techniques=techniques)
    labels, batches = ("TP1", "PP2-TP2", "TP2DP2-TP2EP2"), (1, 7, 64)
    requests = (RequestShape(1000, 100, 3000), RequestShape(200, 400, 800))
    crossed = full_grid([parse_parallelism(label) for label in labels], batches, requests)
    for position, request in enumerate(requests):
        flat = configurations(
            tuple(label for label in labels for _ in batches),
            batches * len(labels),
            input_tokens=request.input_tokens,
            prefix_tokens=request.prefix_tokens,
            context_tokens=request.decode_context_tokens,
            output_tokens=request.output_tokens,
        )
        for phase in ("prefill", "decode", "aggregated"):
            wide, plain = getattr(one, phase)(crossed), getattr(one, phase)(flat)
            for name in ("ttft_ms", "tpot_ms", "requests_per_s"):
                expected = getattr(plain, name)
                found = np.broadcast_to(getattr(wide, name), (3, 3, 2))[:, :, position].ravel()
                assert found == pytest.approx(expected, nan_ok=True), (phase, name)
            held = np.broadcast_to(wide.memory.total_gib, (3, 3, 2))[:, :, position].ravel()
            assert held == pytest.approx(plain.memory.total_gib)
            assert plain.by_provenance_ms.shape == (4, 9)
            assert plain.shares.sum(axis=0) == pytest.approx(np.ones(9))
