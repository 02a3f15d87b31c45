"""The Pareto frontier: what no other point beats in every respect."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

_PIVOTS: Final = 6
"""Number of strong points that reduce a large set before the exact search: each removes the points that it
dominates."""

_THIN_FROM: Final = 64
"""Sets smaller than this are searched at once."""


def pareto_mask(costs: Sequence[FloatArray]) -> BoolArray:
    """Return which points no other point dominates.

    A point dominates another if no objective is larger and one is smaller; equal points all remain.

    Parameters
    ----------
    costs : Sequence[FloatArray]
        Objectives to minimise, one array of shape (n_points,) each; negate those to maximise.

    Returns
    -------
    BoolArray
        Shape (n_points,).

    Raises
    ------
    ValueError
        A cost is NaN and cannot be compared.
    """
    if any(np.isnan(column).any() for column in costs):
        raise ValueError("a frontier needs numbers, and there is a NaN")
    mask = np.zeros(costs[0].shape, dtype=np.bool_)
    if not mask.size:
        return mask
    # An objective with equal values has no effect.
    varying = [column for column in costs if (column != column[0]).any()]
    if not varying:
        return ~mask
    deciding = _without_followers(varying)
    kept = np.arange(mask.size)
    if mask.size > _THIN_FROM:
        kept = _thinned(deciding)
    mask[kept[_undominated([column[kept] for column in deciding])]] = True
    return mask


def _without_followers(costs: list[FloatArray]) -> list[FloatArray]:
    """Leave out what only follows the first objective, as the cost of a token follows the rate at one price.

    If the first objective is smaller, this one is not larger, and if it is equal, this one is equal; so
    dominance is the same without it.
    """
    order = np.argsort(costs[0], kind="stable")
    first = costs[0][order]
    same = first[1:] == first[:-1]

    def follows(column: FloatArray) -> bool:
        then = column[order]
        return bool((then[1:] >= then[:-1]).all()) and bool((then[1:] == then[:-1])[same].all())

    return [costs[0], *(column for column in costs[1:] if not follows(column))]


def _thinned(costs: list[FloatArray]) -> IntArray:
    """Return the positions that remain after some strong points removed those that they dominate."""
    kept = np.arange(costs[0].size)
    left = costs
    scaled = [_scaled(column) for column in costs]
    # From one end of the trade-off to the other: the weight of the first objective against the rest.
    for weight in np.linspace(0.05, 0.95, _PIVOTS):
        score = weight * scaled[0] + (1.0 - weight) * sum(scaled[1:])
        best = int(np.argmin(score))
        stays = ~_dominated_by([float(column[best]) for column in left], left)
        kept = kept[stays]
        left = [column[stays] for column in left]
        scaled = [column[stays] for column in scaled]
    return kept


def _scaled(column: FloatArray) -> FloatArray:
    """Map a cost to the range 0 to 1, by rank on a logarithm-like curve that infinities do not disturb."""
    finite = np.where(np.isfinite(column), column, np.sign(column) * np.finfo(np.float64).max / 4)
    low, high = float(finite.min()), float(finite.max())
    scaled: FloatArray = (finite - low) / (high - low if high > low else 1.0)
    return scaled


def _undominated(costs: list[FloatArray]) -> IntArray:
    """Return the positions of the frontier."""
    order = np.lexsort(tuple(reversed(costs)))
    ordered = [column[order] for column in costs]
    # Equal points are neighbours now; one represents all.
    differs = np.zeros(order.size, dtype=np.bool_)
    differs[0] = True
    for column in ordered:
        differs[1:] |= column[1:] != column[:-1]
    group = np.cumsum(differs) - 1
    distinct = [column[differs] for column in ordered]
    match len(distinct):
        case 1:
            best = np.arange(distinct[0].size) == 0
        case 2:
            best = _staircase(distinct[1])
        case 3:
            best = _staircases(distinct[1].tolist(), distinct[2].tolist())
        case _:
            best = _one_by_one(distinct)
    frontier: IntArray = order[best[group]]
    return frontier


def _staircase(second: FloatArray) -> BoolArray:
    """Return which points, sorted by two objectives, have a smaller second one than all earlier points."""
    before = np.concatenate([[np.inf], np.minimum.accumulate(second)[:-1]])
    best: BoolArray = second < before
    best[0] = True
    return best


def _staircases(second: list[float], third: list[float]) -> BoolArray:
    """Return which of distinct points, sorted by three objectives, no earlier one dominates.

    The earlier ones are kept as a staircase: the second objective grows, the third one falls.
    """
    best = np.zeros(len(second), dtype=np.bool_)
    steps: list[float] = []
    heights: list[float] = []
    for position, (y, z) in enumerate(zip(second, third, strict=True)):
        below = bisect_right(steps, y)
        if below and heights[below - 1] <= z:
            continue
        best[position] = True
        start = bisect_left(steps, y)
        end = start
        while end < len(steps) and heights[end] >= z:
            end += 1
        steps[start:end] = [y]
        heights[start:end] = [z]
    return best


def _one_by_one(costs: list[FloatArray]) -> BoolArray:
    """Return which points no other one dominates: keep the first, drop those that it dominates.

    They are sorted, so the first of those left is dominated by none of them.
    """
    best = np.zeros(costs[0].size, dtype=np.bool_)
    left = np.arange(best.size)
    while left.size:
        best[left[0]] = True
        point = [float(column[left[0]]) for column in costs]
        rest = left[1:]
        left = rest[~_dominated_by(point, [column[rest] for column in costs])]
    return best


def _dominated_by(point: list[float], costs: list[FloatArray]) -> BoolArray:
    """Return which points `point` dominates, shape (n_points,)."""
    nowhere_smaller = costs[0] >= point[0]
    larger = costs[0] > point[0]
    for column, value in zip(costs[1:], point[1:], strict=True):
        nowhere_smaller &= column >= value
        larger |= column > value
    return nowhere_smaller & larger
