"""Operators that older versions of a framework ran with other kernels.

Tables hold the kernels of today. Published rows, and servers that nobody touches, may be older than a kernel.
Each entry is a fact of the documentation of that software; none has a fitted figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.perfmodel.architecture import DenseFfn, ModelArchitecture
from fleetplan.perfmodel.operators import ActivationScales, Operator, OperatorKind


@dataclass(frozen=True, slots=True)
class Software:
    """Date and settings of the software.

    Attributes
    ----------
    date : str
        Year and month of the framework (YYYY-MM); the newest where it is empty.
    activation_scales : {"static", "dynamic"}
        How activations are quantised for weights in FP8.
    iterations_ahead : float or None
        Iterations that are made up before the running one has ended; None is the default of its framework.
    """

    date: str = ""
    activation_scales: ActivationScales = "static"
    iterations_ahead: float | None = None


TODAYS_SOFTWARE: Final = Software()


@dataclass(frozen=True, slots=True)
class OlderKernel:
    """An operator that older software runs in another way.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm.
    until : str
        First month without it (YYYY-MM).
    what : str
        What the older software does.
    source : str
        Where that is written.
    rewritten : Callable[[ModelArchitecture, Operator], Operator]
        The operator as the older software runs it; any other as it is.
    """

    framework: str
    until: str
    what: str
    source: str
    rewritten: Callable[[ModelArchitecture, Operator], Operator]


def as_run(
    operators: Iterable[Operator], architecture: ModelArchitecture, framework: str, software_date: str
) -> Iterator[Operator]:
    """Yield the operators of a step as the software of a month runs them.

    Parameters
    ----------
    operators : Iterable[Operator]
        Of today's software.
    architecture : ModelArchitecture
        The model whose step it is.
    framework : str
        trtllm, sglang or vllm.
    software_date : str
        Year and month of the framework (YYYY-MM); the newest where it is empty.
    """
    older = older_kernels(framework, software_date)
    for operator in operators:
        found = operator
        for kernel in older:
            found = kernel.rewritten(architecture, found)
        yield found


def older_kernels(framework: str, software_date: str) -> tuple[OlderKernel, ...]:
    """List what a framework ran otherwise in a month; nothing where the month is empty."""
    if not software_date:
        return ()
    return tuple(
        kernel for kernel in OLDER_KERNELS if kernel.framework == framework and software_date < kernel.until
    )


def _cache_read_by_every_head(_: ModelArchitecture, operator: Operator) -> Operator:
    if operator.kind is not OperatorKind.DECODE_ATTENTION:
        return operator
    return replace(operator, dims=operator.dims | {"kv_heads": operator.dims["heads"]})


def _prompts_in_16_bits(_: ModelArchitecture, operator: Operator) -> Operator:
    return replace(operator, dtype="bf16") if operator.kind is OperatorKind.PREFILL_ATTENTION else operator


def _gate_apart(architecture: ModelArchitecture, operator: Operator) -> Operator:
    dense = [group.ffn for group in architecture.groups if isinstance(group.ffn, DenseFfn)]
    if operator.name != "ffn_gate_up" or not all(ffn.gated for ffn in dense):
        return operator
    dims = operator.dims | {"n": operator.dims["n"] // 2}
    return replace(operator, dims=dims, count=2.0 * operator.count)


_BUILDS: Final = (
    "commands that build the engines of TensorRT-LLM's own performance tables, docs/source/performance.md "
    "(v0.8.0) and docs/source/performance/perf-overview.md (v0.9.0, of April 2024): they switch on "
    "context_fmha, and neither use_fp8_context_fmha nor use_fused_mlp, which are off unless asked for; from "
    "v0.10.0 (June 2024) on the tables come from servers"
)

OLDER_KERNELS: Final = (
    OlderKernel(
        "trtllm",
        "2024-02",
        "every query head reads the cache of its key-value head again while decoding",
        "docs/source/blogs/Falcon180B-H200.md (December 2023) and XQA-kernel.md (January 2024) of "
        "TensorRT-LLM: kernels for grouped heads come after v0.6, in full with v0.8 (February 2024), and "
        "decode Llama-70B on H200 1.9 to 2.4 times faster",
        _cache_read_by_every_head,
    ),
    OlderKernel(
        "trtllm", "2024-06", "prompts attend in 16 bits over any cache", _BUILDS, _prompts_in_16_bits
    ),
    OlderKernel("trtllm", "2024-06", "gate and up projection are separate GEMMs", _BUILDS, _gate_apart),
)
"""Everything that is known of older software, in the order in which operators are rewritten."""
