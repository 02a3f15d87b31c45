"""Operators of a cross product with equal layouts and equal requests folded into one.

Layouts vary along the first axis, batch sizes along the second, requests along the third. An operator has the
shape of the axes that it depends on, and layouts with equal dimensions need one look-up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray, Operator
from fleetplan.perfmodel.steps.latency import AnyNumbers

Shape = tuple[int, ...]
Places = tuple[IntArray, IntArray, IntArray]
"""Positions of some configurations along the three axes, shape (n,) each."""

Numbers = TypeVar("Numbers", IntArray, FloatArray)

CROSSED_AXES: Final = 3
"""Layouts, batch sizes, requests."""

_LAYOUTS: Final = 0
_REQUESTS: Final = 2


@dataclass(frozen=True, slots=True)
class Folds:
    """Index of the distinct slice of each slice along an axis.

    Attributes
    ----------
    layouts, requests : IntArray or None
        Shape (n_layouts,) and (n_requests,); None if all slices differ.
    """

    layouts: IntArray | None
    requests: IntArray | None

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Key of arrays with equal folding."""
        return (
            b"" if self.layouts is None else self.layouts.tobytes(),
            b"" if self.requests is None else self.requests.tobytes(),
        )

    def at(self, values: AnyNumbers, places: Places) -> AnyNumbers:
        """Return the values of some configurations, shape (n,)."""
        layouts, batches, requests = places
        if self.layouts is not None:
            layouts = self.layouts[layouts]
        if self.requests is not None:
            requests = self.requests[requests]
        index = (layouts, batches, requests)
        # An axis with one slice represents all its positions.
        whole = zip(values.shape, index, strict=True)
        return values[tuple(np.zeros_like(at) if size == 1 else at for size, at in whole)]

    def flat(self, values: AnyNumbers, shape: Shape) -> AnyNumbers:
        """Return the values of all configurations, the last axis fastest; read-only."""
        return np.broadcast_to(self.unfolded(values), shape).ravel()

    def unfolded(self, values: AnyNumbers) -> AnyNumbers:
        """Repeat the folded slices."""
        if self.requests is not None and values.shape[2] > 1:
            values = values[:, :, self.requests]
        return values if self.layouts is None or values.shape[0] == 1 else values[self.layouts]


@dataclass(frozen=True, slots=True)
class FoldedOperator:
    """An operator with its equal layouts and equal requests folded into one.

    Attributes
    ----------
    operator : Operator
        With folded dimensions and count.
    folds : Folds
        Folding.
    shape : Shape
        Broadcast shape of the dimensions.
    """

    operator: Operator
    folds: Folds
    shape: Shape


def folded(operator: Operator) -> FoldedOperator:
    """Fold an operator, whose dimensions and count have all three axes."""
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
    folds = Folds(codes[_LAYOUTS], codes[_REQUESTS])
    return FoldedOperator(replace(operator, dims=dims, count=count), folds, shape)


def _distinct_slices(arrays: list[Any], axis: int) -> tuple[IntArray | None, IntArray | None]:
    """Return codes of equal slices along an axis, and the first position of each; None if all differ."""
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
