"""Laws that hold for every architecture, part and parallelism, searched for counterexamples."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.parts import first_of
from tests.perfmodel.fakes import configurations

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import GroupedQueryAttention, load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import layout_problem
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.parallelism import Layouts, Parallelism, parse_parallelism
from fleetplan.perfmodel.steps.memory import weights_gib
from fleetplan.perfmodel.steps.sharding import heads_per_accelerator

MODELS = (
    "llama3-8b",
    "gemma3-12b",
    "gpt-oss-20b",
    "llama4-scout",
    "qwen3-30b-a3b",
    "glm-4.5-air",
    "deepseek-v2-lite",
    "deepseek-v3",
    "qwen3.5-35b",
    "qwen3-next-80b",
    "minimax-text-01",
    "nemotron-3-nano",
    "nemotron-3-super",
    "deepseek-v3.2",
    "glm-5.2",
    "falcon-40b",
    "decilm-7b",
    "nemotron-super-49b",
)
"""Dense, windowed, chunked, mixtures with and without shared experts, latent attention with and without an
indexer, recurrent hybrids, blocks side by side, layers that differ."""

BF16 = Precision("bf16", "bf16")
LABELS = ("TP1", "TP2", "TP4CP2-TP8", "PP2-TP4", "DP8-TP8", "DP8-EP8", "TP2DP4-TP4EP2", "TP8-TP2EP4")
FEW = examples(40, 6, 12)


@cache
def evaluator(model: str, hardware: str) -> Evaluator:
    part = accelerators()[hardware]
    return Evaluator(load_architecture(model, Path()), part, operator_source(part, "vllm"), BF16)


def runs(model: str, label: str) -> bool:
    own = evaluator(model, "H200-SXM")
    return not layout_problem(own.architecture, parse_parallelism(label), own.accelerator)


# Operator tables on one part, the roofline alone on the other.
cases = st.tuples(
    st.sampled_from(MODELS), st.sampled_from(LABELS), st.sampled_from(("H200-SXM", "MI300X"))
).filter(lambda case: runs(case[0], case[1]))
sizes = st.integers(1, 2048)


@FEW
@given(cases, sizes, sizes, st.integers(1, 60_000), st.integers(0, 60_000))
def test_decode_never_gets_faster_with_batch_or_context(
    case: tuple[str, str, str], batch: int, more: int, context: int, further: int
) -> None:
    model, label, hardware = case
    own = evaluator(model, hardware)
    small, large = (
        own.decode(configurations((label,), (size,), context_tokens=tokens)).latency_ms[0]
        for size, tokens in ((batch, context), (batch + more, context + further))
    )
    assert large >= small * (1 - 1e-9)


@FEW
@given(cases, st.integers(1, 16), st.integers(0, 16), st.integers(1, 30_000), st.integers(0, 30_000))
def test_prefill_never_gets_faster_with_batch_or_length(
    case: tuple[str, str, str], batch: int, more: int, tokens: int, further: int
) -> None:
    model, label, hardware = case
    own = evaluator(model, hardware)
    small, large = (
        own.prefill(configurations((label,), (size,), input_tokens=length)).latency_ms[0]
        for size, length in ((batch, tokens), (batch + more, tokens + further))
    )
    assert large >= small * (1 - 1e-9)


@FEW
@given(cases, sizes, st.integers(1, 60_000))
def test_more_layers_never_run_faster(case: tuple[str, str, str], batch: int, context: int) -> None:
    model, label, hardware = case
    own = evaluator(model, hardware)
    deeper = tuple(replace(group, count=group.count + 1) for group in own.architecture.groups)
    other = replace(own, architecture=replace(own.architecture, groups=deeper))
    asked = configurations((label,), (batch,), context_tokens=context)
    assert other.decode(asked).latency_ms[0] > own.decode(asked).latency_ms[0]


@FEW
@given(
    st.sampled_from(MODELS),
    st.sampled_from(LABELS),
    st.sampled_from(
        ("bf16_tflops", "fp8_tflops", "hbm_gb_per_s", "scale_up_gb_per_s", "scale_out_gb_per_s", "hbm_gib")
    ),
    st.floats(1.0, 100.0),
    sizes,
)
def test_better_figures_never_slow_a_part(
    model: str, label: str, figure: str, factor: float, batch: int
) -> None:
    if not runs(model, label):
        return
    own = evaluator(model, "MI300X")
    better = replace(own.accelerator, **{figure: getattr(own.accelerator, figure) * factor})
    other = replace(own, accelerator=better, source=operator_source.__wrapped__(better, "vllm"))
    asked = configurations((label,), (batch,))
    for phase in ("prefill", "decode"):
        before, after = (getattr(each, phase)(asked).latency_ms[0] for each in (own, other))
        assert after <= before * (1 + 1e-9)


@pytest.mark.parametrize("model", ["llama3-8b", "llama3-405b", "qwen2.5-72b", "gemma3-27b"])
def test_tensor_parallelism_shares_the_weights_of_a_dense_decoder_out(model: str) -> None:
    own = evaluator(model, "H200-SXM")
    tp = (1, 2, 4, 8)
    layouts = Layouts.of([Parallelism(tp=degree, ffn_tp=degree) for degree in tp])
    weights = weights_gib(own.architecture, own.dtypes, layouts)
    assert weights * np.array(tp) == pytest.approx(weights[0])


@given(st.integers(1, 8), st.integers(0, 3), st.integers(1, 4096))
@examples(100, 25, 100)
def test_a_key_value_head_is_never_split(kv_heads: int, power: int, tp: int) -> None:
    attention = GroupedQueryAttention(kv_heads * 2**power, kv_heads, 128, 128)
    heads, held = heads_per_accelerator(attention, np.array([tp]))
    assert held[0] >= 1
    assert heads[0] >= 1
    assert held[0] * tp >= kv_heads
    assert heads[0] * tp >= attention.heads


@FEW
@given(cases, sizes)
def test_shares_of_provenance_add_up_to_one(case: tuple[str, str, str], batch: int) -> None:
    model, label, hardware = case
    found = evaluator(model, hardware).aggregated(configurations((label,), (batch,)))
    assert found.shares.sum(axis=0) == pytest.approx(1.0)
    assert (found.shares >= 0).all()
    if hardware == "MI300X":
        assert found.shares[3] == pytest.approx(1.0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("weights", first_of(("fp8-ffn", "int4", "bf16", "fp8", "int8", "mxfp4"), 2))
def test_every_architecture_runs_in_every_type_that_a_part_has(model: str, weights: str) -> None:
    own = replace(evaluator(model, "H200-SXM"), precision=Precision(weights, "fp8"))
    found = own.decode(configurations(("TP2", "TP8"), (16, 16)))
    assert np.isfinite(found.latency_ms).all()
    assert (found.latency_ms > 0).all()
