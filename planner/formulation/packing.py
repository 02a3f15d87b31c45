"""Packing of replicas into hosts and pods.

If the sizes smaller than a unit divide each other and the unit (1, 2, 4 in a host of 8), replicas fit
whenever their accelerators add up: packing is linear. Otherwise (16 in a pod of 72, 3 in a host of 8) a unit
is divided by one of finitely many patterns. If there are too many patterns to list, a unit is filled step by
step: a flow from 0 to its accelerators whose arcs are replicas (J. M. Valério de Carvalho, Annals of
Operations Research 86, 1999).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

MAX_PATTERNS = 20_000
"""Number of patterns of a unit above which it is filled step by step."""

MAX_STEPS = 20_000
"""Number of steps above which packing is refused, not approximated: units of thousands of accelerators."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Packing of a pool's replica sizes into its units.

    Attributes
    ----------
    pattern_sizes : tuple[int, ...]
        Sizes that need patterns, largest first; empty if packing is linear. [accelerators]
    patterns : tuple[tuple[int, ...], ...]
        Replicas of each pattern size per unit, maximal patterns only; empty if there are too many.
    steps : tuple[tuple[int, int], ...]
        In place of patterns: accelerators used, and the size of a replica that may follow.
    """

    pattern_sizes: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[int, int], ...] = ()


def packing(accelerators_per_unit: int, sizes: Iterable[int]) -> Packing:
    """Return the sizes that need patterns, with their patterns or steps.

    Parameters
    ----------
    accelerators_per_unit : int
        Accelerators of a host or pod.
    sizes : Iterable[int]
        Accelerators of the replicas that may run there; larger ones use whole units and are ignored.

    Returns
    -------
    Packing
        The smallest sizes that divide each other, the unit and all larger sizes stay linear: they fill the
        space that patterns leave, in any order.

    Raises
    ------
    ValueError
        If filling a unit takes more than `MAX_STEPS` steps.
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
    """Return every step of filling a unit, largest replicas first."""
    found: list[tuple[int, int]] = []
    reached = [0]
    for size in sizes:
        known = set(reached)
        # Newly reached levels join the loop: any number of replicas of a size may follow each other.
        for taken in reached:
            if taken + size <= unit:
                found.append((taken, size))
                if taken + size not in known:
                    known.add(taken + size)
                    reached.append(taken + size)
        if len(found) > MAX_STEPS:
            raise ValueError(f"replicas of {', '.join(map(str, sizes))} can share it in too many ways")
    return tuple(found)


def _extend(left: int, sizes: tuple[int, ...], chosen: tuple[int, ...], found: list[tuple[int, ...]]) -> None:
    """Append all maximal ways to fill `left` accelerators, largest size first; stop above the limit."""
    if len(chosen) == len(sizes) - 1:
        # The smallest size takes the rest, so nothing more fits: the pattern is maximal.
        found.append((*chosen, left // sizes[-1]))
        return
    size = sizes[len(chosen)]
    for count in range(left // size, -1, -1):
        if len(found) > MAX_PATTERNS:
            return
        _extend(left - count * size, sizes, (*chosen, count), found)
