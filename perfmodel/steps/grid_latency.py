"""The time of a step for every layout with every batch size and every request at once.

A search evaluates a cross product without writing its configurations out: layouts vary along the first axis,
batch sizes along the second, requests along the third, with NumPy broadcasting. An operator has the shape of
the axes that it depends on (a decode GEMM has no third axis), layouts with equal dimensions are looked up
once, and the rest is gathering and adding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.inventory.techniques import ExpertOverlap
from fleetplan.perfmodel.operators import FloatArray, Operator, Provenance
from fleetplan.perfmodel.steps.folding import CROSSED_AXES, FoldedOperator, Folds, Places, Shape, folded
from fleetplan.perfmodel.steps.latency import (
    FoundTimes,
    OperatorTimesSource,
    added_times,
    overhead_ms_per_kernel,
)
from fleetplan.perfmodel.steps.overlap import TRAVELLING, covering_share, occupied_ms, visible_ms
from fleetplan.perfmodel.steps.shared_lookups import PendingOperators, SharedLookups
from fleetplan.perfmodel.steps.times import StepTimes


def grid_step_times(
    operators: Iterable[Operator],
    source: OperatorTimesSource,
    accelerator: Accelerator,
    overlap: ExpertOverlap = "none",
) -> StepTimes:
    """Add up the operators of a step over a cross product.

    Parameters
    ----------
    operators : Iterable[Operator]
        Dimensions and counts of shape (n_layouts or 1, n_batches or 1, n_requests or 1).
    source, accelerator, overlap
        As in `fleetplan.perfmodel.steps.latency.step_times`.

    Returns
    -------
    StepTimes
        Return the latency in the broadcast shape of the operators, without detail: `step_times` returns
        sources and bottleneck for selected configurations.

    Raises
    ------
    UnsupportedDtype
        The accelerator has no matrix units for a data type of the step.
    """
    return CrossedStep.of(operators, source, accelerator, overlap).times()


@dataclass(frozen=True, slots=True)
class CrossedStep:
    """The operators of a step over a cross product, with their times where these are needed.

    Attributes
    ----------
    accelerator, overlap
        As in `grid_step_times`.
    """

    accelerator: Accelerator
    overlap: ExpertOverlap
    _folded: list[FoldedOperator]
    _asked: PendingOperators

    @classmethod
    def of(
        cls,
        operators: Iterable[Operator],
        source: OperatorTimesSource,
        accelerator: Accelerator,
        overlap: ExpertOverlap = "none",
        lookups: SharedLookups | None = None,
    ) -> CrossedStep:
        """Ask for the operators of a step.

        Parameters
        ----------
        operators, source, accelerator, overlap
            As in `grid_step_times`.
        lookups : SharedLookups, optional
            Queue, shared with other steps.
        """
        every = [folded(operator) for operator in operators]
        if not every:
            raise ValueError("a step needs at least one operator")
        asked = (lookups or SharedLookups()).ask(every, source)
        return cls(accelerator, overlap, every, asked)

    def times(self) -> StepTimes:
        """Add them up, without detail; errors as in `grid_step_times`."""
        total, roofline_kernels = _Sum(), _Sum()
        travelling, occupying, covering = _Sum(), _Sum(), _Sum()
        overlap, overhead_ms = self.overlap, overhead_ms_per_kernel(self.accelerator)
        for each, found in self._asked.found():
            operator, folds = each.operator, each.folds
            times = FoundTimes(operator, found, folds.unfolded).time_ms
            if operator.kind in TRAVELLING[overlap]:
                travelling.add(folds, times)
                occupying.add(folds, occupied_ms(operator.dims, times))
            else:
                total.add(folds, times)
                share = covering_share(overlap, operator.kind, operator.name)
                if overlap == "single-batch" and share:
                    covering.add(folds, share * times)
            kernels = operator.kind.record.kernels
            if overhead_ms and kernels:
                unmeasured = _mostly(found.provenance == Provenance.ROOFLINE)
                roofline_kernels.add(folds, kernels * operator.count * unmeasured)
        latency_ms = total.value()
        if overhead_ms:
            latency_ms = latency_ms + overhead_ms * roofline_kernels.value()
        if travelling.parts:
            # All work covers what travels in another batch.
            covering_ms = latency_ms if overlap == "two-batch" else covering.value()
            latency_ms = latency_ms + visible_ms(covering_ms, travelling.value(), occupying.value())
        return StepTimes.without_detail(latency_ms)

    def operators(self, places: Places) -> Iterator[Operator]:
        """Yield the operators of some configurations, without dimensions."""
        for each in self._folded:
            count = each.folds.at(each.operator.count, places)
            yield replace(each.operator, dims={}, count=count)

    def detail(self, places: Places) -> StepTimes:
        """Add up the times of some configurations in full detail, as `step_times` does."""
        return self._detail(places[0].size, lambda folds: partial(folds.at, places=places))

    def all_operators(self, shape: Shape) -> Iterator[Operator]:
        """Yield what `operators` does of all configurations of a cross product, the last axis fastest."""
        for each in self._folded:
            count = each.folds.flat(each.operator.count, shape)
            yield replace(each.operator, dims={}, count=count)

    def all_detail(self, shape: Shape) -> StepTimes:
        """Add up the times of all configurations, as `detail` does those of some."""
        return self._detail(math.prod(shape), lambda folds: partial(folds.flat, shape=shape))

    def _detail(self, n_configs: int, picked: Callable[[Folds], Callable[[Any], Any]]) -> StepTimes:
        """Add up the times of those that `picked` picks out of arrays, by how these were folded."""
        names = [each.operator.name for each in self._folded]
        found = (FoundTimes(each.operator, times, picked(each.folds)) for each, times in self._asked.found())
        return added_times(names, n_configs, found, self.accelerator, self.overlap)


def _mostly(flags: np.ndarray) -> FloatArray:
    """Return the flags as numbers, in the smallest sufficient shape."""
    if flags.all() or not flags.any():
        return np.full((1,) * flags.ndim, float(flags.flat[0]))
    return flags.astype(np.float64)


@dataclass(slots=True)
class _Sum:
    """A sum of arrays that were folded in different ways, unfolded as late as possible."""

    parts: dict[tuple[bytes, bytes], tuple[Folds, FloatArray]] = field(default_factory=dict)

    def add(self, folds: Folds, values: FloatArray) -> None:
        known = self.parts.get(folds.key)
        self.parts[folds.key] = (folds, values if known is None else known[1] + values)

    def value(self) -> FloatArray:
        # Small arrays first: the large ones are then touched once each.
        total: FloatArray = np.zeros((1,) * CROSSED_AXES)
        for folds, values in sorted(self.parts.values(), key=lambda part: part[1].size):
            total = total + folds.unfolded(values)
        return total
