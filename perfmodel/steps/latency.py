"""The time of a step: the sum of its operators, and how much of it rests on which kind of evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.inventory.techniques import ExpertOverlap
from fleetplan.fleet.units import US_PER_MS
from fleetplan.perfmodel.operators import (
    DIMENSIONS,
    ByteArray,
    FloatArray,
    IntArray,
    Operator,
    OperatorKind,
    Provenance,
)
from fleetplan.perfmodel.optables import OperatorTimes
from fleetplan.perfmodel.steps.overlap import TRAVELLING, covering_share, occupied_ms, visible_ms

LABEL_SHARE: Final = 0.10
"""A number is called by its weakest kind of evidence that holds at least this share of its time."""

DENSE_LAYER_KERNELS: Final = 5
"""Large kernels of a dense decoder layer (two projections, attention, two products of the feed-forward part):
the layer that `Efficiency.layer_overhead_us` was fitted on."""

OVERHEAD_NAME: Final = "layer_overhead"
"""The name in a breakdown of launches and gaps that no operator contains."""


_ROOFLINE: Final = np.uint8(Provenance.ROOFLINE)

NO_DETAIL: Final = ""
"""The name in a breakdown that was not made."""


class OperatorTimesSource(Protocol):
    """Interface of a source of operator times."""

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Time and provenance of an operator for an array of configurations."""
        ...

    def times_of_distinct(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Answer the same for rows of which few are equal."""
        ...


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The time of one step for an array of configurations.

    Attributes
    ----------
    latency_ms : FloatArray
        One pass over all pipeline stages, shape (n_configs,); infinite where it cannot run. [ms]
    by_provenance_ms : FloatArray
        The same time by `Provenance`, shape (4, n_configs). [ms]
    names : tuple[str, ...]
        What takes time: operators, and the overhead of the layers.
    breakdown_ms : FloatArray
        The same time by name, shape (n_names, n_configs). [ms]
    """

    latency_ms: FloatArray
    by_provenance_ms: FloatArray
    names: tuple[str, ...]
    breakdown_ms: FloatArray

    @classmethod
    def without_detail(cls, latency_ms: FloatArray) -> StepTimes:
        """Times alone: shares are NaN and there is no bottleneck's name, in shapes that broadcast."""
        small = (1,) * latency_ms.ndim
        nothing = np.full((len(Provenance), *small), np.nan)
        return cls(latency_ms, nothing, (NO_DETAIL,), np.zeros((1, *small)))

    def part(self, rows: slice) -> StepTimes:
        """Return the times of some of the configurations."""
        return StepTimes(
            self.latency_ms[rows], self.by_provenance_ms[:, rows], self.names, self.breakdown_ms[:, rows]
        )

    @property
    def bottleneck(self) -> IntArray:
        """Where in `names` the one that takes most of the time stands, shape (n_configs,)."""
        largest: IntArray = np.argmax(self.breakdown_ms, axis=0).astype(np.int64)
        return largest


def step_times(
    operators: Iterable[Operator],
    source: OperatorTimesSource,
    accelerator: Accelerator,
    overlap: ExpertOverlap = "none",
) -> StepTimes:
    """Add up the operators of a step.

    Launches, gaps and small kernels (`Efficiency.layer_overhead_us` a dense layer) were fitted together with
    the roofline, so they count for the kernels that the roofline prices, in equal parts; measured kernels
    follow one another in a captured graph and need no such term. A layer of latent attention with experts,
    which has nine large kernels instead of five, waits nine fifths as long.

    Parameters
    ----------
    operators : Iterable[Operator]
        At least one, all for the same n configurations.
    source : OperatorTimesSource
        Operator times of `accelerator`.
    accelerator : Accelerator
        For its layer overhead.
    overlap : {"none", "two-batch", "single-batch"}
        What is computed while tokens travel to experts and back.

    Raises
    ------
    UnsupportedDtype
        The accelerator has no matrix units for a data type of the step.
    """
    listed = list(operators)
    if not listed:
        raise ValueError("a step needs at least one operator")
    return added_times(listed, _looked_up(listed, source), accelerator, overlap)


def added_times(
    operators: list[Operator],
    found: Iterable[tuple[Operator, OperatorTimes]],
    accelerator: Accelerator,
    overlap: ExpertOverlap = "none",
) -> StepTimes:
    """Add up the operators of a step whose times were looked up.

    Parameters
    ----------
    operators : list[Operator]
        At least one, in the order of the names of a breakdown.
    found : Iterable[tuple[Operator, OperatorTimes]]
        Each with its times, in any order.
    accelerator, overlap
        As in `step_times`.
    """
    totals = _Totals.zero(operators[0].count.size, overlap)
    rows: dict[str, FloatArray] = {each.name: np.zeros(each.count.size) for each in operators}
    for operator, times in found:
        # A kernel that runs no times takes none, also where it could not run at all.
        time = operator.count * np.where(operator.count > 0, times.latency_ms, 0.0)
        totals.add(operator, time, times.provenance)
        rows[operator.name] += time
    overhead = overhead_ms_per_kernel(accelerator) * totals.roofline_kernels
    if overhead.any():
        rows[OVERHEAD_NAME] = overhead
        totals.by_provenance_ms[Provenance.ROOFLINE] += overhead
    if totals.travelling_names:
        seen = totals.seen_ratio(overhead)
        for name in totals.travelling_names:
            rows[name] = rows[name] * seen
        totals.by_provenance_ms[:] += (seen - 1.0) * totals.travelling_ms
    by_provenance = totals.by_provenance_ms
    return StepTimes(by_provenance.sum(axis=0), by_provenance, tuple(rows), np.stack(list(rows.values())))


def overhead_ms_per_kernel(accelerator: Accelerator) -> float:
    """Launches, gaps and small kernels that come with a large kernel that the roofline prices. [ms]."""
    efficiency = accelerator.efficiency
    return efficiency.layer_overhead_us / DENSE_LAYER_KERNELS * efficiency.maturity_factor / US_PER_MS


def _looked_up(
    operators: list[Operator], source: OperatorTimesSource
) -> Iterator[tuple[Operator, OperatorTimes]]:
    """Yield each operator with its times; operators of one table share a look-up."""
    by_table: dict[tuple[OperatorKind, str], list[Operator]] = {}
    for operator in operators:
        by_table.setdefault((operator.kind, operator.dtype), []).append(operator)
    for (kind, dtype), sharing in by_table.items():
        dims = {
            name: np.concatenate([operator.dims[name] for operator in sharing]) for name in DIMENSIONS[kind]
        }
        found = source.times(kind, dtype, dims)
        n_configs = sharing[0].count.size
        for position, operator in enumerate(sharing):
            rows = slice(position * n_configs, (position + 1) * n_configs)
            yield operator, OperatorTimes(found.latency_ms[rows], found.provenance[rows])


@dataclass(frozen=True, slots=True)
class _Totals:
    by_provenance_ms: FloatArray
    roofline_kernels: FloatArray
    index: IntArray
    overlap: ExpertOverlap
    travelling_ms: FloatArray
    occupying_ms: FloatArray
    covering_ms: FloatArray
    travelling_names: set[str] = field(default_factory=set)

    @classmethod
    def zero(cls, n_configs: int, overlap: ExpertOverlap) -> _Totals:
        shape = (len(Provenance), n_configs)
        kernels, occupying, covering = np.zeros((3, n_configs))
        index = np.arange(n_configs)
        return cls(np.zeros(shape), kernels, index, overlap, np.zeros(shape), occupying, covering)

    def add(self, operator: Operator, time_ms: FloatArray, provenance: ByteArray) -> None:
        cells = provenance * np.int64(self.index.size) + self.index
        _add_at(self.by_provenance_ms, cells, time_ms)
        kernels = operator.kind.record.kernels
        if kernels and (unmeasured := provenance == _ROOFLINE).any():
            self.roofline_kernels[:] += kernels * np.where(unmeasured, operator.count, 0.0)
        if operator.kind in TRAVELLING[self.overlap]:
            _add_at(self.travelling_ms, cells, time_ms)
            self.occupying_ms[:] += occupied_ms(operator.dims, time_ms)
            self.travelling_names.add(operator.name)
        elif self.overlap != "none":
            self.covering_ms[:] += covering_share(self.overlap, operator.kind, operator.name) * time_ms

    def seen_ratio(self, overhead_ms: FloatArray) -> FloatArray:
        """Part of the travel to experts and back that stays visible."""
        travelling = self.travelling_ms.sum(axis=0)
        covering = self.covering_ms + (overhead_ms if self.overlap == "two-batch" else 0.0)
        visible = visible_ms(covering, travelling, self.occupying_ms)
        ratio: FloatArray = np.where(travelling > 0, visible / np.where(travelling > 0, travelling, 1.0), 1.0)
        return ratio


def _add_at(sums: FloatArray, cells: IntArray, values: FloatArray) -> None:
    """Add values to cells of the flattened sums, each of which is there once."""
    flat = sums.reshape(-1)
    flat[cells] = flat.take(cells) + values


def with_wait(times: StepTimes, wait_ms: FloatArray, name: str) -> StepTimes:
    """Return the times with a wait after them; it rests on a stated figure, as the roofline does."""
    if not np.any(wait_ms):
        return times
    latency = times.latency_ms + wait_ms
    if times.names == (NO_DETAIL,):
        return StepTimes.without_detail(latency)
    by_provenance = times.by_provenance_ms.copy()
    by_provenance[Provenance.ROOFLINE] += wait_ms
    breakdown = np.vstack([times.breakdown_ms, np.broadcast_to(wait_ms, latency.shape)])
    return StepTimes(latency, by_provenance, (*times.names, name), breakdown)


def alike_named(parts: list[StepTimes]) -> list[StepTimes]:
    """Return the times of all `parts` with the same names: zero for names that a part did not have."""
    # A part without, say, any pipeline does not name its operators.
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    return [
        part
        if part.names == names
        else StepTimes(part.latency_ms, part.by_provenance_ms, names, breakdown_of(part, names))
        for part in parts
    ]


def concatenated_times(parts: list[StepTimes]) -> StepTimes:
    """Return the times of all `parts`, one after the other."""
    alike = alike_named(parts)
    return StepTimes(
        np.concatenate([part.latency_ms for part in alike]),
        np.concatenate([part.by_provenance_ms for part in alike], axis=1),
        alike[0].names,
        np.concatenate([part.breakdown_ms for part in alike], axis=1),
    )


def breakdown_of(times: StepTimes, names: tuple[str, ...]) -> FloatArray:
    """Return the breakdown by `names`, shape (n_names, n_configs); zero for names it does not have. [ms]."""
    block = np.zeros((len(names), times.latency_ms.size))
    for row, name in enumerate(times.names):
        block[names.index(name)] = times.breakdown_ms[row]
    return block


def provenance_shares(by_provenance_ms: FloatArray) -> FloatArray:
    """Share of the time by `Provenance`, shape (4, n_configs); each column adds up to one.

    Zero in all rows where the time is not finite.
    """
    total = by_provenance_ms.sum(axis=0)
    usable = np.isfinite(total) & (total > 0)
    shares: FloatArray = np.where(usable, by_provenance_ms, 0.0) / np.where(usable, total, 1.0)
    return shares


def weakest_provenance(shares: FloatArray) -> ByteArray:
    """Find the weakest `Provenance` that holds at least `LABEL_SHARE` of the time, shape (n_configs,)."""
    holds = shares >= LABEL_SHARE
    weakest_first = holds[::-1]
    found = len(Provenance) - 1 - np.argmax(weakest_first, axis=0)
    return np.where(holds.any(axis=0), found, int(Provenance.ROOFLINE)).astype(np.uint8)
