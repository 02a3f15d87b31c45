"""The configurations to search: layouts of a model on an accelerator, times batch sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.inventory.techniques import LONG_PROMPT_TOKENS
from fleetplan.perfmodel.architecture import (
    ModelArchitecture,
    MoeFfn,
)
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape.layout_problems import layout_problem
from fleetplan.perfmodel.landscape.phases import AGGREGATED, DECODE, PREFILL, RequestShape
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps.memory import FRAMEWORK_RESERVE_RATIO, weights_gib

HOST_SEARCH_LIMIT: Final = 16
"""Largest replica that is searched on parts whose links end at a host of 8. Two hosts reach every optimum
of the paper's online tables; larger ones are for jobs without latency targets. [accelerators]"""

SRAM_SEARCH_LIMIT: Final = 1024
"""Largest replica on parts without HBM: over three times the 8-bit weights of a decoder of 70 billion weights
at 220 MiB per chip; larger models need an explicit limit. [accelerators]"""

TENSOR_LIMIT: Final = 16
"""Largest tensor parallelism that is searched beyond a small scale-up domain. [accelerators]"""

PIPELINE_STAGES: Final = (1, 2, 4, 8, 16, 32, 64)

CONTEXT_RANKS: Final = (1, 2, 3, 4, 6, 8)
"""Degrees of context parallelism that are tried for long prompts: unlike heads, tokens share out among any
number, and a limit on the TTFT is met with fewer accelerators by a third of them than by a half."""

WEIGHT_COPIES: Final = 4
"""Factor on the accelerators that hold the weights of a large model, for its largest replica: the rest
computes prompts in parallel and holds cache."""

WIDE_EXPERT_WEIGHTS: Final = 100e9
"""Weights of the routed experts from which on wide expert parallelism is searched. A chosen figure between
models that a host serves (gpt-oss, Qwen3-30B) and those that are spread out (DeepSeek-V3, Qwen3-235B)."""

WIDEST_EXPERTS: Final = 256
"""Widest expert parallelism that is searched without a limit of the user's. [accelerators]"""

WIDE_TENSOR_RANKS: Final = (1, 2, 4, 8)
"""Tensor parallelism of attention that is tried beside wide expert parallelism."""

PREFILL_BATCHES: Final = (1, 2, 4, 8)

LARGEST_DECODE_BATCH: Final = 4096


def decode_batch_grid(largest: int = LARGEST_DECODE_BATCH) -> tuple[int, ...]:
    """Return {1, 1.25, 1.5, 1.75} * 2^k up to `largest`, whole numbers only.

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
        Numbers of stages and batch sizes to search.
    context_ranks : tuple[int, ...]
        Degrees of context parallelism that are tried; empty for those that suit the prompts (`fitted`).
    expert_ranks : int or None
        Widest expert parallelism beyond `max_accelerators`, one rank a group of experts; None for what suits
        the model (`fitted`). [accelerators]
    """

    runtimes: tuple[str, ...] = ("disaggregated", "aggregated")
    max_accelerators: int | None = None
    pipeline_stages: tuple[int, ...] = PIPELINE_STAGES
    prefill_batches: tuple[int, ...] = PREFILL_BATCHES
    decode_batches: tuple[int, ...] = decode_batch_grid()
    context_ranks: tuple[int, ...] = ()
    expert_ranks: int | None = None


def fitted(space: SearchSpace, evaluator: Evaluator, requests: Sequence[RequestShape]) -> SearchSpace:
    """Fill in what a search space leaves to the model, the part and the prompts.

    Parameters
    ----------
    space : SearchSpace
        Stated limits stay.
    evaluator : Evaluator
        The model at its precision on the part.
    requests : Sequence[RequestShape]
        Requests; the longest prompt decides.
    """
    if evaluator.accelerator.sram_only:
        return replace(space, context_ranks=space.context_ranks or (1,), expert_ranks=0)
    longest = max(request.input_tokens for request in requests)
    expert_ranks = space.expert_ranks
    if expert_ranks is None:
        widest = _wide_experts(evaluator.architecture)
        # A limit of the user applies to every replica.
        expert_ranks = widest if space.max_accelerators is None else min(widest, space.max_accelerators)
    return replace(
        space,
        max_accelerators=space.max_accelerators or _suited_max_accelerators(evaluator),
        context_ranks=space.context_ranks or (CONTEXT_RANKS if longest >= LONG_PROMPT_TOKENS else (1,)),
        expert_ranks=expert_ranks,
    )


def _suited_max_accelerators(evaluator: Evaluator) -> int:
    accelerator = evaluator.accelerator
    least = default_max_accelerators(accelerator)
    if accelerator.scale_out_gb_per_s is None:
        return least
    one = Layouts.of([Parallelism()])
    weights = float(weights_gib(evaluator.architecture, evaluator.dtypes, one)[0])
    wanted = WEIGHT_COPIES * weights / ((1 - FRAMEWORK_RESERVE_RATIO) * accelerator.hbm_gib)
    return max(least, 1 << math.ceil(math.log2(max(1.0, wanted))))


def _wide_experts(architecture: ModelArchitecture) -> int:
    mixtures = [(group.count, group.ffn) for group in architecture.groups if isinstance(group.ffn, MoeFfn)]
    weights = sum(count * ffn.routed_weights(architecture.hidden_size) for count, ffn in mixtures)
    if weights < WIDE_EXPERT_WEIGHTS:
        return 0
    return min(WIDEST_EXPERTS, *(ffn.experts for _, ffn in mixtures))


def phases_of(space: SearchSpace) -> list[tuple[str, tuple[int, ...]]]:
    """Return the phases of the runtimes of a search, each with its batch sizes.

    Raises
    ------
    ValueError
        No runtime that is known.
    """
    plan: list[tuple[str, tuple[int, ...]]] = []
    if "disaggregated" in space.runtimes:
        plan += [(PREFILL, space.prefill_batches), (DECODE, space.decode_batches)]
    if "aggregated" in space.runtimes:
        plan.append((AGGREGATED, space.decode_batches))
    if not plan:
        raise ValueError(f"no runtime to evaluate in {space.runtimes}")
    return plan


def default_max_accelerators(accelerator: Accelerator) -> int:
    """Return the largest replica that is searched by default: a pod, or two hosts of 8. [accelerators]."""
    if accelerator.sram_only:
        return SRAM_SEARCH_LIMIT
    if accelerator.scale_out_gb_per_s is None:
        return accelerator.scale_up_accelerators
    return max(HOST_SEARCH_LIMIT, accelerator.scale_up_accelerators)


def search_layouts(
    architecture: ModelArchitecture, accelerator: Accelerator, space: SearchSpace
) -> tuple[Parallelism, ...]:
    """Return the layouts that can run, smallest replica first.

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


def _candidates(
    architecture: ModelArchitecture, accelerator: Accelerator, space: SearchSpace, limit: int, widest: int
) -> Iterator[Parallelism]:
    domain = accelerator.scale_up_accelerators
    degrees = _degrees(domain, limit)
    stages: Iterable[int] = space.pipeline_stages
    # Without context parallelism, what a replica has beyond two hosts or a domain is for more stages.
    largest_stage = limit
    if accelerator.sram_only:
        layers = architecture.layer_count
        # Few chips hold a layer, so pipelines are long: every number of stages that shares the layers evenly.
        stages = (pp for pp in range(1, layers + 1) if layers % pp == 0)
        degrees = [degree for degree in degrees if degree & (degree - 1) == 0]
    elif space.expert_ranks is not None:
        largest_stage = max(HOST_SEARCH_LIMIT, domain)
    for pp in (pp for pp in stages if pp <= architecture.layer_count):
        for tp in (tp for tp in degrees if tp <= widest):
            for cp in (cp for cp in space.context_ranks or (1,) if pp * tp * cp <= limit):
                for dp in (dp for dp in degrees if pp * tp * cp * dp <= limit and tp * dp <= largest_stage):
                    for ep in _expert_degrees(architecture, degrees, tp * dp * cp, cp):
                        yield Parallelism(pp=pp, tp=tp, dp=dp, ffn_tp=tp * dp * cp // ep, ep=ep, cp=cp)
    for width in (2**power for power in range((space.expert_ranks or 0).bit_length())):
        if largest_stage < width <= (space.expert_ranks or 0):
            yield from (Parallelism(tp=tp, dp=width // tp, ffn_tp=1, ep=width) for tp in WIDE_TENSOR_RANKS)


def _degrees(domain: int, limit: int) -> list[int]:
    """Return powers of two, and multiples of a domain's odd part by powers of two that divide it."""
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
