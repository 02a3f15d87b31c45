"""Usable configurations side by side, and the frontiers among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.landscape.grid import GridBlock
from fleetplan.perfmodel.landscape.pareto import BoolArray, pareto_mask
from fleetplan.perfmodel.landscape.phases import AGGREGATED, DECODE, PREFILL
from fleetplan.perfmodel.landscape.reasons import USABLE, is_early
from fleetplan.perfmodel.operators import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Points:
    """Usable configurations, each array of shape (n_points,).

    Attributes
    ----------
    row : IntArray
        Position in the whole search space: the same space numbers its rows the same way every time.
    option, request : IntArray
        Positions in the options and in the requests.
    phase : NDArray[np.str_]
        prefill, decode or aggregated.
    layout : NDArray[np.object_]
        A `Parallelism` each.
    batch : IntArray
        Sequences of one attention-DP rank and micro-batch.
    ttft_ms, tpot_ms : FloatArray
        NaN if the phase has none. [ms]
    requests_per_s_per_accelerator, memory_gib : FloatArray
        As in `Block`.
    usd_per_million_tokens, kwh_per_million_tokens : FloatArray
        As in `Block`.
    """

    row: IntArray
    option: IntArray
    request: IntArray
    phase: NDArray[np.str_]
    layout: NDArray[np.object_]
    batch: IntArray
    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s_per_accelerator: FloatArray
    memory_gib: FloatArray
    usd_per_million_tokens: FloatArray
    kwh_per_million_tokens: FloatArray

    @property
    def count(self) -> int:
        """Number of points."""
        return self.option.size

    def take(self, rows: IntArray | BoolArray) -> Points:
        """Return some of the points."""
        return Points(*(getattr(self, name)[rows] for name in Points.__slots__))

    @classmethod
    def concatenated(cls, parts: Sequence[Points]) -> Points:
        """Return the points of all parts, one after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    @property
    def costs(self) -> tuple[FloatArray, ...]:
        """Objectives to minimise: minus throughput, latencies, cost; shape (n_points,) each.

        A missing latency or an unknown cost has no effect.
        """
        columns = (
            -self.requests_per_s_per_accelerator,
            self.ttft_ms,
            self.tpot_ms,
            self.usd_per_million_tokens,
        )
        return tuple(np.where(np.isnan(column), 0.0, column) for column in columns)


def frontiers(points: Points, across_options: bool) -> Points:
    """Keep the frontier of each phase and request, and of each option unless options compete."""
    if not points.count:
        return points
    phases = np.array([PREFILL, DECODE, AGGREGATED])
    option = np.zeros_like(points.option) if across_options else points.option
    key = (option * phases.size + np.argmax(points.phase[:, None] == phases, axis=1)) * (
        int(points.request.max()) + 1
    ) + points.request
    order = np.argsort(key, kind="stable")
    costs = points.costs
    kept = np.zeros(points.count, dtype=np.bool_)
    for rows in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        kept[rows[pareto_mask([column[rows] for column in costs])]] = True
    return points.take(kept)


def block_frontier(block: GridBlock) -> Points:
    """Return the usable configurations of a block that no other one of the same request beats."""
    shape = block.excluded.shape
    usable = block.excluded == USABLE
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


def points_of(block: GridBlock, flat: IntArray) -> Points:
    """Return the configurations of a block at some positions of its flattened arrays."""
    layout, batch, request = np.unravel_index(flat, block.excluded.shape)
    layouts = np.empty(len(block.layouts), dtype=object)
    layouts[:] = block.layouts
    places = (layout, batch, request)

    early = is_early(block.excluded[places]) & (not block.whole)

    def at(values: FloatArray | None) -> FloatArray:
        return np.full(flat.size, np.nan) if values is None else np.where(early, np.nan, values[places])

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
        block.memory_gib[places],
        at(block.usd_per_million_tokens),
        at(block.kwh_per_million_tokens),
    )
