"""How replicas share hosts and pods.

Where the sizes that are smaller than a unit divide each other and the unit (1, 2, 4 in a host of 8),
replicas fit whenever their accelerators add up: packing is exactly linear. Otherwise (16 in a pod of 72,
3 in a host of 8) a unit is divided by one of finitely many patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

MAX_PATTERNS = 20_000
"""Patterns of one unit beyond which packing is refused rather than approximated."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How the replica sizes of one pool share its units.

    Attributes
    ----------
    pattern_sizes : tuple[int, ...]
        Sizes that need patterns, the largest first; empty where packing is linear. [accelerators]
    patterns : tuple[tuple[int, ...], ...]
        How many replicas of each pattern size one unit takes, maximal ones only.
    """

    pattern_sizes: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]


def packing(accelerators_per_unit: int, sizes: Iterable[int]) -> Packing:
    """Find the sizes that need patterns.

    Parameters
    ----------
    accelerators_per_unit : int
        Accelerators of a host or pod.
    sizes : Iterable[int]
        Accelerators of the replicas that may run there; larger ones than a unit take whole units and
        are left out.

    Returns
    -------
    Packing
        The smallest sizes that divide each other, the unit and all larger ones stay linear: they fill
        what the patterns leave, in any order.

    Raises
    ------
    ValueError
        If a unit can be divided in more than `MAX_PATTERNS` ways.
    """
    return _packing(accelerators_per_unit, tuple(sorted({s for s in sizes if s < accelerators_per_unit})))


@lru_cache(maxsize=1024)
def _packing(unit: int, sizes: tuple[int, ...]) -> Packing:
    linear = 0
    while linear < len(sizes) and all(larger % sizes[linear] == 0 for larger in (*sizes[linear + 1 :], unit)):
        linear += 1
    large = tuple(reversed(sizes[linear:]))
    if not large:
        return Packing((), ())
    patterns: list[tuple[int, ...]] = []
    _extend(unit, large, (), patterns)
    return Packing(large, tuple(patterns))


def _extend(left: int, sizes: tuple[int, ...], chosen: tuple[int, ...], found: list[tuple[int, ...]]) -> None:
    """All maximal ways to fill `left` accelerators, largest size first."""
    if len(chosen) == len(sizes) - 1:
        # The smallest size takes all that is left, so nothing more fits: the pattern is maximal.
        found.append((*chosen, left // sizes[-1]))
        if len(found) > MAX_PATTERNS:
            raise ValueError(f"replica sizes {sizes} divide a unit in more than {MAX_PATTERNS} ways")
        return
    size = sizes[len(chosen)]
    for count in range(left // size, -1, -1):
        _extend(left - count * size, sizes, (*chosen, count), found)
