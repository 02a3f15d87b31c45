"""Importers of the packaged tables of routed experts: ordinary kernels, and those behind a dispatch.

Each was timed under several spreads of the tokens over the experts. Two of them are kept: the flattest
power law (a skew of real traffic), and the even one, which is what a load balancer of experts aims at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.measured.columns import BoolArray, StoredColumns, split_by_dtype
from fleetplan.perfmodel.optables.rows import MeasuredRows

if TYPE_CHECKING:
    import pandas as pd

_SKEWED: Final = ("power_law_1.01", "power_law_1.2", "balanced", "uniform")
"""Spreads of tokens that are not balanced, the preferred one first. Balanced routing sends every token of a
small batch to other experts than the ones before, which reads more weights than real batches do, and leaves
no busiest expert in a large one; the flattest power law has neither flaw and was measured for every
system."""

_LOAD_BALANCED: Final = "power_law_1.01_eplb"

_EVEN: Final = ("uniform", "balanced", _LOAD_BALANCED)
"""Spreads of tokens that are even, or were made so by a load balancer, the preferred one first."""

EPLB_BUSIEST_RATIO: Final = 1.0 / 0.7
"""Tokens of the busiest expert-parallel rank over the mean, with a load balancer. Source: Ant Group, "Best
Practices for Serving DeepSeek-R1 on H20-96G" (LMSYS blog, 26 September 2025): a load balance ratio, mean
over maximum, that stays above 70 % in production. Not fitted; held against it: perfectly balanced experts
raise the prefill of DeepSeek-V3 on 32 H100 from 50,302 to 59,337 tokens/s a host (LMSYS blog, 5 May 2025),
a ratio of 1.18, and 1.20 here with overlap of two batches."""

_SPREADS: Final = {
    OperatorKind.MOE: _SKEWED,
    OperatorKind.UNGATED_MOE: _SKEWED,
    OperatorKind.DISPATCHED_MOE: _SKEWED,
    OperatorKind.EVEN_MOE: _EVEN,
    OperatorKind.EVEN_DISPATCHED_MOE: _EVEN,
}


@dataclass(frozen=True, slots=True)
class ExpertKernels:
    """Data types of experts that do not run by the fastest kernel that was measured.

    Attributes
    ----------
    triton : frozenset[str]
        Formats that use the measurements of Triton, whatever else was measured.
    own : frozenset[str]
        Formats that use the measurements of the chosen framework, even if others are faster.
    """

    triton: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()


FASTEST_EXPERTS: Final = ExpertKernels()
"""All run by the fastest."""

TRITON: Final = "_triton"
"""Suffix of an import for the data type of experts that Triton runs, if others were measured as well."""

_TRITON_DTYPES: Final = ("bf16", "fp8_block")
_TRITON_KERNELS: Final = re.compile("triton_tritonexperts|sglang_fused_moe_triton|vllm_fused_moe")
"""Kernels of Triton by their names in the tables: `fused_experts` of vLLM, which is what its tables before
0.24 call, and of SGLang."""

_MODELOPT_KERNEL: Final = "vllm_modeloptfp8moe_flashinfer_cutlass"
"""A kernel for checkpoints of ModelOpt that takes four to five times as long on H100 as CUTLASS under
TensorRT-LLM, and as Triton with scales in blocks (64 tokens of Llama-4-Maverick at TP8: 1.44, 0.27 and 0.31
ms). Published mixtures in FP8 without blocks (Llama 4's own, of compressed-tensors) do not run it: vLLM pull
request 16537 (April 2025), by CUTLASS, or by Triton at three quarters of its rate."""

_SLOW_MARLIN: Final = "vllm_marlin_int4_moe"
"""Marlin as vLLM's tables of 0.19 time it for INT4 experts, on H200 and B200 alone. The same kernel takes 1.6
to 4 times as long there as in the tables of 0.24 (Kimi-K2's shape, medians by tokens) and 1.3 to 3.3 times as
long as in SGLang's up to 1,024 tokens (ten shapes), and twice as long as experts in BF16, whose weights have
four times the bytes. No server shows it: one H200 generates twice what those times allow with GLM-4.5-Air in
INT4, four do with Qwen3-Coder-480B (cloudrift-ai/server-benchmark, October 2025, vLLM). SGLang's times of
Marlin stand for shapes that 0.24 lacks."""


def expert_tables(stored: StoredColumns) -> list[MeasuredRows]:
    """Ordinary kernels, with and without gates; those of Triton a second time if there are others."""
    kernels = stored.texts("kernel_source")
    # Experts without a gate are another operator: two products instead of three.
    ungated = kernels.where(lambda name: "nongated" in name)
    unused = kernels.where(lambda name: name.startswith(_MODELOPT_KERNEL) or name == _SLOW_MARLIN)
    gated = ~(ungated | unused)
    by_triton = kernels.where(lambda name: _TRITON_KERNELS.search(name) is not None)
    return [
        *_moe(stored, OperatorKind.MOE, gated),
        *_moe(stored, OperatorKind.EVEN_MOE, gated),
        *_moe(stored, OperatorKind.UNGATED_MOE, ungated),
        *(
            replace(table, dtype=table.dtype + TRITON)
            for kind in (OperatorKind.MOE, OperatorKind.EVEN_MOE)
            for table in _moe(stored, kind, by_triton, _TRITON_DTYPES)
        ),
    ]


def dispatched_expert_tables(stored: StoredColumns, low_latency: int) -> list[MeasuredRows]:
    """Return the kernels behind a dispatch, for steps with prompts (0) or without (1)."""
    # The tokens are those of the whole expert group here as well: 16 of one rank are 128 with 8 ranks.
    count = stored.latency_ms().size
    named = stored.with_columns(low_latency=np.full(count, low_latency))
    kinds = (OperatorKind.DISPATCHED_MOE, OperatorKind.EVEN_DISPATCHED_MOE)
    return [table for kind in kinds for table in _moe(named, kind, np.ones(count, dtype=np.bool_))]


def wide_expert_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Return the kernels that are the same with and without prompts.

    Balanced ones with as many redundant copies as were measured: the copies count as experts.
    """
    plain = frame[frame["num_slots"] == frame["num_experts"]]
    balanced = frame[frame["distribution"].isin(_EVEN)]
    most = balanced.groupby(["hidden_size", "num_experts"])["num_slots"].transform("max")
    balanced = balanced[balanced["num_slots"] == most]
    balanced = balanced.assign(num_experts=balanced["num_slots"])
    return [
        table
        for low_latency in (0, 1)
        for part, kind in (
            (plain, OperatorKind.DISPATCHED_MOE),
            (balanced, OperatorKind.EVEN_DISPATCHED_MOE),
        )
        for table in _moe(
            StoredColumns.of_frame(part.assign(low_latency=low_latency)),
            kind,
            np.ones(len(part), dtype=np.bool_),
        )
    ]


def _moe(
    stored: StoredColumns, kind: OperatorKind, is_counted: BoolArray, dtypes: tuple[str, ...] | None = None
) -> list[MeasuredRows]:
    """Return the tables of the relevant rows, of some data types or all, by their preferred spread."""
    spreads = stored.texts("distribution")
    for distribution in _SPREADS[kind]:
        is_chosen = spreads.equal(distribution) & is_counted
        if is_chosen.any():
            break
    else:
        return []
    columns = {
        "tokens": "num_tokens",
        "hidden": "hidden_size",
        "intermediate": "inter_size",
        "top_k": "topk",
        "experts": "num_experts",
        "moe_tp": "moe_tp_size",
        "moe_ep": "moe_ep_size",
    }
    if distribution == _LOAD_BALANCED:
        # Its busiest rank has more than the mean, like a step with a load balancer: the time is that of an
        # even spread of that many more tokens.
        tokens = np.rint(stored.numbers("num_tokens") * EPLB_BUSIEST_RATIO).astype(np.int64)
        stored = stored.with_columns(num_tokens=tokens)
    if "low_latency" in stored:
        columns["low_latency"] = "low_latency"
    return split_by_dtype(stored, kind, "moe_dtype", columns, is_chosen, dtypes)
