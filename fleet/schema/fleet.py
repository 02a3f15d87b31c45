"""Schema of the fleet file: keys, types and ranges. `fleetplan.fleet.resolve` looks up names."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from fleetplan.fleet.schema.demand import (
    DayShapeSpec,
    DemandBySlice,
    OfflineSpec,
    TidalSpec,
    UncertaintySpec,
)
from fleetplan.fleet.schema.finance import FinanceSpec
from fleetplan.fleet.schema.horizon import HorizonSpec
from fleetplan.fleet.schema.network import KvLinkSpec, KvPairs, QualityFloor, ServeFrom
from fleetplan.fleet.schema.service_parts import FollowedServices, FollowsSpec, OutsideSpec, SearchSpec
from fleetplan.fleet.schema.supply import HardwareSpec, OfferSpec, PoolSpec, RegionSpec
from fleetplan.fleet.schema.techniques import TechniquesSpec
from fleetplan.fleet.schema.traffic import SloSpec, TrafficSpec
from fleetplan.fleet.schema.values import (
    BudgetByPeriod,
    BudgetUsd,
    Count,
    DemandTree,
    Growth,
    HardwareName,
    Name,
    NotNegative,
    Percent,
    Positive,
    PositiveCount,
    ReservePercent,
    Spec,
    Text,
    UsdPerHost,
)

Runtime: TypeAlias = Literal["disaggregated", "aggregated"]
Objective: TypeAlias = Literal["tco", "served", "energy", "carbon", "accelerators"]
RUNTIMES: Final[tuple[Runtime, ...]] = ("disaggregated", "aggregated")


class PrecisionSpec(Spec):
    """Data types of a model's weights and KV cache."""

    weights: Literal["bf16", "fp8", "fp8-ffn", "int8", "int4", "fp4", "mxfp4"] | None = None
    """Weights; fp8-ffn keeps all but the feed-forward weights in BF16. Default: the data type that the
    checkpoint stores, by its name (-FP8, -NVFP4, -AWQ and so on) or its model's config; bf16 if neither
    states one."""
    kv: Literal["bf16", "fp8"] = "bf16"
    """KV cache."""


class RequestClassSpec(Spec):
    """A class of requests."""

    share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the service's requests; omit it if the demand is given by class."""
    input_tokens: PositiveCount
    """Mean new prompt tokens."""
    output_tokens: PositiveCount
    """Mean generated tokens."""
    context_tokens: PositiveCount | None = None
    """The whole prompt: input_tokens and the tokens that a cache holds; omit it if nothing is cached."""
    lengths: Text | None = None
    """CSV file with the distribution of lengths, a histogram or a trace, relative to this file; lengths are
    scaled to the means. Default: all requests have the mean length."""


class WorkloadSpec(Spec):
    """Lengths of requests: one mean request, or classes."""

    input_tokens: PositiveCount | None = None
    """Mean new prompt tokens."""
    output_tokens: PositiveCount | None = None
    """Mean generated tokens."""
    context_tokens: PositiveCount | None = None
    """The whole prompt: input_tokens and the tokens that a cache holds; omit it if nothing is cached."""
    lengths: Text | None = None
    """CSV file with the distribution of lengths, a histogram or a trace, relative to this file. Default means
    are those of the file; stated means scale its lengths."""
    classes: Annotated[dict[Name, RequestClassSpec], Field(min_length=1)] | None = None
    """Request classes by name, instead of one mean request."""


class VariantSpec(Spec):
    """A variant of a service: quantised, pruned, distilled, or with a compressed context."""

    name: Name
    """Its name in placements."""
    model: Text | None = None
    """Its model. Default: that of the service."""
    checkpoint: Text | None = None
    """Id or path that exported commands launch. Default: that of the service, or the model's if the variant
    names a model."""
    precision: PrecisionSpec | None = None
    """Its data types. Default: those of the service."""
    quality: float
    """Score on a scale of your choice, compared with quality_floor."""
    input_tokens_ratio: Annotated[float, Field(gt=0, le=1)] = 1.0
    """New prompt tokens divided by those of the workload: below 1 with context compression."""


class ServiceSpec(Spec):
    """A service with its latency limits and its demand."""

    name: Name
    """Name in plans and reports."""
    model: Text | None = None
    """An id of the model catalogue, or the path of a `config.json` relative to this file."""
    checkpoint: Text | None = None
    """Id or path that exported commands launch if it is not the model's id; its data types must be those of
    `precision`."""
    engines: Text | None = None
    """Instead of a model: a CSV file with your own measured rates, relative to this file."""
    precision: PrecisionSpec = PrecisionSpec()
    """Data types of weights and KV cache."""
    variants: Annotated[list[VariantSpec], Field(min_length=1)] | None = None
    """Alternatives to `model` and `precision`; the plan chooses among them."""
    quality_floor: QualityFloor | None = None
    """Minimum quality of the variants that serve the service: a number for every request, or a mapping.
    Default: no minimum."""
    techniques: TechniquesSpec = TechniquesSpec()
    """Serving techniques."""
    workload: WorkloadSpec | None = None
    """Lengths of requests; required for a service with a model."""
    slo: SloSpec = SloSpec()
    """Latency limits."""
    traffic: TrafficSpec | None = None
    """Arrival process of requests. Without it, limits on means exclude queueing, and percentiles assume
    Poisson arrivals."""
    demand: DemandTree = None
    """Requests per second at peak: a number, a quantity, an estimate {low, mid, high} of them, or a mapping
    by region, period, class and slice in any order. A quantity counts requests, tokens, input tokens or
    output tokens: per s, min or h at the peak, or in total per day, week or month, such as `3.2 M
    requests/day` or `2 M users x 6 requests/day`. Required unless the service follows another one or is
    offline."""
    demand_by_slice: DemandBySlice | None = None
    """Factor on `demand` by slice, unless `demand` has values by slice; default 1. Or the name of one of
    `day_shapes`. It spreads quantities per day, week or month, and the requests of an offline service, over
    the day."""
    growth: Growth | None = None
    """Growth of the demand after the last period that `demand` gives, such as `10 %/quarter`, `3 %/month` or
    `25 %/year`: once or by region. A figure without a period applies to the first period. Default: the last
    figure is repeated."""
    offline: OfflineSpec | None = None
    """Instead of a demand: work without latency limits that is served when capacity is free."""
    follows: FollowedServices | None = None
    """Instead of a demand: the service whose requests cause requests of this one, or a list of such services,
    which then share its replicas."""
    headroom: Annotated[float, Field(ge=0, le=10)] = 0.0
    """Planned capacity above demand, as a share of it. Default for limits under load: computed from the
    variation of the traffic within five minutes."""
    priority: PositiveCount = 1
    """Priority if demand stays unmet; 1 is served first."""
    served_weight: Positive | None = None
    """Weight of a request under `objective: served`. Default: 1 / priority."""
    rate_ratio: Positive | Annotated[dict[HardwareName, Positive], Field(min_length=1)] | None = None
    """Measured requests per second of a replica at full load, divided by the prediction or the rate in the
    engine table: a number, or numbers by hardware, as `plan track` writes them. It does not change latencies.
    Default: 1."""
    runtimes: Annotated[list[Runtime], Field(min_length=1)] = Field(default_factory=lambda: list(RUNTIMES))
    """Allowed runtimes. If all requests have one output token, replicas that compute prompts are sufficient:
    they count as aggregated, and no replica decodes."""
    framework: Literal["trtllm", "sglang", "vllm"] = "vllm"
    """Framework whose measured operator tables and layouts are used."""
    framework_version: Text | None = None
    """Version of the framework whose tables are used, as `plan optables list` prints it. Default: the newest
    version of each operator. Operators without a table in this version use other versions."""
    search: SearchSpec = SearchSpec()
    """Configurations to search."""
    hardware: Annotated[list[HardwareName], Field(min_length=1)] | None = None
    """Hardware it may run on. Default: any."""
    regions: Annotated[list[Name], Field(min_length=1)] | None = None
    """Regions it may run in, also after the loss of a region. Default: any."""
    serve_from: ServeFrom | None = None
    """Other regions that may serve its demand: `any` (all with a known round trip), a list, or lists by the
    region of the demand. TTFT includes the round trip. Default: each region serves its own demand."""
    home_percent: Percent | None = None
    """Largest extra cost over the cheapest plan found, within the requested gap, for serving requests in
    their own region: they leave it only for a larger saving. Default: `policy.home_percent`. [%]"""
    mb_per_request: NotNegative = 0.0
    """Data of a request and its answer, for the network cost of requests that another region serves. [MB]"""
    network_latency_ms: NotNegative = 0.0
    """Short for `outside_ms: {network: ...}`. [ms]"""
    outside_ms: OutsideSpec = OutsideSpec()
    """Mean time of a request outside inference, included in TTFT. [ms]"""

    @property
    def leaders(self) -> tuple[FollowsSpec, ...]:
        """The services that this one follows; empty for a service with its own demand."""
        if self.follows is None:
            return ()
        return tuple(self.follows) if isinstance(self.follows, list) else (self.follows,)


class ServiceDefaultsSpec(Spec):
    """Values for every service that does not state the key."""

    precision: PrecisionSpec | None = None
    """`services.precision` of services with a model."""
    demand_by_slice: DemandBySlice | None = None
    """`services.demand_by_slice` of services whose demand is not given by slice."""
    growth: Growth | None = None
    """`services.growth` of services with a demand."""
    headroom: Annotated[float, Field(ge=0, le=10)] | None = None
    """`services.headroom`, offline services included."""
    priority: PositiveCount | None = None
    """`services.priority`."""
    runtimes: Annotated[list[Runtime], Field(min_length=1)] | None = None
    """`services.runtimes`."""
    framework: Literal["trtllm", "sglang", "vllm"] | None = None
    """`services.framework`."""
    hardware: Annotated[list[HardwareName], Field(min_length=1)] | None = None
    """`services.hardware`."""
    serve_from: ServeFrom | None = None
    """`services.serve_from`."""


class PolicySpec(Spec):
    """Rules for every service and pool."""

    reserve_hosts_per_pool: Count = 0
    """Hosts that a pool keeps free for failures while anything runs in it; `reserve_hosts` and
    `reserve_percent` of a pool take precedence. Hosts from offers share the reserve of their pool. Pools and
    offers that count single accelerators have no reserve, because the provider replaces failed ones."""
    reserve_percent_per_pool: ReservePercent = 0.0
    """The same in per cent of the hosts in use, rounded up to whole hosts; up to six decimals. Excludes
    `reserve_hosts_per_pool`. [%]"""
    max_configs_per_service_region: PositiveCount | None = None
    """Largest number of configurations of a service in a region. Default: unlimited."""
    kv_transfer: Literal["same-pool", "same-region", "cross-region"] = "same-region"
    """Range of KV cache transfers from prefill to decode; to another region only over `kv_links`."""
    kv_pairs: KvPairs = "same-vendor"
    """Hardware between which a KV cache may travel: `same-vendor`, as serving stacks support it (hardware
    that only engine tables describe pairs with any other), `any`, or a list of pairs. Equal hardware is
    always allowed."""
    transition_usd_per_accelerator: UsdPerHost = 0.0
    """Cost per accelerator of a replica that starts, compared with the previous period or the plan in force
    (`--baseline`). [USD]"""
    survive_region_loss: list[Name] = Field(default_factory=list)
    """Services whose demand in all regions the remaining fleet still serves after the loss of any one region.
    Other services then stop, and reserve hosts may serve. TTFT excludes the distance to the other region:
    include it in `outside_ms`."""
    max_share_per_pool: Annotated[float, Field(gt=0, le=1)] | None = None
    """Largest share of a service's demand in a period, over all regions, that one pool may serve, so that the
    service survives the loss of the pool. Default: unlimited."""
    tidal: TidalSpec = TidalSpec()
    """Cost and limits of changes of replicas within a day. Default: free and unlimited."""
    simpler_percent: Percent = 0.5
    """Largest extra cost of a simpler plan over the cheapest one found, within the requested gap. A simpler
    plan serves fewer requests in other regions, and uses fewer kinds of hardware and configurations per
    service. 0 disables it. [%]"""
    home_percent: Percent = 0.0
    """`services.home_percent` of services that do not state it. [%]"""
    unmet: Literal["forbid", "penalise"] = "forbid"
    """forbid: all demand is served, or the fleet is infeasible. penalise: the plan minimises unmet demand by
    priority before cost."""


class BudgetSpec(Spec):
    """Spending limits; all are optional. With `uncertainty`, they limit the mean over the scenarios."""

    capex_usd: BudgetByPeriod | None = None
    """Purchases: over the horizon, or by the period of the order. [USD]"""
    opex_usd: BudgetUsd | None = None
    """Rent, energy, hosting, maintenance, network, software, staff, starts of replicas and data between
    regions over the horizon. [USD]"""
    tco_usd: BudgetUsd | None = None
    """All cost over the horizon. [USD]"""


class FleetSpec(Spec):
    """A fleet file."""

    version: Literal[1]
    """Version of this format."""
    name: Text | None = None
    """Name of the plan in reports. Default: the file's name."""
    horizon: HorizonSpec | None = None
    """Periods to plan. Default: one period `now`."""
    regions: dict[Name, RegionSpec] | None = Field(default=None, json_schema_extra={"minProperties": 1})
    """Regions. Default: one region `default` without limits."""
    hardware: dict[Name, HardwareSpec] = Field(default_factory=dict)
    """Your own hardware, and changes to hardware of the catalogue."""
    pools: list[PoolSpec] = Field(default_factory=list)
    """Installed hardware."""
    offers: list[OfferSpec] = Field(default_factory=list)
    """Hardware that you can buy or rent."""
    services: list[ServiceSpec] = Field(json_schema_extra={"minItems": 1})
    """Services to plan for."""
    service_defaults: ServiceDefaultsSpec | None = None
    """Values for all services that do not state a key."""
    calibration: Text | None = None
    """A file made by `plan calibrate`, relative to this file; predictions are uncalibrated without it."""
    kv_links: list[KvLinkSpec] = Field(default_factory=list)
    """Networks with limited capacity for KV cache transfers. Default: unlimited."""
    policy: PolicySpec = PolicySpec()
    """Rules for every service and pool."""
    budget: BudgetSpec = BudgetSpec()
    """Spending limits."""
    finance: FinanceSpec = FinanceSpec()
    """Write-off, discount rate, taxes and currency."""
    day_shapes: dict[Name, DayShapeSpec] = Field(default_factory=dict)
    """Shapes of the day by name, for `demand_by_slice`."""
    uncertainty: UncertaintySpec | None = None
    """Demand scenarios. Default if demand has estimates {low, mid, high}: all three scenarios, at the lowest
    expected cost."""
    objective: Objective = "tco"
    """Objective of the plan. `tco`: lowest cost. `served`: most demand, weighted by `served_weight`; demand
    may stay unmet regardless of `policy.unmet`. `energy`, `carbon`: lowest energy or carbon of the served
    traffic. `accelerators`: fewest running accelerators. Cost breaks ties."""
    scenarios: dict[str, object] = Field(default_factory=dict)
    """Named changes to this file: a list of names from `overrides`, or a mapping that is merged over the
    file."""
    overrides: dict[str, object] = Field(default_factory=dict)
    """Named mappings that scenarios merge over the file."""


FleetSpec.model_rebuild()
