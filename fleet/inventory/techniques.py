"""Serving techniques of a service, with their figures.

All techniques are off by default, except chunks of long prompts. `fleetplan.perfmodel` models them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

TierName: TypeAlias = Literal["hbm", "dram", "flash"]
ActivationModel: TypeAlias = Literal["uniform", "balanced", "log-linear"]
Sampling: TypeAlias = Literal["greedy", "top-p"]
ExpertPlacement: TypeAlias = Literal["mixed", "random", "sorted"]
ExpertOverlap: TypeAlias = Literal["none", "two-batch", "single-batch"]
DraftMethod: TypeAlias = Literal["draft-model", "eagle", "eagle3", "mtp"]
ExpertBalance: TypeAlias = Literal["auto", "eplb", "none", "perfect"]


MTP_ACCEPTANCE_RATIO: Final = 0.85
"""Probability that the single token of a multi-token-prediction module is accepted: the lower end of 85 to 90
% over several topics. Source: DeepSeek-V3 technical report (arXiv 2412.19437), section 5.4.3. Further tokens
are accepted less often, so a preset for them would be too optimistic."""

MTP_COST_RATIO: Final = 0.044
"""Time of that token divided by the step: the parameters that the module reads for it, 1.61 billion (its
layer with nine experts, the projection of two states, the LM head), over the 37 billion of the model. Source:
the config.json of deepseek-ai/DeepSeek-V3; its time was not measured."""


LONG_PROMPT_TOKENS: Final = 32_768
"""Shortest prompts that are cut into chunks if the framework pipelines them, and searched with context
parallelism. [tokens] Source: vllm-project/vllm pull request 26864, whose authors see context parallelism gain
from inputs of 32K."""

LONG_PROMPT_CHUNK_TOKENS: Final = 8192
"""Default chunks of long prompts. [tokens] Source: the default of a server of vLLM 0.33 on parts of 70 to 160
GiB (EngineArgs.get_batch_defaults), and of SGLang 0.5.23 on parts of 60 to 160 GiB
(arg_groups/memory_hook.py)."""

PIPELINED_CHUNKS: Final = {
    "vllm": "vLLM 0.33, v1/core/sched/scheduler.py: with a pipeline all tokens of a prompt may be scheduled "
    "before its first chunk is finished",
    "sglang": "docs.sglang.io/advanced_features/pipeline_parallelism: chunks of one request are computed by "
    "different stages at once",
}
"""Frameworks in which chunks of one prompt follow each other through a pipeline, with sources. TensorRT-LLM
is not known to do so: there, each chunk waits for the previous one."""


@dataclass(frozen=True, slots=True)
class SpeculativeDecoding:
    """Speculative decoding: a draft proposes tokens, one step of the model verifies them.

    Attributes
    ----------
    draft_tokens : int
        Drafted tokens per step.
    acceptance_ratio : float
        Probability that a drafted token is accepted if those before it were.
    draft_cost_ratio : float
        Time of one drafted token divided by the time of the verifying step.
    draft_gib_per_accelerator : float
        Memory of the draft's weights and cache. [GiB]
    method : {"draft-model", "eagle", "eagle3", "mtp"} or None
        Draft method; None if not stated, and the plan then has no launch command.
    draft_model : str or None
        Checkpoint of the draft; None for mtp, whose draft is part of the model's.
    """

    draft_tokens: int
    acceptance_ratio: float
    draft_cost_ratio: float
    draft_gib_per_accelerator: float = 0.0
    method: DraftMethod | None = None
    draft_model: str | None = None


@dataclass(frozen=True, slots=True)
class KvTier:
    """A memory tier that keeps the caches of sessions between their requests.

    Attributes
    ----------
    tier : {"hbm", "dram", "flash"}
        Kind of memory.
    gib_per_accelerator : float
        Memory that sessions may use. [GiB]
    gb_per_s : float or None
        Bandwidth of loads into HBM, per accelerator; None for HBM itself. [GB/s]
    """

    tier: TierName
    gib_per_accelerator: float
    gb_per_s: float | None


@dataclass(frozen=True, slots=True)
class PersistentKv:
    """Caches of sessions that are kept between requests.

    Attributes
    ----------
    hit_ratio : float
        Share of requests that would find their session if all sessions were kept.
    sessions_per_accelerator : float
        Sessions to keep.
    tiers : tuple[KvTier, ...]
        Memory tiers, fastest first; sessions that no tier holds are lost.
    """

    hit_ratio: float
    sessions_per_accelerator: float
    tiers: tuple[KvTier, ...]


@dataclass(frozen=True, slots=True)
class Offload:
    """Weights and cache outside HBM, streamed in while the step computes.

    Attributes
    ----------
    weights_ratio, kv_ratio : float
        Share of the weights, and of the cache of running sequences, that stays outside.
    gb_per_s : float
        Bandwidth of the link, per accelerator and direction. [GB/s]
    """

    weights_ratio: float
    kv_ratio: float
    gb_per_s: float


@dataclass(frozen=True, slots=True)
class ExpertRouting:
    """Routing of tokens to the experts of a mixture.

    Attributes
    ----------
    activation : {"uniform", "balanced", "log-linear"}
        Model of the number of experts that a step activates.
    log_linear_intercept, log_linear_slope : float or None
        Active experts = intercept + slope * ln(tokens); for log-linear only. [experts]
    busiest_expert_ratio : float or None
        Share of routed tokens that the busiest expert receives; None is an even spread.
    placement : {"mixed", "random", "sorted"}
        Assignment of experts to expert-parallel ranks: mixed (hottest to the least loaded), random, or sorted
        by load.
    balance : {"auto", "eplb", "none", "perfect"}
        Load balance of expert-parallel ranks: a load balancer with redundant experts, none, or perfect. auto
        is eplb if more accelerators than a host of eight share the experts, else none.
    redundant_experts : int or None
        Copies of experts that the load balancer places; None is one per eight experts.
    """

    activation: ActivationModel = "uniform"
    log_linear_intercept: float | None = None
    log_linear_slope: float | None = None
    busiest_expert_ratio: float | None = None
    placement: ExpertPlacement = "mixed"
    balance: ExpertBalance = "auto"
    redundant_experts: int | None = None


@dataclass(frozen=True, slots=True)
class KvTransfer:
    """Transfer of a prompt's KV cache from prefill to decode.

    Attributes
    ----------
    overlap : bool
        Each layer's cache is sent while later layers compute.
    gb_per_s : float or None
        Bandwidth of the link per accelerator; None is its network, or its scale-up links without one. [GB/s]
    """

    overlap: bool = False
    gb_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Techniques:
    """Techniques of a service, compared and hashed by value.

    Attributes
    ----------
    chunk_tokens : int or None
        Largest number of prompt tokens in an iteration of a rank; None computes prompts whole. [tokens]
    samples_per_prompt : int
        Generations that share one prefill. A request is one prompt with all of them.
    shared_prefix_tokens : int
        Cached tokens that all requests begin with: kept once, and read once per batch. [tokens]
    speculative, persistent_kv, offload
        None if off.
    experts : ExpertRouting
        Routing in mixtures of experts; no effect on dense models.
    kv_transfer : KvTransfer
        Transfers in disaggregated serving.
    sampling : {"greedy", "top-p"}
        greedy takes the most likely token, top-p samples from the most likely ones.
    expert_overlap : {"none", "two-batch", "single-batch"}
        Computation that hides dispatch and combine, if that is faster.
    image_token_ratio : float
        Share of the new prompt tokens that are images, which an encoder computes first.
    """

    chunk_tokens: int | None = None
    samples_per_prompt: int = 1
    shared_prefix_tokens: int = 0
    speculative: SpeculativeDecoding | None = None
    persistent_kv: PersistentKv | None = None
    offload: Offload | None = None
    experts: ExpertRouting = field(default_factory=ExpertRouting)
    kv_transfer: KvTransfer = field(default_factory=KvTransfer)
    sampling: Sampling = "greedy"
    expert_overlap: ExpertOverlap = "none"
    image_token_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelVariant:
    """A variant of a service: another model, precision or prompt compression, with its quality.

    Attributes
    ----------
    name : str
        Name in placements.
    model : str
        As in a service.
    weights, kv : str
        Precision.
    quality : float
        Score on a scale of the user's choice.
    input_tokens_ratio : float
        New prompt tokens divided by those of the workload: below 1 with context compression.
    checkpoint : str or None
        As in a service.
    """

    name: str
    model: str
    weights: str
    kv: str
    quality: float
    input_tokens_ratio: float
    checkpoint: str | None = None
