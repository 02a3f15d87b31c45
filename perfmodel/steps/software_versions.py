"""Operators that older versions of a framework ran with other kernels.

Tables have today's kernels. Published rows, and old servers, may predate a kernel. Each entry is a fact from
the documentation of the software, without a fitted figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.perfmodel.architecture import DenseFfn, ModelArchitecture
from fleetplan.perfmodel.operators import ActivationScales, FloatArray, Operator, OperatorKind
from fleetplan.perfmodel.optables.formulas.token_sampling import (
    SAMPLING_NS_PER_LOGIT,
    SORTED_NS_PER_LOGIT,
    TRITON_NS_PER_LOGIT,
)
from fleetplan.perfmodel.steps.communication import NORM_REDUCTION_NAME, SUM_NAME
from fleetplan.perfmodel.steps.parts import gemm

NVIDIA: Final = "NVIDIA"
AMD: Final = "AMD"
"""Vendors of the catalogue."""


@dataclass(frozen=True, slots=True)
class Software:
    """Date and settings of the software.

    Attributes
    ----------
    date : str
        Year and month of the framework (YYYY-MM); empty for the newest.
    activation_scales : {"static", "dynamic"}
        Quantisation of activations for weights in FP8.
    iterations_ahead : float or None
        Iterations that are made up before the running one has ended; None is the default of its framework.
    prefix_cache : bool
        Whether the server keeps prefixes for later requests, the default of frameworks.
    memory_ratio : float or None
        Share of the memory that the framework uses, or of the memory beside weights for frameworks that count
        so; None is its default.
    is_served : bool
        Whether requests come through a server; otherwise a batch is handed to the library.
    """

    date: str = ""
    activation_scales: ActivationScales = "static"
    iterations_ahead: float | None = None
    prefix_cache: bool = True
    memory_ratio: float | None = None
    is_served: bool = True


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
        Behaviour of the older software.
    source : str
        Source.
    rewritten : Callable[[ModelArchitecture, Operator], Iterable[Operator]]
        Returns the operators of the older software instead of an operator; others unchanged.
    since : str
        First month with it; empty for the first version.
    vendor : str
        Vendors of the parts.
    """

    framework: str
    until: str
    what: str
    source: str
    rewritten: Callable[[ModelArchitecture, Operator], Iterable[Operator]]
    since: str = ""
    vendor: str = NVIDIA


def as_run(
    operators: Iterable[Operator],
    architecture: ModelArchitecture,
    framework: str,
    software_date: str,
    vendor: str = NVIDIA,
) -> Iterator[Operator]:
    """Yield the operators of a step as the software of a month runs them.

    Parameters
    ----------
    operators : Iterable[Operator]
        Operators of today's software.
    architecture : ModelArchitecture
        The model whose step it is.
    framework : str
        trtllm, sglang or vllm.
    software_date : str
        Year and month of the framework (YYYY-MM); empty for the newest.
    vendor : str
        Vendor of the accelerator.
    """
    older = older_kernels(framework, software_date, vendor)
    for operator in operators:
        found = [operator]
        for kernel in older:
            found = [each for one in found for each in kernel.rewritten(architecture, one)]
        yield from found


def older_kernels(framework: str, software_date: str, vendor: str = NVIDIA) -> tuple[OlderKernel, ...]:
    """Return older kernels of a framework in a month on a vendor's parts; none without a month."""
    if not software_date:
        return ()
    return tuple(
        kernel
        for kernel in OLDER_KERNELS
        if (kernel.framework, kernel.vendor) == (framework, vendor)
        and kernel.since <= software_date < kernel.until
    )


def _cache_read_by_every_head(_: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
    if operator.kind is OperatorKind.DECODE_ATTENTION:
        operator = replace(operator, dims=operator.dims | {"kv_heads": operator.dims["heads"]})
    yield operator


def _prompts_in_16_bits(_: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
    is_prompts = operator.kind is OperatorKind.PREFILL_ATTENTION
    yield replace(operator, dtype="bf16") if is_prompts else operator


def _gate_apart(architecture: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
    dense = [group.ffn for group in architecture.groups if isinstance(group.ffn, DenseFfn)]
    if operator.name == "ffn_gate_up" and all(ffn.gated for ffn in dense):
        dims = operator.dims | {"n": operator.dims["n"] // 2}
        operator = replace(operator, dims=dims, count=2.0 * operator.count)
    yield operator


PADDED_ROWS: Final = 128
"""Rows to which DeepGEMM's grouped product pads the tokens of each expert. Source: its
get_m_alignment_for_contiguous_layout(); vLLM allots that many to every expert that an accelerator holds
(`compute_aligned_M` of vllm/model_executor/layers/fused_moe/deep_gemm_utils.py)."""

_UNPADDED_GROUP: Final = 8
"""Tensor parallelism from which vLLM 0.12 leaves block-FP8 experts to Triton (its pull request 29346)."""


def _padded_experts(_: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
    yield operator
    if _is_block_scaled_experts(operator):
        yield from _padding(operator, operator.count)


def _padded_experts_below_eight(_: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
    yield operator
    if _is_block_scaled_experts(operator):
        group = operator.dims["moe_tp"] * operator.dims["moe_ep"]
        yield from _padding(operator, np.where(group == _UNPADDED_GROUP, 0.0, operator.count))


def _is_block_scaled_experts(operator: Operator) -> bool:
    ordinary = operator.kind in (OperatorKind.MOE, OperatorKind.EVEN_MOE)
    return ordinary and operator.dtype == "fp8_block"


def _padding(experts: Operator, count: FloatArray) -> Iterator[Operator]:
    """Products of the rows that pad the experts of an accelerator, which the tokens of prompts fill.

    If experts are split, rows of a smaller width take as long as fewer rows of the whole width: their
    activations are quantised before the rows are copied.
    """
    dims = experts.dims
    held = PADDED_ROWS * -(-dims["experts"] // dims["moe_ep"])
    padding = (held - dims["tokens"] * dims["top_k"] // dims["moe_ep"]) // dims["moe_tp"]
    rows, count = np.maximum(1, padding), np.where(padding > 0, count, 0.0)
    hidden, width = dims["hidden"], dims["intermediate"]
    yield gemm("padded_gate_up", experts.dtype, rows, 2 * width, hidden, 1, count)
    yield gemm("padded_down", experts.dtype, rows, hidden, width, 1, count)


def _normed_apart(_: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
    if operator.name == NORM_REDUCTION_NAME:
        halves = operator.dims | {"message_bytes": np.maximum(1, operator.dims["message_bytes"] // 2)}
        operator = replace(operator, dims=halves, count=2.0 * operator.count)
    elif operator.name == SUM_NAME:
        # In addition to its sums, the norm of the second is a separate kernel.
        halves = operator.dims | {"traffic_bytes": operator.dims["traffic_bytes"] // 2}
        operator = replace(operator, dims=halves, count=3.0 * operator.count)
    yield operator


_OFFSET_NORMS: Final = frozenset({"qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"})
"""Decoders whose norms scale by one more than their weight, as Gemma's. Source: modeling code of Hugging Face
transformers."""

_NORMS_OF: Final = {"attention_norm": 1, "ffn_norm": 1, "final_norm": 1, "query_key_norm": 2}
"""Norms in an operator."""

_WIDE_KERNELS, _NARROW_KERNELS = 6, 4
"""Kernels of `GemmaRMSNorm.forward_native` beyond one: over the whole vectors (conversion, square, mean,
two products, conversion), and over one value a token or the weight (rsqrt, two additions, conversion)."""


def _norms_by_operation(architecture: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
    yield operator
    norms = _NORMS_OF.get(operator.name, 0)
    if norms and architecture.model_type in _OFFSET_NORMS:
        yield replace(
            operator, name=f"{operator.name}_passes", count=float(norms * _WIDE_KERNELS) * operator.count
        )
        narrow = {name: np.ones_like(value) for name, value in operator.dims.items()}
        count = float(norms * _NARROW_KERNELS) * operator.count
        yield replace(operator, name=f"{operator.name}_scalars", dims=narrow, count=count)


_BUILDS: Final = (
    "commands that build the engines of TensorRT-LLM's own performance tables, docs/source/performance.md "
    "(v0.8.0) and docs/source/performance/perf-overview.md (v0.9.0, of April 2024): they switch on "
    "context_fmha, and neither use_fp8_context_fmha nor use_fused_mlp, which are off unless asked for; from "
    "v0.10.0 (June 2024) on the tables come from servers"
)


def _sampled_at(ns_per_logit: float) -> Callable[[ModelArchitecture, Operator], Iterator[Operator]]:
    """Return the rule by which drawing a token takes so long for a logit under vLLM."""

    def rewritten(_: ModelArchitecture, operator: Operator) -> Iterator[Operator]:
        if operator.kind is OperatorKind.TOKEN_SAMPLING:
            ratio = ns_per_logit / SAMPLING_NS_PER_LOGIT["vllm"]
            operator = replace(operator, count=ratio * operator.count)
        yield operator

    return rewritten


_DEEP_GEMM: Final = (
    "vLLM 0.11.1 (November 2025): DeepGEMM is on by default and, since pull request 26197, for every batch "
    "(is_deep_gemm_e8m0_used); vllm-project/recipes pull requests 112 and 120 and vLLM's 29346 and 39331 "
    "report what that costs at small batches. vLLM 0.15 (end of January 2026, pull request 32414) chooses "
    "another kernel first"
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
    OlderKernel(
        "vllm",
        "2026-01",
        "queries and keys that are normed over all heads exchange their sums one after the other",
        "vLLM pull request 31493 (December 2025): a single all-reduce for both, in 0.14",
        _normed_apart,
    ),
    OlderKernel(
        "sglang",
        "2026-01",
        "as vLLM",
        "SGLang pull request 14416 (December 2025): three kernels for both in the place of six",
        _normed_apart,
    ),
    OlderKernel(
        "vllm",
        "2025-12",
        "experts in block-FP8 compute 128 rows for every expert that an accelerator holds",
        _DEEP_GEMM,
        _padded_experts,
        "2025-11",
    ),
    OlderKernel(
        "vllm",
        "2026-02",
        "as before, except on groups of eight",
        _DEEP_GEMM,
        _padded_experts_below_eight,
        "2025-12",
    ),
    OlderKernel(
        "vllm",
        "2026-03",
        "top-k and top-p sort all logits",
        "vLLM pull request 33538, merged in February 2026: Triton kernels in the place of a sort",
        _sampled_at(SORTED_NS_PER_LOGIT),
    ),
    OlderKernel(
        "vllm",
        "2026-05",
        "top-k and top-p by Triton",
        "vLLM pull request 40376, April 2026: FlashInfer's sampler is on by default",
        _sampled_at(TRITON_NS_PER_LOGIT),
        "2026-03",
    ),
    OlderKernel(
        "sglang",
        "2026-04",
        "norms like Gemma's run operation by operation",
        "SGLang pull request 21188, merged on 23 March 2026, in 0.5.10: GemmaRMSNorm went to forward_native "
        "on AMD; it reports 23 % less time of a request of Qwen3.5-397B on eight MI355X",
        _norms_by_operation,
        vendor=AMD,
    ),
)
"""Everything that is known of older software, in the order in which operators are rewritten."""
