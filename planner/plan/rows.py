"""Rows of a plan: placements, purchases, pools, flows and unmet demand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar

from pydantic import Field

from fleetplan.planner.plan.record import AtMoment, MomentKey, Record

_KeyT = TypeVar("_KeyT", bound=Hashable)

RUNNING_KINDS: Final = {
    "energy": "energy at the served load",
    "transition": "replicas that start",
    "tidal": "replicas that start every day",
    "data": "data of requests of other regions",
}
"""Item in the bill by kind of running cost, which a placement has besides its share of the pool's cost. The
field `energy_usd` of `Placement` has the cost of the kind `energy`, and so on."""


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
        """Service, phase, hardware and configuration: the candidate of the row."""
        return self.service, self.phase, self.hardware, self.config


class Placement(AtPlace):
    """Replicas of a configuration in a pool."""

    replicas: int
    accelerators: int
    """Accelerators of all replicas."""
    requests_per_s: float
    """Traffic served over all classes, without headroom. [requests/s]"""
    requests_per_s_by_class: dict[str, float]
    utilisation: float
    """Served load over the rate that the replicas sustain alone within the SLO, 0 to 1."""
    ttft_ms: float | None
    """Worst class; only for prefill and aggregated replicas."""
    tpot_ms: float | None
    """Worst class; only for decode and aggregated replicas."""
    usd: float
    """Part of the expected TCO: a share of the pool's cost by accelerators, and energy, weighted by the hours
    of the slice and the probability of the scenario. [USD]
    """
    energy_usd: float
    """Energy above idle at the served load; idle energy is part of the pool's cost. [USD]"""
    provenance: dict[str, float]
    """Share of the latency by source of its numbers."""
    transition_usd: float = 0.0
    """Expected cost of replicas that did not run in the previous period; part of `usd`. [USD]"""
    tidal_usd: float = 0.0
    """Expected cost of replicas that did not run in the previous slice, every day; part of `usd`. [USD]"""
    data_usd: float = 0.0
    """Expected cost of transferring the data of requests from other regions; part of `usd`. [USD]"""
    requests_per_s_by_origin: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Traffic from other regions, by region and class; part of `requests_per_s`. [requests/s]"""
    utilisation_limit: float = 1.0
    """Maximum utilisation at which a pool with this many replicas meets the limits under load, 0 to 1."""

    @property
    def running_usd(self) -> float:
        """Running cost, without the share of the pool. [USD]"""
        return float(sum(getattr(self, f"{kind}_usd") for kind in RUNNING_KINDS))


class Purchase(Record):
    """Units that an offer adds to a pool."""

    period: str
    """Period of the order of a purchase, or of the use of rented units."""
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
    """Year, month or day of the price; None if the fleet file does not state it."""
    assumed: bool = False
    """Whether it falls in the extension of the horizon: the order if the last period repeated."""


class Retired(Record):
    """Hosts, or single accelerators, that leave a pool at the start of a period."""

    kind: str = "retire"
    """retire, or return at the end of a lease."""
    period: str
    pool: str
    region: str
    hardware: str
    hosts: int
    unit: str = "host"
    """Unit of `hosts`: host, or accelerator in pools of single accelerators."""
    usd: float
    """Change in cost over the horizon: saved costs, remaining book value, and the sale. [USD]"""
    resale_usd: float
    """Present value of the sale. [USD]"""
    assumed: bool = False
    """Whether it falls in the extension of the horizon: the retirement if the last period repeated."""


class PoolUse(AtMoment):
    """Units and use of a pool in a moment."""

    pool: str
    region: str
    hardware: str
    accelerators: int
    reserve_accelerators: int
    used_accelerators: int
    """Accelerators of replicas, with the rest of the hosts that a replica of several hosts takes whole."""
    utilisation: float
    """Used accelerators over available ones, 0 to 1."""
    usd: float
    """Depreciation, rent, hosting, maintenance and idle energy of the whole pool, weighted by the hours of
    the slice and the probability of the scenario. [USD]
    """
    idle_usd: float
    """The part that no placement pays for. [USD]"""
    retirement_usd: float = 0.0
    """Book value of hosts that leave at the start of the period, less their sale; negative if they sell for
    more. Weighted by hours and probability, like `usd`. [USD]
    """
    maintenance_accelerators: int = 0
    """Out of service."""
    idle_energy_kwh: float = 0.0
    """Metered energy of accelerators without replicas, including those in reserve and out of service,
    weighted by the hours of the slice and the probability of the scenario. [kWh]
    """
    power_kw: float = 0.0
    """Facility power that counts against the limit of a region: replicas at full load, the rest idle. [kW]"""


class Transition(AtPlace):
    """Change in the replicas of a configuration in a pool from the previous period (or slice)."""

    replicas_before: int
    """Replicas in the previous period (for the first one, in the plan in force) or in the previous slice."""
    replicas: int
    accelerators: int
    """Accelerators that start to run it; negative if they are freed."""
    usd: float
    """Expected cost of starting replicas. [USD]"""


class OfflineWork(AtMoment):
    """Work of an offline service that is done in a slice of the day."""

    arises_in: str | None = None
    """Slice in which its requests arise; None without slices."""
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
    """Traffic of all regions that they can serve, without headroom. [requests/s]"""


class KvFlow(AtMoment):
    """Requests whose KV cache passes from prefill replicas to decode replicas."""

    service: str
    request_class: str
    origin: str
    """Region of the requests."""
    prefill_pool: str
    prefill_config: str
    decode_pool: str
    decode_config: str
    requests_per_s: float
    """Rate without headroom. [requests/s]"""
    kv_gb_per_s: float | None = None
    """None if no link limits it. [GB/s]"""


class Unmet(AtMoment):
    """Demand that the plan leaves unserved."""

    region: str
    service: str
    request_class: str
    requests_per_s: float


class Binding(Record):
    """A binding limit of the plan."""

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
    """Prefill accelerators per decode accelerator."""


def most_at_once(rows: Iterable[Placement], key: Callable[[Placement], _KeyT]) -> dict[_KeyT, int]:
    """Return the accelerators by a key of placements, each at its maximum over the moments.

    An accelerator in use in several periods and slices counts once.
    """
    at_moment: dict[_KeyT, Counter[MomentKey]] = defaultdict(Counter)
    for row in rows:
        at_moment[key(row)][row.moment_key] += row.accelerators
    return {name: max(by_moment.values()) for name, by_moment in at_moment.items()}
