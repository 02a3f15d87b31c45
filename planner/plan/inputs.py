"""Inputs of a plan as plan.json states them: services, demand, prices, and its bill.

Reports, spreadsheets and launch flags are made from the plan alone, so that they show what was planned and
not what the fleet file says today.
"""

from __future__ import annotations

from datetime import date

from pydantic import Field

from fleetplan.planner.plan.record import Record


class InputRecord(Record):
    """One stated input."""


class ClassInput(InputRecord):
    """A kind of request."""

    name: str
    input_tokens: int | None
    """New prompt tokens; None without lengths."""
    output_tokens: int | None
    context_tokens: int | None
    """Prompt tokens with those that are cached; None where nothing is."""


class VariantInput(InputRecord):
    """One of the models that may serve a service."""

    name: str
    """What its configurations start with; empty for the service's own model."""
    model: str
    weights: str
    kv: str
    checkpoint: str | None = None
    """What is launched; None where it is the model's id, empty where the model is a file of shapes alone."""


class ServiceInput(InputRecord):
    """A service with its targets."""

    name: str
    framework: str
    variants: tuple[VariantInput, ...]
    """Empty for a service that brings its own rates."""
    classes: tuple[ClassInput, ...]
    ttft_ms: float | None
    tpot_ms: float | None
    outside_ms: float
    """Time outside inference that counts against TTFT. [ms]"""
    load_limits: tuple[str, ...] = ()
    """Limits that hold under load, with queueing, in words; `ttft_ms` and `tpot_ms` are the smallest ones."""
    headroom: float
    priority: int
    chunk_tokens: int | None
    """Prompt tokens of an iteration; None computes prompts whole."""
    draft_tokens: int | None
    """Tokens that a draft proposes a step; None without speculative decoding."""
    prefix_caching: bool
    """Whether prompts share cached tokens."""
    draft_method: str | None = None
    """What proposes tokens: draft-model, eagle, eagle3 or mtp; None where nothing says."""
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
        """Whether all requests end with their first token: they have no time per output token."""
        return bool(self.classes) and all(each.output_tokens == 1 for each in self.classes)


class DemandInput(InputRecord):
    """Peak demand, headroom not included."""

    service: str
    region: str
    period: str
    request_class: str
    requests_per_s: float
    slice: str | None = None
    """Part of the day; None where it is the whole day."""
    scenario: str | None = None
    """Demand scenario; None where demand is certain."""


class PeriodInput(InputRecord):
    """A period with a date."""

    name: str
    first_day: date
    day_after: date
    """First day after it."""


class RegionInput(InputRecord):
    """A place."""

    name: str
    pue: float
    power_kw: dict[str, float]
    """Facility power by period; empty where it is unlimited."""


class HardwareInput(InputRecord):
    """A kind of accelerator."""

    name: str
    accelerators_per_host: int
    vendor: str | None
    """None for a kind that engine tables alone know."""
    part: str | None = None
    """Part of the catalogue that it is, in hosts of any size; None for one with figures of its own."""


class LaunchInput(InputRecord):
    """What starting a placed configuration needs beyond its name."""

    service: str
    phase: str
    hardware: str
    config: str
    stored_weights: str | None
    """Data type in which the model's published checkpoint stores weights; None for BF16."""
    heads: int | None
    """Query heads; None where layers differ."""
    kv_heads: int | None
    """Key-value heads; None with latent attention, and where layers differ."""
    latent_attention: bool
    """Whether all layers have multi-head latent attention."""
    experts: bool
    """Whether the model is a mixture of experts."""
    max_context_tokens: int | None
    """Positions that the model's config allows; None where it does not say. [tokens]"""
    sequence_tokens: int
    """Longest sequence that an attention-DP rank has memory for, beside weights and activations. [tokens]"""
    longest_request_tokens: int | None
    """Prompt, cached tokens and answer of the longest request; None where only means are known. [tokens]"""
    batches: dict[str, int] = Field(default_factory=dict)
    """Sequences of a micro-batch and attention-DP rank by class, where each class has its own."""


class PriceInput(InputRecord):
    """A price that the plan pays."""

    name: str
    """Unique within the plan."""
    subject: str
    """Pool, offer or region, or what else has the price."""
    value: float
    unit: str
    source: str
    as_of: str | None
    """Year, month or day; None where nothing says."""


class CostLine(InputRecord):
    """One line of the bill: price times quantity. The lines of a plan add up to its TCO."""

    period: str
    """Empty for what belongs to no period alone."""
    pool: str
    service: str
    """Who pays alone; empty for capacity, which is shared by what runs on it."""
    item: str
    """What it is for: hosts that stand there, an offer with the period of its order, a retirement."""
    kind: str
    price: str
    """Name of the price; empty for a line without one, whose quantity is its cost."""
    quantity: float
    """At its present value where cost is discounted."""
    unit: str
    usd: float
    at_once: bool = False
    """Whether it is paid once as hosts leave: what the books still held, and their sale."""


class CurrencyInput(InputRecord):
    """The currency of reports; amounts and prices of plan.json are in USD."""

    code: str
    """ISO 4217."""
    usd_per_unit: float
    """What one unit of it costs. [USD]"""
    as_of: str
    source: str


class PlanInputs(InputRecord):
    """Inputs that a plan states."""

    services: tuple[ServiceInput, ...]
    demand: tuple[DemandInput, ...]
    regions: tuple[RegionInput, ...]
    hardware: tuple[HardwareInput, ...]
    prices: tuple[PriceInput, ...]
    cost_lines: tuple[CostLine, ...]
    launches: tuple[LaunchInput, ...] = ()
    """Empty in plans of older versions."""
    periods: tuple[PeriodInput, ...] = ()
    """When the periods are, those with a date; empty in plans of older versions."""
    currency: CurrencyInput | None = None
    """What the report shows amounts in; None is USD."""
