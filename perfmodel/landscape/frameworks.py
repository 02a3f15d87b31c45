"""Which layouts a serving framework can run: what its documentation says, with version and source.

A layout that model and part allow may still have no form in a framework: attention data parallelism of a
dense model starts whole replicas under vLLM, and experts are split over all ranks of a stage or over none.
What is documented for part of the models only counts for them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from fleetplan.perfmodel.architecture import (
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
    ModelArchitecture,
    MoeFfn,
)
from fleetplan.perfmodel.landscape.phases import AGGREGATED, DECODE, PREFILL
from fleetplan.perfmodel.parallelism import Parallelism

Models = Literal["any", "experts", "latent", "dense latent", "none"]
"""Models that something works for: any, those with experts, those with latent attention, those of them whose
queries see all earlier tokens, or none."""


@dataclass(frozen=True, slots=True)
class FrameworkLayouts:
    """Layouts that one framework can run.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm.
    version : str
        The version that was read.
    attention_dp : Models
        Models whose attention ranks may hold sequences of their own while they share a feed-forward part.
    dp_beside_tp : bool
        Whether attention data parallelism and tensor parallelism combine.
    expert_groups : {"any", "all or none"}
        Numbers of expert groups in a stage.
    prompt_cp : Models
        Models whose prompts several ranks may share.
    latent_prompt_cp_alone : bool
        Whether ranks that share prompts of latent attention are all ranks of attention of a stage, and each
        rank of the stage has experts of its own.
    prompt_cp_is_wide : bool
        Whether those ranks come on top of tensor parallelism, so that each group of them holds a dense
        feed-forward block; otherwise they are ranks of the tensor parallelism of that block.
    generation_cp : Models
        Models whose cache several ranks may share during generation, behind servers of prompts alone.
    generation_cp_beside_tp : bool
        Whether tensor parallelism may split the heads of such ranks besides.
    source : dict[str, str]
        Where each of these was read, by field.
    """

    framework: str
    version: str
    attention_dp: Models
    dp_beside_tp: bool
    expert_groups: Literal["any", "all or none"]
    prompt_cp: Models
    latent_prompt_cp_alone: bool
    prompt_cp_is_wide: bool
    generation_cp: Models
    generation_cp_beside_tp: bool
    source: dict[str, str]


_VLLM_DP: Final = "docs.vllm.ai/serving/data_parallel_deployment (vllm-project/vllm@01e4fce)"
_VLLM_CP: Final = "docs.vllm.ai/serving/context_parallel_deployment (vllm-project/vllm@020505c)"
_VLLM_TRANSFER: Final = (
    "vllm 0.33.0 of PyPI, config/vllm.py: behind NixlConnector contexts are split for latent attention "
    "alone, and over all ranks of tensor parallelism"
)
_SGLANG_DP: Final = "docs.sglang.io/docs/advanced_features/dp_dpa_smg_guide"
_SGLANG_CP: Final = "sglang 0.5.23 of PyPI, srt/arg_groups/model_overrides/deepseek_v2.py"
_DYNAMO: Final = "docs.nvidia.com/dynamo, DP rank routing: attention DP takes the size of tensor parallelism"
_TRTLLM: Final = "nvidia.github.io/TensorRT-LLM/features/parallel-strategy (NVIDIA/TensorRT-LLM@65b31db)"

FRAMEWORK_LAYOUTS: Final = {
    "vllm": FrameworkLayouts(
        framework="vllm",
        version="0.33",
        attention_dp="experts",
        dp_beside_tp=True,
        expert_groups="all or none",
        prompt_cp="latent",
        latent_prompt_cp_alone=False,
        prompt_cp_is_wide=True,
        generation_cp="latent",
        generation_cp_beside_tp=False,
        source={
            "attention_dp": _VLLM_DP,
            "expert_groups": _VLLM_DP,
            "prompt_cp": "vllm 0.33.0 of PyPI: supports_pcp of v1/attention/backend.py and "
            "check_attention_cp_compatibility of v1/worker/cp_utils.py",
            "prompt_cp_is_wide": _VLLM_CP,
            "generation_cp": _VLLM_TRANSFER,
            "generation_cp_beside_tp": _VLLM_TRANSFER,
        },
    ),
    "sglang": FrameworkLayouts(
        framework="sglang",
        version="0.5.23",
        attention_dp="any",
        dp_beside_tp=True,
        expert_groups="any",
        prompt_cp="experts",
        latent_prompt_cp_alone=True,
        prompt_cp_is_wide=False,
        generation_cp="dense latent",
        generation_cp_beside_tp=True,
        source={
            "attention_dp": f"{_SGLANG_DP}; Llama: sgl-project/sglang pull request 15268",
            "dp_beside_tp": "sgl-project/sglang pull request 4390",
            "prompt_cp": "docs.sglang.io/docs/advanced_features/prefill_cp",
            "prompt_cp_is_wide": "docs.sglang.io/docs/advanced_features/prefill_cp",
            "latent_prompt_cp_alone": _SGLANG_CP,
            "generation_cp": f"docs.sglang.io/docs/advanced_features/dcp; no sparse attention: {_SGLANG_CP}",
        },
    ),
    "trtllm": FrameworkLayouts(
        framework="trtllm",
        version="1.2",
        attention_dp="experts",
        dp_beside_tp=False,
        expert_groups="any",
        prompt_cp="none",
        latent_prompt_cp_alone=False,
        prompt_cp_is_wide=False,
        generation_cp="latent",
        generation_cp_beside_tp=True,
        source={
            "attention_dp": _TRTLLM,
            "dp_beside_tp": _DYNAMO,
            "prompt_cp": "NVIDIA/TensorRT-LLM pull request 10276, not merged",
            "generation_cp": "NVIDIA/TensorRT-LLM pull request 5668 (Helix)",
        },
    ),
}
"""Read in November 2026."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One reason against layouts.

    Attributes
    ----------
    reason : str
        What counts of excluded configurations call it.
    text : str
        What it means.
    field : str
        The field of `FrameworkLayouts` behind it.
    refuses : callable
        Whether it holds for a layout in a phase.
    """

    reason: str
    text: str
    field: str
    refuses: Callable[[FrameworkLayouts, ModelArchitecture, Parallelism, str], bool]


def _attention_dp(known: FrameworkLayouts, model: ModelArchitecture, layout: Parallelism, _: str) -> bool:
    return layout.dp > 1 and not _holds_for(known.attention_dp, model)


def _dp_beside_tp(known: FrameworkLayouts, _: ModelArchitecture, layout: Parallelism, __: str) -> bool:
    return layout.dp > 1 and layout.tp > 1 and not known.dp_beside_tp


def _expert_groups(known: FrameworkLayouts, model: ModelArchitecture, layout: Parallelism, _: str) -> bool:
    split = layout.ep > 1 and layout.ffn_tp > 1
    return known.expert_groups != "any" and split and _has_experts(model)


def _mixed_cp(_: FrameworkLayouts, __: ModelArchitecture, layout: Parallelism, phase: str) -> bool:
    return layout.cp > 1 and phase == AGGREGATED


def _prompt_cp(known: FrameworkLayouts, model: ModelArchitecture, layout: Parallelism, phase: str) -> bool:
    return layout.cp > 1 and phase == PREFILL and not _holds_for(known.prompt_cp, model)


def _latent_prompt_cp(
    known: FrameworkLayouts, model: ModelArchitecture, layout: Parallelism, phase: str
) -> bool:
    if layout.cp == 1 or phase != PREFILL or not _holds_for("latent", model):
        return False
    return known.latent_prompt_cp_alone and (layout.tp > 1 or layout.ep != layout.accelerators_per_stage)


def _generation_cp(
    known: FrameworkLayouts, model: ModelArchitecture, layout: Parallelism, phase: str
) -> bool:
    return layout.cp > 1 and phase == DECODE and not _holds_for(known.generation_cp, model)


def _generation_cp_beside_tp(
    known: FrameworkLayouts, _: ModelArchitecture, layout: Parallelism, phase: str
) -> bool:
    beside = layout.cp > 1 and layout.tp > 1 and phase == DECODE
    return beside and not known.generation_cp_beside_tp


def _cp_feed_forward(
    known: FrameworkLayouts, model: ModelArchitecture, layout: Parallelism, phase: str
) -> bool:
    if layout.cp == 1 or _has_experts(model):
        return False
    wide = phase == PREFILL and known.prompt_cp_is_wide
    return layout.ep != (layout.cp if wide else 1)


RULES: Final = (
    _Rule(
        "framework: attention dp",
        "attention data parallelism of this model would start whole replicas",
        "attention_dp",
        _attention_dp,
    ),
    _Rule(
        "framework: dp beside tp",
        "attention data parallelism takes all ranks of a stage, so none are left for tensor parallelism",
        "dp_beside_tp",
        _dp_beside_tp,
    ),
    _Rule(
        "framework: expert groups",
        "experts are shared out among all ranks of a stage, or every expert is split over all of them",
        "expert_groups",
        _expert_groups,
    ),
    _Rule(
        "framework: cp of both phases",
        "context parallelism of prompts and of generation take different ranks, which no one layout names",
        "prompt_cp",
        _mixed_cp,
    ),
    _Rule(
        "framework: cp of prompts",
        "no context parallelism of prompts for this model",
        "prompt_cp",
        _prompt_cp,
    ),
    _Rule(
        "framework: cp of prompts alone",
        "ranks that share prompts of latent attention are all of a stage, each with experts of its own",
        "latent_prompt_cp_alone",
        _latent_prompt_cp,
    ),
    _Rule(
        "framework: cp of generation",
        "no context parallelism of generation for this model",
        "generation_cp",
        _generation_cp,
    ),
    _Rule(
        "framework: cp beside tp",
        "context parallelism of generation takes all ranks of tensor parallelism",
        "generation_cp_beside_tp",
        _generation_cp_beside_tp,
    ),
    _Rule(
        "framework: cp and feed-forward",
        "the ranks of context parallelism hold the dense feed-forward block in another way",
        "prompt_cp_is_wide",
        _cp_feed_forward,
    ),
)
"""In the order in which they are asked; the first that holds is the reason."""

FRAMEWORK_REASONS: Final = {rule.reason: rule.text for rule in RULES}
"""Reasons that counts of excluded configurations name, with what they mean."""


def framework_reason(framework: str, architecture: ModelArchitecture, layout: Parallelism, phase: str) -> str:
    """Name the reason why a framework cannot run a layout; empty where it can.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm; empty for none, which can run everything.
    architecture : ModelArchitecture
        The model.
    layout : Parallelism
        How a replica is split.
    phase : str
        prefill, decode or aggregated.
    """
    rule = _broken_rule(framework, architecture, layout, phase)
    return "" if rule is None else rule.reason


def framework_problem(
    framework: str, architecture: ModelArchitecture, layout: Parallelism, phase: str
) -> str:
    """Say why a framework cannot run a layout, with version and source; empty where it can.

    Parameters are those of `framework_reason`.
    """
    rule = _broken_rule(framework, architecture, layout, phase)
    if rule is None:
        return ""
    known = FRAMEWORK_LAYOUTS[framework]
    source = known.source.get(rule.field, "")
    where = f" ({source})" if source else ""
    return f"{framework} {known.version} cannot run {layout.label} for {phase}: {rule.text}{where}"


def _broken_rule(
    framework: str, architecture: ModelArchitecture, layout: Parallelism, phase: str
) -> _Rule | None:
    if not framework or layout.dp == layout.cp == layout.ep == 1:
        return None
    known = FRAMEWORK_LAYOUTS[framework]
    return next((rule for rule in RULES if rule.refuses(known, architecture, layout, phase)), None)


def _holds_for(models: Models, architecture: ModelArchitecture) -> bool:
    match models:
        case "any":
            return True
        case "experts":
            return _has_experts(architecture)
        case "latent":
            attention = [group.attention for group in architecture.groups if group.attention is not None]
            return bool(attention) and not any(isinstance(each, GroupedQueryAttention) for each in attention)
        case "dense latent":
            found = [group.attention for group in architecture.groups]
            sparse = any(isinstance(each, LatentAttention) and each.index is not None for each in found)
            compressed = any(isinstance(each, CompressedAttention) for each in found)
            return _holds_for("latent", architecture) and not sparse and not compressed
        case "none":
            return False


def _has_experts(architecture: ModelArchitecture) -> bool:
    return any(isinstance(group.ffn, MoeFfn) for group in architecture.groups)
