from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.perfmodel.fakes import (
    WorkSource,
    accelerator,
    configurations,
    dense_model,
    layouts,
    mixture_model,
    whole,
)

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    GroupedQueryAttention,
    LayerGroup,
    ModelArchitecture,
    load_architecture,
)
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.steps import MemoryUse, part_dtypes
from fleetplan.perfmodel.steps.memory import (
    COMMUNICATION_BUFFER_GIB,
    FRAMEWORK_RESERVE_RATIO,
    kv_gib_per_sequence,
    resident_sequences,
    weights_gib,
)

BF16 = Precision("bf16", "bf16")
GIB = 2.0**30


def evaluator(model: ModelArchitecture, **options: object) -> Evaluator:
    return Evaluator(model, accelerator(), WorkSource(), BF16, **options)  # type: ignore[arg-type]


def test_weights_of_one_accelerator_by_hand() -> None:
    model = dense_model(layers=4)
    attention = 512 * (768 + 512)
    ffn = 3 * 512 * 1024
    matrix = 32_000 * 512
    found = weights_gib(model, part_dtypes(model, BF16), layouts("TP1", "TP2", "PP2", "PP3"))
    expected = [
        4 * (attention + ffn) + 2 * matrix,
        4 * (attention + ffn) / 2 + matrix,
        2 * (attention + ffn) + matrix,
        # 4 layers over 3 stages: the fullest holds 2.
        2 * (attention + ffn) + matrix,
    ]
    assert found * GIB / 2 == pytest.approx(expected)


def test_weights_agree_with_the_published_size() -> None:
    model = load_architecture("llama3-70b", Path())
    found = weights_gib(model, part_dtypes(model, BF16), layouts("TP1", "TP8"))
    assert found * GIB / 2 == pytest.approx([70.55e9, 70.55e9 / 8], rel=0.01)


def test_replicated_key_value_heads_cost_weights_and_cache() -> None:
    model = dense_model(kv_heads=2)
    dtypes = part_dtypes(model, BF16)
    each = kv_gib_per_sequence(model, dtypes, layouts("TP1", "TP2", "TP8", "PP2"), whole(*[1000] * 4))
    per_head = 4 * 1000 * 2 * 64 * 2
    assert each * GIB == pytest.approx([2 * per_head, per_head, per_head, per_head])


def test_windows_limit_the_cache() -> None:
    attention = GroupedQueryAttention(8, 2, 64, 64, window=100)
    full = GroupedQueryAttention(8, 2, 64, 64)
    groups = (LayerGroup(3, attention, None), LayerGroup(1, full, None))
    model = ModelArchitecture("m", "gemma", 512, 1000, False, groups)
    each = kv_gib_per_sequence(model, part_dtypes(model, BF16), layouts("TP1"), whole(1000))
    assert each * GIB == pytest.approx([(3 * 100 + 1000) * 2 * 2 * 64 * 2])


def test_all_micro_batches_are_resident_unless_the_papers_count_is_asked_for() -> None:
    batch = configurations(("PP4",), (8,))
    honest = evaluator(dense_model()).decode_memory(batch)
    paper = evaluator(dense_model(), kv_residency="microbatch").decode_memory(batch)
    assert honest.kv_gib == pytest.approx(4 * paper.kv_gib)
    assert honest.without_kv_gib == pytest.approx(paper.without_kv_gib)


def test_decode_holds_the_context_and_half_the_output() -> None:
    memory = evaluator(dense_model()).decode_memory(
        configurations(("TP1",), (1,), context_tokens=1000, output_tokens=151)
    )
    assert memory.kv_gib * GIB == pytest.approx([4 * 1076 * 2 * 2 * 64 * 2])


def test_buffers_and_reserve() -> None:
    memory = evaluator(dense_model()).decode_memory(configurations(("TP1", "TP2"), (1, 1)))
    assert memory.communication_gib.tolist() == [0.0, COMMUNICATION_BUFFER_GIB]
    assert memory.reserve_gib == pytest.approx(80 * FRAMEWORK_RESERVE_RATIO)
    assert memory.total_gib == pytest.approx(
        memory.weights_gib + memory.kv_gib + memory.activations_gib + memory.communication_gib + 8.0
    )


def test_what_fits_and_what_does_not() -> None:
    memory = evaluator(dense_model()).decode_memory(
        configurations(("TP1", "TP1"), (1, 4096), context_tokens=100_000)
    )
    assert memory.fits.tolist() == [True, False]
    assert memory.weights_fit.tolist() == [True, True]


def test_sequences_that_fit_are_the_last_that_fit() -> None:
    model = evaluator(dense_model())

    def memory(batch: int) -> MemoryUse:
        return model.decode_memory(configurations(("PP2",), (batch,), context_tokens=100_000))

    most = int(resident_sequences(memory(1), memory(64), whole(64))[0])
    assert memory(most).fits.tolist() == [True]
    assert memory(most + 1).fits.tolist() == [False]


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8, 16]))
@examples(100, 25, 100)
def test_split_expert_weights_add_up_to_all_of_them(ffn_tp: int, ep: int) -> None:
    """What an accelerator holds of the experts, times the accelerators, does not depend on the split."""
    model = mixture_model()
    split = layouts(f"TP{ffn_tp}DP{ep}-TP{ffn_tp}EP{ep}")
    dtypes = part_dtypes(model, BF16)
    experts = weights_gib(model, dtypes, split) - weights_gib(without_experts(model), dtypes, split)
    counts = model.weight_count()
    held = experts[0] * GIB / 2 - counts.router
    assert held * ffn_tp * ep == pytest.approx(counts.routed_experts)


def without_experts(model: ModelArchitecture) -> ModelArchitecture:
    first, second = model.groups
    groups = (first, LayerGroup(second.count, second.attention, None))
    return ModelArchitecture("m", "m", model.hidden_size, model.vocab_size, False, groups)


def test_tensorrt_llm_keeps_a_part_of_what_is_left_and_others_of_the_whole() -> None:
    def memory(framework: str) -> MemoryUse:
        part = accelerators()["H100-SXM"]
        built = build_evaluator("llama3.3-70b", part, framework, Precision("fp8", "fp8"), Path())
        return built.decode_memory(configurations(("TP1",), (1,), context_tokens=2048))

    llm, plain = memory("trtllm"), memory("vllm")
    used = float((llm.weights_gib + llm.activations_gib + llm.communication_gib)[0])
    assert llm.reserve_gib[0] == pytest.approx(0.1 * (llm.capacity_gib - used))
    assert plain.reserve_gib[0] == pytest.approx(0.1 * plain.capacity_gib)
    # Published: TensorRT-LLM serves this model on one H100, with prompts of 5,000 tokens.
    assert llm.fits[0]
