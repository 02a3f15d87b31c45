"""Layers of more than one kind in a model: windows, chunks, recurrences, dense blocks before experts."""

from __future__ import annotations

from tests.perfmodel.architecture.small_models import TINY_LLAMA, catalogued, windows

from fleetplan.fleet.catalog import model_catalog
from fleetplan.perfmodel.architecture import (
    WHOLE_CONTEXT,
    DenseFfn,
    GroupedQueryAttention,
    LinearAttention,
    LinearVariant,
    MoeFfn,
    architecture_from_config,
)


def test_sliding_windows_alternate_in_gpt_oss() -> None:
    architecture = catalogued("openai/gpt-oss-120b")
    assert windows(architecture) == {128: 18, WHOLE_CONTEXT: 18}
    a_token_and_layer = 2 * 8 * 64 * 2
    assert architecture.kv_bytes_per_sequence(10_000, 2.0) == a_token_and_layer * 18 * (128 + 10_000)
    assert architecture.kv_bytes_per_sequence(100, 2.0) == a_token_and_layer * 36 * 100


def test_gemma4_has_wide_heads_where_it_sees_the_whole_context() -> None:
    dense = catalogued("google/gemma-4-31B-it")
    assert windows(dense) == {1024: 50, WHOLE_CONTEXT: 10}
    heads = {
        (each.window, each.heads, each.kv_heads, each.head_dim)
        for group in dense.groups
        if isinstance(each := group.attention, GroupedQueryAttention)
    }
    assert heads == {(1024, 32, 16, 256), (WHOLE_CONTEXT, 32, 4, 512)}
    # By hand: 50 sliding and 10 whole layers, feed-forward blocks, and one matrix for embedding and head.
    sliding = 5376 * (2 * 32 * 256 + 2 * 16 * 256)
    whole = 5376 * (2 * 32 * 512 + 2 * 4 * 512)
    assert dense.total_parameters == 50 * sliding + 10 * whole + 60 * 3 * 5376 * 21504 + 262144 * 5376


def test_gemma4_takes_experts_beside_its_dense_block() -> None:
    mixture = catalogued("google/gemma-4-26B-A4B")
    ffns = {group.ffn for group in mixture.groups}
    assert ffns == {MoeFfn(128, 8, 704, shared_experts=1, shared_intermediate_size=2112)}
    assert mixture.tied_embeddings


def test_five_of_six_layers_slide_in_gemma3_and_every_other_in_gemma2() -> None:
    assert windows(catalogued("google/gemma-3-27b-it")) == {1024: 52, WHOLE_CONTEXT: 10}
    assert windows(catalogued("google/gemma-2-27b")) == {4096: 23, WHOLE_CONTEXT: 23}
    assert catalogued("google/gemma-3-27b-it").tied_embeddings


def test_mistral_slides_everywhere_until_its_second_version() -> None:
    assert windows(catalogued("mistralai/Mistral-7B-v0.1")) == {4096: 32}
    assert windows(catalogued("mistralai/Mistral-7B-v0.3")) == {WHOLE_CONTEXT: 32}


def test_qwen_slides_only_where_it_says_so() -> None:
    window: dict[str, object] = {"model_type": "qwen2", "sliding_window": 32, "max_window_layers": 2}
    config = {**TINY_LLAMA, **window}
    assert windows(architecture_from_config(config, "tiny")) == {WHOLE_CONTEXT: 3}
    sliding = architecture_from_config({**config, "use_sliding_window": True}, "tiny")
    assert windows(sliding) == {WHOLE_CONTEXT: 2, 32: 1}


def test_llama4_chunks_and_interleaves() -> None:
    maverick = catalogued("meta-llama/Llama-4-Maverick-17B-128E-Instruct")
    chunked = [
        g for g in maverick.groups if isinstance(g.attention, GroupedQueryAttention) and g.attention.window
    ]
    assert sum(group.count for group in chunked) == 36
    assert all(isinstance(g.attention, GroupedQueryAttention) and g.attention.chunked for g in chunked)
    moe = [group for group in maverick.groups if isinstance(group.ffn, MoeFfn)]
    assert sum(group.count for group in moe) == 24
    assert moe[0].ffn == MoeFfn(128, 1, 8192, shared_experts=1, shared_intermediate_size=8192)
    assert [group.ffn for group in maverick.groups if isinstance(group.ffn, DenseFfn)] == [DenseFfn(16384)]
    rotary = {**model_catalog()["meta-llama/Llama-4-Scout-17B-16E-Instruct"].config}
    text = rotary["text_config"]
    assert isinstance(text, dict)
    rotary["text_config"] = {**text, "no_rope_layers": [1] * 47 + [0]}
    assert windows(architecture_from_config(rotary, "scout")) == {8192: 47, WHOLE_CONTEXT: 1}


def test_first_layers_of_deepseek_and_glm_are_dense() -> None:
    for identifier, dense_count in (("deepseek-ai/DeepSeek-V3", 3), ("zai-org/GLM-4.5", 3)):
        architecture = catalogued(identifier)
        assert [group.count for group in architecture.groups if isinstance(group.ffn, DenseFfn)] == [
            dense_count
        ]
        assert architecture.left_out == ("draft layers",)


def test_gated_delta_net_hybrid() -> None:
    architecture = catalogued("Qwen/Qwen3.5-397B-A17B")
    linear, softmax = architecture.groups
    assert (linear.count, softmax.count) == (45, 15)
    assert linear.attention == LinearAttention(LinearVariant.GATED_DELTA_NET, 16, 64, 128, 128, 4)
    assert isinstance(softmax.attention, GroupedQueryAttention)
    assert softmax.attention.output_gate
    # q with its gate, k and v, o.
    assert softmax.attention.weights(4096) == 4096 * (2 * 32 * 256 + 2 * 2 * 256 + 32 * 256)
    recurrent = 64 * 128 * 128
    convolution = (64 * 128 + 2 * 16 * 128) * 3
    growing = 15 * 2 * 2 * 256
    assert (
        architecture.kv_bytes_per_sequence(1000, 2.0) == 45 * 4 * (recurrent + convolution) + 2000 * growing
    )


def test_mamba_hybrid_numbers_each_block_as_a_layer() -> None:
    architecture = catalogued("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    assert architecture.layer_count == 52
    by_kind = {
        (
            group.attention.kind if group.attention else None,
            group.ffn.kind if group.ffn else None,
        ): group.count
        for group in architecture.groups
    }
    assert by_kind == {("linear", None): 23, (None, "moe"): 23, ("gqa", None): 6}
    mamba = architecture.groups[0].attention
    assert isinstance(mamba, LinearAttention)
    projections = 2688 * (2 * 4096 + 2 * 8 * 128 + 64) + 4096 * 2688
    assert mamba.weights(2688) == projections + (4096 + 2 * 8 * 128) * 4


def test_experts_in_a_latent_space() -> None:
    architecture = catalogued("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8")
    moe = next(group.ffn for group in architecture.groups if isinstance(group.ffn, MoeFfn))
    assert (moe.latent_size, moe.gated) == (1024, False)
    assert moe.routed_weights(4096) == 512 * 2 * 1024 * 2688
    assert moe.router_weights(4096) == 4096 * 512 + 2 * 4096 * 1024


def test_block_names_and_pattern_letters_mean_the_same() -> None:
    config = {**model_catalog()["nvidia/Nemotron-H-56B-Base-8K"].config, "num_hidden_layers": 3}
    letters = architecture_from_config({**config, "hybrid_override_pattern": "M-*"}, "tiny")
    named = {**config, "hybrid_override_pattern": None, "layers_block_type": ["mamba", "mlp", "attention"]}
    assert architecture_from_config(named, "tiny") == letters
