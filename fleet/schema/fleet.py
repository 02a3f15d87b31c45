"""The fleet file as it is written: keys, types and ranges. `fleetplan.fleet.resolve` looks up names."""

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
from fleetplan.fleet.schema.service_parts import Follows, FollowsSpec, OutsideSpec, SearchSpec
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
    """Weights; fp8-ffn keeps all but the feed-forward weights in BF16. Default: as the checkpoint stores
    them, by its name (-FP8, -NVFP4, -AWQ and the like) or its model's config; bf16 where neither says."""
    kv: Literal["bf16", "fp8"] = "bf16"
    """KV cache."""


class RequestClassSpec(Spec):
    """One kind of request."""

    share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Part of the service's requests; omit it if the demand is given by class."""
    input_tokens: PositiveCount
    """Mean new prompt tokens."""
    output_tokens: PositiveCount
    """Mean generated tokens."""
    context_tokens: PositiveCount | None = None
    """The whole prompt: input_tokens and the tokens that a cache holds; omit it if nothing is cached."""
    lengths: Text | None = None
    """CSV file of how lengths spread, a histogram or a trace, relative to this file; they are scaled to the
    means. Default: all requests have the mean length."""


class WorkloadSpec(Spec):
    """What requests look like: one mean request, or classes."""

    input_tokens: PositiveCount | None = None
    """Mean new prompt tokens."""
    output_tokens: PositiveCount | None = None
    """Mean generated tokens."""
    context_tokens: PositiveCount | None = None
    """The whole prompt: input_tokens and the tokens that a cache holds; omit it if nothing is cached."""
    lengths: Text | None = None
    """CSV file of how lengths spread, a histogram or a trace, relative to this file. Missing means are those
    of the file; given means scale it."""
    classes: Annotated[dict[Name, RequestClassSpec], Field(min_length=1)] | None = None
    """Kinds of request by name, instead of one mean request."""


class VariantSpec(Spec):
    """One way to serve a service: quantised, pruned, distilled, or with a compressed context."""

    name: Name
    """What placements call it."""
    model: Text | None = None
    """Its model. Default: that of the service."""
    checkpoint: Text | None = None
    """What exported commands launch: an id or a path. Default: that of the service, if the variant names no
    model of its own, else the model's."""
    precision: PrecisionSpec | None = None
    """Its data types. Default: those of the service."""
    quality: float
    """Score on a scale of the service's own, compared with quality_floor."""
    input_tokens_ratio: Annotated[float, Field(gt=0, le=1)] = 1.0
    """New prompt tokens over those of the workload: below 1 with context compression."""


class ServiceSpec(Spec):
    """A service with its targets and its demand."""

    name: Name
    """Its name in plans and reports."""
    model: Text | None = None
    """An id of the model catalogue, or the path of a `config.json` relative to this file."""
    checkpoint: Text | None = None
    """What exported commands launch, where it is not the model's id: an id or a path, quantised as
    `precision` says."""
    engines: Text | None = None
    """Instead of a model: a CSV file of your own measured rates, relative to this file."""
    precision: PrecisionSpec = PrecisionSpec()
    """Data types of weights and KV cache."""
    variants: Annotated[list[VariantSpec], Field(min_length=1)] | None = None
    """Alternatives to `model` and `precision`; the plan chooses among them."""
    quality_floor: QualityFloor | None = None
    """Least quality of the variants that serve it: a number for every request, or a mapping. Default: no
    floor."""
    techniques: TechniquesSpec = TechniquesSpec()
    """Serving techniques."""
    workload: WorkloadSpec | None = None
    """What requests look like; a service with a model needs it."""
    slo: SloSpec = SloSpec()
    """Latency limits."""
    traffic: TrafficSpec | None = None
    """How requests arrive; without it, limits on means leave queueing out and percentiles take Poisson
    arrivals."""
    demand: DemandTree = None
    """Requests per second at peak: a number, a quantity, an estimate {low, mid, high} of them, or a mapping
    by region, period, class and slice in any order. A quantity counts requests, tokens, input tokens or
    output tokens: by s, min or h at the peak, or by day, week or month in all, such as `3.2 M requests/day`
    or `2 M users x 6 requests/day`. Needed unless the service follows another one or is offline."""
    demand_by_slice: DemandBySlice | None = None
    """Factor on `demand` by slice, unless `demand` has values by slice; default 1. Or the name of one of
    `day_shapes`. For a quantity by day, week or month, and for an offline service: how it is spread over the
    day."""
    growth: Growth | None = None
    """Growth of the demand after the last period that `demand` gives, such as `10 %/quarter`, `3 %/month` or
    `25 %/year`: once or by region. A figure without a period is that of the first one. Default: the last
    figure is repeated."""
    offline: OfflineSpec | None = None
    """Instead of a demand: work that is put where there is room."""
    follows: Follows | None = None
    """Instead of a demand: the service whose requests bring those of this one, or a list of such services,
    which then share its replicas."""
    headroom: Annotated[float, Field(ge=0, le=10)] = 0.0
    """Planned capacity above demand, as a share of it. Default with limits under load: from the variation of
    the traffic of five minutes."""
    priority: PositiveCount = 1
    """1 is served first."""
    served_weight: Positive | None = None
    """Weight of a request under `objective: served`. Default: 1 / priority."""
    rate_ratio: Positive | Annotated[dict[HardwareName, Positive], Field(min_length=1)] | None = None
    """Measured requests per second of a replica at full load over what the model, or the engine table, gives:
    a number, or numbers by hardware, as `plan track` finds them. Latencies stay as they are. Default: 1."""
    runtimes: Annotated[list[Runtime], Field(min_length=1)] = Field(default_factory=lambda: list(RUNTIMES))
    """Allowed runtimes. Where all requests have one output token, replicas that compute prompts are all that
    is needed: they count as aggregated, and none decodes."""
    framework: Literal["trtllm", "sglang", "vllm"] = "vllm"
    """Whose measured operator tables are read, and whose layouts are searched."""
    framework_version: Text | None = None
    """Version of the framework whose tables are read, as `plan optables list` prints it. Default: the newest
    of every operator. Operators without a table in this version use other versions."""
    search: SearchSpec = SearchSpec()
    """Configurations that are searched."""
    hardware: Annotated[list[HardwareName], Field(min_length=1)] | None = None
    """Hardware it may run on. Default: any."""
    regions: Annotated[list[Name], Field(min_length=1)] | None = None
    """Regions it may run in, also after the loss of another one. Default: any."""
    serve_from: ServeFrom | None = None
    """Other regions that may serve its demand: `any` with a known round trip, a list, or lists by the
    region of the demand. The round trip is part of TTFT. Default: demand is served where it arises."""
    home_percent: Percent | None = None
    """Most that a plan may cost more than the cheapest one found, within the asked gap, so that requests are
    served in their own region: they leave it for a larger saving only. Default: that of `policy`. [%]"""
    mb_per_request: NotNegative = 0.0
    """Data of a request and its answer, for the network cost of another region. [MB]"""
    network_latency_ms: NotNegative = 0.0
    """Short for `outside_ms: {network: ...}`. [ms]"""
    outside_ms: OutsideSpec = OutsideSpec()
    """Mean time of a request outside inference, part of TTFT. [ms]"""

    @property
    def leaders(self) -> tuple[FollowsSpec, ...]:
        """What it follows; empty for a service with a demand of its own."""
        if self.follows is None:
            return ()
        return tuple(self.follows) if isinstance(self.follows, list) else (self.follows,)


class ServiceDefaultsSpec(Spec):
    """Keys that hold for every service that does not state them itself."""

    precision: PrecisionSpec | None = None
    """`services.precision` of services that have a model."""
    demand_by_slice: DemandBySlice | None = None
    """`services.demand_by_slice` of services with a demand that is not given by slice."""
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
    """Hosts a pool keeps free for failures while anything runs in it; a pool of the file may say otherwise
    (`reserve_hosts`, `reserve_percent`). What offers bring to a pool shares its reserve. Capacity that is
    counted in single accelerators, in the file or by an offer, keeps none: its provider replaces them."""
    reserve_percent_per_pool: ReservePercent = 0.0
    """The same in per cent of the hosts that are in use, rounded up to whole hosts; counts to six decimals.
    Instead of `reserve_hosts_per_pool`. [%]"""
    max_configs_per_service_region: PositiveCount | None = None
    """Most engine configurations of a service in a region. Default: unlimited."""
    kv_transfer: Literal["same-pool", "same-region", "cross-region"] = "same-region"
    """How far the KV cache travels from prefill to decode; to another region only over `kv_links`."""
    kv_pairs: KvPairs = "same-vendor"
    """Hardware between which it may travel: `same-vendor`, as serving stacks support it (parts that have
    engine tables alone go with every other), `any`, or a list of pairs; a kind always goes with itself."""
    transition_usd_per_accelerator: UsdPerHost = 0.0
    """Cost of each accelerator of a replica that starts: of one that did not run in the period before, or in
    the plan in force (`--baseline`). [USD]"""
    survive_region_loss: list[Name] = Field(default_factory=list)
    """Services whose demand of all regions the rest of the fleet still serves after the loss of any one
    region. Services that are not named then stop, and hosts in reserve may serve. The way to another region
    is not added to TTFT: include it in `outside_ms`."""
    max_share_per_pool: Annotated[float, Field(gt=0, le=1)] | None = None
    """Most of a service's demand of a period, all regions together, that one pool may serve, so that the
    service survives the loss of the pool. Default: unlimited."""
    tidal: TidalSpec = TidalSpec()
    """Changes of replicas within a day; free without it."""
    simpler_percent: Percent = 0.5
    """Most that a simpler plan may cost more than the cheapest one found, within the asked gap: one with
    fewer services that other regions serve, and fewer kinds of hardware and configurations of each service.
    0 pays nothing for it. [%]"""
    home_percent: Percent = 0.0
    """`services.home_percent` of services that do not state it. [%]"""
    unmet: Literal["forbid", "penalise"] = "forbid"
    """forbid: all demand is served or the fleet is infeasible. penalise: unmet demand comes first, by
    priority."""


class BudgetSpec(Spec):
    """Spending limits; each is optional. Under `uncertainty` they limit the mean over the scenarios."""

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
    """What exists."""
    offers: list[OfferSpec] = Field(default_factory=list)
    """What can be bought or rented."""
    services: list[ServiceSpec] = Field(json_schema_extra={"minItems": 1})
    """The services to serve."""
    service_defaults: ServiceDefaultsSpec | None = None
    """What services have in common."""
    calibration: Text | None = None
    """A file made by `plan calibrate`, relative to this file; predictions are uncalibrated without it."""
    kv_links: list[KvLinkSpec] = Field(default_factory=list)
    """Networks with limited capacity for KV cache transfers. Default: unlimited."""
    policy: PolicySpec = PolicySpec()
    """Rules for every service and pool."""
    budget: BudgetSpec = BudgetSpec()
    """Spending limits."""
    finance: FinanceSpec = FinanceSpec()
    """How prices become cost."""
    day_shapes: dict[Name, DayShapeSpec] = Field(default_factory=dict)
    """Shapes of the day by name, for `demand_by_slice`."""
    uncertainty: UncertaintySpec | None = None
    """Uncertain demand. Default with demand estimates {low, mid, high}: all three scenarios, at the least
    expected cost."""
    objective: Objective = "tco"
    """What a plan is best at. `tco`: least cost. `served`: most demand, each request with its weight, for
    which demand may stay unmet whatever the policy says. `energy`, `carbon`: least of it for the served
    traffic. `accelerators`: fewest that run. Among equals the cheapest plan is taken."""
    scenarios: dict[str, object] = Field(default_factory=dict)
    """Named changes to this file: a list of names from `overrides`, or a mapping laid on the file."""
    overrides: dict[str, object] = Field(default_factory=dict)
    """Named mappings that scenarios lay on the file."""


FleetSpec.model_rebuild()
