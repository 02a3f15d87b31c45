"""Laws of the evaluator, and what the paper's tables say about memory."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, dense_model, mixture_model, whole
from tests.perfmodel.paper_tables import (
    CONTEXT_TOKENS,
    CONTINUOUS_BATCHING,
    DISAGGREGATED,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    ContinuousBatching,
    Disaggregated,
)

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator, prefill_mix
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.steps import steady_shape

BF16 = Precision("bf16", "bf16")
LABELS = ("TP1", "TP8", "PP2-TP4", "TP4DP2-TP8", "PP2-TP2DP2-TP4")
MIXTURE_LABELS = (*LABELS, "TP4DP2-TP4EP2", "TP8-TP2EP4", "DP8-EP8")


def evaluator(layers: int = 4, mixture: bool = False) -> Evaluator:
    model = mixture_model(shared=128) if mixture else dense_model(layers)
    return Evaluator(model, accelerator(), WorkSource(), BF16)


def latencies(one: Evaluator, phase: str, label: str, batch: tuple[int, ...], tokens: int) -> FloatArray:
    labels = (label,) * len(batch)
    batches = configurations(labels, batch, input_tokens=tokens, context_tokens=tokens, output_tokens=50)
    return getattr(one, phase)(batches).latency_ms  # type: ignore[no-any-return]


phases = st.sampled_from(["prefill", "decode", "aggregated"])


@examples(100, 10, 25)
@given(phases, st.sampled_from(MIXTURE_LABELS), st.integers(1, 500), st.integers(1, 9000))
def test_latency_never_falls_with_batch(phase: str, label: str, batch: int, tokens: int) -> None:
    found = latencies(evaluator(mixture=True), phase, label, (batch, batch + 1, 2 * batch + 1), tokens)
    assert (np.diff(found) >= 0).all()


@examples(100, 10, 25)
@given(phases, st.sampled_from(LABELS), st.integers(1, 500), st.integers(1, 9000))
def test_latency_never_falls_with_length_or_layers(phase: str, label: str, batch: int, tokens: int) -> None:
    shorter = latencies(evaluator(), phase, label, (batch,), tokens)
    assert latencies(evaluator(), phase, label, (batch,), tokens + 1) >= shorter
    assert latencies(evaluator(layers=5), phase, label, (batch,), tokens) >= shorter


@examples(100, 10, 25)
@given(phases, st.lists(st.sampled_from(MIXTURE_LABELS), min_size=1, max_size=8))
def test_shares_add_up_and_rows_do_not_depend_on_one_another(phase: str, labels: list[str]) -> None:
    batch = tuple(range(1, len(labels) + 1))
    one = evaluator(mixture=True)
    together = getattr(one, phase)(configurations(tuple(labels), batch))
    assert together.shares.sum(axis=0) == pytest.approx(np.ones(len(labels)))
    assert together.by_provenance_ms.sum(axis=0) == pytest.approx(together.latency_ms)
    for position, label in enumerate(labels):
        alone = getattr(one, phase)(configurations((label,), (batch[position],)))
        assert alone.latency_ms[0] == pytest.approx(together.latency_ms[position], rel=1e-12)
        assert alone.requests_per_s[0] == pytest.approx(together.requests_per_s[position], rel=1e-12)


def test_continuous_batching_mixes_its_two_iterations() -> None:
    batch = configurations(("TP2", "TP2"), (15, 120), output_tokens=50)
    one = evaluator()
    found = one.aggregated(batch)
    mix = prefill_mix(batch.batch, batch.output_tokens)
    assert (mix.fewer.tolist(), mix.more.tolist()) == ([0, 2], [1, 3])
    fewer = one.step(steady_shape(batch, mix.fewer)).latency_ms
    more = one.step(steady_shape(batch, mix.more)).latency_ms
    assert found.tpot_ms == pytest.approx([0.7 * fewer[0] + 0.3 * more[0], 0.6 * fewer[1] + 0.4 * more[1]])
    assert found.ttft_ms == pytest.approx(more)
    # 2.4 prompts an iteration: half of them come in threes. The first token comes with the prompt.
    first = [more[0], (0.6 * 2 * fewer[1] + 0.4 * 3 * more[1]) / 2.4]
    rate = whole(15, 120) / (first + 49 * found.tpot_ms) * 1e3
    assert found.requests_per_s == pytest.approx(rate)


def test_parts_without_a_network_hand_over_within_their_domain() -> None:
    batch = configurations(("TP4",), (1,))
    linked = Evaluator(dense_model(), accelerator(), WorkSource(), BF16)
    lonely = Evaluator(dense_model(), accelerator(scale_out_gb_per_s=None), WorkSource(), BF16)
    assert linked.kv_transfer_ms(batch) == pytest.approx(9 * lonely.kv_transfer_ms(batch))


def paper_evaluator(row: Disaggregated | ContinuousBatching) -> Evaluator:
    precision = Precision("fp8-ffn", "bf16")
    return build_evaluator(row.model, accelerators()[row.hardware], "vllm", precision, Path())


def paper_lengths(row: Disaggregated | ContinuousBatching) -> dict[str, int]:
    return {
        "input_tokens": INPUT_TOKENS,
        "prefix_tokens": CONTEXT_TOKENS - INPUT_TOKENS,
        "context_tokens": CONTEXT_TOKENS,
        "output_tokens": OUTPUT_TOKENS[row.table],
    }


@pytest.mark.parametrize("row", [row for row in DISAGGREGATED if row.table == "online"])
def test_the_papers_online_configurations_fit(row: Disaggregated) -> None:
    one = paper_evaluator(row)
    lengths = paper_lengths(row)
    assert one.prefill_memory(configurations((row.prefill,), (1,), **lengths)).fits.all()
    assert one.decode_memory(configurations((row.decode,), (row.batch,), **lengths)).fits.all()


@pytest.mark.parametrize("row", [row for row in CONTINUOUS_BATCHING if row.table == "online"])
def test_the_papers_continuous_batching_configurations_fit(row: ContinuousBatching) -> None:
    batch = configurations((row.setup,), (row.batch,), **paper_lengths(row))
    assert paper_evaluator(row).aggregated_memory(batch).fits.all()


@pytest.mark.parametrize("row", [row for row in DISAGGREGATED if row.table == "offline"])
def test_the_papers_offline_pipelines_do_not_hold_all_their_micro_batches(row: Disaggregated) -> None:
    one = paper_evaluator(row)
    batch = configurations((row.decode,), (row.batch,), **paper_lengths(row))
    assert one.decode_memory(batch).total_gib[0] > 700
