"""How large a realistic fleet is, and what may be switched on on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Switch(StrEnum):
    """What makes a fleet harder than one peak a quarter; a variant names some of them, joined by +."""

    DAY = "day"
    DAY4 = "day4"
    REGION_LOSS = "region-loss"
    PERCENTILES = "percentiles"
    OFFLINE = "offline"
    SCENARIOS = "scenarios"
    TIDAL = "tidal"
    QUARTER = "quarter"
    YEAR2 = "year2"


PLAIN: Final = "plain"
"""The variant without any switch."""

_EXCLUSIVE: Final = ({Switch.DAY, Switch.DAY4}, {Switch.QUARTER, Switch.YEAR2})
"""Switches of which a variant has one at most."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a fleet is.

    Attributes
    ----------
    services : int
        How many there are.
    regions : tuple[int, int]
        Fewest and most.
    quarters : int
        Of the horizon, unless a switch says otherwise.
    accelerators : tuple[int, int]
        Least and most that the first quarter needs, as H100.
    pools : tuple[int, int]
        Fewest and most pools of a region.
    offers : tuple[int, int]
        Fewest and most offers.
    reserve_hosts : int
        Hosts that each pool keeps free.
    """

    services: int
    regions: tuple[int, int]
    quarters: int
    accelerators: tuple[int, int]
    pools: tuple[int, int]
    offers: tuple[int, int]
    reserve_hosts: int


SIZES: Final[Mapping[str, Size]] = MappingProxyType(
    {
        "team": Size(5, (2, 2), 4, (160, 320), (1, 2), (5, 6), 1),
        "company": Size(12, (3, 3), 4, (2000, 3200), (2, 4), (6, 8), 2),
        "large-company": Size(40, (4, 5), 4, (8000, 12000), (3, 5), (9, 12), 2),
    }
)


def switches_of(variant: str) -> frozenset[Switch]:
    """Return the switches that a variant names.

    Raises
    ------
    ValueError
        If there is no such switch, or two of them exclude each other.
    """
    if variant == PLAIN:
        return frozenset()
    names = variant.split("+")
    unknown = [name for name in names if name not in {switch.value for switch in Switch}]
    if unknown:
        allowed = ", ".join((PLAIN, *Switch))
        raise ValueError(f"variant {variant!r}: no switch {', '.join(unknown)}; there are {allowed}")
    found = frozenset(Switch(name) for name in names)
    for rivals in _EXCLUSIVE:
        if rivals <= found:
            raise ValueError(f"variant {variant!r}: {' and '.join(sorted(rivals))} exclude each other")
    return found


def periods_of(size: Size, switches: frozenset[Switch]) -> list[str]:
    """Quarters of the horizon, from 2027Q1."""
    count = size.quarters
    if Switch.QUARTER in switches:
        count = 1
    if Switch.YEAR2 in switches:
        count = 8
    return [f"{2027 + q // 4}Q{q % 4 + 1}" for q in range(count)]


def slice_count(switches: frozenset[Switch]) -> int:
    """Parts of the day."""
    if Switch.DAY4 in switches:
        return 4
    return 3 if Switch.DAY in switches else 1
