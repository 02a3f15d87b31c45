"""Rules for the layouts that a serving framework can run, from its documentation.

A layout that model and part allow may still have no form in a framework: attention data parallelism of a
dense model starts whole replicas under vLLM, and experts are split over all ranks of a stage or over none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from fleetplan.perfmodel.architecture import (
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
    ModelArchitecture,
    MoeFfn,
)
from fleetplan.perfmodel.landscape.framework_layouts import FRAMEWORK_LAYOUTS, FrameworkLayouts, Models
from fleetplan.perfmodel.landscape.framework_parts import may_be_of
from fleetplan.perfmodel.landscape.phases import AGGREGATED, DECODE, PREFILL
from fleetplan.perfmodel.parallelism import Parallelism


@dataclass(frozen=True, slots=True)
class LayoutSetting:
    """Further conditions on the layouts that a framework runs.

    Attributes
    ----------
    vendor : str or None
        Vendor of the part; None if unknown.
    prompt_stages : frozenset[int]
        Pipeline stages that the service's prefill servers may have; empty if unknown.
    """

    vendor: str | None = None
    prompt_stages: frozenset[int] = frozenset()


ANYWHERE: Final = LayoutSetting()
"""Nothing is known."""


@dataclass(frozen=True, slots=True)
class _Servers:
    """Replicas of any model, and what decides whether a framework hands caches to or from them."""

    known: FrameworkLayouts
    layout: Parallelism
    phase: str
    setting: LayoutSetting


@dataclass(frozen=True, slots=True)
class _Asked(_Servers):
    """Replicas of a model, and all that decides whether a framework can run them."""

    model: ModelArchitecture


_AskedT_contra = TypeVar("_AskedT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class _Rule(Generic[_AskedT_contra]):
    """A rule that excludes layouts.

    Attributes
    ----------
    reason : str
        Its name in counts of excluded configurations.
    text : str
        Explanation.
    field : str
        The field of `FrameworkLayouts` behind it.
    refuses : callable
        Whether it excludes a layout.
    """

    reason: str
    text: str
    field: str
    refuses: Callable[[_AskedT_contra], bool]


def _attention_dp(asked: _Asked) -> bool:
    return asked.layout.dp > 1 and not _holds_for(asked.known.attention_dp, asked.model)


def _dp_beside_tp(asked: _Asked) -> bool:
    return asked.layout.dp > 1 and asked.layout.tp > 1 and not asked.known.dp_beside_tp


def _expert_groups(asked: _Asked) -> bool:
    split = asked.layout.ep > 1 and asked.layout.ffn_tp > 1
    return asked.known.expert_groups != "any" and split and _has_experts(asked.model)


def _mixed_cp(asked: _Asked) -> bool:
    return asked.layout.cp > 1 and asked.phase == AGGREGATED


def _prompt_cp(asked: _Asked) -> bool:
    shares = asked.layout.cp > 1 and asked.phase == PREFILL
    return shares and not _holds_for(asked.known.prompt_cp, asked.model)


def _latent_prompt_cp(asked: _Asked) -> bool:
    layout = asked.layout
    if layout.cp == 1 or asked.phase != PREFILL or not _holds_for("latent", asked.model):
        return False
    return asked.known.latent_prompt_cp_alone and (
        layout.tp > 1 or layout.ep != layout.accelerators_per_stage
    )


def _generation_cp(asked: _Asked) -> bool:
    shares = asked.layout.cp > 1 and asked.phase == DECODE
    return shares and not _holds_for(asked.known.generation_cp, asked.model)


def _generation_cp_beside_tp(asked: _Asked) -> bool:
    beside = asked.layout.cp > 1 and asked.layout.tp > 1 and asked.phase == DECODE
    return beside and not asked.known.generation_cp_beside_tp


def _cp_feed_forward(asked: _Asked) -> bool:
    layout = asked.layout
    if layout.cp == 1 or _has_experts(asked.model):
        return False
    wide = asked.phase == PREFILL and asked.known.prompt_cp_is_wide
    return layout.ep != (layout.cp if wide else 1)


def _cp_beside_stages(asked: _Servers) -> bool:
    beside = asked.layout.cp > 1 and asked.layout.pp > 1 and asked.phase != AGGREGATED
    return beside and not asked.known.cp_beside_stages


def _generation_stages(asked: _Servers) -> bool:
    stages, known = asked.layout.pp, asked.known.generation_stages
    if stages == 1 or asked.phase != DECODE or known == "any":
        return False
    # A router may pair the replica with any of the service's prefill replicas.
    return bool(asked.setting.prompt_stages - {stages})


def _generation_stage_vendors(asked: _Servers) -> bool:
    staged = asked.layout.pp > 1 and asked.phase == DECODE
    return staged and not may_be_of(asked.setting.vendor, asked.known.generation_stage_vendors)


STAGE_RULES: Final[tuple[_Rule[_Servers], ...]] = (
    _Rule(
        "framework: cp beside stages",
        "caches that several ranks share are not handed over from or to several pipeline stages",
        "cp_beside_stages",
        _cp_beside_stages,
    ),
    _Rule(
        "framework: stages of generation",
        "caches are handed over to as many pipeline stages as computed the prompt, or to one: "
        "`search: {pipeline_stages: [N]}` gives prefill and decode the same number",
        "generation_stages",
        _generation_stages,
    ),
    _Rule(
        "framework: stages on this part",
        "no caches are handed over to several pipeline stages on parts of this vendor",
        "generation_stage_vendors",
        _generation_stage_vendors,
    ),
)
"""Rules about servers of one phase, for any model."""

RULES: Final[tuple[_Rule[_Asked], ...]] = (
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
        "experts are divided among all ranks of a stage, or every expert is split over all of them",
        "expert_groups",
        _expert_groups,
    ),
    _Rule(
        "framework: cp of both phases",
        "context parallelism of prompts and of generation take other ranks, which one layout cannot name",
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
        "ranks that share prompts of latent attention are all ranks of a stage, each with separate experts",
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
        "the framework divides the dense feed-forward block differently among context-parallel ranks",
        "prompt_cp_is_wide",
        _cp_feed_forward,
    ),
    *STAGE_RULES,
)
"""Rules in order of evaluation; the first match is the reason."""

FRAMEWORK_REASONS: Final = {rule.reason: rule.text for rule in RULES}
"""Reasons in counts of excluded configurations, with their explanations."""


def framework_reason(
    framework: str,
    architecture: ModelArchitecture,
    layout: Parallelism,
    phase: str,
    setting: LayoutSetting = ANYWHERE,
) -> str:
    """Return the name of the reason why a framework cannot run a layout; empty if it can.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm; empty for none, which can run everything.
    architecture : ModelArchitecture
        The model.
    layout : Parallelism
        Layout of a replica.
    phase : str
        prefill, decode or aggregated.
    setting : LayoutSetting
        Further conditions; unknown ones exclude nothing.
    """
    rule = _broken_rule(framework, architecture, layout, phase, setting)
    return "" if rule is None else rule.reason


def framework_problem(
    framework: str,
    architecture: ModelArchitecture,
    layout: Parallelism,
    phase: str,
    setting: LayoutSetting = ANYWHERE,
) -> str:
    """Return why a framework cannot run a layout, with version and source; empty if it can.

    Parameters are those of `framework_reason`.
    """
    rule = _broken_rule(framework, architecture, layout, phase, setting)
    return "" if rule is None else _sentence(rule, framework, layout, phase)


def stages_problem(framework: str, layout: Parallelism, phase: str, setting: LayoutSetting) -> str:
    """Return why replicas cannot hand over caches, for any model; empty if they can.

    Parameters are those of `framework_reason`.
    """
    asked = _Servers(FRAMEWORK_LAYOUTS[framework], layout, phase, setting)
    rule = next((rule for rule in STAGE_RULES if rule.refuses(asked)), None)
    return "" if rule is None else _sentence(rule, framework, layout, phase)


def _sentence(rule: _Rule[_Asked], framework: str, layout: Parallelism, phase: str) -> str:
    known = FRAMEWORK_LAYOUTS[framework]
    source = known.source.get(rule.field, "")
    where = f" ({source})" if source else ""
    return f"{framework} {known.version} cannot run {layout.label} for {phase}: {rule.text}{where}"


def _broken_rule(
    framework: str, architecture: ModelArchitecture, layout: Parallelism, phase: str, setting: LayoutSetting
) -> _Rule[_Asked] | None:
    if not framework or layout.pp == layout.dp == layout.cp == layout.ep == 1:
        return None
    asked = _Asked(FRAMEWORK_LAYOUTS[framework], layout, phase, setting, architecture)
    return next((rule for rule in RULES if rule.refuses(asked)), None)


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
