"""Schema of serving techniques."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from fleetplan.fleet.inventory.techniques import (
    ActivationModel,
    DraftMethod,
    ExpertBalance,
    ExpertOverlap,
    ExpertPlacement,
    Sampling,
    TierName,
)
from fleetplan.fleet.schema.values import Count, NotNegative, Positive, PositiveCount, Spec, Text

Ratio: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class SpeculativeSpec(Spec):
    """Speculative decoding: a draft proposes, one step verifies."""

    draft_tokens: Annotated[int, Field(ge=1, le=64)]
    """Drafted tokens per step."""
    acceptance_ratio: Ratio | None = None
    """Probability that a drafted token is accepted if those before it were; measure it on your own traffic.
    Default for one token of mtp: 0.85, as published for DeepSeek-V3."""
    draft_cost_ratio: NotNegative | None = None
    """Time of one drafted token divided by the time of the verifying step; 0 for look-up drafts. Default for
    one token of mtp: 0.044, the share of its module in the parameters that a token reads."""
    draft_gib_per_accelerator: NotNegative = 0.0
    """Memory of the draft's weights and cache. [GiB]"""
    method: DraftMethod | None = None
    """Draft method for exported launch commands: draft-model, eagle, eagle3 or mtp. Without it, a plan has no
    launch command for the service."""
    draft_model: Text | None = None
    """Checkpoint of the draft for exported launch commands; not for mtp, whose draft is part of the model's
    checkpoint."""

    @model_validator(mode="after")
    def _has_its_figures(self) -> SpeculativeSpec:
        if self.method == "mtp" and self.draft_tokens == 1:
            return self
        figures = {"acceptance_ratio": self.acceptance_ratio, "draft_cost_ratio": self.draft_cost_ratio}
        missing = " and ".join(name for name, figure in figures.items() if figure is None)
        if missing:
            what = "needs {missing}; only one token of the method mtp has published figures"
            raise PydanticCustomError("draft_figures", what, {"missing": missing})
        return self

    @model_validator(mode="after")
    def _has_its_draft(self) -> SpeculativeSpec:
        if self.method is None and self.draft_model is not None:
            raise PydanticCustomError("draft_method", "draft_model needs a method")
        if self.method is not None and (self.method == "mtp") != (self.draft_model is None):
            own = self.method == "mtp"
            what = "has its draft in the model: no draft_model" if own else "needs a draft_model"
            figures = {"method": self.method, "what": what}
            raise PydanticCustomError("draft_model", "the method {method} {what}", figures)
        return self


class KvTierSpec(Spec):
    """A memory tier that keeps the caches of sessions."""

    tier: TierName
    """Kind of memory."""
    gib_per_accelerator: Positive
    """Memory that sessions may use. [GiB]"""
    gb_per_s: Positive | None = None
    """Bandwidth of loads into HBM, per accelerator; not for HBM itself. [GB/s]"""

    @model_validator(mode="after")
    def _needs_speed(self) -> KvTierSpec:
        if (self.tier == "hbm") != (self.gb_per_s is None):
            what = "has no gb_per_s: it is not loaded" if self.tier == "hbm" else "needs gb_per_s"
            raise PydanticCustomError(
                "tier_speed", "the tier {tier} {what}", {"tier": self.tier, "what": what}
            )
        return self


class PersistentKvSpec(Spec):
    """Caches of sessions kept between requests; `context_tokens` of the workload includes their tokens."""

    hit_ratio: Ratio
    """Share of requests that would find their session if all sessions were kept."""
    sessions_per_accelerator: Positive
    """Sessions to keep."""
    tiers: Annotated[list[KvTierSpec], Field(min_length=1)]
    """Memory tiers, fastest first; sessions that no tier holds are lost."""


class OffloadSpec(Spec):
    """Weights and cache outside HBM, streamed in while the step computes."""

    weights_ratio: Ratio = 0.0
    """Share of the weights outside HBM."""
    kv_ratio: Ratio = 0.0
    """Share of the cache of running sequences outside HBM."""
    gb_per_s: Positive
    """Bandwidth of the link, per accelerator and direction. [GB/s]"""

    @model_validator(mode="after")
    def _needs_something(self) -> OffloadSpec:
        if not self.weights_ratio and not self.kv_ratio:
            raise PydanticCustomError("offload", "needs weights_ratio or kv_ratio above 0")
        return self


class ExpertsSpec(Spec):
    """Routing of tokens to the experts of a mixture."""

    activation: ActivationModel = "uniform"
    """Model of the number of experts that a step activates."""
    log_linear_intercept: float | None = None
    """Experts that one token activates; only for log-linear. [experts]"""
    log_linear_slope: NotNegative | None = None
    """Additional experts for each factor of e in tokens; only for log-linear. [experts]"""
    busiest_expert_ratio: Ratio | None = None
    """Share of routed tokens that the busiest expert receives. Default: an even spread."""
    placement: ExpertPlacement = "mixed"
    """Assignment of experts to expert-parallel ranks: mixed (hottest to the least loaded rank), random, or
    sorted by load."""
    balance: ExpertBalance = "auto"
    """Load balance among expert-parallel ranks: a load balancer (eplb), none, or perfect. auto is eplb if
    more accelerators than a host of eight share the experts, and none otherwise."""
    redundant_experts: Count | None = None
    """Copies of experts that eplb places, over all ranks. Default: one per eight experts."""

    @model_validator(mode="after")
    def _needs_parameters(self) -> ExpertsSpec:
        given = [each is not None for each in (self.log_linear_intercept, self.log_linear_slope)]
        if given != [self.activation == "log-linear"] * 2:
            raise PydanticCustomError(
                "log_linear",
                "log_linear_intercept and log_linear_slope are for activation: log-linear only",
            )
        if self.busiest_expert_ratio is None and "placement" in self.model_fields_set:
            raise PydanticCustomError("placement", "placement has no effect without busiest_expert_ratio")
        if self.busiest_expert_ratio is not None and self.balance in {"eplb", "perfect"}:
            raise PydanticCustomError(
                "balance", "busiest_expert_ratio cannot be combined with this balance, which leaves no skew"
            )
        if self.redundant_experts is not None and self.balance not in {"auto", "eplb"}:
            raise PydanticCustomError("redundant_experts", "redundant_experts needs balance: eplb")
        return self


class KvTransferSpec(Spec):
    """Transfer of a prompt's KV cache from prefill to decode."""

    overlap: bool = False
    """Each layer's cache is sent while later layers compute."""
    gb_per_s: Positive | None = None
    """Bandwidth of the link per accelerator. Default: its network, or its scale-up links if it has no
    network. [GB/s]"""


class TechniquesSpec(Spec):
    """Serving techniques. All are off by default, except chunks of long prompts."""

    chunk_tokens: PositiveCount | None = None
    """Chunked prefill: largest number of prompt tokens in an iteration. Default: prompts are whole, but 8,192
    for prompts of 32,768 tokens or more under vLLM and SGLang, where chunks follow each other through a
    pipeline. [tokens]"""
    samples_per_prompt: PositiveCount = 1
    """Generations that share one prefill; a request is one prompt with all of them."""
    shared_prefix_tokens: Count = 0
    """Cached tokens that all requests begin with: kept once, and read once per batch. [tokens]"""
    speculative: SpeculativeSpec | None = None
    """Speculative decoding."""
    persistent_kv: PersistentKvSpec | None = None
    """Session caches kept between requests."""
    offload: OffloadSpec | None = None
    """Weights and cache outside HBM."""
    experts: ExpertsSpec = ExpertsSpec()
    """Routing of mixtures of experts."""
    kv_transfer: KvTransferSpec = KvTransferSpec()
    """Transfer of KV caches from prefill to decode."""
    sampling: Sampling = "greedy"
    """greedy takes the most likely token; top-p samples from the most likely ones (top-k, top-p)."""
    expert_overlap: ExpertOverlap = "none"
    """Computation that hides dispatch and combine, if that is faster: the other half of the batch
    (two-batch), or the last product of the experts and the shared experts (single-batch, for combine)."""
    image_token_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the new prompt tokens that are images; an encoder computes their patches first."""
