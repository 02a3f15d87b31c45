"""The fleet and the demand as the planner reads them: every default applied, every value per period.

These are the only types that leave this room for a fleet. They hold no pydantic and no optional forms:
a price that the file gives once stands here once per period.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fleetplan.fleet.demand_cases import DemandRatios, DemandScenario, Offline, Slice
from fleetplan.fleet.hardware import Accelerator
from fleetplan.fleet.techniques import ModelVariant, Techniques
from fleetplan.fleet.traffic import Traffic

if TYPE_CHECKING:  # importing pandas takes longer than all of this room; `plan --help` must not pay for it
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Hardware:
    """A hardware kind that pools, offers and engine tables name.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    accelerators_per_host : int
        Cards that are bought, rented and placed together.
    accelerator : Accelerator or None
        The figures; None for a kind that only engine tables use.
    power_w_per_accelerator : float or None
        Power of a card with its share of host, network and fans, before PUE. [W]
        None where neither the catalogue nor the fleet file gives a figure to derive it from.
    """

    name: str
    accelerators_per_host: int
    accelerator: Accelerator | None
    power_w_per_accelerator: float | None


@dataclass(frozen=True, slots=True)
class Region:
    """A place with its power and its energy price.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    power_kw : tuple[float, ...] or None
        Facility power by period, PUE included; None is unlimited. [kW]
    pue : float
        Facility power over IT power.
    energy_usd_per_kwh : tuple[float, ...] or None
        Energy price by period; None where energy is not charged. [USD/kWh]
    hosting_usd_per_kw_month : float
        Space and cooling per kW of installed IT power. [USD/kW/month]
    grid_kg_co2_per_kwh : tuple[float, ...] or None
        Carbon intensity of the grid by period; None where it is not given. [kg CO2/kWh]
    round_trip_ms : Mapping[str, float]
        Way to other regions and back, by region, as far as it is known. [ms]
    network_usd_per_gb : Mapping[str, float]
        What it costs to carry data of requests to other regions and back, by region; free where absent. [USD]
    """

    name: str
    power_kw: tuple[float, ...] | None
    pue: float
    energy_usd_per_kwh: tuple[float, ...] | None
    hosting_usd_per_kw_month: float
    grid_kg_co2_per_kwh: tuple[float, ...] | None = None
    round_trip_ms: Mapping[str, float] = field(default_factory=dict)
    network_usd_per_gb: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Owned:
    """What an owned host cost, and for how long that is written off.

    Attributes
    ----------
    capex_usd_per_host : float
        Purchase price. [USD]
    in_service : str or None
        First quarter in service; None charges the write-off in every period of the horizon.
    life_quarters : int
        Quarters of write-off.
    maintenance_ratio_per_year : float
        Yearly maintenance over the purchase price.
    residual_ratio : float
        Value at the end of the write-off over the purchase price.
    value_by_age : tuple[tuple[int, float], ...]
        Values at ages before that, in quarters, over the purchase price; without any, it falls evenly.
    price_as_of : str or None
        Year, month or day of the price; None where the file does not say.
    resale_usd_per_host : tuple[float, ...] or None
        What a host retired at the start of a period sells for; None where none may be sold. [USD]
    end_of_life : str or None
        First quarter in which the hosts are gone; None is after the horizon.
    """

    capex_usd_per_host: float
    in_service: str | None
    life_quarters: int
    maintenance_ratio_per_year: float
    residual_ratio: float = 0.0
    price_as_of: str | None = None
    resale_usd_per_host: tuple[float, ...] | None = None
    end_of_life: str | None = None
    value_by_age: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Rented:
    """What a rented accelerator costs.

    Attributes
    ----------
    usd_per_accelerator_hour : tuple[float, ...]
        Rent by period, for every hour. [USD/h]
    energy_included : bool
        Whether the rent pays for energy and hosting too.
    price_source : str
        Where the price is from.
    price_as_of : str or None
        Year, month or day of the price; None where the file does not say.
    """

    usd_per_accelerator_hour: tuple[float, ...]
    energy_included: bool
    price_source: str
    price_as_of: str | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Hosts of one kind in one region that exist today. Exactly one of `owned` and `rented` is set.

    Attributes
    ----------
    name, region, hardware : str
        Names in the fleet file.
    hosts : int
        How many hosts.
    accelerators_per_host : int
        Cards of a host; 1 for a pool that is counted in accelerators.
    owned : Owned or None
        Set where the hosts were bought.
    rented : Rented or None
        Set where the hosts are rented.
    maintenance_hosts : tuple[int, ...]
        Hosts out of service by period; empty where none ever are.
    """

    name: str
    region: str
    hardware: str
    hosts: int
    accelerators_per_host: int
    owned: Owned | None
    rented: Rented | None
    maintenance_hosts: tuple[int, ...] = ()

    @property
    def accelerators(self) -> int:
        """Cards of the whole pool."""
        return self.hosts * self.accelerators_per_host


@dataclass(frozen=True, slots=True)
class Offer:
    """Hardware that can be bought or rented. Exactly one of the two prices is set.

    Attributes
    ----------
    name, hardware : str
        Names in the fleet file.
    regions : tuple[str, ...]
        Where it can be had.
    unit : str
        `host` or `accelerator`: what is counted, and what `max_units` limits.
    accelerators_per_unit : int
        Cards of a unit.
    capex_usd_per_host : float or None
        Purchase price of a host. [USD]
    rent_usd_per_accelerator_hour : tuple[float, ...] or None
        Rent by period, for every hour. [USD/h]
    energy_included : bool
        Whether the rent pays for energy and hosting too; False for a purchase.
    lead_time_quarters : int
        Periods between the order and the first period in service.
    max_units : tuple[int or None, ...]
        Most units ordered (bought) or held (rented) in a period, over all regions; None is unlimited.
    life_quarters : int
        Quarters of write-off of a purchase.
    maintenance_ratio_per_year : float
        Yearly maintenance over the purchase price.
    price_source : str
        Where the price is from.
    residual_ratio : float
        Value of a purchase at the end of the write-off over its price.
    value_by_age : tuple[tuple[int, float], ...]
        Values at ages before that, in quarters, over its price; without any, it falls evenly.
    price_as_of : str or None
        Year, month or day of the price; None where the file does not say.
    term_quarters : int
        Periods that a rental holds for, at the price of the first.
    lot_units : int
        Units that come together.
    spot_max_share : float or None
        Most of a service that may run on it where it may be taken away; None where it may not.
    """

    name: str
    hardware: str
    regions: tuple[str, ...]
    unit: str
    accelerators_per_unit: int
    capex_usd_per_host: float | None
    rent_usd_per_accelerator_hour: tuple[float, ...] | None
    energy_included: bool
    lead_time_quarters: int
    max_units: tuple[int | None, ...]
    life_quarters: int
    maintenance_ratio_per_year: float
    price_source: str
    residual_ratio: float = 0.0
    price_as_of: str | None = None
    term_quarters: int = 1
    lot_units: int = 1
    spot_max_share: float | None = None
    value_by_age: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Precision:
    """Data types of a service's weights and KV cache.

    Attributes
    ----------
    weights : str
        bf16, fp8, fp8-ffn (feed-forward weights FP8, the rest BF16), int8, int4, fp4 or mxfp4.
    kv : str
        bf16 or fp8.
    """

    weights: str
    kv: str


@dataclass(frozen=True, slots=True)
class RequestClass:
    """A kind of request of a service.

    Attributes
    ----------
    name : str
        The name in the fleet file; `all` where the service has one kind of request.
    share : float
        Its part of the service's requests over the whole horizon, 0 to 1.
    input_tokens, output_tokens : int or None
        Mean new prompt tokens and generated tokens of a request. None only for a service with an
        engine table that states no workload.
    context_tokens : int or None
        Prompt tokens with those that a cache already holds; None where nothing is cached.
    """

    name: str
    share: float
    input_tokens: int | None
    output_tokens: int | None
    context_tokens: int | None


@dataclass(frozen=True, slots=True)
class OutsideLatency:
    """Mean time of a request outside inference. [ms].

    Attributes
    ----------
    network_ms, load_balancing_ms, media_download_ms, safety_ms : float
        The way there and back; routing and admission; fetching media; checks that are no service. [ms]
    """

    network_ms: float = 0.0
    load_balancing_ms: float = 0.0
    media_download_ms: float = 0.0
    safety_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """All of it. [ms]."""
        return self.network_ms + self.load_balancing_ms + self.media_download_ms + self.safety_ms


@dataclass(frozen=True, slots=True)
class Follows:
    """What a service follows.

    Attributes
    ----------
    service : str
        The service whose requests bring those of this one.
    ttft_share : float or None
        Part of that service's TTFT limit that this one has; None where it has a limit of its own or none.
    """

    service: str
    ttft_share: float | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A service with its targets and its demand. Exactly one of `model` and `engines` is set.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    model : str or None
        An id of the model catalogue, or the path of a `config.json` relative to the fleet file.
    engines : pandas.DataFrame or None
        The user's own engine table; columns of the table `engines` in `fleetplan.fleet.tables`.
    precision : Precision
        Data types of weights and KV cache.
    classes : tuple[RequestClass, ...]
        Kinds of request, at least one.
    ttft_ms, tpot_ms : float or None
        Smallest limits on the time to first token and the time per output token, whether on means or on
        percentiles: no configuration may exceed them without load. None is no limit. [ms]
    demand_requests_per_s : Mapping[tuple[str, str, str], float]
        Peak demand by (region, period, class): the largest of all slices and demand scenarios; every
        combination is present. [1/s]
    headroom : float
        Planned capacity above demand, as a share of it.
    priority : int
        1 is served first.
    runtimes : tuple[str, ...]
        Allowed runtimes: disaggregated, aggregated.
    framework : str
        Whose measured operator tables are read: trtllm, sglang or vllm.
    framework_version : str
        Which of its versions; empty for the newest of every operator.
    allowed_hardware : tuple[str, ...] or None
        Hardware it may run on; None is any.
    allowed_regions : tuple[str, ...] or None
        Regions it may run in; None is any.
    outside_ms : OutsideLatency
        Time spent outside inference; counts against TTFT.
    techniques : Techniques
        Serving techniques.
    variants : tuple[ModelVariant, ...]
        Ways to serve it that compete; without any, `model` at `precision` is the only one.
    quality_floor : float or None
        Least quality of a variant; None is none.
    average_quality_floor : float or None
        Least quality of the requests of a region and moment on average; None is none.
    served_weight : float
        What a request counts where the most demand is to be served.
    serve_from : Mapping[str, tuple[str, ...]]
        Other regions that may serve the demand of a region, by region.
    mb_per_request : float
        Data of a request and its answer that travel where another region serves it. [MB]
    follows : Follows or None
        The service whose requests bring those of this one; None where the demand is the service's own.
    demand_ratios : DemandRatios
        Demand of each slice and demand scenario over the peak demand; what is left out is 1.
    offline : Offline or None
        Deadline of work that nobody waits for; None for a service that answers at once.
    traffic : Traffic or None
        Limits that hold under load, burstiness and spread of lengths; None where nothing is known beyond
        means, and limits leave queueing out.
    """

    name: str
    model: str | None
    engines: pd.DataFrame | None = field(compare=False)
    precision: Precision
    classes: tuple[RequestClass, ...]
    ttft_ms: float | None
    tpot_ms: float | None
    demand_requests_per_s: Mapping[tuple[str, str, str], float]
    headroom: float
    priority: int
    runtimes: tuple[str, ...]
    framework: str
    allowed_hardware: tuple[str, ...] | None
    outside_ms: OutsideLatency = field(default_factory=OutsideLatency)
    techniques: Techniques = field(default_factory=Techniques)
    variants: tuple[ModelVariant, ...] = ()
    quality_floor: float | None = None
    allowed_regions: tuple[str, ...] | None = None
    follows: Follows | None = None
    demand_ratios: DemandRatios = field(default_factory=dict)
    offline: Offline | None = None
    served_weight: float = 1.0
    serve_from: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mb_per_request: float = 0.0
    average_quality_floor: float | None = None
    framework_version: str = ""
    traffic: Traffic | None = None

    def may_run_in(self, region: str) -> bool:
        """Whether the service may run in a region."""
        return self.allowed_regions is None or region in self.allowed_regions


@dataclass(frozen=True, slots=True)
class Tidal:
    """What it costs, and how far it goes, that replicas change from one slice of the day to the next.

    Attributes
    ----------
    usd_per_accelerator : float
        Cost of each accelerator of a replica that starts, every day anew. [USD]
    max_share_per_pool : float
        Most of a pool's accelerators whose replicas may start from one slice to the next, 0 to 1.
    """

    usd_per_accelerator: float = 0.0
    max_share_per_pool: float = 1.0

    @property
    def counts(self) -> bool:
        """Whether it matters which replicas start within a day."""
        return self.usd_per_accelerator > 0 or self.max_share_per_pool < 1


@dataclass(frozen=True, slots=True)
class MustUse:
    """What a plan must use: asked by questions about a plan, not by fleet files.

    All that is given must match. With an offer, a unit of it is taken and nothing else is looked at.

    Attributes
    ----------
    name : str
        What it is called in rows of the model.
    service, hardware, config, region : str or None
        Of the replicas; None is any.
    phases : tuple[str, ...] or None
        Of the replicas; None is any.
    offer : str or None
        An offer of which a unit is taken.
    share : float
        Least part of one class of one service in one region and moment that the replicas serve, 0 to 1.
    """

    name: str
    service: str | None = None
    hardware: str | None = None
    config: str | None = None
    region: str | None = None
    phases: tuple[str, ...] | None = None
    offer: str | None = None
    share: float = 0.001


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules for every service and pool.

    Attributes
    ----------
    reserve_hosts_per_pool : int
        Hosts a pool keeps free for failures.
    max_configs_per_service_region : int or None
        Most engine configurations of a service in a region; None is unlimited.
    kv_transfer : str
        How far the KV cache travels from prefill to decode: same-pool, same-region or cross-region.
    transition_usd_per_accelerator : float
        Cost of each accelerator of a replica that did not run in the period before. [USD]
    max_share_per_pool : float or None
        Most of a service's demand that one pool may serve, 0 to 1; None is unlimited.
    survive_region_loss : tuple[str, ...]
        Services that outlive the loss of any one region.
    tidal : Tidal
        Changes of replicas within a day.
    must_use : tuple[MustUse, ...]
        What a question forces into the plan.
    unmet : str
        `forbid`: all demand is served, or the fleet is infeasible. `penalise`: unmet demand is
        minimised first, by priority.
    kv_pairs : frozenset[tuple[str, str]] or None
        Hardware of prefill and of decode between which a KV cache may pass; None is any.
    """

    reserve_hosts_per_pool: int
    max_configs_per_service_region: int | None
    kv_transfer: str
    transition_usd_per_accelerator: float
    unmet: str
    max_share_per_pool: float | None = None
    survive_region_loss: tuple[str, ...] = ()
    tidal: Tidal = field(default_factory=Tidal)
    must_use: tuple[MustUse, ...] = ()
    kv_pairs: frozenset[tuple[str, str]] | None = None

    def may_pair(self, prefill: str, decode: str) -> bool:
        """Whether a KV cache may pass from one kind of hardware to another."""
        return self.kv_pairs is None or (prefill, decode) in self.kv_pairs


@dataclass(frozen=True, slots=True)
class KvLink:
    """A network over which KV caches pass from prefill to decode.

    Attributes
    ----------
    prefill, decode : str
        The region or the pool that it leads from, and the one that it leads to.
    gb_per_s : float
        What it carries in this direction. [GB/s]
    added_ms : float
        Time that it adds to a transfer beyond one within a region; counts against TTFT. [ms]
    """

    prefill: str
    decode: str
    gb_per_s: float
    added_ms: float = 0.0

    @property
    def name(self) -> str:
        """In reports and solver names."""
        return f"{self.prefill}>{self.decode}"


@dataclass(frozen=True, slots=True)
class Budget:
    """Spending limits; None is no limit.

    Attributes
    ----------
    capex_usd_by_period : tuple[float or None, ...]
        Purchases ordered in a period. [USD]
    capex_usd : float or None
        Purchases over the horizon. [USD]
    opex_usd : float or None
        Rent, energy, hosting, maintenance, network, software, staff, starts of replicas and data between
        regions over the horizon. [USD]
    tco_usd : float or None
        All cost over the horizon. [USD]
    """

    capex_usd_by_period: tuple[float | None, ...]
    capex_usd: float | None
    opex_usd: float | None
    tco_usd: float | None


@dataclass(frozen=True, slots=True)
class Finance:
    """How prices become cost.

    Attributes
    ----------
    method : str
        straight-line or annuity.
    discount_rate_per_year : float
        Of present values, and the interest of an annuity.
    network_usd_per_host_quarter : float
        Network of a host, except where a rent pays for energy and hosting. [USD/quarter]
    software_usd_per_host_quarter, staff_usd_per_host_quarter : float
        Licences and people of every host. [USD/quarter]
    max_price_age_days : int or None
        Age from which a price is stale; None asks for no warning. [days]
    """

    method: str = "straight-line"
    discount_rate_per_year: float = 0.0
    network_usd_per_host_quarter: float = 0.0
    software_usd_per_host_quarter: float = 0.0
    staff_usd_per_host_quarter: float = 0.0
    max_price_age_days: int | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """One planning question in full.

    Attributes
    ----------
    name : str
        The name in the fleet file, or the file's name without its suffix.
    path : Path
        The fleet file; relative paths within it are relative to its folder.
    periods : tuple[str, ...]
        Quarters in order; `now` for a plan of one unnamed period.
    regions, pools, offers, services : tuple
        In the order of the file.
    hardware : Mapping[str, Hardware]
        Every kind that a pool, an offer or an engine table names.
    policy : Policy
        Rules for every service and pool.
    budget : Budget
        Spending limits.
    objective : str
        What comes first: tco, served, energy, carbon or accelerators.
    warnings : tuple[str, ...]
        What was read but has no effect yet, and what was assumed.
    input_hashes : Mapping[str, str]
        SHA-256 of every file that was read, by its path relative to the fleet file.
    calibration : Path or None
        Calibration of the performance model by measurements of one's own.
    finance : Finance
        How prices become cost.
    slices : tuple[Slice, ...]
        Parts of the day in their order; empty where the day is whole.
    demand_scenarios : tuple[DemandScenario, ...]
        Ways in which demand may turn out; empty where it is certain.
    demand_objective : str
        expected-cost or least-regret, over the demand scenarios.
    kv_links : tuple[KvLink, ...]
        Networks whose capacity for KV caches is limited.
    scenarios, assignments : tuple[str, ...]
        What was laid on the file, in order: names of its scenarios, then `key.path=value`.
    """

    name: str
    path: Path
    periods: tuple[str, ...]
    regions: tuple[Region, ...]
    hardware: Mapping[str, Hardware]
    pools: tuple[Pool, ...]
    offers: tuple[Offer, ...]
    services: tuple[Service, ...]
    policy: Policy
    budget: Budget
    objective: str
    warnings: tuple[str, ...]
    input_hashes: Mapping[str, str]
    calibration: Path | None = None
    finance: Finance = field(default_factory=Finance)
    slices: tuple[Slice, ...] = ()
    demand_scenarios: tuple[DemandScenario, ...] = ()
    demand_objective: str = "expected-cost"
    kv_links: tuple[KvLink, ...] = ()
    scenarios: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
