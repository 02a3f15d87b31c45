"""The time of a step for every layout with every batch size and every request at once.

A search asks for a cross product, so the arrays of its configurations are not written out: layouts vary
along the first axis, batch sizes along the second, requests along the third, and NumPy broadcasting does
the rest. An operator then has the shape of what it depends on (a decode GEMM has no third axis), layouts
that give it equal dimensions are looked up once, and what remains is to gather and to add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.inventory.techniques import ExpertOverlap
from fleetplan.perfmodel.operators import (
    DIMENSIONS,
    FloatArray,
    IntArray,
    Operator,
    OperatorKind,
    Provenance,
)
from fleetplan.perfmodel.optables import OperatorTimes
from fleetplan.perfmodel.steps.latency import (
    AnyNumbers,
    FoundTimes,
    OperatorTimesSource,
    added_times,
    overhead_ms_per_kernel,
)
from fleetplan.perfmodel.steps.overlap import TRAVELLING, covering_share, occupied_ms, visible_ms
from fleetplan.perfmodel.steps.times import StepTimes

Shape = tuple[int, ...]
Places = tuple[IntArray, IntArray, IntArray]
"""Positions of some configurations along the three axes, shape (n,) each."""

Numbers = TypeVar("Numbers", IntArray, FloatArray)

CROSSED_AXES: Final = 3
"""Layouts, batch sizes, requests."""

_LAYOUTS: Final = 0
_REQUESTS: Final = 2


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
        Latency of the broadcast shape of the operators, without detail: what it rests on and what takes
        most of it is asked of `step_times`, for the few configurations that somebody looks at.

    Raises
    ------
    UnsupportedDtype
        The accelerator has no matrix units for a data type of the step.
    """
    return CrossedStep.of(operators, source, accelerator, overlap).times()


@dataclass(frozen=True, slots=True)
class CrossedStep:
    """The operators of a step over a cross product, with their times.

    Attributes
    ----------
    accelerator, overlap
        As in `grid_step_times`.
    """

    accelerator: Accelerator
    overlap: ExpertOverlap
    _folded: list[_Folded]
    _found: list[tuple[_Folded, OperatorTimes]]

    @classmethod
    def of(
        cls,
        operators: Iterable[Operator],
        source: OperatorTimesSource,
        accelerator: Accelerator,
        overlap: ExpertOverlap = "none",
    ) -> CrossedStep:
        """Look up the operators of a step; parameters and errors as in `grid_step_times`."""
        folded = [_folded(operator) for operator in operators]
        if not folded:
            raise ValueError("a step needs at least one operator")
        return cls(accelerator, overlap, folded, list(_looked_up(folded, source)))

    def times(self) -> StepTimes:
        """Add them up, without detail."""
        total, roofline_kernels = _Sum(), _Sum()
        travelling, occupying, covering = _Sum(), _Sum(), _Sum()
        overlap, overhead_ms = self.overlap, overhead_ms_per_kernel(self.accelerator)
        for folded, found in self._found:
            operator, folds = folded.operator, folded.folds
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
        for folded in self._folded:
            count = folded.folds.at(folded.operator.count, places)
            yield replace(folded.operator, dims={}, count=count)

    def detail(self, places: Places) -> StepTimes:
        """Add up the times of some configurations in full detail, as `step_times` does."""
        return self._detail(places[0].size, lambda folds: partial(folds.at, places=places))

    def all_operators(self, shape: Shape) -> Iterator[Operator]:
        """Yield what `operators` does of all configurations of a cross product, the last axis fastest."""
        for folded in self._folded:
            count = folded.folds.flat(folded.operator.count, shape)
            yield replace(folded.operator, dims={}, count=count)

    def all_detail(self, shape: Shape) -> StepTimes:
        """Add up the times of all configurations, as `detail` does those of some."""
        return self._detail(math.prod(shape), lambda folds: partial(folds.flat, shape=shape))

    def _detail(self, n_configs: int, picked: Callable[[_Folds], Callable[[Any], Any]]) -> StepTimes:
        """Add up the times of those that `picked` picks out of arrays, by how these were folded."""
        names = [folded.operator.name for folded in self._folded]
        found = (FoundTimes(folded.operator, times, picked(folded.folds)) for folded, times in self._found)
        return added_times(names, n_configs, found, self.accelerator, self.overlap)


@dataclass(frozen=True, slots=True)
class _Folds:
    """Which of the distinct slices each slice along an axis is.

    Attributes
    ----------
    layouts, requests : IntArray or None
        Shape (n_layouts,) and (n_requests,); None where nothing was folded.
    """

    layouts: IntArray | None
    requests: IntArray | None

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Key of arrays that were folded alike."""
        return (
            b"" if self.layouts is None else self.layouts.tobytes(),
            b"" if self.requests is None else self.requests.tobytes(),
        )

    def at(self, values: AnyNumbers, places: Places) -> AnyNumbers:
        """Values of some configurations, shape (n,)."""
        layouts, batches, requests = places
        if self.layouts is not None:
            layouts = self.layouts[layouts]
        if self.requests is not None:
            requests = self.requests[requests]
        index = (layouts, batches, requests)
        # An axis of one slice stands for all positions along it.
        whole = zip(values.shape, index, strict=True)
        return values[tuple(np.zeros_like(at) if size == 1 else at for size, at in whole)]

    def flat(self, values: AnyNumbers, shape: Shape) -> AnyNumbers:
        """Values of all configurations, the last axis fastest; read-only."""
        return np.broadcast_to(self.unfolded(values), shape).ravel()

    def unfolded(self, values: AnyNumbers) -> AnyNumbers:
        """Repeat the slices that were folded."""
        if self.requests is not None and values.shape[2] > 1:
            values = values[:, :, self.requests]
        return values if self.layouts is None or values.shape[0] == 1 else values[self.layouts]


@dataclass(frozen=True, slots=True)
class _Folded:
    """An operator with its equal layouts and equal requests folded into one.

    Attributes
    ----------
    operator : Operator
        With folded dimensions and count.
    folds : _Folds
        How.
    shape : Shape
        Broadcast shape of the dimensions.
    """

    operator: Operator
    folds: _Folds
    shape: Shape


def _folded(operator: Operator) -> _Folded:
    dims, count = operator.dims, operator.count
    if any(array.ndim != CROSSED_AXES for array in (count, *dims.values())):
        raise ValueError(f"{operator.name} is not crossed: its dimensions need {CROSSED_AXES} axes")
    codes: dict[int, IntArray | None] = {}
    for axis in (_LAYOUTS, _REQUESTS):
        codes[axis], first = _distinct_slices([count, *dims.values()], axis)
        if first is not None:
            dims = {name: _slices(array, first, axis) for name, array in dims.items()}
            count = _slices(count, first, axis)
    shape = np.broadcast_shapes(*(array.shape for array in dims.values()))
    folds = _Folds(codes[_LAYOUTS], codes[_REQUESTS])
    return _Folded(replace(operator, dims=dims, count=count), folds, shape)


def _distinct_slices(arrays: list[Any], axis: int) -> tuple[IntArray | None, IntArray | None]:
    """Codes of equal slices along an axis, and where each code first stands; None where all differ."""
    varying = [np.moveaxis(array, axis, 0) if axis else array for array in arrays if array.shape[axis] > 1]
    if not varying:
        return None, None
    count = len(varying[0])
    # The bytes of each slice: all arrays have numbers of one size.
    parts = [array.reshape(count, -1).view(np.int64) for array in varying]
    slices = np.ascontiguousarray(np.concatenate(parts, axis=1))
    seen: dict[bytes, int] = {}
    keys = slices.view(f"V{slices.itemsize * slices.shape[1]}").ravel().tolist()
    codes = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
    if len(seen) == count:
        return None, None
    first = np.empty(len(seen), dtype=np.int64)
    # Assigned backwards, so that the first of equal ones is the one that stays.
    first[codes[::-1]] = np.arange(count - 1, -1, -1)
    return codes, first


def _slices(array: Numbers, positions: IntArray, axis: int) -> Numbers:
    return array if array.shape[axis] == 1 else np.take(array, positions, axis=axis)


def _looked_up(folded: list[_Folded], source: OperatorTimesSource) -> Iterable[tuple[_Folded, OperatorTimes]]:
    """Yield each operator with its times in its own shape; operators of one table share a look-up."""
    by_table: dict[tuple[OperatorKind, str], list[_Folded]] = {}
    for each in folded:
        by_table.setdefault((each.operator.kind, each.operator.dtype), []).append(each)
    for (kind, dtype), sharing in by_table.items():
        dims = {
            name: np.concatenate([_flat(each.operator.dims[name], each.shape) for each in sharing])
            for name in DIMENSIONS[kind]
        }
        found = source.times_of_distinct(kind, dtype, dims)
        start = 0
        for each in sharing:
            end = start + math.prod(each.shape)
            latency_ms = found.latency_ms[start:end].reshape(each.shape)
            yield each, OperatorTimes(latency_ms, found.provenance[start:end].reshape(each.shape))
            start = end


def _flat(values: IntArray, shape: Shape) -> IntArray:
    """Values of a broadcast shape, one after the other; most have it already, or are one value."""
    if values.shape == shape:
        return values.ravel()
    if values.size == 1:
        return np.full(math.prod(shape), values.flat[0])
    return np.broadcast_to(values, shape).ravel()


def _mostly(flags: np.ndarray) -> FloatArray:
    """The flags as numbers, in the smallest shape that holds them."""
    if flags.all() or not flags.any():
        return np.full((1,) * flags.ndim, float(flags.flat[0]))
    return flags.astype(np.float64)


@dataclass(slots=True)
class _Sum:
    """A sum of arrays that were folded in different ways, unfolded as late as possible."""

    parts: dict[tuple[bytes, bytes], tuple[_Folds, FloatArray]] = field(default_factory=dict)

    def add(self, folds: _Folds, values: FloatArray) -> None:
        known = self.parts.get(folds.key)
        self.parts[folds.key] = (folds, values if known is None else known[1] + values)

    def value(self) -> FloatArray:
        # Small arrays first: the large ones are then touched once each.
        total: FloatArray = np.zeros((1,) * CROSSED_AXES)
        for folds, values in sorted(self.parts.values(), key=lambda part: part[1].size):
            total = total + folds.unfolded(values)
        return total
