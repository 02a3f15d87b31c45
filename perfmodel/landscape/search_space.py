"""Which configurations are worth looking at: layouts of a model on an accelerator, times batch sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.architecture import LinearAttention, ModelArchitecture, MoeFfn
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism

HOST_SEARCH_LIMIT: Final = 16
"""Largest replica that is searched on parts whose links end at a host of 8. Two hosts reach every optimum
of the paper's online tables; larger ones are for jobs without latency targets. [accelerators]"""

SRAM_SEARCH_LIMIT: Final = 1024
"""Largest replica that is searched on parts without HBM: over three times the 8-bit weights of a decoder of
70 billion weights in 220 MiB a chip; larger models need a limit of their own. [accelerators]"""

TENSOR_LIMIT: Final = 16
"""Largest tensor parallelism that is searched beyond a small scale-up domain. [accelerators]"""

PIPELINE_STAGES: Final = (1, 2, 4, 8, 16)

PREFILL_BATCHES: Final = (1, 2, 4, 8)

LARGEST_DECODE_BATCH: Final = 4096

UNEVEN_STAGE_LIMIT: Final = 0.05
"""Pipelines whose fullest stage has more than this share of layers above the mean are left out: the
evaluator prices even stages, and these would run at the pace of the fullest."""


def decode_batch_grid(largest: int = LARGEST_DECODE_BATCH) -> tuple[int, ...]:
    """{1, 1.25, 1.5, 1.75} * 2^k up to `largest`, whole numbers only.

    Source: the batch sizes of Tables 6 and 7 of Meta, Optimizing Deployment Configurations for LLM
    Inference, are all of this form.
    """
    quarters = {step * 2**power for power in range(largest.bit_length() + 1) for step in (4, 5, 6, 7)}
    return tuple(sorted(n // 4 for n in quarters if n % 4 == 0 and n // 4 <= largest))


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Limits of the search.

    Attributes
    ----------
    runtimes : tuple[str, ...]
        disaggregated (prefill and decode apart), aggregated (continuous batching), or both.
    max_accelerators : int or None
        Largest replica; None for `default_max_accelerators`. [accelerators]
    pipeline_stages, prefill_batches, decode_batches : tuple[int, ...]
        What is tried.
    context_ranks : tuple[int, ...]
        Degrees of context parallelism that are tried; it pays for long prompts alone.
    """

    runtimes: tuple[str, ...] = ("disaggregated", "aggregated")
    max_accelerators: int | None = None
    pipeline_stages: tuple[int, ...] = PIPELINE_STAGES
    prefill_batches: tuple[int, ...] = PREFILL_BATCHES
    decode_batches: tuple[int, ...] = decode_batch_grid()
    context_ranks: tuple[int, ...] = (1,)


def default_max_accelerators(accelerator: Accelerator) -> int:
    """Largest replica that is searched by default: a pod, or two hosts of 8. [accelerators]."""
    if accelerator.sram_only:
        return SRAM_SEARCH_LIMIT
    if accelerator.scale_out_gb_per_s is None:
        return accelerator.scale_up_accelerators
    return max(HOST_SEARCH_LIMIT, accelerator.scale_up_accelerators)


def layout_problem(architecture: ModelArchitecture, layout: Parallelism, accelerator: Accelerator) -> str:
    """Say why a layout cannot run, or return an empty string.

    Query heads are shared out in whole numbers; key-value heads are repeated where there are fewer of them
    than accelerators, and experts where their number is no multiple of the groups (redundant experts).
    """
    domain = accelerator.scale_up_accelerators
    if accelerator.scale_out_gb_per_s is None and layout.accelerators > domain:
        return (
            f"{layout.accelerators} accelerators leave the scale-up domain of {domain}, and no network "
            f"figure is known for {accelerator.name}"
        )
    for group in architecture.groups:
        if group.attention is None:
            continue
        attention = group.attention
        heads = attention.value_heads if isinstance(attention, LinearAttention) else attention.heads
        if heads % layout.tp:
            return f"tp {layout.tp} does not divide {heads} attention heads"
        if isinstance(attention, LinearAttention) and layout.cp > 1:
            return f"cp {layout.cp} shares out a context, and recurrent layers have a state instead of one"
    return _expert_problem(architecture, layout)


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


def search_layouts(
    architecture: ModelArchitecture, accelerator: Accelerator, space: SearchSpace
) -> tuple[Parallelism, ...]:
    """Layouts that can run, smallest replica first.

    Degrees are powers of two; on pods of another size (72) also those multiples of its odd part (9, 18, 36,
    72) that fill it. Expert groups take only degrees that share the experts out evenly, or that fill a pod.
    """
    limit = space.max_accelerators or default_max_accelerators(accelerator)
    domain = TENSOR_LIMIT if accelerator.sram_only else accelerator.scale_up_accelerators
    widest = min(limit, max(TENSOR_LIMIT, domain))
    found = [
        layout
        for layout in _candidates(architecture, accelerator, space, limit, widest)
        if not layout_problem(architecture, layout, accelerator)
    ]
    return tuple(sorted(found, key=lambda layout: (layout.accelerators, layout)))


def uneven_stages(architecture: ModelArchitecture, layouts: Layouts) -> NDArray[np.bool_]:
    """Whether a pipeline's fullest stage is too far above the mean, shape (n_configs,)."""
    layers = architecture.layer_count
    fullest: FloatArray = -(-layers // layouts.pp) * layouts.pp / layers
    return fullest > 1.0 + UNEVEN_STAGE_LIMIT


def crossed(layouts: tuple[Parallelism, ...], batches: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Positions in `layouts` and batch sizes of every pair, shape (n_layouts * n_batches,) each."""
    positions = np.repeat(np.arange(len(layouts), dtype=np.int64), len(batches))
    return positions, np.tile(np.array(batches, dtype=np.int64), len(layouts))


def _candidates(
    architecture: ModelArchitecture, accelerator: Accelerator, space: SearchSpace, limit: int, widest: int
) -> Iterator[Parallelism]:
    degrees = _degrees(accelerator.scale_up_accelerators, limit)
    stages: Iterable[int] = space.pipeline_stages
    if accelerator.sram_only:
        layers = architecture.layer_count
        # Few chips hold a layer, so pipelines are long: every number of stages that shares the layers evenly.
        stages = (pp for pp in range(1, layers + 1) if layers % pp == 0)
        degrees = [degree for degree in degrees if degree & (degree - 1) == 0]
    for pp in (pp for pp in stages if pp <= architecture.layer_count):
        for tp in (tp for tp in degrees if tp <= widest):
            for cp in (cp for cp in space.context_ranks if pp * tp * cp <= limit):
                for dp in (dp for dp in degrees if pp * tp * cp * dp <= limit):
                    for ep in _expert_degrees(architecture, degrees, tp * dp * cp, cp):
                        yield Parallelism(pp=pp, tp=tp, dp=dp, ffn_tp=tp * dp * cp // ep, ep=ep, cp=cp)


def _degrees(domain: int, limit: int) -> list[int]:
    """Powers of two, and the multiples of a domain's odd part by powers of two that divide it."""
    powers = [2**power for power in range(limit.bit_length())]
    odd = domain // (domain & -domain)
    fillings = [odd * power for power in powers if domain % (odd * power) == 0]
    return sorted({degree for degree in (*powers, *fillings) if degree <= limit})


def _expert_degrees(
    architecture: ModelArchitecture, degrees: list[int], stage: int, cp: int
) -> Iterator[int]:
    mixtures = [group.ffn for group in architecture.groups if isinstance(group.ffn, MoeFfn)]
    for ep in degrees if mixtures else sorted({1, cp}):
        # Uneven shares need redundant experts: worth it only where all accelerators of a stage are a group.
        even = all(mixture.experts % ep == 0 for mixture in mixtures)
        if stage % ep == 0 and (even or ep == stage):
            yield ep
