"""Rows of a plan: what runs where, what is bought, what flows and what stays unmet."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar

from pydantic import Field

from fleetplan.planner.plan.record import AtMoment, MomentKey, Record

_KeyT = TypeVar("_KeyT", bound=Hashable)

RUNNING_KINDS: Final = ("energy", "transition", "tidal", "data")
"""What a placement costs besides its share of the pool, by kind: its fields `energy_usd` and so on."""


class AtPlace(AtMoment):
    """A row about one configuration of a service in one pool and moment."""

    region: str
    pool: str
    service: str
    phase: str
    """prefill, decode or aggregated"""
    hardware: str
    config: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Service, phase, hardware and configuration: the candidate that it runs."""
        return self.service, self.phase, self.hardware, self.config


class Placement(AtPlace):
    """Replicas of a configuration in a pool."""

    replicas: int
    accelerators: int
    """Accelerators of all replicas."""
    requests_per_s: float
    """Traffic served, all classes; headroom not included. [requests/s]"""
    requests_per_s_by_class: dict[str, float]
    utilisation: float
    """Served load over what the replicas sustain on their own within the SLO, 0 to 1."""
    ttft_ms: float | None
    """Worst class; prefill and aggregated replicas alone."""
    tpot_ms: float | None
    """Worst class; decode and aggregated replicas alone."""
    usd: float
    """Part of the expected TCO: a share of the pool's cost by accelerators, and the energy, for the hours of
    the slice and by the probability of the scenario. [USD]"""
    energy_usd: float
    """Energy above idle at the served load; what its accelerators draw idle is part of the pool's. [USD]"""
    provenance: dict[str, float]
    """Share of the latency by how its numbers were obtained."""
    transition_usd: float = 0.0
    """Expected cost of the replicas that did not run in the period before; part of `usd`. [USD]"""
    tidal_usd: float = 0.0
    """Expected cost of those that did not run in the slice before, every day anew; part of `usd`. [USD]"""
    data_usd: float = 0.0
    """Expected cost of carrying the data of requests that come from other regions; part of `usd`. [USD]"""
    requests_per_s_by_origin: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Traffic that comes from other regions, by region and class; part of `requests_per_s`. [requests/s]"""
    utilisation_limit: float = 1.0
    """Utilisation up to which a pool of so many replicas keeps the limits that hold under load, 0 to 1."""

    @property
    def running_usd(self) -> float:
        """Running cost: all cost but its share of the pool. [USD]"""
        return self.energy_usd + self.transition_usd + self.tidal_usd + self.data_usd


class Purchase(Record):
    """Units that an offer brings into a pool."""

    period: str
    """Order of a purchase, use of rented units."""
    offer: str
    region: str
    pool: str
    hardware: str
    kind: str
    """buy, rent, reserve (rent for a term) or spot"""
    units: int
    unit: str
    """host or accelerator"""
    accelerators: int
    capex_usd: float
    usd: float
    """Cost over the horizon. [USD]"""
    price_source: str
    price_as_of: str | None = None
    """Year, month or day of the price; None where the fleet file does not say."""
    assumed: bool = False
    """Whether it is in the extension of the horizon: what would be done if the last period repeated."""


class Retired(Record):
    """Hosts, or single accelerators, that leave a pool at the start of a period."""

    kind: str = "retire"
    """retire, or return where a lease ends."""
    period: str
    pool: str
    region: str
    hardware: str
    hosts: int
    unit: str = "host"
    """What `hosts` counts: host, or accelerator in pools of single ones."""
    usd: float
    """What it changes over the horizon: costs saved, what the books still held, and the sale. [USD]"""
    resale_usd: float
    """What the sale brings, at its present value. [USD]"""
    assumed: bool = False
    """Whether it is in the extension of the horizon: what would be done if the last period repeated."""


class PoolUse(AtMoment):
    """Units and use of a pool in a moment."""

    pool: str
    region: str
    hardware: str
    accelerators: int
    reserve_accelerators: int
    used_accelerators: int
    utilisation: float
    """Used accelerators over those that may be used, 0 to 1."""
    usd: float
    """Depreciation, rent, hosting, maintenance and idle energy of the whole pool, for the hours of the slice
    and by the probability of the scenario. [USD]"""
    idle_usd: float
    """The part that no placement carries. [USD]"""
    retirement_usd: float = 0.0
    """What hosts that leave at the start of the period cost besides: what the books still held, less their
    sale; negative where they sell for more. Part of the hours and the probability, as `usd` is. [USD]"""
    maintenance_accelerators: int = 0
    """Out of service."""
    idle_energy_kwh: float = 0.0
    """Energy of the accelerators that no replica holds, those in reserve and out of service too, at the meter
    of the site; for the hours of the slice and by the probability of the scenario. [kWh]"""
    power_kw: float = 0.0
    """Facility power as the limit of a region counts it: replicas at full load, all else idle. [kW]"""


class Transition(AtPlace):
    """Replicas of a configuration in a pool that are more or fewer than in the period (slice) before."""

    replicas_before: int
    """In the period before, for the first period in the plan in force; or in the slice before."""
    replicas: int
    accelerators: int
    """Accelerators that start to run it; negative where they are freed."""
    usd: float
    """Expected cost of those that start. [USD]"""


class OfflineWork(AtMoment):
    """Work of an offline service that is done in a slice of the day."""

    arises_in: str | None = None
    """Slice in which its requests arise; None where the day is whole."""
    region: str
    service: str
    request_class: str
    requests_per_day: float


class SurvivingPlacement(AtMoment):
    """Replicas that serve a protected service after the loss of a region."""

    lost_region: str
    region: str
    pool: str
    service: str
    phase: str
    hardware: str
    config: str
    replicas: int
    requests_per_s_by_class: dict[str, float]
    """Traffic of all regions that they can serve; headroom not included. [requests/s]"""


class KvFlow(AtMoment):
    """Requests whose KV cache passes from prefill replicas to decode replicas."""

    service: str
    request_class: str
    origin: str
    """The region that the requests come from."""
    prefill_pool: str
    prefill_config: str
    decode_pool: str
    decode_config: str
    requests_per_s: float
    """Headroom not included. [requests/s]"""
    kv_gb_per_s: float | None = None
    """None where no link counts it. [GB/s]"""


class Unmet(AtMoment):
    """Demand that the plan leaves unserved."""

    region: str
    service: str
    request_class: str
    requests_per_s: float


class Binding(Record):
    """A limit that the plan uses up."""

    family: str
    name: str
    used: float
    limit: float
    unit: str


class PhaseRatio(AtMoment):
    """Accelerators of prefill and decode of a disaggregated service."""

    region: str
    service: str
    prefill_accelerators: int
    decode_accelerators: int
    ratio: float
    """Prefill accelerators for each decode accelerator."""


def most_at_once(rows: Iterable[Placement], key: Callable[[Placement], _KeyT]) -> dict[_KeyT, int]:
    """Accelerators that run something, the most of any moment, by whatever a key says of a placement.

    A card that runs in every period and slice is one card.
    """
    at_moment: dict[_KeyT, Counter[MomentKey]] = defaultdict(Counter)
    for row in rows:
        at_moment[key(row)][row.moment_key] += row.accelerators
    return {name: max(by_moment.values()) for name, by_moment in at_moment.items()}
