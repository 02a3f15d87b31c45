"""The fleet file as it is written: keys, types and ranges. Names are resolved in `fleetplan.fleet.load`."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from fleetplan.fleet.schema_finance import FinanceSpec
from fleetplan.fleet.schema_supply import HardwareSpec, OfferSpec, PoolSpec, RegionSpec
from fleetplan.fleet.schema_techniques import TechniquesSpec
from fleetplan.fleet.schema_values import (
    Count,
    DemandTree,
    Name,
    NotNegative,
    NumberByPeriod,
    Positive,
    PositiveCount,
    Spec,
    Text,
)

Runtime: TypeAlias = Literal["disaggregated", "aggregated"]
RUNTIMES: Final[tuple[Runtime, ...]] = ("disaggregated", "aggregated")
# What the schema says of keys that are read only to be refused with a reason.
NOT_AVAILABLE: Final = "Percentile limits are not available yet."


class HorizonSpec(Spec):
    """The periods to plan."""

    periods: Annotated[list[Name], Field(min_length=1)]
    """Quarters in order, such as 2027Q1."""


class PrecisionSpec(Spec):
    """Data types of a model's weights and KV cache."""

    weights: Literal["bf16", "fp8", "fp8-ffn", "int8", "int4", "fp4", "mxfp4"] = "bf16"
    """Weights; fp8-ffn keeps all but the feed-forward weights in BF16."""
    kv: Literal["bf16", "fp8"] = "bf16"
    """KV cache."""


class RequestClassSpec(Spec):
    """One kind of request."""

    share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Part of the service's requests; left out where the demand is given by class."""
    input_tokens: PositiveCount
    """Mean new prompt tokens."""
    output_tokens: PositiveCount
    """Mean generated tokens."""
    context_tokens: PositiveCount | None = None
    """Prompt tokens with those that a cache already holds; left out where nothing is cached."""


class WorkloadSpec(Spec):
    """What requests look like: one mean request, or classes."""

    input_tokens: PositiveCount | None = None
    """Mean new prompt tokens."""
    output_tokens: PositiveCount | None = None
    """Mean generated tokens."""
    context_tokens: PositiveCount | None = None
    """Prompt tokens with those that a cache already holds; left out where nothing is cached."""
    classes: Annotated[dict[Name, RequestClassSpec], Field(min_length=1)] | None = None
    """Kinds of request by name, instead of one mean request."""


class SloSpec(Spec):
    """Latency limits on means; each may be left out."""

    ttft_ms: Positive | None = None
    """Mean time to first token. [ms]"""
    tpot_ms: Positive | None = None
    """Mean time per output token. [ms]"""
    ttft_p50_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)
    ttft_p90_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)
    ttft_p95_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)
    ttft_p99_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)
    tpot_p50_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)
    tpot_p90_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)
    tpot_p95_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)
    tpot_p99_ms: Positive | None = Field(default=None, description=NOT_AVAILABLE)

    @field_validator("*")
    @classmethod
    def _refuse_percentiles(cls, value: float | None, info: object) -> float | None:
        name = str(getattr(info, "field_name", ""))
        if value is not None and "_p" in name:
            raise PydanticCustomError(
                "percentile",
                "percentile limits are not available yet; limit the mean with {mean}",
                {"mean": name.split("_", maxsplit=1)[0] + "_ms"},
            )
        return value


class VariantSpec(Spec):
    """One way to serve a service: quantised, pruned, distilled, or with a compressed context."""

    name: Name
    """What placements call it."""
    model: Text | None = None
    """Its model; that of the service where it is left out."""
    precision: PrecisionSpec | None = None
    """Its data types; those of the service where they are left out."""
    quality: float
    """Score on a scale of the service's own, compared with quality_floor."""
    input_tokens_ratio: Annotated[float, Field(gt=0, le=1)] = 1.0
    """New prompt tokens over those of the workload: below 1 with context compression."""


class ServiceSpec(Spec):
    """A service with its targets and its demand."""

    name: Name
    """What plans and reports call it."""
    model: Text | None = None
    """An id of the model catalogue, or the path of a `config.json` relative to this file."""
    engines: Text | None = None
    """Instead of a model: a CSV file of one's own measured rates, relative to this file."""
    precision: PrecisionSpec = PrecisionSpec()
    """Data types of weights and KV cache."""
    variants: Annotated[list[VariantSpec], Field(min_length=1)] | None = None
    """Ways to serve it that compete instead of `model` and `precision` as they stand."""
    quality_floor: float | None = None
    """Least quality of a variant; all are good enough where it is left out."""
    techniques: TechniquesSpec = TechniquesSpec()
    """Serving techniques."""
    workload: WorkloadSpec | None = None
    """What requests look like; a service with a model needs it."""
    slo: SloSpec = SloSpec()
    """Latency limits."""
    demand: DemandTree
    """Requests per second at peak: a number, or a mapping by region, period and class in any order."""
    headroom: Annotated[float, Field(ge=0, le=10)] = 0.0
    """Planned capacity above demand, as a share of it."""
    priority: PositiveCount = 1
    """1 is served first."""
    runtimes: Annotated[list[Runtime], Field(min_length=1)] = Field(default_factory=lambda: list(RUNTIMES))
    """Allowed runtimes."""
    framework: Literal["trtllm", "sglang", "vllm"] = "vllm"
    """Whose measured operator tables are read."""
    hardware: Annotated[list[Name], Field(min_length=1)] | None = None
    """Hardware it may run on; any where it is left out."""
    regions: Annotated[list[Name], Field(min_length=1)] | None = None
    """Regions it may run in, also after the loss of another one; any where it is left out."""
    network_latency_ms: NotNegative = 0.0
    """Time spent outside inference; counts against TTFT. [ms]"""


class PolicySpec(Spec):
    """Rules for every service and pool."""

    reserve_hosts_per_pool: Count = 0
    """Hosts a pool keeps free for failures."""
    max_configs_per_service_region: PositiveCount | None = None
    """Most engine configurations of a service in a region; unlimited where it is left out."""
    kv_transfer: Literal["same-region"] = "same-region"
    """How far the KV cache travels from prefill to decode."""
    transition_usd_per_accelerator: NotNegative = 0.0
    """Cost of each accelerator of a replica that starts: of one that did not run in the period before, or in
    the plan in force (`--baseline`). [USD]"""
    survive_region_loss: list[Name] = Field(default_factory=list)
    """Services whose demand of all regions the rest of the fleet still serves after the loss of any one
    region. Services that are not named then stop, and hosts in reserve may serve. The way to another region
    is not added to TTFT: hold it in `network_latency_ms`."""
    max_share_per_pool: Annotated[float, Field(gt=0, le=1)] | None = None
    """Most of a service's demand of a period, all regions together, that one pool may serve, so that the
    service outlives the pool; unlimited where it is left out."""
    unmet: Literal["forbid", "penalise"] = "forbid"
    """forbid: all demand is served or the fleet is infeasible. penalise: unmet demand comes first, by
    priority."""


class BudgetSpec(Spec):
    """Spending limits; none where one is left out."""

    capex_usd: NumberByPeriod | None = None
    """Purchases: over the horizon, or by the period of the order. [USD]"""
    opex_usd: NotNegative | None = None
    """Rent, energy, hosting, maintenance, network, software and staff over the horizon. [USD]"""
    tco_usd: NotNegative | None = None
    """All cost over the horizon. [USD]"""


class FleetSpec(Spec):
    """A fleet file."""

    version: Literal[1]
    """Version of this format."""
    name: Text | None = None
    """What reports call the plan; the file's name where it is left out."""
    horizon: HorizonSpec | None = None
    """The periods to plan; one period called `now` where it is left out."""
    regions: dict[Name, RegionSpec] | None = Field(default=None, json_schema_extra={"minProperties": 1})
    """Places; one called `default` without limits where the block is left out."""
    hardware: dict[Name, HardwareSpec] = Field(default_factory=dict)
    """Parts of one's own, and changes to parts of the catalogue."""
    pools: list[PoolSpec] = Field(default_factory=list)
    """What exists."""
    offers: list[OfferSpec] = Field(default_factory=list)
    """What can be bought or rented."""
    services: list[ServiceSpec] = Field(json_schema_extra={"minItems": 1})
    """What is to be served."""
    calibration: Text | None = None
    """A file made by `plan calibrate`, relative to this file; predictions are uncalibrated without it."""
    policy: PolicySpec = PolicySpec()
    """Rules for every service and pool."""
    budget: BudgetSpec = BudgetSpec()
    """Spending limits."""
    finance: FinanceSpec = FinanceSpec()
    """How prices become cost."""
    objective: Literal["tco"] = "tco"
    """What is minimised."""
    scenarios: dict[str, object] = Field(default_factory=dict)
    """Named changes to this file: a list of names from `overrides`, or a mapping laid on the file."""
    overrides: dict[str, object] = Field(default_factory=dict)
    """Named mappings that scenarios lay on the file."""
