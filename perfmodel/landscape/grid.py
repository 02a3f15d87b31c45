"""One block of a search space: a cross product of layouts, batch sizes and requests, evaluated at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.units import SECONDS_PER_HOUR
from fleetplan.perfmodel.evaluator import Engines, Evaluator
from fleetplan.perfmodel.landscape.noted_steps import NotedSteps
from fleetplan.perfmodel.landscape.phases import (
    AGGREGATED,
    DECODE,
    PREFILL,
    LatencyTarget,
    RequestShape,
    evaluate_phase,
    memory_of_phase,
)
from fleetplan.perfmodel.landscape.reasons import CODES, USABLE, is_early
from fleetplan.perfmodel.landscape.search_space import layout_reason
from fleetplan.perfmodel.operators import ByteArray, FloatArray, IntArray
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.serving import Scheduling
from fleetplan.perfmodel.steps import ConfigurationBatch, MemoryUse

_TOKENS_PER_MILLION: Final = 1e6
_NUMBERS: Final = ("latency_ms", "ttft_ms", "tpot_ms", "kv_transfer_ms", "requests_per_s")


@dataclass(frozen=True, slots=True)
class Option:
    """One hardware kind with the model at one precision.

    Attributes
    ----------
    hardware : str
        What reports call it.
    evaluator : Evaluator
        The model on it.
    usd_per_accelerator_hour : float or None
        Price; None where none is known, and then its cost is NaN. [USD/h]
    kw_per_accelerator : float or None
        Power of a card with its share of the host; None where none is known. [kW]
    framework : str
        Whose rules on layouts count (`fleetplan.perfmodel.landscape.frameworks`); empty for none.
    scheduling : Scheduling or None
        How the framework serves, as `evaluate_phase` takes it; None for the identities of the paper.
    """

    hardware: str
    evaluator: Evaluator
    usd_per_accelerator_hour: float | None
    kw_per_accelerator: float | None
    framework: str = ""
    scheduling: Scheduling | None = None


Axes = tuple[Sequence[Parallelism], Sequence[int], Sequence[RequestShape]]
"""Layouts, batch sizes and requests of a block."""


@dataclass(frozen=True, slots=True)
class GridPlace:
    """Where a block stands in its search space.

    Attributes
    ----------
    option : int
        Position in the options.
    phase : str
        prefill, decode or aggregated.
    first_row : int
        Number of its first configuration; the others follow in the order of the axes, the last one fastest.
    first_request : int
        Position of its first request in the requests of the space.
    """

    option: int
    phase: str
    first_row: int
    first_request: int


@dataclass(frozen=True, slots=True)
class GridBlock:
    """One part of the space with its numbers, each array of shape (n_layouts, n_batches, n_requests).

    Attributes
    ----------
    place : GridPlace
        Where it stands.
    layouts : tuple[Parallelism, ...]
        First axis.
    batches : IntArray
        Second axis.
    excluded : ByteArray
        Position in `REASONS`. Rows that the layout, memory or a data type excludes have no numbers: what
        stands in their place is of no meaning, and `points_of` leaves it out.
    latency_ms : FloatArray
        Of the step. [ms]
    ttft_ms, tpot_ms : FloatArray or None
        None where the phase has none. With the KV transfer in prefill. [ms]
    kv_transfer_ms : FloatArray
        What the KV transfer adds to prefill; 0 in other phases. [ms]
    requests_per_s_per_accelerator : FloatArray
        Rate of a replica over its accelerators. [1/s]
    memory_gib : FloatArray
        Of the fullest accelerator. [GiB]
    usd_per_million_tokens, kwh_per_million_tokens : FloatArray
        Of input and output tokens, at full load; NaN where no price or power is known.
    whole : bool
        Whether rows that cannot run have numbers too.
    engines : Engines or None
        What engines of aggregated rows hold.
    steps : NotedSteps or None
        What the steps of the other phases were added up from, where that was asked for.
    """

    place: GridPlace
    layouts: tuple[Parallelism, ...]
    batches: IntArray
    excluded: ByteArray
    latency_ms: FloatArray
    ttft_ms: FloatArray | None
    tpot_ms: FloatArray | None
    kv_transfer_ms: FloatArray
    requests_per_s_per_accelerator: FloatArray
    memory_gib: FloatArray
    usd_per_million_tokens: FloatArray
    kwh_per_million_tokens: FloatArray
    whole: bool = False
    engines: Engines | None = None
    steps: NotedSteps | None = None

    def known(self, values: FloatArray) -> FloatArray:
        """The numbers with NaN in rows that were excluded before they were evaluated, flattened."""
        if self.whole:
            return values.ravel()
        return np.where(is_early(self.excluded), np.nan, values).ravel()


def full_grid(
    layouts: Sequence[Parallelism], batches: Sequence[int], requests: Sequence[RequestShape]
) -> ConfigurationBatch:
    """Every layout with every batch size and every request, as arrays that broadcast.

    Layouts vary along the first of three axes, batch sizes along the second, requests along the third.
    """

    def of_requests(values: list[int]) -> IntArray:
        return np.array(values, dtype=np.int64).reshape(1, 1, -1)

    return ConfigurationBatch(
        Layouts.of(list(layouts)).reshaped((-1, 1, 1)),
        np.array(batches, dtype=np.int64).reshape(1, -1, 1),
        of_requests([request.input_tokens for request in requests]),
        of_requests([request.prefix_tokens for request in requests]),
        of_requests([request.decode_context_tokens for request in requests]),
        of_requests([request.output_tokens for request in requests]),
    )


def evaluate_block(
    option: Option,
    place: GridPlace,
    axes: Axes,
    target: LatencyTarget,
    whole: bool = False,
    noting: bool = False,
) -> GridBlock:
    """Evaluate one phase over a cross product of layouts, batch sizes and requests.

    Parameters
    ----------
    option, place, axes
        What is evaluated, and where it stands.
    target : LatencyTarget
        Rows beyond a limit are excluded.
    whole : bool
        Also give the numbers of rows that cannot run.
    noting : bool
        Keep what steps were added up from: a number an operator and row.

    Raises
    ------
    UnsupportedArchitecture
        The model has layers that are not evaluated.
    """
    layouts, batches, requests = axes
    shape = (len(layouts), len(batches), len(requests))
    evaluator = option.evaluator
    configurations = full_grid(layouts, batches, requests)
    memory = memory_of_phase(evaluator, place.phase, configurations, option.scheduling)
    excluded = _exclusions_before(option, place.phase, layouts, memory, shape)
    kept = _evaluated_axes(excluded, whole)
    numbers = {name: np.full(shape, np.nan) for name in _NUMBERS}
    steps = NotedSteps(evaluator, kept[0], kept[1]) if noting and place.phase != AGGREGATED else None
    if all(axis.size for axis in kept):
        part = (
            [layouts[position] for position in kept[0].tolist()],
            [batches[position] for position in kept[1].tolist()],
            requests,
        )
        try:
            found = _phase_numbers(option, place.phase, full_grid(*part), steps)
        except UnsupportedDtype:
            # Nothing of this precision runs here, whatever its memory.
            excluded[:] = CODES["dtype"]
        else:
            numbers |= {name: _in_whole(values, kept, shape) for name, values in found.items()}
    _exclude_late(excluded, numbers, target)
    rate = numbers["requests_per_s"] / configurations.layouts.accelerators
    million_tokens_per_hour = (
        rate
        * (configurations.input_tokens + configurations.output_tokens)
        * (SECONDS_PER_HOUR / _TOKENS_PER_MILLION)
    )
    return GridBlock(
        place,
        tuple(layouts),
        np.array(batches, dtype=np.int64),
        excluded,
        numbers["latency_ms"],
        None if place.phase == DECODE else numbers["ttft_ms"],
        None if place.phase == PREFILL else numbers["tpot_ms"],
        numbers["kv_transfer_ms"],
        rate,
        np.broadcast_to(memory.total_gib, shape),
        _per(option.usd_per_accelerator_hour, million_tokens_per_hour, shape),
        _per(option.kw_per_accelerator, million_tokens_per_hour, shape),
        whole,
        Engines(numbers["sequences"], numbers["starts"]) if "starts" in numbers else None,
        steps,
    )


def _in_whole(values: FloatArray, kept: tuple[IntArray, IntArray], shape: tuple[int, int, int]) -> FloatArray:
    """Numbers of the layouts and batch sizes that were evaluated, in their places; NaN elsewhere."""
    if (kept[0].size, kept[1].size) == shape[:2]:
        return np.broadcast_to(values, shape)
    found = np.full(shape, np.nan)
    found[np.ix_(kept[0], kept[1], np.arange(shape[2]))] = values
    return found


def _phase_numbers(
    option: Option, phase: str, configurations: ConfigurationBatch, steps: NotedSteps | None
) -> dict[str, FloatArray]:
    """Numbers of one phase, each of a shape that broadcasts to that of the configurations."""
    evaluator = option.evaluator
    noted = None if steps is None else steps.evaluated
    result = evaluate_phase(evaluator, phase, configurations, option.scheduling, noted)
    transfer_ms, rate = np.zeros((1, 1, 1)), result.requests_per_s
    if phase == PREFILL:
        # A request of one token ends with its prompt: no decode waits for its cache.
        is_handed_on = configurations.output_tokens > 1
        sent_ms = evaluator.kv_transfer_ms(configurations, result.latency_ms)
        transfer_ms = np.where(is_handed_on, sent_ms, 0.0)
        sent_per_s = np.where(is_handed_on, evaluator.transfer_requests_per_s(configurations), np.inf)
        rate = np.minimum(rate, sent_per_s)
    return {
        "latency_ms": result.latency_ms,
        "ttft_ms": result.ttft_ms + transfer_ms,
        # After the only token of a request none follows.
        "tpot_ms": np.where(configurations.output_tokens > 1, result.tpot_ms, 0.0),
        "kv_transfer_ms": transfer_ms,
        "requests_per_s": rate,
        **(result.engines._asdict() if result.engines else {}),
    }


def _exclusions_before(
    option: Option,
    phase: str,
    layouts: Sequence[Parallelism],
    memory: MemoryUse,
    shape: tuple[int, int, int],
) -> ByteArray:
    """Exclude rows before they are evaluated: by layout, and by memory."""
    architecture = option.evaluator.architecture
    excluded = np.zeros(shape, dtype=np.uint8)
    # What is written later wins, so the first reason comes last.
    for holds, reason in (
        (~memory.fits, "memory: kv cache"),
        (memory.without_kv_gib > memory.capacity_gib, "memory: activations"),
        (~memory.weights_fit, "memory: weights"),
    ):
        np.putmask(excluded, np.broadcast_to(holds, shape), np.uint8(CODES[reason]))
    of_layouts = [CODES[layout_reason(architecture, layout, phase, option.framework)] for layout in layouts]
    refused = np.flatnonzero(of_layouts)
    excluded[refused] = np.array(of_layouts, dtype=np.uint8)[refused, None, None]
    return excluded


def _evaluated_axes(excluded: ByteArray, whole: bool) -> tuple[IntArray, IntArray]:
    """Layouts and batch sizes of which some row may run: the others need not be evaluated."""
    if whole:
        return np.arange(excluded.shape[0]), np.arange(excluded.shape[1])
    open_rows = excluded == USABLE
    return np.flatnonzero(open_rows.any(axis=(1, 2))), np.flatnonzero(open_rows.any(axis=(0, 2)))


def _exclude_late(excluded: ByteArray, numbers: dict[str, FloatArray], target: LatencyTarget) -> None:
    """Exclude rows that miss a limit, the TTFT before the TPOT."""
    for limit, name, reason in (
        (target.ttft_ms, "ttft_ms", "ttft"),
        (target.tpot_ms, "tpot_ms", "tpot"),
    ):
        if limit is not None:
            # A phase without the latency has NaN there, which exceeds nothing.
            np.putmask(excluded, (numbers[name] > limit) & (excluded == USABLE), np.uint8(CODES[reason]))


def _per(figure: float | None, amount: FloatArray, shape: tuple[int, int, int]) -> FloatArray:
    if figure is None:
        return np.broadcast_to(np.array(np.nan), shape)
    return np.broadcast_to(figure / amount, shape)
