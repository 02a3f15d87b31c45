"""The phases of serving, what requests look like, and how a phase is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.perfmodel.evaluator import Engines, Evaluator, PhaseResult
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.serving import Load, MeanIteration, Scheduling, mean_iteration
from fleetplan.perfmodel.serving.replica_load import LARGEST_BATCH, resident_memory
from fleetplan.perfmodel.serving.replica_loops import full_batches, keep_iterations
from fleetplan.perfmodel.steps import ConfigurationBatch, MemoryUse, StepShape, StepTimes, decode_shape
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.perfmodel.techniques.chunked_prefill import StepsEvaluator

PREFILL: Final = "prefill"
DECODE: Final = "decode"
AGGREGATED: Final = "aggregated"


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
        Mean tokens that decode attends to; those above `input_tokens` are a cached prefix. None: no prefix,
        and decode attends to the prompt and half its output.

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
        """Mean tokens that decode attends to. [tokens]."""
        if self.context_tokens is None:
            return self.input_tokens + self.output_tokens // 2
        return max(self.context_tokens, self.input_tokens)


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """Limits on mean latencies, less network time; None is no limit. [ms]."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None

    def allows(self, other: LatencyTarget) -> bool:
        """Whether neither limit is below that of another target."""
        pairs = ((self.ttft_ms, other.ttft_ms), (self.tpot_ms, other.tpot_ms))
        return all(own is None or (limit is not None and limit <= own) for own, limit in pairs)


def memory_of_phase(
    evaluator: Evaluator, phase: str, configurations: ConfigurationBatch, scheduling: Scheduling | None
) -> MemoryUse:
    """Return the memory that configurations need in one phase, without evaluating them."""
    if phase == PREFILL:
        return evaluator.prefill_memory(configurations)
    if phase == DECODE:
        return evaluator.decode_memory(configurations)
    if scheduling is None:
        return evaluator.aggregated_memory(configurations)
    return resident_memory(evaluator, _load(configurations, scheduling), configurations.batch)


def evaluate_phase(
    evaluator: Evaluator,
    phase: str,
    configurations: ConfigurationBatch,
    scheduling: Scheduling | None,
    steps: StepsEvaluator | None = None,
) -> PhaseResult:
    """Return what configurations reach in one phase: prefill, decode or aggregated.

    Parameters
    ----------
    evaluator, phase
        Configurations to evaluate.
    configurations : ConfigurationBatch
        A list, or a cross product of three axes, whose result has no detail.
    scheduling : Scheduling or None
        Scheduling of aggregated serving: the loop of `predict` with as many requests as the batch, and the
        front end before prompts. None: the identities of the paper, without waits.
    steps : callable, optional
        Function for the times of the steps of prefill and decode, instead of the evaluator.
    """
    if phase == DECODE:
        return evaluator.decode(configurations, steps)
    if phase == PREFILL:
        found = evaluator.prefill(configurations, steps)
        return found if scheduling is None else _behind_front_end(found, configurations, scheduling)
    if scheduling is None:
        return evaluator.aggregated(configurations)
    return _aggregated(evaluator, configurations, scheduling)


def _behind_front_end(
    found: PhaseResult, configurations: ConfigurationBatch, scheduling: Scheduling
) -> PhaseResult:
    return replace(found, ttft_ms=found.ttft_ms + _load(configurations, scheduling).front_end_ms)


def _load(configurations: ConfigurationBatch, scheduling: Scheduling) -> Load:
    return Load(
        configurations.layouts,
        configurations.input_tokens,
        configurations.prefix_tokens,
        configurations.output_tokens,
        scheduling,
    )


def asked_shapes(evaluator: Evaluator, phase: str, configurations: ConfigurationBatch) -> list[StepShape]:
    """Return the steps that `evaluate_phase` needs in prefill or decode, in its order."""
    return evaluator.prefill_shapes(configurations) if phase == PREFILL else [decode_shape(configurations)]


def keep_loops(
    evaluator: Evaluator, configurations: ConfigurationBatch, scheduling: Scheduling, lookups: SharedLookups
) -> list[Callable[[], None]]:
    """Return what evaluates once the iterations that aggregated serving goes through, after a look-up."""
    flat = _flattened(configurations)
    loads = [load for _, load in _full_loads(flat, scheduling)]
    return [keep for load in loads for keep in keep_iterations(evaluator, load, lookups)]


def _full_loads(flat: ConfigurationBatch, scheduling: Scheduling) -> Iterator[tuple[IntArray, Load]]:
    """Yield configurations by the largest batch of their servers, with their loads."""
    # A batch above the default is one that the server is started with.
    above = flat.batch > scheduling.engine_sequences(flat.layouts.pp)
    for rows, most in ((~above, scheduling.max_sequences), (above, LARGEST_BATCH)):
        if rows.any():
            at = np.flatnonzero(rows)
            yield at, _load(flat.take(at), replace(scheduling, max_sequences=most))


def _aggregated(
    evaluator: Evaluator, configurations: ConfigurationBatch, scheduling: Scheduling
) -> PhaseResult:
    is_full_grid = configurations.batch.ndim > 1
    flat = _flattened(configurations) if is_full_grid else configurations
    ttft, tpot, rate = np.empty((3, *flat.batch.shape))
    sequences, starts = np.empty((2, *flat.batch.shape))
    for at, load in _full_loads(flat, scheduling):
        found = full_batches(evaluator, load, flat.batch[at])
        ttft[at], tpot[at], rate[at] = found.ttft_ms, found.tpot_ms, found.requests_per_s
        sequences[at], starts[at] = found.sequences, found.starts
    memory = memory_of_phase(evaluator, AGGREGATED, configurations, scheduling)
    if is_full_grid:
        shape = _crossed_shape(configurations)
        ttft, tpot, rate, sequences, starts = (
            values.reshape(shape) for values in (ttft, tpot, rate, sequences, starts)
        )
        times = StepTimes.without_detail(tpot)
        detail = (times.by_provenance_ms, times.bottleneck, times.names)
    else:
        mean = engines_iteration(evaluator, configurations, scheduling, Engines(sequences, starts))
        detail = (mean.by_provenance_ms, mean.bottleneck, mean.names)
    return PhaseResult(tpot, ttft, tpot, rate, *detail, memory, Engines(sequences, starts))


def engines_iteration(
    evaluator: Evaluator, configurations: ConfigurationBatch, scheduling: Scheduling, engines: Engines
) -> MeanIteration:
    """Return what the iterations of engines consist of, whose loops were solved before.

    Parameters
    ----------
    evaluator, configurations, scheduling
        As in `evaluate_phase`, one configuration after the other.
    engines : Engines
        Load of the engines of each.
    """
    batch = np.maximum(1, np.rint(engines.sequences)).astype(np.int64)
    return mean_iteration(evaluator, _load(configurations, scheduling), batch, engines.starts)


def _crossed_shape(configurations: ConfigurationBatch) -> tuple[int, ...]:
    axes = (configurations.layouts.pp, configurations.batch, configurations.input_tokens)
    return np.broadcast_shapes(*(axis.shape for axis in axes))


def _flattened(configurations: ConfigurationBatch) -> ConfigurationBatch:
    """Return a cross product as configurations one after the other, the last axis fastest."""
    layouts = configurations.layouts
    shape = _crossed_shape(configurations)

    def flat(values: IntArray) -> IntArray:
        return np.broadcast_to(values, shape).ravel()

    rows = flat(np.arange(layouts.pp.size).reshape(layouts.pp.shape))
    return ConfigurationBatch(
        layouts.reshaped((-1,)).take(rows),
        flat(configurations.batch),
        flat(configurations.input_tokens),
        flat(configurations.prefix_tokens),
        flat(configurations.context_tokens),
        flat(configurations.output_tokens),
    )
