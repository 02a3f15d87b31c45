"""Norms of what blocks put out, and gates of heads."""

from pathlib import Path

import pytest
from tests.perfmodel.fakes import configurations

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.operators import Operator
from fleetplan.perfmodel.steps import decode_shape, part_dtypes, step_operators

SEQUENCES = 4
OF_BLOCKS = ("attention_output_norm", "ffn_output_norm")
OF_GEMMA_4 = ("value_norm", "layer_scale", "expert_norms", "expert_sum")


def norms(model: str) -> list[Operator]:
    architecture = load_architecture(model, Path())
    shape = decode_shape(configurations(("TP2",), (SEQUENCES,), input_tokens=100))
    found = step_operators(architecture, part_dtypes(architecture, Precision("bf16", "bf16")), shape)
    return [operator for operator in found if operator.name in (*OF_BLOCKS, *OF_GEMMA_4)]


def counted(model: str) -> dict[str, float]:
    """Return how often each operator runs in a step."""
    found: dict[str, float] = {}
    for operator in norms(model):
        found[operator.name] = found.get(operator.name, 0.0) + float(operator.count[0])
    return found


@pytest.mark.parametrize(("model", "layers"), [("google/gemma-2-9b", 42), ("google/gemma-3-27b-it", 62)])
def test_gemma_norms_what_both_blocks_put_out(model: str, layers: int) -> None:
    assert counted(model) == dict.fromkeys(OF_BLOCKS, layers)


def test_gemma_4_norms_values_and_scales_its_layers() -> None:
    assert counted("google/gemma-4-31B-it") == dict.fromkeys((*OF_BLOCKS, *OF_GEMMA_4[:2]), 60)


def test_experts_of_gemma_4_have_norms_around_them() -> None:
    found = counted("google/gemma-4-26B-A4B")
    assert found["expert_norms"] == 4 * found["expert_sum"] == 4 * found["ffn_output_norm"] == 4 * 30


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B"])
def test_others_have_none(model: str) -> None:
    assert not counted(model)


def test_a_norm_reads_and_writes_a_token_once() -> None:
    hidden = load_architecture("google/gemma-3-27b-it", Path()).hidden_size
    for operator in norms("google/gemma-3-27b-it"):
        assert operator.dims["traffic_bytes"].tolist() == [2 * 2 * hidden * SEQUENCES]


def test_each_head_of_step_has_a_gate() -> None:
    architecture = load_architecture("stepfun-ai/Step-3.5-Flash", Path())
    shape = decode_shape(configurations(("TP2",), (SEQUENCES,), input_tokens=100))
    found = step_operators(architecture, part_dtypes(architecture, Precision("bf16", "bf16")), shape)
    gates = [operator for operator in found if operator.name.startswith("head_gate")]
    # 12 layers see the whole context, with 64 heads, 33 slide with 96; two accelerators share them.
    products = {int(each.dims["n"][0]): float(each.count[0]) for each in gates if "n" in each.dims}
    assert products == {32: 12.0, 48: 33.0}
    traffic = {int(each.dims["traffic_bytes"][0]) for each in gates if "n" not in each.dims}
    assert traffic == {2 * 2 * SEQUENCES * heads * 128 for heads in (32, 48)}


@pytest.mark.parametrize(("model", "layers"), [("zai-org/GLM-4.6", 92), ("zai-org/GLM-4.5-Air", 0)])
def test_query_and_key_heads_are_normed_where_the_config_says(model: str, layers: int) -> None:
    # NVIDIA Megatron-Bridge, docs/models/llm/glm45.md: GLM-4.5 norms them, GLM-4.5-Air does not.
    architecture = load_architecture(model, Path())
    shape = decode_shape(configurations(("TP2",), (SEQUENCES,), input_tokens=100))
    found = step_operators(architecture, part_dtypes(architecture, Precision("bf16", "bf16")), shape)
    assert sum(each.count[0] for each in found if each.name == "query_key_norm") == layers
