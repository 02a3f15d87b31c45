"""Why a layout of a model is not searched: it cannot run at all, or the framework does not run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.architecture import (
    Attention,
    CompressedAttention,
    LinearAttention,
    ModelArchitecture,
    MoeFfn,
)
from fleetplan.perfmodel.landscape.frameworks import LayoutSetting, framework_problem, framework_reason
from fleetplan.perfmodel.parallelism import Parallelism

UNEVEN_PIPELINE: Final = "uneven pipeline"
"""Reason against pipelines whose stages differ by more than `UNEVEN_STAGE_LIMIT`."""

UNEVEN_STAGE_LIMIT: Final = 0.05
"""Pipelines whose fullest stage has more than this share of layers above the mean are left out: the
evaluator prices even stages, and these would run at the pace of the fullest."""


def layout_problem(architecture: ModelArchitecture, layout: Parallelism, accelerator: Accelerator) -> str:
    """Return why a layout cannot run, or an empty string.

    Query heads are divided in whole numbers. Key-value heads are repeated if there are fewer than
    accelerators, experts if their number is not a multiple of the groups (redundant experts).
    """
    domain = accelerator.scale_up_accelerators
    if layout.pp > architecture.layer_count:
        return f"pp {layout.pp} is more than the {architecture.layer_count} layers"
    if accelerator.scale_out_gb_per_s is None and layout.accelerators > domain:
        return (
            f"{layout.accelerators} accelerators leave the scale-up domain of {domain}, and no network "
            f"figure is known for {accelerator.name}"
        )
    for group in architecture.groups:
        if group.attention is None:
            continue
        problem = _attention_problem(group.attention, layout)
        if problem:
            return problem
    return _expert_problem(architecture, layout)


def _attention_problem(attention: Attention, layout: Parallelism) -> str:
    heads = attention.value_heads if isinstance(attention, LinearAttention) else attention.heads
    if heads % layout.tp:
        return f"tp {layout.tp} does not divide {heads} attention heads"
    if isinstance(attention, CompressedAttention) and attention.output_groups % layout.tp:
        return f"tp {layout.tp} does not divide {attention.output_groups} groups of output heads"
    if isinstance(attention, CompressedAttention) and layout.cp > 1:
        return f"cp {layout.cp} of compressed attention is not evaluated"
    if isinstance(attention, LinearAttention) and layout.cp > 1:
        return f"cp {layout.cp} splits a context, but recurrent layers have a state instead"
    return ""


def _expert_problem(architecture: ModelArchitecture, layout: Parallelism) -> str:
    mixtures = [group.ffn for group in architecture.groups if isinstance(group.ffn, MoeFfn)]
    # Context-parallel ranks of a dense decoder may each hold the feed-forward block: as many groups of it.
    if layout.ep not in {1, layout.cp} and not mixtures:
        return f"ep {layout.ep} needs experts, and the model has none"
    for mixture in mixtures:
        if layout.ep > mixture.experts:
            return f"ep {layout.ep} is more than the {mixture.experts} experts"
        if layout.ffn_tp > mixture.intermediate_size:
            return f"moe_tp {layout.ffn_tp} splits an expert of width {mixture.intermediate_size}"
    return ""


def is_uneven(architecture: ModelArchitecture, layout: Parallelism) -> bool:
    """Whether a pipeline's fullest stage is too far above the mean."""
    layers = architecture.layer_count
    fullest = -(-layers // layout.pp) * layout.pp / layers
    return fullest > 1.0 + UNEVEN_STAGE_LIMIT


def layout_reason(
    architecture: ModelArchitecture, layout: Parallelism, phase: str, framework: str, setting: LayoutSetting
) -> str:
    """Return the name of the reason against a layout that model and part allow; empty for none.

    Parameters
    ----------
    architecture : ModelArchitecture
        The model.
    layout : Parallelism
        A layout without a `layout_problem`.
    phase : str
        prefill, decode or aggregated.
    framework : str
        trtllm, sglang or vllm; empty for none.
    setting : LayoutSetting
        Further conditions on the framework.
    """
    if is_uneven(architecture, layout):
        return UNEVEN_PIPELINE
    return framework_reason(framework, architecture, layout, phase, setting)


def configuration_problem(
    architecture: ModelArchitecture,
    layout: Parallelism,
    accelerator: Accelerator,
    phase: str,
    framework: str,
    prompt_stages: Sequence[int] = (),
) -> str:
    """Return, in a sentence, why searches and predictions reject a layout; empty if they accept it.

    Parameters
    ----------
    architecture, layout, accelerator
        As in `layout_problem`.
    phase, framework
        As in `layout_reason`.
    prompt_stages : Sequence[int]
        As in `LayoutSetting`.
    """
    problem = layout_problem(architecture, layout, accelerator)
    if problem:
        return problem
    if is_uneven(architecture, layout):
        layers = architecture.layer_count
        return f"pp {layout.pp} does not divide {layers} layers evenly: stages of {-(-layers // layout.pp)}"
    setting = LayoutSetting(accelerator.vendor, frozenset(prompt_stages))
    return framework_problem(framework, architecture, layout, phase, setting)
