"""Regions of the realistic family, and how demand follows the hours of their days."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from benchmarks.realistic.kinds import Shape


@dataclass(frozen=True, slots=True)
class RegionPlace:
    """A region.

    Attributes
    ----------
    utc_offset_hours : int
        Standard time there over UTC. [h]
    pue, energy_usd_per_kwh, grid_kg_co2_per_kwh : float
        Assumptions: large halls, industrial tariffs, the mix of the grid. [1; USD/kWh; kg/kWh]
    share : float
        Its part of a worldwide demand before the draw; an assumption.
    """

    utc_offset_hours: int
    pue: float
    energy_usd_per_kwh: float
    grid_kg_co2_per_kwh: float
    share: float


PLACES: Final[Mapping[str, RegionPlace]] = MappingProxyType(
    {
        "us-east": RegionPlace(-5, 1.22, 0.068, 0.33, 0.38),
        "eu-central": RegionPlace(1, 1.28, 0.145, 0.35, 0.27),
        "us-west": RegionPlace(-8, 1.15, 0.061, 0.12, 0.25),
        "ap-northeast": RegionPlace(9, 1.30, 0.135, 0.46, 0.20),
        "ap-south": RegionPlace(8, 1.38, 0.120, 0.47, 0.15),
    }
)
"""In the order in which a company opens them."""

ROUND_TRIP_MS: Final[Mapping[tuple[str, str], int]] = MappingProxyType(
    {
        ("us-east", "us-west"): 65,
        ("us-east", "eu-central"): 92,
        ("us-east", "ap-northeast"): 155,
        ("us-east", "ap-south"): 225,
        ("eu-central", "us-west"): 145,
        ("eu-central", "ap-northeast"): 230,
        ("eu-central", "ap-south"): 165,
        ("us-west", "ap-northeast"): 105,
        ("us-west", "ap-south"): 175,
        ("ap-northeast", "ap-south"): 70,
    }
)
"""Way there and back; usual figures between public clouds' regions (assumptions). [ms]"""

NETWORK_USD_PER_GB: Final = 0.02
"""Traffic between regions; list prices of public clouds begin here (assumption). [USD/GB]"""

_PEAK_HOUR: Final = {Shape.PEOPLE: 20, Shape.OFFICE: 14, Shape.MACHINES: 4}
"""Local hour of the busiest time: evenings, office hours, nightly jobs; assumptions. [h]"""

_TROUGH: Final = {Shape.PEOPLE: 0.3, Shape.OFFICE: 0.15, Shape.MACHINES: 0.7}
"""Demand at the quietest hour over that at the busiest; assumptions."""


def round_trip_ms(one: str, other: str) -> int:
    """Way from one region to another and back. [ms]"""
    return ROUND_TRIP_MS.get((one, other)) or ROUND_TRIP_MS[other, one]


def slice_names(count: int) -> list[str]:
    """Names of parts of the day of equal length, after their hours in UTC."""
    hours = 24 // count
    return [f"utc-{i * hours:02}-{(i + 1) * hours:02}" for i in range(count)]


def slices_of(count: int) -> list[dict[str, object]]:
    """The block `horizon.slices` with these parts."""
    return [{"name": name, "hours": 24 // count} for name in slice_names(count)]


def slice_ratios(region: str, shape: Shape, count: int) -> list[float]:
    """Peak demand of a region in each part of the day, over its peak of the whole day."""
    hourly = [_ratio((hour + PLACES[region].utc_offset_hours) % 24, shape) for hour in range(24)]
    hours = 24 // count
    most = [max(hourly[i * hours : (i + 1) * hours]) for i in range(count)]
    return [each / max(most) for each in most]


def _ratio(local_hour: int, shape: Shape) -> float:
    """A cosine around the busiest hour."""
    swing = 0.5 + 0.5 * math.cos(2 * math.pi * (local_hour - _PEAK_HOUR[shape]) / 24)
    return _TROUGH[shape] + (1 - _TROUGH[shape]) * swing
