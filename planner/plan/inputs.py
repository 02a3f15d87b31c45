"""Inputs of a plan recorded in plan.json: services, demand, prices, and its bill.

Reports, spreadsheets and launch flags use only the plan, so that they show the planned inputs instead of the
present fleet file.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pydantic import Field

from fleetplan.planner.plan.record import Record

QUANTITY_UNITS: Final = {
    "depreciation": "hosts x share of the price written off",
    "maintenance": "hosts x share of the price",
    "property_tax": "hosts x share of the price",
    "interest": "hosts x share of the price",
    "tax_deferral": "hosts x share of the price",
    "resale": "hosts sold",
    "rent": "accelerator-hours",
    "hosting": "kW-months",
    "network": "host-quarters",
    "software": "host-quarters",
    "staff": "host-quarters",
    "energy": "kWh",
    "idle_energy": "kWh",
    "transition": "accelerators",
}
"""Unit of the quantity of a line of the bill with a price, by kind of cost."""


class InputRecord(Record):
    """One recorded input."""


class ClassInput(InputRecord):
    """A kind of request."""

    name: str
    input_tokens: int | None
    """New prompt tokens; None without lengths."""
    output_tokens: int | None
    context_tokens: int | None
    """Prompt tokens including cached ones; None if none are cached."""


class VariantInput(InputRecord):
    """One of the models that may serve a service."""

    name: str
    """Prefix of its configurations; empty for the service's own model."""
    model: str
    weights: str
    kv: str
    checkpoint: str | None = None
    """Checkpoint to launch; None for the model's id, empty for a model file with shapes only."""


class ServiceInput(InputRecord):
    """A service with its targets."""

    name: str
    framework: str
    variants: tuple[VariantInput, ...]
    """Empty for a service with its own rates."""
    classes: tuple[ClassInput, ...]
    ttft_ms: float | None
    tpot_ms: float | None
    outside_ms: float
    """Time outside inference that counts against TTFT. [ms]"""
    load_limits: tuple[str, ...] = ()
    """Limits under load, including queueing, in words; `ttft_ms` and `tpot_ms` are the smallest ones."""
    headroom: float
    priority: int
    chunk_tokens: int | None
    """Prompt tokens per iteration; None computes prompts whole."""
    draft_tokens: int | None
    """Tokens that a draft proposes per step; None without speculative decoding."""
    prefix_caching: bool
    """Whether prompts share cached tokens."""
    draft_method: str | None = None
    """Draft method: draft-model, eagle, eagle3 or mtp; None if not stated."""
    draft_model: str | None = None
    """Checkpoint of the draft; None for mtp."""
    session_gib: dict[str, float] = Field(default_factory=dict)
    """Memory that keeps caches of sessions between requests, by tier and accelerator. [GiB]"""
    offloaded: dict[str, float] = Field(default_factory=dict)
    """Shares of `weights` and of the running cache (`kv`) outside HBM."""
    expert_overlap: str = "none"
    """What is computed while tokens travel to experts: none, two-batch or single-batch."""

    @property
    def ends_with_prompts(self) -> bool:
        """Return whether all requests end with their first token, and so have no time per output token."""
        return bool(self.classes) and all(each.output_tokens == 1 for each in self.classes)


class DemandInput(InputRecord):
    """Peak demand, without headroom."""

    service: str
    region: str
    period: str
    request_class: str
    requests_per_s: float
    slice: str | None = None
    """Slice of the day; None for the whole day."""
    scenario: str | None = None
    """Demand scenario; None if demand is certain."""


class PeriodInput(InputRecord):
    """A period with a date."""

    name: str
    first_day: date
    day_after: date
    """First day after the period."""


class RegionInput(InputRecord):
    """A region."""

    name: str
    pue: float
    power_kw: dict[str, float]
    """Facility power by period; empty if unlimited."""


class HardwareInput(InputRecord):
    """A kind of accelerator."""

    name: str
    accelerators_per_host: int
    vendor: str | None
    """None for hardware that only engine tables know."""
    part: str | None = None
    """Part in the catalogue, in hosts of any size; None for hardware with its own figures."""
    power_cap_w: float | None = None
    """Power cap of a card; None without a cap, and in plans of older versions. [W]"""


class LaunchInput(InputRecord):
    """Inputs for launching a placed configuration."""

    service: str
    phase: str
    hardware: str
    config: str
    stored_weights: str | None
    """Data type in which the model's published checkpoint stores weights; None for BF16."""
    heads: int | None
    """Query heads; None if layers differ."""
    kv_heads: int | None
    """Key-value heads; None with latent attention, or if layers differ."""
    latent_attention: bool
    """Whether all layers have multi-head latent attention."""
    experts: bool
    """Whether the model is a mixture of experts."""
    max_context_tokens: int | None
    """Positions in the model's config; None if not stated. [tokens]"""
    sequence_tokens: int
    """Longest sequence in the memory of an attention-DP rank next to weights and activations. [tokens]"""
    longest_request_tokens: int | None
    """Prompt, cached tokens and answer of the longest request; None if only means are known. [tokens]"""
    batches: dict[str, int] = Field(default_factory=dict)
    """Sequences per micro-batch and attention-DP rank by class, if classes differ."""


class PriceInput(InputRecord):
    """A price that the plan pays."""

    name: str
    """Unique within the plan."""
    subject: str
    """Pool, offer, region or other subject of the price."""
    value: float
    unit: str
    source: str
    as_of: str | None
    """Year, month or day; None if not stated."""


class CostLine(InputRecord):
    """One line of the bill: price times quantity. The lines of a plan add up to its TCO."""

    period: str
    """Empty for costs that belong to no single period."""
    pool: str
    service: str
    """Service that pays the whole line; empty for capacity, which services share."""
    item: str
    """Purpose: installed hosts, an offer with the period of its order, or a retirement."""
    kind: str
    price: str
    """Name of the price; empty for a line without one, with the cost as its quantity."""
    quantity: float
    """Present value if cost is discounted."""
    unit: str
    usd: float
    at_once: bool = False
    """Whether it is a one-off payment for departing hosts: their book value, and their sale."""


class CurrencyInput(InputRecord):
    """The currency of reports; amounts and prices of plan.json are in USD."""

    code: str
    """ISO 4217."""
    usd_per_unit: float
    """USD per unit of the currency. [USD]"""
    as_of: str
    source: str


class PlanInputs(InputRecord):
    """Inputs recorded in a plan."""

    services: tuple[ServiceInput, ...]
    demand: tuple[DemandInput, ...]
    regions: tuple[RegionInput, ...]
    hardware: tuple[HardwareInput, ...]
    prices: tuple[PriceInput, ...]
    cost_lines: tuple[CostLine, ...]
    launches: tuple[LaunchInput, ...] = ()
    """Empty in plans of older versions."""
    periods: tuple[PeriodInput, ...] = ()
    """Dates of the periods that have them; empty in plans of older versions."""
    currency: CurrencyInput | None = None
    """Currency of the report; None for USD."""
