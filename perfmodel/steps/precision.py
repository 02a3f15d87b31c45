"""Data types of the parts of a decoder under a service's precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import ModelArchitecture, MoeFfn

WEIGHT_PRECISIONS: Final = ("bf16", "fp8", "fp8-ffn", "int8", "int4", "fp4", "mxfp4")
KV_PRECISIONS: Final = ("bf16", "fp8")

BLOCK_FP8_MODEL_TYPES: Final = frozenset(
    {
        "deepseek_v3",
        "deepseek_v4",
        "glm4_moe",
        "glm_moe_dsa",
        "kimi_k2",
        "minimax",
        "minimax_m1",
        "minimax_m2",
        "minimax_m3",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
        "qwen3_moe",
        "qwen3_next",
        "qwen3_vl_moe_text",
    }
)
"""Decoders whose published FP8 checkpoints scale blocks of 128 x 128 weights.

Source: `quantization_config.weight_block_size` in the config.json of deepseek-ai/DeepSeek-V3,
Qwen/Qwen3-235B-A22B-FP8, zai-org/GLM-4.5-FP8, zai-org/GLM-5-FP8 and MiniMaxAI/MiniMax-M2
and sgl-project/DeepSeek-V4-Flash-FP8; the model card of Qwen/Qwen3-VL-235B-A22B-Instruct-FP8.
MiniMax-M3 is published in MXFP8, with a scale for each 32 weights, which no table holds: blocks are near."""

FP8_BESIDE_FP4_EXPERTS: Final = frozenset({"deepseek_v4"})
"""Decoders whose checkpoints with experts in four bits (MXFP4 as published, NVFP4 of NVIDIA) have FP8 in
blocks everywhere else. Source: `expert_dtype` and `quantization_config` in the config.json of
deepseek-ai/DeepSeek-V4-Flash, deepseek-ai/DeepSeek-V4-Pro and nvidia/DeepSeek-V4-Flash-NVFP4."""


@dataclass(frozen=True, slots=True)
class PartDtypes:
    """Data types by part; router, embedding and LM head stay BF16 in every published checkpoint.

    Attributes
    ----------
    attention, dense_ffn, routed_experts, shared_experts : str
        Data type of the weights.
    kv : str
        Data type of the cache, and of attention over it.
    other : str
        Data type of router, embedding and LM head.
    """

    attention: str
    dense_ffn: str
    routed_experts: str
    shared_experts: str
    kv: str
    other: str = "bf16"


def part_dtypes(architecture: ModelArchitecture, precision: Precision) -> PartDtypes:
    """Return the data types of the parts of `architecture` under `precision`.

    INT4 and MXFP4 checkpoints of mixtures of experts keep all but the routed experts in BF16 (gpt-oss,
    Kimi K2); those of dense decoders quantise every linear layer (AWQ, GPTQ). FP8 is block-scaled where
    the published checkpoints of the family are, and "fp4" of a natively MXFP4 model is MXFP4. Experts of
    DeepSeek-V4 in MXFP4 or FP4 (NVFP4) have FP8 beside them.

    Raises
    ------
    ValueError
        An unknown precision.
    """
    weights = precision.weights
    if weights not in WEIGHT_PRECISIONS or precision.kv not in KV_PRECISIONS:
        raise ValueError(f"unknown precision {precision}")
    native = None if architecture.quantisation is None else architecture.quantisation.dtype
    fp8_beside = architecture.model_type in FP8_BESIDE_FP4_EXPERTS
    if weights == "fp4" and native == "mxfp4" and not fp8_beside:
        weights = "mxfp4"
    block_scaled = native == "fp8_block" or architecture.model_type in BLOCK_FP8_MODEL_TYPES
    fp8 = "fp8_block" if block_scaled else "fp8"
    is_mixture = any(isinstance(group.ffn, MoeFfn) for group in architecture.groups)
    match weights:
        case "fp8-ffn":
            return PartDtypes("bf16", fp8, fp8, fp8, precision.kv)
        case "fp8":
            return PartDtypes(fp8, fp8, fp8, fp8, precision.kv)
        case "fp4" | "mxfp4" if fp8_beside:
            return PartDtypes(fp8, fp8, weights, fp8, precision.kv)
        case "int4" | "mxfp4" if is_mixture:
            return PartDtypes("bf16", "bf16", weights, "bf16", precision.kv)
        case _:
            return PartDtypes(weights, weights, weights, weights, precision.kv)
