"""Importers of the packaged tables of routed experts: ordinary kernels, and those behind a dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.measured.columns import split_by_dtype
from fleetplan.perfmodel.optables.rows import MeasuredRows

if TYPE_CHECKING:
    import pandas as pd

_DISTRIBUTIONS: Final = ("power_law_1.01", "power_law_1.2", "balanced")
"""Routing of MoE tokens, the preferred one first. Balanced routing sends every token of a small batch to
other experts than the ones before, which reads more weights than real batches do, and leaves no busiest
expert in a large one; the flattest power law has neither flaw and was measured for every system."""


def expert_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Ordinary kernels, with and without gates."""
    # Experts without a gate are another operator: two products instead of three.
    ungated = frame["kernel_source"].str.contains("nongated")
    return [*_moe(frame[~ungated], OperatorKind.MOE), *_moe(frame[ungated], OperatorKind.UNGATED_MOE)]


def dispatched_expert_tables(frame: pd.DataFrame, low_latency: int) -> list[MeasuredRows]:
    """Kernels behind a dispatch, for steps with prompts (0) or without (1)."""
    # The tokens are those of the whole expert group here as well: 16 of one rank are 128 with 8 ranks.
    return _moe(frame.assign(low_latency=low_latency), OperatorKind.DISPATCHED_MOE)


def wide_expert_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Kernels that are the same with and without prompts; rows with redundant experts are left out."""
    plain = frame[frame["num_slots"] == frame["num_experts"]]
    return [table for low_latency in (0, 1) for table in dispatched_expert_tables(plain, low_latency)]


def _moe(frame: pd.DataFrame, kind: OperatorKind) -> list[MeasuredRows]:
    if frame.empty:
        return []
    for distribution in _DISTRIBUTIONS:
        chosen = frame[frame["distribution"] == distribution]
        if not chosen.empty:
            break
    columns = {
        "tokens": "num_tokens",
        "hidden": "hidden_size",
        "intermediate": "inter_size",
        "top_k": "topk",
        "experts": "num_experts",
        "moe_tp": "moe_tp_size",
        "moe_ep": "moe_ep_size",
    }
    if kind is OperatorKind.DISPATCHED_MOE:
        columns["low_latency"] = "low_latency"
    return split_by_dtype(chosen, kind, "moe_dtype", columns)
