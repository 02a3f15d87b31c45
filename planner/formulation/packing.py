"""How replicas share hosts and pods.

Where the sizes that are smaller than a unit divide each other and the unit (1, 2, 4 in a host of 8),
replicas fit whenever their accelerators add up: packing is exactly linear. Otherwise (16 in a pod of 72,
3 in a host of 8) a unit is divided by one of finitely many patterns. Where those are too many to list, a unit
is filled step by step: a flow from 0 to its accelerators whose arcs are replicas (J. M. Valério de Carvalho,
Annals of Operations Research 86, 1999).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

MAX_PATTERNS = 20_000
"""Patterns of one unit beyond which it is filled step by step."""

MAX_STEPS = 20_000
"""Steps beyond which packing is refused rather than approximated: units of thousands of accelerators."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How the replica sizes of one pool share its units.

    Attributes
    ----------
    pattern_sizes : tuple[int, ...]
        Sizes that need patterns, the largest first; empty where packing is linear. [accelerators]
    patterns : tuple[tuple[int, ...], ...]
        How many replicas of each pattern size one unit takes, maximal ones only; empty where they are too
        many.
    steps : tuple[tuple[int, int], ...]
        Instead of patterns: accelerators that are taken, and the size of a replica that may come next.
    """

    pattern_sizes: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[int, int], ...] = ()


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
        If a unit is filled in more than `MAX_STEPS` steps.
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
    if len(patterns) > MAX_PATTERNS:
        return Packing(large, (), _steps(unit, large))
    return Packing(large, tuple(patterns))


def _steps(unit: int, sizes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Every step in filling a unit, the largest replicas first."""
    found: list[tuple[int, int]] = []
    reached = [0]
    for size in sizes:
        known = set(reached)
        # What a step reaches is looked at in turn: any number of replicas of a size may follow each other.
        for taken in reached:
            if taken + size <= unit:
                found.append((taken, size))
                if taken + size not in known:
                    known.add(taken + size)
                    reached.append(taken + size)
        if len(found) > MAX_STEPS:
            raise ValueError(f"replicas of {', '.join(map(str, sizes))} share it in too many ways")
    return tuple(found)


def _extend(left: int, sizes: tuple[int, ...], chosen: tuple[int, ...], found: list[tuple[int, ...]]) -> None:
    """All maximal ways to fill `left` accelerators, largest size first; or one more than may be."""
    if len(chosen) == len(sizes) - 1:
        # The smallest size takes all that is left, so nothing more fits: the pattern is maximal.
        found.append((*chosen, left // sizes[-1]))
        return
    size = sizes[len(chosen)]
    for count in range(left // size, -1, -1):
        if len(found) > MAX_PATTERNS:
            return
        _extend(left - count * size, sizes, (*chosen, count), found)
