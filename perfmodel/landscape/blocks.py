"""A block of a search space: its operator look-ups, and its numbers after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.units import SECONDS_PER_HOUR
from fleetplan.perfmodel.evaluator import Engines
from fleetplan.perfmodel.landscape.grid import Axes, GridBlock, GridPlace, Option, full_grid
from fleetplan.perfmodel.landscape.layout_problems import layout_reason
from fleetplan.perfmodel.landscape.noted_steps import NotedSteps
from fleetplan.perfmodel.landscape.phases import (
    AGGREGATED,
    DECODE,
    PREFILL,
    LatencyTarget,
    asked_shapes,
    evaluate_phase,
    keep_loops,
    memory_of_phase,
)
from fleetplan.perfmodel.landscape.reasons import CODES, DATA_TYPE, USABLE
from fleetplan.perfmodel.operators import ByteArray, FloatArray, IntArray
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.steps import ConfigurationBatch, MemoryUse
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups

_TOKENS_PER_MILLION: Final = 1e6
_NUMBERS: Final = ("latency_ms", "ttft_ms", "tpot_ms", "kv_transfer_ms", "requests_per_s")


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
        Configurations of the block, and their position in the search space.
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
    return ask_block(option, place, axes, SharedLookups(), whole).evaluated(target, noting)


@dataclass(frozen=True, slots=True)
class PendingBlock:
    """A block whose rows that cannot run are known, and whose operators wait for a look-up.

    Attributes
    ----------
    option, place, axes, whole
        As in `evaluate_block`.
    memory : MemoryUse
        Memory of all rows.
    excluded : ByteArray
        Position in `REASONS` of what excludes a row before it is evaluated, shape (n_layouts, n_batches,
        n_requests).
    kept : tuple[IntArray, IntArray]
        Positions of the layouts and of the batch sizes that are evaluated.
    steps : NotedSteps or None
        Steps; None in aggregated serving, and without rows to evaluate.
    keep_loops : Sequence[Callable]
        Functions that evaluate the iterations of aggregated loops.
    """

    option: Option
    place: GridPlace
    axes: Axes
    whole: bool
    memory: MemoryUse
    excluded: ByteArray
    kept: tuple[IntArray, IntArray]
    steps: NotedSteps | None
    keep_loops: Sequence[Callable[[], None]]

    def evaluated(self, target: LatencyTarget, noting: bool = False) -> GridBlock:
        """Return the block with its numbers; parameters and errors as in `evaluate_block`."""
        layouts, batches, _ = self.axes
        configurations, excluded, shape = full_grid(*self.axes), self.excluded, self.excluded.shape
        numbers = self._numbers()
        _exclude_late(excluded, numbers, target)
        rate = numbers["requests_per_s"] / configurations.layouts.accelerators
        million_tokens_per_hour = (
            rate
            * (configurations.input_tokens + configurations.output_tokens)
            * (SECONDS_PER_HOUR / _TOKENS_PER_MILLION)
        )
        phase, option = self.place.phase, self.option
        return GridBlock(
            self.place,
            tuple(layouts),
            np.array(batches, dtype=np.int64),
            excluded,
            numbers["latency_ms"],
            None if phase == DECODE else numbers["ttft_ms"],
            None if phase == PREFILL else numbers["tpot_ms"],
            numbers["kv_transfer_ms"],
            rate,
            np.broadcast_to(self.memory.total_gib, shape),
            _per(option.usd_per_accelerator_hour, million_tokens_per_hour, shape),
            _per(option.kw_per_accelerator, million_tokens_per_hour, shape),
            self.whole,
            Engines(numbers["sequences"], numbers["starts"]) if "starts" in numbers else None,
            self.steps if noting else None,
        )

    def _numbers(self) -> dict[str, FloatArray]:
        """Return the numbers of all rows, NaN if a layout or a batch size is not evaluated."""
        shape = self.excluded.shape
        numbers = {name: np.full(shape, np.nan) for name in _NUMBERS}
        if not all(axis.size for axis in self.kept):
            return numbers
        try:
            for keep in self.keep_loops:
                keep()
            found = _phase_numbers(self.option, self.place.phase, _part(self.axes, self.kept), self.steps)
        except UnsupportedDtype:
            # No configuration of this precision runs here, whatever its memory.
            self.excluded[:] = CODES[DATA_TYPE]
            return numbers
        return numbers | {name: _in_whole(values, self.kept, shape) for name, values in found.items()}


def ask_block(
    option: Option, place: GridPlace, axes: Axes, lookups: SharedLookups, whole: bool = False
) -> PendingBlock:
    """Find the rows of a block that may run, and let their operators wait for a look-up.

    Parameters
    ----------
    option, place, axes, whole
        As in `evaluate_block`, as are the errors.
    lookups : SharedLookups
        Queue of operators.
    """
    layouts, batches, requests = axes
    evaluator, phase, scheduling = option.evaluator, place.phase, option.scheduling
    memory = memory_of_phase(evaluator, phase, full_grid(*axes), scheduling)
    shape = (len(layouts), len(batches), len(requests))
    excluded = _exclusions_before(option, phase, layouts, memory, shape)
    kept = _evaluated_axes(excluded, whole)
    steps, loops = None, []
    if all(axis.size for axis in kept):
        part = _part(axes, kept)
        if phase != AGGREGATED:
            steps = NotedSteps(evaluator, *kept)
            steps.ask(asked_shapes(evaluator, phase, part), lookups)
        elif scheduling is not None:
            loops = keep_loops(evaluator, part, scheduling, lookups)
    return PendingBlock(option, place, axes, whole, memory, excluded, kept, steps, loops)


def _part(axes: Axes, kept: tuple[IntArray, IntArray]) -> ConfigurationBatch:
    """Return the cross product of the layouts and batch sizes that are evaluated."""
    layouts, batches, requests = axes
    return full_grid(
        [layouts[position] for position in kept[0].tolist()],
        [batches[position] for position in kept[1].tolist()],
        requests,
    )


def _in_whole(values: FloatArray, kept: tuple[IntArray, IntArray], shape: tuple[int, int, int]) -> FloatArray:
    """Return numbers of the layouts and batch sizes that were evaluated, in their places; NaN elsewhere."""
    if (kept[0].size, kept[1].size) == shape[:2]:
        return np.broadcast_to(values, shape)
    found = np.full(shape, np.nan)
    found[np.ix_(kept[0], kept[1], np.arange(shape[2]))] = values
    return found


def _phase_numbers(
    option: Option, phase: str, configurations: ConfigurationBatch, steps: NotedSteps | None
) -> dict[str, FloatArray]:
    """Return the numbers of one phase, each of a shape that broadcasts to that of the configurations."""
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
    # Later writes win, so the first reason comes last.
    for holds, reason in (
        (~memory.fits, "memory: kv cache"),
        (memory.without_kv_gib > memory.capacity_gib, "memory: activations"),
        (~memory.weights_fit, "memory: weights"),
    ):
        np.putmask(excluded, np.broadcast_to(holds, shape), np.uint8(CODES[reason]))
    framework, setting = option.framework, option.setting
    of_layouts = [CODES[layout_reason(architecture, layout, phase, framework, setting)] for layout in layouts]
    refused = np.flatnonzero(of_layouts)
    excluded[refused] = np.array(of_layouts, dtype=np.uint8)[refused, None, None]
    return excluded


def _evaluated_axes(excluded: ByteArray, whole: bool) -> tuple[IntArray, IntArray]:
    """Return the layouts and batch sizes of which some row may run: the others need not be evaluated."""
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
            # A phase without this latency has NaN, which exceeds no limit.
            np.putmask(excluded, (numbers[name] > limit) & (excluded == USABLE), np.uint8(CODES[reason]))


def _per(figure: float | None, amount: FloatArray, shape: tuple[int, int, int]) -> FloatArray:
    if figure is None:
        return np.broadcast_to(np.array(np.nan), shape)
    return np.broadcast_to(figure / amount, shape)
