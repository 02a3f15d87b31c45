"""Sizes and variants of the seeded fleets, and the parts that they buy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Variant(StrEnum):
    """What is special about a fleet."""

    PLAIN = "plain"
    HEAD = "head"
    SHARED = "shared"
    SCARCE_SUPPLY = "scarce-supply"
    SCARCE_BUDGET = "scarce-budget"
    SCARCE_POWER = "scarce-power"


SCARCE: Final = (Variant.SCARCE_SUPPLY, Variant.SCARCE_BUDGET, Variant.SCARCE_POWER)


@dataclass(frozen=True, slots=True)
class FleetSize:
    """How large a fleet is: in every region a pool of every hardware, and one of single cards on demand."""

    services: int
    regions: int
    hardware: int
    quarters: int


SIZES: Final[Mapping[str, FleetSize]] = {
    "small": FleetSize(services=5, regions=1, hardware=2, quarters=1),
    "medium": FleetSize(services=30, regions=3, hardware=3, quarters=4),
    "large": FleetSize(services=100, regions=8, hardware=4, quarters=4),
    "xl": FleetSize(services=300, regions=20, hardware=4, quarters=8),
    "xxl": FleetSize(services=1000, regions=40, hardware=4, quarters=12),
}


@dataclass(frozen=True, slots=True)
class FleetPart:
    """A kind of accelerator: speeds relative to the first, and what it costs.

    Prices of purchases and rent: scenarios/quarterly.yaml and the price book; speeds: ratios of dense FP8
    peaks (prefill) and of memory bandwidths (decode) of the catalogue, rounded.
    """

    name: str
    prefill_speed: float
    decode_speed: float
    kw: float
    capex_usd_per_host: int
    rent_usd_per_accelerator_hour: float


PARTS: Final = (
    FleetPart("H100-SXM", 1.0, 1.0, 1.37, 297_000, 1.78),
    FleetPart("H200-SXM", 1.0, 1.4, 1.37, 311_000, 2.05),
    FleetPart("B200-SXM", 2.2, 2.3, 1.71, 446_000, 2.60),
    FleetPart("MI300X", 1.3, 1.5, 1.47, 250_000, 1.30),
    FleetPart("A100-SXM-80GB", 0.35, 0.6, 0.85, 199_000, 1.10),
)
ACCELERATORS_PER_HOST: Final = 8

ON_DEMAND: Final = PARTS[0]
"""The part that is rented by the accelerator, dearer than by the host, in every region."""

MEDIAN_ACCELERATORS: Final = 24.0
"""What the median service of a region needs of the first part. [accelerators]"""

HEAD_FACTOR: Final = 40.0
"""So many times the demand in the variant whose services count hundreds of replicas."""

STOCK_SHARE: Final = 0.35
"""Part of the first quarter's need that stands already."""

SCARCE_SHARE: Final = 0.8
"""Part of the need that scarce supply, money or power is enough for."""

LANDSCAPE_MODELS: Final = ("llama3-8b", "qwen3-14b", "llama3.3-70b", "qwen3-vl-32b")
"""Models of the catalogue that services without an engine table name, in turn."""

LANDSCAPE_EVERY: Final = 10
"""One service in so many names a model."""
