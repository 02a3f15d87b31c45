"""Speculative decoding, samples of a prompt, shared prefixes and offload, by hand and as published."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.perfmodel.fakes import CountingSource, WorkSource, accelerator, configurations, dense_model, whole

from fleetplan.fleet.inventory import Offload, Precision, SpeculativeDecoding, Techniques
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    LatentAttention,
    LayerGroup,
    ModelArchitecture,
    load_architecture,
)
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, attended_pairs
from fleetplan.perfmodel.steps import decode_shape
from fleetplan.perfmodel.steps.memory import weights_gib
from fleetplan.perfmodel.techniques.speculative import tokens_per_step

BF16 = Precision("bf16", "bf16")
KV_BYTES_PER_TOKEN = 4 * 2 * 2 * 64 * 2
GIB = 2**30


def evaluator(source: object = None, **switches: object) -> Evaluator:
    techniques = Techniques(**switches)  # type: ignore[arg-type]
    return Evaluator(dense_model(), accelerator(), source or WorkSource(), BF16, techniques=techniques)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("acceptance", "drafted", "speedup"),
    [(0.6, 2, 1.96), (0.7, 3, 2.53), (0.8, 2, 2.44), (0.8, 5, 3.69), (0.9, 2, 2.71), (0.9, 10, 6.86)],
)
def test_speedup_of_a_free_draft_is_the_published_one(
    acceptance: float, drafted: int, speedup: float
) -> None:
    # Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding" (2023), Table 1:
    # a verifying step takes as long as an ordinary one, and the draft takes no time.
    batch = configurations(("TP1",), (8,))
    draft = SpeculativeDecoding(drafted, acceptance, 0.0)
    plain = evaluator(CountingSource()).decode(batch)
    found = evaluator(CountingSource(), speculative=draft).decode(batch)
    assert plain.tpot_ms[0] / found.tpot_ms[0] == pytest.approx(speedup, abs=0.005)
    assert found.requests_per_s[0] / plain.requests_per_s[0] == pytest.approx(speedup, abs=0.005)


@examples(100, 10, 25)
@given(st.floats(0, 1), st.integers(1, 64))
def test_a_step_gains_one_token_to_all_drafted_and_one(acceptance: float, drafted: int) -> None:
    gained = tokens_per_step(SpeculativeDecoding(drafted, acceptance, 0.0))
    assert 1 <= gained <= drafted + 1 + 1e-9
    assert tokens_per_step(SpeculativeDecoding(drafted, 1.0, 0.0)) == drafted + 1


def test_a_verifying_step_scales_the_batch_but_reads_each_cache_once() -> None:
    source = CountingSource()
    draft = SpeculativeDecoding(4, 0.8, 0.05)
    found = evaluator(source, speculative=draft).decode(configurations(("TP1",), (8,), context_tokens=4000))
    gemms = next(dims for kind, _, dims in source.asked if kind is OperatorKind.GEMM)
    assert set(gemms["m"].tolist()) == {8 * 5}
    attention = next(dims for kind, _, dims in source.asked if kind is OperatorKind.DECODE_ATTENTION)
    assert attention["batch"].tolist() == [8]
    assert attention["heads"].tolist() == [8 * 5]
    assert (attention["kv_heads"].tolist(), attention["context_tokens"].tolist()) == ([2], [4000])
    # Four drafts at a twentieth of the step each.
    assert found.tpot_ms[0] == pytest.approx(found.latency_ms[0] / 3.3616)
    verifying_ms = found.latency_ms[0] / 1.2
    assert found.by_provenance_ms.sum() == pytest.approx(1.2 * verifying_ms)


def test_drafts_pay_at_small_batches_alone() -> None:
    # With enough sequences the matrix units are busy, and what is verified in vain costs time.
    draft = SpeculativeDecoding(4, 0.6, 0.05)
    batch = configurations(("TP1", "TP1"), (1, 4096), context_tokens=100)
    plain, found = evaluator().decode(batch).tpot_ms, evaluator(speculative=draft).decode(batch).tpot_ms
    assert found[0] < plain[0]
    assert found[1] > plain[1]


def test_speculation_in_continuous_batching() -> None:
    # A step gains two tokens, so places are free twice as soon: 0.4 prompts are due an iteration.
    draft = SpeculativeDecoding(1, 1.0, 0.1)
    batch = configurations(("TP1",), (30,), output_tokens=150)
    both = evaluator(speculative=draft)
    found = both.aggregated(batch)
    verifying = replace(batch, batch=whole(60))
    assert found.ttft_ms[0] > 0
    assert found.tpot_ms[0] == pytest.approx(found.latency_ms[0] / 2)
    # The first token comes with the prompt.
    rate = 30_000 / (found.ttft_ms[0] + 149 * found.tpot_ms[0])
    assert found.requests_per_s[0] == pytest.approx(rate)
    assert found.latency_ms[0] > evaluator().decode(verifying).latency_ms[0] * 0.9


def test_the_draft_takes_memory() -> None:
    batch = configurations(("TP1",), (8,))
    found = evaluator(speculative=SpeculativeDecoding(4, 0.8, 0.1, 3.0)).decode_memory(batch)
    plain = evaluator().decode_memory(batch)
    assert found.weights_gib - plain.weights_gib == pytest.approx(3.0)
    assert found.activations_gib[0] > plain.activations_gib[0]


def test_samples_share_one_prefill() -> None:
    batch = configurations(("TP1",), (64,), output_tokens=150)
    plain, four = evaluator(), evaluator(samples_per_prompt=4)
    assert four.prefill(batch).requests_per_s == pytest.approx(plain.prefill(batch).requests_per_s)
    assert four.decode(batch).tpot_ms == pytest.approx(plain.decode(batch).tpot_ms)
    assert four.decode(batch).requests_per_s == pytest.approx(plain.decode(batch).requests_per_s / 4)


def test_samples_share_the_cache_of_their_prompt() -> None:
    # Context 2123 in the mean of 150 generated tokens: prompts of 2048 and 150 generated at the end.
    batch = configurations(("TP1",), (64,), context_tokens=2123, output_tokens=150)
    held = evaluator(samples_per_prompt=4).decode_memory(batch).kv_gib[0]
    assert held == pytest.approx((16 * 2048 + 64 * 150) * KV_BYTES_PER_TOKEN / GIB)


def test_samples_leave_more_iterations_without_a_prompt() -> None:
    # 60 sequences of 150 tokens are 15 prompts of 4: 0.1 prompts are due an iteration.
    batch = configurations(("TP1",), (60,), output_tokens=150)
    found = evaluator(samples_per_prompt=4).aggregated(batch)
    decode_ms = evaluator().decode(batch).latency_ms[0]
    assert found.tpot_ms[0] == pytest.approx(0.9 * decode_ms + 0.1 * found.ttft_ms[0])
    assert found.requests_per_s[0] == pytest.approx(15_000 / (found.ttft_ms[0] + 149 * found.tpot_ms[0]))


def test_a_shared_prefix_is_read_once_by_a_batch() -> None:
    source = CountingSource()
    batch = configurations(("TP1",), (100,), context_tokens=5000)
    found = evaluator(source, shared_prefix_tokens=4000).decode(batch)
    own = next(dims for kind, _, dims in source.asked if kind is OperatorKind.DECODE_ATTENTION)
    assert (own["batch"].tolist(), own["context_tokens"].tolist()) == ([100], [1000])
    shared = next(dims for kind, _, dims in source.asked if kind is OperatorKind.PREFILL_ATTENTION)
    assert (shared["batch"].tolist(), shared["new_tokens"].tolist()) == ([1], [100])
    pairs = attended_pairs(shared["new_tokens"], shared["prefix_tokens"], shared["window"])
    assert pairs[0] == pytest.approx(100 * 4000, rel=1e-3)
    assert "shared_prefix_attention" in found.names


def test_a_shared_prefix_saves_its_reads_but_one() -> None:
    batch = configurations(("TP1",), (100,), context_tokens=5000)
    saved = (
        evaluator().decode(batch).latency_ms - evaluator(shared_prefix_tokens=4000).decode(batch).latency_ms
    )
    # WorkSource takes 1 ms a GB; a launch of 1 us, and queries and results once more, in each of 4 layers.
    read_ms = 99 * 4000 * KV_BYTES_PER_TOKEN / 1e9
    overhead_ms = 4 * (1e-3 + 2 * 2 * 100 * 8 * 64 / 1e9)
    assert saved[0] == pytest.approx(read_ms - overhead_ms, rel=0.01)


def test_context_parallel_ranks_share_the_prefix_out() -> None:
    source = CountingSource()
    batch = configurations(("TP1CP2-TP2",), (100,), context_tokens=5000)
    evaluator(source, shared_prefix_tokens=4001).decode(batch)
    own = next(dims for kind, _, dims in source.asked if kind is OperatorKind.DECODE_ATTENTION)
    assert own["context_tokens"].tolist() == [2500 - 2001]


def latent_model() -> ModelArchitecture:
    attention = LatentAttention(8, None, 512, 128, 64, 128)
    return ModelArchitecture(
        "latent", "deepseek", 512, 1000, False, (LayerGroup(4, attention, DenseFfn(64)),)
    )


def test_latent_vectors_of_a_shared_prefix_serve_the_queries_of_all_sequences() -> None:
    source = CountingSource()
    batch = configurations(("TP1",), (100,), context_tokens=5000)
    shares = Techniques(shared_prefix_tokens=4000)
    own = Evaluator(latent_model(), accelerator(), source, BF16, techniques=shares)
    found = own.decode(batch)
    asked = [dims for kind, _, dims in source.asked if kind is OperatorKind.LATENT_DECODE_ATTENTION]
    rows = sorted(
        (batch_size, context, heads)
        for dims in asked
        for batch_size, context, heads in zip(
            dims["batch"].tolist(), dims["context_tokens"].tolist(), dims["heads"].tolist(), strict=True
        )
    )
    # The prefix once with 100 x 8 heads; 1,000 tokens of each sequence with 8.
    assert rows == [(1, 4000, 800), (100, 1000, 8)]
    assert "shared_prefix_attention" in found.names
    plain = Evaluator(latent_model(), accelerator(), WorkSource(), BF16)
    shared = replace(plain, techniques=shares)
    saved = plain.decode(batch).latency_ms - shared.decode(batch).latency_ms
    # WorkSource takes 1 ms a GB: 99 readings of 4,000 latent vectors, less a launch, the gap after a kernel
    # (a fifth of 50 us), and the queries and outputs of 800 heads once more, in each of 4 layers.
    read_ms = 4 * 99 * 4000 * 576 * 2 / 1e9
    overhead_ms = 4 * (1e-3 + 10e-3 + 2 * 800 * (576 + 512) / 1e9)
    assert saved[0] == pytest.approx(read_ms - overhead_ms, rel=0.01)
    held = [each.decode_memory(batch).kv_gib[0] for each in (plain, shared)]
    assert held[0] - held[1] == pytest.approx(4 * 99 * 4000 * 576 * 2 / GIB)


def test_chosen_tokens_and_recurrent_states_are_read_as_without_sharing() -> None:
    for name in ("glm-5", "minimax-text-01"):
        model = load_architecture(name, Path())
        own = Evaluator(model, accelerator(hbm_gib=2000.0), WorkSource(), BF16)
        shares = replace(own, techniques=Techniques(shared_prefix_tokens=2000))
        batch = configurations(("TP8",), (16,), context_tokens=8000)
        assert shares.decode_memory(batch).kv_gib[0] < own.decode_memory(batch).kv_gib[0]
        parts = [
            dict(zip(each.names, each.breakdown_ms[:, 0], strict=True))
            for each in (found.step(decode_shape(batch)) for found in (own, shares))
        ]
        untouched = "decode_index" if name == "glm-5" else "decode_recurrence"
        assert parts[0][untouched] == parts[1][untouched]


def test_a_shared_prefix_is_kept_once() -> None:
    batch = configurations(("PP2-TP1",), (100,), context_tokens=5000, output_tokens=100)
    held = evaluator(shared_prefix_tokens=4000).decode_memory(batch).kv_gib[0]
    # Two micro-batches in flight; a stage has half of the layers.
    assert held == pytest.approx((2 * 100 * 1050 + 4000) * KV_BYTES_PER_TOKEN / 2 / GIB)


def test_a_step_with_fewer_tokens_than_the_break_even_waits_for_the_link() -> None:
    offloaded = evaluator(offload=Offload(weights_ratio=1.0, kv_ratio=0.0, gb_per_s=100.0))
    batch = configurations(("TP1", "TP1", "PP2-TP1"), (1, 4096, 1), input_tokens=64)
    plain = evaluator().prefill(batch)
    found = offloaded.prefill(batch)
    stream_ms = weights_gib(dense_model(), offloaded.dtypes, batch.layouts) * GIB / 100e6
    assert found.latency_ms[0] == pytest.approx(stream_ms[0])
    assert found.names[found.bottleneck[0]] == "offload_stall"
    assert found.latency_ms[1] == pytest.approx(max(plain.latency_ms[1], stream_ms[1]))
    # A pass over two stages waits for both of them.
    assert found.latency_ms[2] == pytest.approx(2 * stream_ms[2])
    assert found.by_provenance_ms.sum(axis=0) == pytest.approx(found.latency_ms)


def test_an_offloaded_cache_is_read_over_the_link() -> None:
    offloaded = evaluator(offload=Offload(weights_ratio=0.0, kv_ratio=0.5, gb_per_s=1.0))
    batch = configurations(("TP1",), (64,), context_tokens=8000)
    read_ms = 0.5 * 64 * 8000 * KV_BYTES_PER_TOKEN / 1e6
    assert offloaded.decode(batch).tpot_ms[0] == pytest.approx(read_ms)


def test_offload_frees_memory_but_for_two_layers() -> None:
    layers = 40
    model = dense_model(layers)
    batch = configurations(("TP1",), (64,), context_tokens=8000)
    offload = Offload(weights_ratio=0.5, kv_ratio=0.25, gb_per_s=50.0)
    found = Evaluator(model, accelerator(), WorkSource(), BF16, techniques=Techniques(offload=offload))
    plain = Evaluator(model, accelerator(), WorkSource(), BF16)
    kept, whole_use = found.decode_memory(batch), plain.decode_memory(batch)
    assert kept.weights_gib / whole_use.weights_gib == pytest.approx([1 - 0.5 * (1 - 2 / 40)])
    assert kept.kv_gib / whole_use.kv_gib == pytest.approx([0.75])
    assert np.all(kept.total_gib < whole_use.total_gib)


PHASES = ["prefill", "decode"]
LAWS = [
    {"speculative": SpeculativeDecoding(3, 0.7, 0.05)},
    {"shared_prefix_tokens": 800},
    {"offload": Offload(0.5, 0.5, 100.0)},
    {"samples_per_prompt": 4, "chunk_tokens": 256},
]


@examples(100, 10, 25)
@given(
    st.sampled_from(LAWS), st.sampled_from(["prefill", "decode"]), st.integers(1, 500), st.integers(900, 9000)
)
def test_latency_never_falls_with_batch_or_context(
    switches: dict[str, object], phase: str, batch: int, context: int
) -> None:
    one = evaluator(**switches)
    for batches, contexts in (((batch, 2 * batch), (context,) * 2), ((batch,) * 2, (context, 2 * context))):
        found = [
            getattr(one, phase)(
                configurations(("TP2",), (size,), prefix_tokens=length, context_tokens=length)
            ).latency_ms[0]
            for size, length in zip(batches, contexts, strict=True)
        ]
        assert found[0] <= found[1] * (1 + 1e-12)


@examples(100, 10, 25)
@given(st.integers(1, 500), st.integers(0, 7000))
def test_a_longer_shared_prefix_never_takes_more_memory(batch: int, shared: int) -> None:
    sizes = [
        evaluator(shared_prefix_tokens=tokens)
        .decode_memory(configurations(("TP1",), (batch,), context_tokens=8000))
        .total_gib[0]
        for tokens in (0, shared, 7000)
    ]
    assert sizes == sorted(sizes, reverse=True) or batch == 1
