"""Techniques and model variants as the fleet file writes them."""

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
    """Tokens proposed a step."""
    acceptance_ratio: Ratio | None = None
    """Chance that a proposed token is accepted, given that those before it were; measured on own traffic.
    May be left out for one token of mtp: 0.85, as DeepSeek-V3 was published with."""
    draft_cost_ratio: NotNegative | None = None
    """Time of one proposed token over the time of the verifying step; 0 for look-up drafts. May be left out
    for one token of mtp: 0.044, the share of its module in the parameters that a token reads."""
    draft_gib_per_accelerator: NotNegative = 0.0
    """Memory of the draft's weights and cache. [GiB]"""
    method: DraftMethod | None = None
    """What proposes, for exported launch commands: draft-model, eagle, eagle3 or mtp. Without it a plan is
    made but no command."""
    draft_model: Text | None = None
    """Checkpoint of the draft, for exported launch commands; not for mtp, whose draft is in the model's."""

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
    """Memory that keeps the cache of sessions."""

    tier: TierName
    """Which memory."""
    gib_per_accelerator: Positive
    """What sessions may take of it. [GiB]"""
    gb_per_s: Positive | None = None
    """Speed of loading into HBM, an accelerator; not for HBM itself. [GB/s]"""

    @model_validator(mode="after")
    def _needs_speed(self) -> KvTierSpec:
        if (self.tier == "hbm") != (self.gb_per_s is None):
            what = "has no gb_per_s: it is not loaded" if self.tier == "hbm" else "needs gb_per_s"
            raise PydanticCustomError(
                "tier_speed", "the tier {tier} {what}", {"tier": self.tier, "what": what}
            )
        return self


class PersistentKvSpec(Spec):
    """Caches of sessions are kept between requests; the workload's context_tokens hold what they keep."""

    hit_ratio: Ratio
    """Share of requests whose session would be found if all sessions were kept."""
    sessions_per_accelerator: Positive
    """Sessions to keep."""
    tiers: Annotated[list[KvTierSpec], Field(min_length=1)]
    """Where they are kept, fastest first; sessions that no tier holds are lost."""


class OffloadSpec(Spec):
    """Weights and cache outside HBM, streamed in while the step computes."""

    weights_ratio: Ratio = 0.0
    """Share of the weights outside HBM."""
    kv_ratio: Ratio = 0.0
    """Share of the cache of running sequences outside HBM."""
    gb_per_s: Positive
    """Speed of the link, an accelerator and direction. [GB/s]"""

    @model_validator(mode="after")
    def _needs_something(self) -> OffloadSpec:
        if not self.weights_ratio and not self.kv_ratio:
            raise PydanticCustomError("offload", "needs weights_ratio or kv_ratio above 0")
        return self


class ExpertsSpec(Spec):
    """How tokens spread over the experts of a mixture."""

    activation: ActivationModel = "uniform"
    """How many experts a step reaches."""
    log_linear_intercept: float | None = None
    """Experts reached by one token; only for log-linear. [experts]"""
    log_linear_slope: NotNegative | None = None
    """Additional experts for each factor of e in tokens; only for log-linear. [experts]"""
    busiest_expert_ratio: Ratio | None = None
    """Share of routed tokens that the busiest expert receives. Default: an even spread."""
    placement: ExpertPlacement = "mixed"
    """How experts are dealt to expert-parallel ranks: hot with cold, by chance, or by load."""
    balance: ExpertBalance = "auto"
    """Tokens of expert-parallel ranks: evened out by a load balancer (eplb), as they come (none), or even
    (perfect). auto is eplb where more accelerators than a host of eight share the experts, and none
    elsewhere."""
    redundant_experts: Count | None = None
    """Copies of experts that eplb places, on all ranks together. Default: one for eight experts."""

    @model_validator(mode="after")
    def _needs_parameters(self) -> ExpertsSpec:
        given = [each is not None for each in (self.log_linear_intercept, self.log_linear_slope)]
        if given != [self.activation == "log-linear"] * 2:
            raise PydanticCustomError(
                "log_linear",
                "log_linear_intercept and log_linear_slope go with activation: log-linear, and with no other",
            )
        if self.busiest_expert_ratio is None and "placement" in self.model_fields_set:
            raise PydanticCustomError("placement", "placement has no effect without busiest_expert_ratio")
        if self.busiest_expert_ratio is not None and self.balance in {"eplb", "perfect"}:
            raise PydanticCustomError(
                "balance", "busiest_expert_ratio is a skew that is left: it does not go with this balance"
            )
        if self.redundant_experts is not None and self.balance not in {"auto", "eplb"}:
            raise PydanticCustomError(
                "redundant_experts", "redundant_experts are placed by balance: eplb, and by no other"
            )
        return self


class KvTransferSpec(Spec):
    """How a prompt's cache travels from prefill to decode."""

    overlap: bool = False
    """Each layer's cache is sent while later layers compute."""
    gb_per_s: Positive | None = None
    """Link of one accelerator. Default: its network, or its scale-up links if it has no network. [GB/s]"""


class TechniquesSpec(Spec):
    """Serving techniques; all are off by default, but for chunks of long prompts."""

    chunk_tokens: PositiveCount | None = None
    """Chunked prefill: most prompt tokens of an iteration. Left out: prompts are whole, but 8,192 for prompts
    of 32,768 tokens or more under vLLM and SGLang, where chunks follow each other through a pipeline.
    [tokens]"""
    samples_per_prompt: PositiveCount = 1
    """Generations that share one prefill; a request is one prompt with all of them."""
    shared_prefix_tokens: Count = 0
    """Cached tokens that all requests begin with: kept once, and read once by a batch. [tokens]"""
    speculative: SpeculativeSpec | None = None
    """Speculative decoding."""
    persistent_kv: PersistentKvSpec | None = None
    """Session caches kept between requests."""
    offload: OffloadSpec | None = None
    """Weights and cache outside HBM."""
    experts: ExpertsSpec = ExpertsSpec()
    """Routing of mixtures of experts."""
    kv_transfer: KvTransferSpec = KvTransferSpec()
    """From prefill to decode."""
    sampling: Sampling = "greedy"
    """The likeliest token, or one drawn from the most likely ones (top-k, top-p)."""
    expert_overlap: ExpertOverlap = "none"
    """What is computed while tokens travel to experts and back, where that is faster: the other half of the
    batch (two-batch), or the last product of the experts and the shared ones (single-batch, for the way
    back)."""
    image_token_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the new prompt tokens that are images: an encoder computes their patches first."""
