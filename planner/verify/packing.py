"""Whether replicas can be packed into hosts or pods, by trying."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator


def fits(sizes: list[int], accelerators_per_unit: int, units: int) -> bool:
    """Whether replicas can be packed into hosts or pods.

    Parameters
    ----------
    sizes : list[int]
        Accelerators of each replica; one that is larger than a unit takes whole units.
    accelerators_per_unit, units : int
        Size and number of the units.

    Returns
    -------
    bool
        Exact: first-fit decreasing, and a search over all packings where that fails.
    """
    whole = sum(-(-size // accelerators_per_unit) for size in sizes if size >= accelerators_per_unit)
    small = sorted((size for size in sizes if size < accelerators_per_unit), reverse=True)
    left = units - whole
    if left < 0 or sum(small) > left * accelerators_per_unit:
        return False
    if _first_fit(small, accelerators_per_unit) <= left:
        return True
    counts: dict[int, int] = defaultdict(int)
    for size in small:
        counts[size] += 1
    return _search_packing(tuple(sorted(counts.items(), reverse=True)), accelerators_per_unit, left, {})


def _first_fit(sizes: list[int], unit: int) -> int:
    """Units that first-fit decreasing opens; only the distinct free spaces are looked at."""
    free: dict[int, int] = defaultdict(int)
    opened = 0
    for size in sizes:
        space = next((space for space in sorted(free) if space >= size and free[space]), None)
        if space is None:
            opened += 1
            space = unit
        else:
            free[space] -= 1
        free[space - size] += 1
    return opened


Counts = tuple[tuple[int, int], ...]


def _search_packing(counts: Counts, unit: int, units: int, seen: dict[tuple[Counts, int], bool]) -> bool:
    """Try every maximal filling of the next unit, the largest replica first."""
    counts = tuple((size, count) for size, count in counts if count)
    if not counts:
        return True
    if units == 0:
        return False
    key = (counts, units)
    if key not in seen:
        seen[key] = any(
            _search_packing(rest, unit, units - 1, seen) for rest in _fillings(counts, unit, first=True)
        )
    return seen[key]


def _fillings(counts: Counts, left: int, first: bool = False) -> Iterator[Counts]:
    """Replicas that remain after one unit is filled, for every filling with at least the largest."""
    if not counts:
        yield ()
        return
    (size, count), rest = counts[0], counts[1:]
    for taken in range(min(count, left // size), 0 if first else -1, -1):
        for remaining in _fillings(rest, left - taken * size):
            yield ((size, count - taken), *remaining)
