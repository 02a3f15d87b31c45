"""Shared experts that a framework runs as routed ones which every token picks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.layers import MoeFfn

MERGING_FRAMEWORKS: Final = frozenset({"sglang"})
"""Frameworks that do so. Source: documentation of SGLang, DeepSeek usage: shared experts fusion."""

MERGED_MODEL_TYPES: Final = frozenset({"deepseek_v3"})
"""Decoders for which they do so."""


@cache
def merged_experts(architecture: ModelArchitecture) -> ModelArchitecture:
    """Return the decoder with its shared experts among the routed ones, where they are of one width."""
    if architecture.model_type not in MERGED_MODEL_TYPES:
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
        ffn, experts=ffn.experts + more, top_k=ffn.top_k + more, shared_experts=0, shared_intermediate_size=0
    )
