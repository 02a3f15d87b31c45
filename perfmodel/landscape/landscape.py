"""Every configuration of a service on one accelerator kind, with its numbers or the reason against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.perfmodel.evaluator import Evaluator, PhaseResult
from fleetplan.perfmodel.landscape.search_space import SearchSpace, crossed, search_layouts, uneven_stages
from fleetplan.perfmodel.operators import FloatArray, Provenance
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps import ConfigurationBatch, MemoryUse, weakest_provenance

PREFILL, DECODE, AGGREGATED = "prefill", "decode", "aggregated"


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Mean lengths of a request.

    Attributes
    ----------
    input_tokens : int
        New prompt tokens. [tokens]
    output_tokens : int
        Generated tokens. [tokens]
    context_tokens : int or None
        Tokens that decode attends to in the mean; what exceeds `input_tokens` is a prefix whose cache
        prefill finds ready. None: no prefix, and decode attends to the prompt and half its output.

    Raises
    ------
    ValueError
        Fewer than one new or generated token.
    """

    input_tokens: int
    output_tokens: int
    context_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.input_tokens < 1 or self.output_tokens < 1:
            raise ValueError(f"a request has at least one new and one generated token: {self}")

    @property
    def prefix_tokens(self) -> int:
        """Prompt tokens whose cache prefill finds ready. [tokens]."""
        return 0 if self.context_tokens is None else max(0, self.context_tokens - self.input_tokens)

    @property
    def decode_context_tokens(self) -> int:
        """Tokens that decode attends to in the mean. [tokens]."""
        if self.context_tokens is None:
            return self.input_tokens + self.output_tokens // 2
        return max(self.context_tokens, self.input_tokens)


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """Limits on mean latencies, network time already taken off; None is no limit. [ms]."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Landscape:
    """The configurations of one service on one accelerator kind.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a phase (prefill, decode, aggregated) and configuration. Columns: `phase`, `config`,
        `parallelism`, `pp`, `tp`, `cp`, `dp`, `ffn_tp`, `ep`, `batch`, `accelerators_per_replica`,
        `requests_per_s` (of one replica), `latency_ms` (of the step), `ttft_ms` (with the KV transfer in
        prefill rows), `tpot_ms`, `kv_transfer_ms`, `memory_gib_per_accelerator`, `share_measured`,
        `share_interpolated`, `share_extrapolated`, `share_roofline`, `source`, `bottleneck`, `excluded`
        ('' or the first reason that holds). Numbers that were not computed, or that a phase does not
        have, are NaN.
    excluded_counts : Mapping[str, int]
        Rows by reason.
    """

    table: pd.DataFrame
    excluded_counts: Mapping[str, int]

    @classmethod
    def of_table(cls, table: pd.DataFrame) -> Landscape:
        """Return the landscape of a table, its reasons counted."""
        counts = table["excluded"].value_counts()
        return cls(table, {str(reason): int(count) for reason, count in counts.items() if reason})

    @property
    def usable(self) -> pd.DataFrame:
        """Rows without a reason against them."""
        return self.table[self.table["excluded"] == ""]


def service_landscape(
    evaluator: Evaluator, request: RequestShape, target: LatencyTarget, space: SearchSpace
) -> Landscape:
    """Evaluate every configuration of a service on one accelerator kind.

    Parameters
    ----------
    evaluator : Evaluator
        The model at its precision on the accelerator.
    request : RequestShape
        Mean lengths. A sequence holds the cache of its context and half its output.
    target : LatencyTarget
        Rows beyond a limit are excluded as `ttft` or `tpot`.
    space : SearchSpace
        Runtimes, parallelism and batch sizes to try.

    Returns
    -------
    Landscape
        Rows that do not fit are excluded as `memory: weights` (they alone do not fit), `memory:
        activations` (not even without a cache) or `memory: kv cache`, rows of a data type that the part
        lacks as `dtype`, pipelines that cannot be cut evenly as `uneven pipeline`; their latencies are
        not computed.

    Raises
    ------
    UnsupportedArchitecture
        The model has layers that are not evaluated yet.
    """
    layouts = search_layouts(evaluator.architecture, evaluator.accelerator, space)
    plan = phases_of(space)
    frames = [_phase_table(evaluator, request, target, phase, layouts, batches) for phase, batches in plan]
    table = pd.concat(frames, ignore_index=True)
    return Landscape.of_table(table)


def phases_of(space: SearchSpace) -> list[tuple[str, tuple[int, ...]]]:
    """Phases of the runtimes of a search, each with the batch sizes to try.

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


def _phase_table(
    evaluator: Evaluator,
    request: RequestShape,
    target: LatencyTarget,
    phase: str,
    layouts: tuple[Parallelism, ...],
    batches: tuple[int, ...],
) -> pd.DataFrame:
    positions, batch = crossed(layouts, batches)
    configurations = _configurations(Layouts.of(list(layouts)).take(positions), batch, request)
    memory = _memory(evaluator, phase, configurations)
    excluded = _exclude_early(evaluator, configurations, memory)
    columns = _descriptive_columns(phase, layouts, positions, configurations, memory)
    numbers = _blank_numbers(batch.size)
    kept = np.flatnonzero(excluded == "")
    if kept.size:
        subset = configurations.take(kept)
        try:
            result = evaluate_phase(evaluator, phase, subset)
        except UnsupportedDtype:
            # Nothing of this precision runs here, whatever its memory.
            excluded[:] = "dtype"
        else:
            transfer = np.zeros(kept.size)
            if phase == PREFILL:
                transfer = evaluator.kv_transfer_ms(subset, result.latency_ms)
                sent = evaluator.handover_requests_per_s(subset)
                result = replace(result, requests_per_s=np.minimum(result.requests_per_s, sent))
            for name, values in _numbers(result, transfer).items():
                numbers[name][kept] = values
            excluded[kept] = _late_exclusions(target, result, transfer)
    return pd.DataFrame({**columns, **numbers, "excluded": excluded})


def _configurations(layouts: Layouts, batch: NDArray[np.int64], request: RequestShape) -> ConfigurationBatch:
    def filled(value: int) -> NDArray[np.int64]:
        return np.full(batch.shape, value, dtype=np.int64)

    return ConfigurationBatch(
        layouts,
        batch,
        filled(request.input_tokens),
        filled(request.prefix_tokens),
        filled(request.decode_context_tokens),
        filled(request.output_tokens),
    )


def _memory(evaluator: Evaluator, phase: str, configurations: ConfigurationBatch) -> MemoryUse:
    if phase == PREFILL:
        return evaluator.prefill_memory(configurations)
    if phase == DECODE:
        return evaluator.decode_memory(configurations)
    return evaluator.aggregated_memory(configurations)


def evaluate_phase(evaluator: Evaluator, phase: str, configurations: ConfigurationBatch) -> PhaseResult:
    """Return what configurations reach in one phase: prefill, decode or aggregated."""
    if phase == PREFILL:
        return evaluator.prefill(configurations)
    if phase == DECODE:
        return evaluator.decode(configurations)
    return evaluator.aggregated(configurations)


def _exclude_early(
    evaluator: Evaluator, configurations: ConfigurationBatch, memory: MemoryUse
) -> NDArray[np.object_]:
    excluded = np.full(configurations.batch.shape, "", dtype=object)
    excluded[~memory.fits] = "memory: kv cache"
    excluded[memory.without_kv_gib > memory.capacity_gib] = "memory: activations"
    excluded[~memory.weights_fit] = "memory: weights"
    excluded[uneven_stages(evaluator.architecture, configurations.layouts)] = "uneven pipeline"
    return excluded


def _late_exclusions(
    target: LatencyTarget, result: PhaseResult, transfer_ms: FloatArray
) -> NDArray[np.object_]:
    excluded = np.full(result.latency_ms.shape, "", dtype=object)
    # A phase without the latency has NaN there, which exceeds nothing.
    if target.tpot_ms is not None:
        excluded[result.tpot_ms > target.tpot_ms] = "tpot"
    if target.ttft_ms is not None:
        excluded[result.ttft_ms + transfer_ms > target.ttft_ms] = "ttft"
    return excluded


def _descriptive_columns(
    phase: str,
    layouts: tuple[Parallelism, ...],
    positions: NDArray[np.int64],
    configurations: ConfigurationBatch,
    memory: MemoryUse,
) -> dict[str, object]:
    labels = np.array([layout.label for layout in layouts], dtype=object)[positions]
    own = configurations.layouts
    batch = configurations.batch
    return {
        "phase": phase,
        "config": [f"{label} b{size}" for label, size in zip(labels, batch.tolist(), strict=True)],
        "parallelism": labels,
        "pp": own.pp,
        "tp": own.tp,
        "cp": own.cp,
        "dp": own.dp,
        "ffn_tp": own.ffn_tp,
        "ep": own.ep,
        "batch": batch,
        "accelerators_per_replica": own.accelerators,
        "memory_gib_per_accelerator": memory.total_gib,
    }


_NUMBERS = (
    "requests_per_s",
    "latency_ms",
    "ttft_ms",
    "tpot_ms",
    "kv_transfer_ms",
    "share_measured",
    "share_interpolated",
    "share_extrapolated",
    "share_roofline",
)


def _blank_numbers(n_rows: int) -> dict[str, NDArray[np.float64] | NDArray[np.object_]]:
    blank: dict[str, NDArray[np.float64] | NDArray[np.object_]] = {
        name: np.full(n_rows, np.nan) for name in _NUMBERS
    }
    for name in ("source", "bottleneck"):
        blank[name] = np.full(n_rows, "", dtype=object)
    return blank


def _numbers(
    result: PhaseResult, transfer_ms: FloatArray
) -> dict[str, NDArray[np.float64] | NDArray[np.object_]]:
    shares = result.shares
    labels = np.array([each.label for each in Provenance], dtype=object)
    return {
        "requests_per_s": result.requests_per_s,
        "latency_ms": result.latency_ms,
        "ttft_ms": result.ttft_ms + transfer_ms,
        "tpot_ms": result.tpot_ms,
        "kv_transfer_ms": transfer_ms,
        **{f"share_{each.label}": shares[each] for each in Provenance},
        "source": labels[weakest_provenance(shares)],
        "bottleneck": np.array(result.names, dtype=object)[result.bottleneck],
    }
