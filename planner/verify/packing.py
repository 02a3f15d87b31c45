"""Exact bin packing of replicas into hosts or pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TypeAlias

Counts: TypeAlias = tuple[tuple[int, int], ...]
"""Sizes of replicas with their counts, largest first."""

MAX_FUNCTIONS = 64
"""Maximum number of dual feasible functions in the lower bound."""


def fits(sizes: Counter[int], accelerators_per_unit: int, units: int) -> bool:
    """Return whether replicas can be packed into hosts or pods.

    Parameters
    ----------
    sizes : Counter[int]
        Replicas by their accelerators; one that exceeds a unit occupies whole units.
    accelerators_per_unit, units : int
        Accelerators per unit, and number of units.

    Returns
    -------
    bool
        Exact result: first-fit decreasing, then a search over all packings if that fails.
    """
    whole, small = _parted(sizes, accelerators_per_unit)
    left = units - whole
    if left < 0 or _least_units(small, accelerators_per_unit) > left:
        return False
    return _first_fit(small, accelerators_per_unit) <= left or _search_packing(
        small, accelerators_per_unit, left
    )


def accelerators_of(sizes: Counter[int]) -> int:
    """Return the accelerators of replicas by size."""
    return sum(size * count for size, count in sizes.items())


def fewest_units(sizes: Counter[int], accelerators_per_unit: int) -> int:
    """Return the fewest hosts or pods into which replicas can be packed; parameters as for `fits`."""
    whole, small = _parted(sizes, accelerators_per_unit)
    most = _first_fit(small, accelerators_per_unit)
    for units in range(_least_units(small, accelerators_per_unit), most):
        if _search_packing(small, accelerators_per_unit, units):
            return whole + units
    return whole + most


def _parted(sizes: Counter[int], unit: int) -> tuple[int, Counts]:
    """Return the number of units for replicas of at least one unit, and the smaller replicas."""
    counts = sorted(sizes.items(), reverse=True)
    whole = sum(-(-size // unit) * count for size, count in counts if size >= unit)
    return whole, tuple((size, count) for size, count in counts if size < unit)


def _least_units(counts: Counts, unit: int) -> int:
    """Return a lower bound on the number of units.

    The bound is the sum of sizes over the unit size, also after dual feasible functions: k replicas larger
    than 1 / (k + 1) of a unit fill it, as if each had size 1 / k (Fekete and Schepers, Mathematical
    Programming 91, 2001).
    """
    least = -(-sum(size * count for size, count in counts) // unit)
    for k in range(1, min(unit, MAX_FUNCTIONS) + 1):
        total = sum(
            count * (size * k if (k + 1) * size % unit == 0 else (k + 1) * size // unit * unit)
            for size, count in counts
        )
        least = max(least, -(-total // (unit * k)))
    return least


def _first_fit(counts: Counts, unit: int) -> int:
    """Return the units used by best-fit decreasing: each replica goes into the smallest free space."""
    free: dict[int, int] = defaultdict(int)
    opened = 0
    for size, count in counts:
        left = count
        for space in [*sorted(space for space in free if space >= size), unit]:
            each = space // size
            taken = min(free[space], -(-left // each)) if space != unit else -(-left // each)
            opened += taken if space == unit else 0
            free[space] -= 0 if space == unit else taken
            placed = min(left, taken * each)
            filled, more = divmod(placed, each)
            free[space - each * size] += filled
            if more:
                free[space - more * size] += 1
            left -= placed
    return opened


def _search_packing(small: Counts, unit: int, units: int) -> bool:
    """Return whether a packing exists, by trying every maximal filling of the next unit.

    Iterative, because the depth is the number of units.
    """
    if not small:
        return True
    dead: set[tuple[Counts, int]] = set()
    ways = [_fillings(small, unit, first=True)]
    while ways:
        left = units - len(ways)
        for rest in ways[-1]:
            counts = tuple((size, count) for size, count in rest if count)
            if not counts:
                return True
            if (counts, left) not in dead and _least_units(counts, unit) <= left:
                dead.add((counts, left))
                ways.append(_fillings(counts, unit, first=True))
                break
        else:
            ways.pop()
    return False


def _fillings(counts: Counts, left: int, first: bool = False) -> Iterator[Counts]:
    """Yield the replicas left after filling one unit, for every filling with at least the largest one."""
    if not counts:
        yield ()
        return
    (size, count), rest = counts[0], counts[1:]
    for taken in range(min(count, left // size), 0 if first else -1, -1):
        for remaining in _fillings(rest, left - taken * size):
            yield ((size, count - taken), *remaining)
