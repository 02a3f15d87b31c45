"""Facts of a fleet file, resolved: plain figures by name, without rules of the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WHOLE_DAY_HOURS = 24.0
PREFILL, DECODE, AGGREGATED = "prefill", "decode", "aggregated"

Residual = tuple[tuple[int, float], ...]
"""Value over the price by rising age in quarters; the last age is the end of the write-off."""


@dataclass(frozen=True)
class Place:
    """A region; power and prices by period. [kW, USD/kWh, USD/kW/month]"""

    name: str
    power_kw: tuple[float | None, ...]
    pue: float
    energy_usd: tuple[float, ...]
    hosting_usd: float


@dataclass(frozen=True)
class Part:
    """A kind of accelerator."""

    name: str
    per_host: int
    all_in_w: float
    idle_w: float


@dataclass(frozen=True)
class Owned:
    """Cost of a bought host, in a pool or from an offer."""

    capex_usd: float
    residual: Residual
    maintenance_ratio: float


@dataclass(frozen=True)
class Stock:
    """An existing pool: `units` of `unit` accelerators."""

    name: str
    region: str
    part: str
    unit: int
    units: int
    reserve: int | None
    reserve_percent: float | None
    out_of_service: tuple[int, ...]
    owned: Owned | None
    ages: tuple[int, ...]
    resale_usd: tuple[float, ...] | None
    gone_from: int | None
    rent_usd: tuple[float, ...]
    energy_included: bool


@dataclass(frozen=True)
class Offer:
    """An offer to buy (`owned`) or rent, in units of `unit` accelerators."""

    name: str
    part: str
    regions: tuple[str, ...]
    unit: int
    per_accelerator: bool
    owned: Owned | None
    rent_usd: tuple[float, ...]
    energy_included: bool
    lead: int
    most: tuple[int | None, ...]
    term: int
    lot: int
    max_share: float | None


@dataclass(frozen=True)
class Engine:
    """A configuration: requests/s and TTFT by class of one replica."""

    phase: str
    part: str
    size: int
    config: str
    rates: Mapping[str, float]
    ttft_ms: Mapping[str, float]
    kw: float


@dataclass(frozen=True)
class Moment:
    """Moment of operation: a period, a slice of the day and a demand scenario."""

    period: int
    slice: str
    scenario: str
    hours: float
    probability: float

    @property
    def weight(self) -> float:
        """Weight in the expected cost of its period."""
        return self.probability * self.hours / WHOLE_DAY_HOURS


@dataclass(frozen=True)
class Service:
    """A service; its demand is by region, moment and class, without headroom. [requests/s]"""

    name: str
    demand: Mapping[tuple[str, Moment, str], float]
    headroom: float
    priority: int
    served_weight: float
    runs_in: tuple[str, ...]
    served_from: Mapping[str, tuple[str, ...]]
    mb_per_request: float
    outside_ms: float
    ttft_limit_ms: float | None
    engines: tuple[Engine, ...]

    def with_headroom(self, region: str, moment: Moment, name: str) -> float:
        """Demand of a class that must be planned for. [requests/s]"""
        return self.demand[region, moment, name] * (1 + self.headroom)


@dataclass(frozen=True)
class Policy:
    """Rules for every service and pool; limits are None where there is none."""

    reserve: int
    reserve_percent: float
    max_configs: int | None
    max_share: float | None
    transition_usd: float
    tidal_usd: float
    tidal_share: float
    kv_same_pool: bool
    kv_pairs: frozenset[tuple[str, str]] | None
    """Kinds of prefill and decode that go together besides each with itself; None for all."""
    unmet: bool


@dataclass(frozen=True)
class Facts:
    """A fleet file, resolved."""

    periods: tuple[str, ...]
    months: int
    """Of a period."""
    moments: tuple[Moment, ...]
    places: Mapping[str, Place]
    parts: Mapping[str, Part]
    stocks: tuple[Stock, ...]
    offers: tuple[Offer, ...]
    services: tuple[Service, ...]
    policy: Policy
    capex_limits: tuple[tuple[tuple[int, ...], float], ...]
    """Periods of orders, and what may be spent on them together. [USD]"""
    opex_limit: float | None
    tco_limit: float | None
    annuity: bool
    discount_rate: float
    host_usd: Mapping[str, float]
    """Network, software and staff. [USD a host and quarter]"""
    usd_per_gb: Mapping[frozenset[str], float]
    round_trip_ms: Mapping[frozenset[str], float]
    objective: str
