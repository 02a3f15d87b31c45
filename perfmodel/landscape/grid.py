"""One block of a search space: a cross product of layouts, batch sizes and requests, evaluated at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator, PhaseResult
from fleetplan.perfmodel.landscape.landscape import (
    DECODE,
    PREFILL,
    LatencyTarget,
    RequestShape,
    evaluate_phase,
)
from fleetplan.perfmodel.landscape.pareto import pareto_mask
from fleetplan.perfmodel.landscape.points import Points
from fleetplan.perfmodel.landscape.search_space import uneven_stages
from fleetplan.perfmodel.operators import ByteArray, FloatArray, IntArray
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps import ConfigurationBatch

REASONS: Final = (
    "",
    "uneven pipeline",
    "memory: weights",
    "memory: activations",
    "memory: kv cache",
    "dtype",
    "ttft",
    "tpot",
)
"""Reasons of exclusion; a row's reason is its position here, and the first that holds counts."""

_USABLE, _UNEVEN, _WEIGHTS, _ACTIVATIONS, _CACHE, _DTYPE, _TTFT, _TPOT = range(len(REASONS))
_S_PER_HOUR: Final = 3600.0
_TOKENS_PER_MILLION: Final = 1e6


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
    """

    hardware: str
    evaluator: Evaluator
    usd_per_accelerator_hour: float | None
    kw_per_accelerator: float | None


Axes = tuple[Sequence[Parallelism], Sequence[int], Sequence[RequestShape]]
"""Layouts, batch sizes and requests of a block."""


@dataclass(frozen=True, slots=True)
class Place:
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
class Block:
    """One part of the space with its numbers, each array of shape (n_layouts, n_batches, n_requests).

    Attributes
    ----------
    place : Place
        Where it stands.
    layouts : tuple[Parallelism, ...]
        First axis.
    batches : IntArray
        Second axis.
    excluded : ByteArray
        Position in `REASONS`.
    ttft_ms, tpot_ms : FloatArray or None
        None where the phase has none. With the KV transfer in prefill. [ms]
    requests_per_s_per_accelerator : FloatArray
        Rate of a replica over its accelerators. [1/s]
    memory_gib : FloatArray
        Of the fullest accelerator. [GiB]
    usd_per_million_tokens, kwh_per_million_tokens : FloatArray
        Of input and output tokens, at full load; NaN where no price or power is known.
    """

    place: Place
    layouts: tuple[Parallelism, ...]
    batches: IntArray
    excluded: ByteArray
    ttft_ms: FloatArray | None
    tpot_ms: FloatArray | None
    requests_per_s_per_accelerator: FloatArray
    memory_gib: FloatArray
    usd_per_million_tokens: FloatArray
    kwh_per_million_tokens: FloatArray


def crossed_configurations(
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


def evaluate_block(option: Option, place: Place, axes: Axes, target: LatencyTarget) -> Block:
    """Evaluate one phase over a cross product of layouts, batch sizes and requests.

    Raises
    ------
    UnsupportedArchitecture
        The model has layers that are not evaluated.
    """
    layouts, batches, requests = axes
    phase = place.phase
    shape = (len(layouts), len(batches), len(requests))
    configurations = crossed_configurations(layouts, batches, requests)
    evaluator = option.evaluator
    try:
        result = evaluate_phase(evaluator, phase, configurations)
    except UnsupportedDtype:
        return _without_dtype(place, axes)
    accelerators = configurations.layouts.accelerators
    ttft = result.ttft_ms if phase != DECODE else None
    rate = result.requests_per_s / accelerators
    if ttft is not None and phase == PREFILL:
        ttft = ttft + evaluator.kv_transfer_ms(configurations, result.latency_ms)
        rate = np.minimum(rate, evaluator.handover_requests_per_s(configurations) / accelerators)
    tpot = result.tpot_ms if phase != PREFILL else None
    million_tokens_per_hour = (
        rate
        * (configurations.input_tokens + configurations.output_tokens)
        * (_S_PER_HOUR / _TOKENS_PER_MILLION)
    )
    return Block(
        place,
        tuple(layouts),
        np.array(batches, dtype=np.int64),
        _exclusions(evaluator, configurations, result, (ttft, tpot), target, shape),
        ttft if ttft is None else np.broadcast_to(ttft, shape),
        tpot if tpot is None else np.broadcast_to(tpot, shape),
        np.broadcast_to(rate, shape),
        np.broadcast_to(result.memory.total_gib, shape),
        _per(option.usd_per_accelerator_hour, million_tokens_per_hour, shape),
        _per(option.kw_per_accelerator, million_tokens_per_hour, shape),
    )


def block_frontier(block: Block) -> Points:
    """Usable configurations of a block that no other one of the same request beats."""
    shape = block.excluded.shape
    usable = block.excluded == _USABLE
    flat = []
    for request in range(shape[2]):
        rows = np.flatnonzero(usable[:, :, request].ravel())
        columns = [block.requests_per_s_per_accelerator[:, :, request].ravel()[rows] * -1.0]
        columns += [
            values[:, :, request].ravel()[rows]
            for values in (block.ttft_ms, block.tpot_ms)
            if values is not None
        ]
        # Within one option cost and energy follow the throughput.
        kept = rows[pareto_mask(columns)]
        flat.append(np.ravel_multi_index((*np.unravel_index(kept, shape[:2]), request), shape))
    return points_of(block, np.concatenate(flat).astype(np.int64))


def _exclusions(
    evaluator: Evaluator,
    configurations: ConfigurationBatch,
    result: PhaseResult,
    latencies: tuple[FloatArray | None, FloatArray | None],
    target: LatencyTarget,
    shape: tuple[int, int, int],
) -> ByteArray:
    excluded = np.zeros(shape, dtype=np.uint8)
    # What is written later wins, so the first reason comes last.
    for limit, latency, reason in (
        (target.tpot_ms, latencies[1], _TPOT),
        (target.ttft_ms, latencies[0], _TTFT),
    ):
        if limit is not None and latency is not None:
            np.putmask(excluded, np.broadcast_to(latency > limit, shape), np.uint8(reason))
    memory = result.memory
    for holds, reason in (
        (~memory.fits, _CACHE),
        (memory.without_kv_gib > memory.capacity_gib, _ACTIVATIONS),
        (~memory.weights_fit, _WEIGHTS),
        (uneven_stages(evaluator.architecture, configurations.layouts), _UNEVEN),
    ):
        np.putmask(excluded, np.broadcast_to(holds, shape), np.uint8(reason))
    return excluded


def _per(figure: float | None, amount: FloatArray, shape: tuple[int, int, int]) -> FloatArray:
    if figure is None:
        return np.broadcast_to(np.array(np.nan), shape)
    return np.broadcast_to(figure / amount, shape)


def _without_dtype(place: Place, axes: Axes) -> Block:
    shape = (len(axes[0]), len(axes[1]), len(axes[2]))
    unknown: FloatArray = np.broadcast_to(np.array(np.nan), shape)
    return Block(
        place,
        tuple(axes[0]),
        np.array(axes[1], dtype=np.int64),
        np.full(shape, _DTYPE, dtype=np.uint8),
        unknown if place.phase != DECODE else None,
        unknown if place.phase != PREFILL else None,
        unknown,
        unknown,
        unknown,
        unknown,
    )


def points_of(block: Block, flat: IntArray) -> Points:
    """Return the configurations of a block at some positions of its flattened arrays."""
    layout, batch, request = np.unravel_index(flat, block.excluded.shape)
    layouts = np.empty(len(block.layouts), dtype=object)
    layouts[:] = block.layouts
    places = (layout, batch, request)

    def at(values: FloatArray | None) -> FloatArray:
        return np.full(flat.size, np.nan) if values is None else values[places]

    place = block.place
    return Points(
        flat + place.first_row,
        np.full(flat.size, place.option, dtype=np.int64),
        request.astype(np.int64) + place.first_request,
        np.full(flat.size, place.phase),
        layouts[layout],
        block.batches[batch],
        at(block.ttft_ms),
        at(block.tpot_ms),
        at(block.requests_per_s_per_accelerator),
        at(block.memory_gib),
        at(block.usd_per_million_tokens),
        at(block.kwh_per_million_tokens),
    )
