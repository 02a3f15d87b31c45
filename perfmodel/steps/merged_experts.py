"""Shared experts that a framework runs in parallel with the routed ones, without extra time.

SGLang counts them among the routed ones, as experts that every token picks; vLLM and TensorRT-LLM run them
on a second stream. Both read the weights of one more expert while they read those of many, and that is how
it is priced.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from fleetplan.perfmodel.architecture import ModelArchitecture, MoeFfn
from fleetplan.perfmodel.steps.precision import PartDtypes

MERGING_FRAMEWORKS: Final = frozenset({"sglang", "trtllm", "vllm"})
"""Frameworks that do so. Source: documentation of SGLang, DeepSeek usage, shared experts fusion;
documentation of vLLM, environment variable VLLM_DISABLE_SHARED_EXPERTS_STREAM;
tensorrt_llm/_torch/models/modeling_deepseekv3.py of TensorRT-LLM (Deepseekv3MoE runs them in parallel, on its
auxiliary stream)."""

MERGED_MODEL_TYPES: Final = frozenset({"deepseek_v3", "deepseek_v32", "glm_moe_dsa", "kimi_k2"})
"""Decoders for which they do so."""


@cache
def merged_experts(architecture: ModelArchitecture, dtypes: PartDtypes) -> ModelArchitecture:
    """Return the decoder with shared experts among the routed ones, where all are of one width and type."""
    if architecture.model_type not in MERGED_MODEL_TYPES or dtypes.shared_experts != dtypes.routed_experts:
        return architecture
    groups = tuple(
        replace(group, ffn=_merged(group.ffn)) if isinstance(group.ffn, MoeFfn) else group
        for group in architecture.groups
    )
    return replace(architecture, groups=groups)


def _merged(ffn: MoeFfn) -> MoeFfn:
    if ffn.shared_intermediate_size % ffn.intermediate_size:
        return ffn
    more = ffn.shared_intermediate_size // ffn.intermediate_size
    return replace(
        ffn,
        experts=ffn.experts + more,
        top_k=ffn.top_k + more,
        shared_experts=0,
        shared_intermediate_size=0,
        merged_experts=more,
    )
