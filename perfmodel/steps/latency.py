"""The time of a step as the sum of its operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

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
from fleetplan.perfmodel.steps.times import StepTimes

AnyNumbers = TypeVar("AnyNumbers", IntArray, FloatArray, ByteArray)

DENSE_LAYER_KERNELS: Final = 5
"""Large kernels of a dense decoder layer (two projections, attention, two products of the feed-forward part):
the layer that `Efficiency.layer_overhead_us` was fitted on."""

OVERHEAD_NAME: Final = "layer_overhead"
"""The name in a breakdown of launches and gaps that no operator contains."""


_ROOFLINE: Final = np.uint8(Provenance.ROOFLINE)


class OperatorTimesSource(Protocol):
    """Interface of a source of operator times."""

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the time and provenance of an operator for an array of configurations."""
        ...

    def times_of_distinct(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the same results for rows of which few are equal."""
        ...


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
        Computation during dispatch and combine.

    Raises
    ------
    UnsupportedDtype
        The accelerator has no matrix units for a data type of the step.
    """
    listed = list(operators)
    if not listed:
        raise ValueError("a step needs at least one operator")
    names = [operator.name for operator in listed]
    return added_times(names, listed[0].count.size, _looked_up(listed, source), accelerator, overlap)


def added_times(
    names: Iterable[str],
    n_configs: int,
    found: Iterable[FoundTimes],
    accelerator: Accelerator,
    overlap: ExpertOverlap = "none",
) -> StepTimes:
    """Return the sum of the looked-up operators of a step.

    Parameters
    ----------
    names : Iterable[str]
        Names of the operators, in the order of a breakdown.
    n_configs : int
        Configurations.
    found : Iterable[FoundTimes]
        All of them, in any order.
    accelerator, overlap
        As in `step_times`.
    """
    totals = _Totals.zero(n_configs, overlap)
    breakdown: dict[str, FloatArray] = {name: np.zeros(n_configs) for name in names}
    for each in found:
        time_ms = each.whole(each.time_ms)
        totals.add(each, time_ms)
        breakdown[each.operator.name] += time_ms
    overhead = overhead_ms_per_kernel(accelerator) * totals.roofline_kernels
    if overhead.any():
        breakdown[OVERHEAD_NAME] = overhead
        totals.by_provenance_ms[Provenance.ROOFLINE] += overhead
    if totals.travelling_names:
        seen = totals.seen_ratio(overhead)
        for name in totals.travelling_names:
            breakdown[name] = breakdown[name] * seen
        totals.by_provenance_ms[:] += (seen - 1.0) * totals.travelling_ms
    by_provenance = totals.by_provenance_ms
    return StepTimes(
        by_provenance.sum(axis=0), by_provenance, tuple(breakdown), np.stack(list(breakdown.values()))
    )


def overhead_ms_per_kernel(accelerator: Accelerator) -> float:
    """Return launches, gaps and small kernels that accompany a large kernel of the roofline. [ms]."""
    efficiency = accelerator.efficiency
    return efficiency.layer_overhead_us / DENSE_LAYER_KERNELS * efficiency.maturity_factor / US_PER_MS


def _looked_up(operators: list[Operator], source: OperatorTimesSource) -> Iterator[FoundTimes]:
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
            times = OperatorTimes(found.latency_ms[rows], found.provenance[rows])
            yield FoundTimes(operator, times, _as_it_is)


@dataclass(frozen=True, slots=True)
class FoundTimes:
    """Times of an operator, in a shape that may be smaller than the configurations.

    Attributes
    ----------
    operator : Operator
        With dimensions and a count of shapes that broadcast with that of the times.
    times : OperatorTimes
        Looked-up times.
    whole : Callable
        Repeats values of one of these shapes for all configurations: shape (n_configs,).
    """

    operator: Operator
    times: OperatorTimes
    whole: Callable[[AnyNumbers], AnyNumbers]

    @property
    def time_ms(self) -> FloatArray:
        """Time of all runs in a step. [ms]."""
        # A kernel that runs zero times takes no time, even if it could not run at all.
        count, latency_ms = self.operator.count, self.times.latency_ms
        runs = count > 0
        found: FloatArray = count * (latency_ms if runs.all() else np.where(runs, latency_ms, 0.0))
        return found


def _as_it_is(values: AnyNumbers) -> AnyNumbers:
    return values


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

    def add(self, found: FoundTimes, time_ms: FloatArray) -> None:
        operator, provenance = found.operator, found.times.provenance
        least, most = int(provenance.min(initial=_ROOFLINE)), int(provenance.max(initial=0))
        is_of_one_kind = least == most
        cells = self.index
        if not is_of_one_kind:
            cells = found.whole(provenance) * np.int64(self.index.size) + self.index
        sums = [self.by_provenance_ms]
        if operator.kind in TRAVELLING[self.overlap]:
            sums.append(self.travelling_ms)
        for each in sums:
            if is_of_one_kind:
                each[least] += time_ms
            else:
                _add_at(each, cells, time_ms)
        kernels = operator.kind.record.kernels
        if kernels and most == _ROOFLINE:
            unmeasured = np.where(provenance == _ROOFLINE, operator.count, 0.0)
            self.roofline_kernels[:] += kernels * found.whole(unmeasured)
        if operator.kind in TRAVELLING[self.overlap]:
            dims = {name: found.whole(values) for name, values in operator.dims.items()}
            self.occupying_ms[:] += occupied_ms(dims, time_ms)
            self.travelling_names.add(operator.name)
        elif self.overlap != "none":
            self.covering_ms[:] += covering_share(self.overlap, operator.kind, operator.name) * time_ms

    def seen_ratio(self, overhead_ms: FloatArray) -> FloatArray:
        """Return the part of the travel to experts and back that stays visible."""
        travelling = self.travelling_ms.sum(axis=0)
        covering = self.covering_ms + (overhead_ms if self.overlap == "two-batch" else 0.0)
        visible = visible_ms(covering, travelling, self.occupying_ms)
        ratio: FloatArray = np.where(travelling > 0, visible / np.where(travelling > 0, travelling, 1.0), 1.0)
        return ratio


def _add_at(sums: FloatArray, cells: IntArray, values: FloatArray) -> None:
    """Add values to cells of the flattened sums, each of which is there once."""
    flat = sums.reshape(-1)
    flat[cells] = flat.take(cells) + values
