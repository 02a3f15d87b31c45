"""A whole search space in one pass: counted, filtered and reduced to its frontiers, in flat memory.

The space is hardware and precision x phase x layout x batch x request. It is evaluated in blocks, each a
cross product (see `fleetplan.perfmodel.steps.grid_latency`), by threads: nearly all the time is spent inside
NumPy, which lets other threads run. Of a block only counts and frontiers stay, so ten million configurations
need no more memory than a hundred thousand.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.machine import result_of, usable_cores
from fleetplan.perfmodel.landscape.blocks import evaluate_block
from fleetplan.perfmodel.landscape.grid import Axes, GridBlock, GridPlace, Option
from fleetplan.perfmodel.landscape.phases import LatencyTarget, RequestShape
from fleetplan.perfmodel.landscape.points import Points, block_frontier, frontiers
from fleetplan.perfmodel.landscape.reasons import REASONS
from fleetplan.perfmodel.landscape.search_space import SearchSpace, fitted, phases_of, search_layouts

BLOCK_CONFIGURATIONS: Final = 524_288
"""Configurations of a block: enough that Python costs little beside NumPy, few enough to stay small."""


@dataclass(frozen=True, slots=True)
class SweepSpace:
    """Options and requests of a sweep.

    Attributes
    ----------
    options : tuple[Option, ...]
        Hardware and precisions.
    requests : tuple[RequestShape, ...]
        Request classes; each has a separate frontier.
    target : LatencyTarget
        Limits for all of them.
    search : SearchSpace
        Runtimes, layouts and batch sizes.
    """

    options: tuple[Option, ...]
    requests: tuple[RequestShape, ...]
    target: LatencyTarget
    search: SearchSpace


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Result of a sweep.

    Attributes
    ----------
    configurations : int
        Evaluated rows.
    excluded : dict[tuple[int, str, str], int]
        Rows by option, phase and reason; '' is the reason of usable rows.
    candidates : Points
        Frontier of each option, phase and request: it contains the best configuration of every kind.
    """

    configurations: int
    excluded: dict[tuple[int, str, str], int]
    candidates: Points

    @property
    def frontier(self) -> Points:
        """Pareto frontier over all options, by request and phase."""
        return frontiers(self.candidates, across_options=True)


def sweep(
    space: SweepSpace,
    on_block: Callable[[GridBlock], None] | None = None,
    threads: int | None = None,
) -> SweepResult:
    """Evaluate every configuration of a space and keep the frontiers.

    Parameters
    ----------
    space : SweepSpace
        Search space.
    on_block : callable, optional
        Receives every block, in order, from the calling thread.
    threads : int, optional
        Number of threads; default: usable cores.

    Raises
    ------
    UnsupportedArchitecture
        The model has layers that are not evaluated.
    """
    counts: Counter[tuple[int, str, str]] = Counter()
    found: list[Points] = []
    total = 0
    for block, points in _in_threads(tasks_of(space), space, threads or usable_cores()):
        total += block.excluded.size
        by_reason = np.bincount(block.excluded.ravel(), minlength=len(REASONS))
        counts.update(
            {
                (block.place.option, block.place.phase, reason): int(count)
                for reason, count in zip(REASONS, by_reason.tolist(), strict=True)
                if count
            }
        )
        found.append(points)
        if on_block is not None:
            on_block(block)
    if not found:
        raise ValueError("a sweep needs at least one layout, batch size and request")
    return SweepResult(total, dict(counts), frontiers(Points.concatenated(found), across_options=False))


@dataclass(frozen=True, slots=True)
class SweptPart:
    """A block that is to be evaluated."""

    place: GridPlace
    axes: Axes

    @property
    def size(self) -> int:
        """Configurations of the block."""
        return math.prod(len(axis) for axis in self.axes)


def tasks_of(space: SweepSpace) -> Iterator[SweptPart]:
    """Cut a space into blocks, in the order in which its rows are numbered."""
    first_row = 0
    for position, option in enumerate(space.options):
        evaluator = option.evaluator
        search = fitted(space.search, evaluator, space.requests)
        layouts = search_layouts(evaluator.architecture, evaluator.accelerator, search)
        for phase, batches in phases_of(space.search):
            if not layouts:
                continue
            per_batch = max(1, BLOCK_CONFIGURATIONS // len(layouts))
            for at in range(0, len(batches), per_batch):
                part = batches[at : at + per_batch]
                step = max(1, BLOCK_CONFIGURATIONS // (len(layouts) * len(part)))
                for start in range(0, len(space.requests), step):
                    chosen = space.requests[start : start + step]
                    task = SweptPart(GridPlace(position, phase, first_row, start), (layouts, part, chosen))
                    first_row += task.size
                    yield task


def _in_threads(
    tasks: Iterator[SweptPart], space: SweepSpace, threads: int
) -> Iterator[tuple[GridBlock, Points]]:
    """Yield blocks in the order of the tasks, evaluated a few ahead of the consumer."""
    waiting: deque[Future[tuple[GridBlock, Points]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(_evaluated, space, task))
                if len(waiting) > 2 * threads:
                    yield result_of(waiting.popleft())
            while waiting:
                yield result_of(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()


def _evaluated(space: SweepSpace, task: SweptPart) -> tuple[GridBlock, Points]:
    block = evaluate_block(space.options[task.place.option], task.place, task.axes, space.target)
    return block, block_frontier(block)
