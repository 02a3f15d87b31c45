"""Serving techniques of a service: what is switched on, and with which figures.

Every switch is off where it is left out, but for chunks of long prompts. `fleetplan.perfmodel` gives them
their effect.
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
"""Chance that the one token is accepted that a multi-token-prediction module proposes: the lower end of 85 to
90 % over several topics. Source: DeepSeek-V3 technical report (arXiv 2412.19437), section 5.4.3. Tokens
beyond the first are accepted less often, so a preset for them would promise too much."""

MTP_COST_RATIO: Final = 0.044
"""Time of that token over the step: the parameters that the module reads for it, 1.61 billion (its layer with
nine experts, the projection of two states, the LM head), over the 37 billion of the model. Source: the
config.json of deepseek-ai/DeepSeek-V3; its time was not measured."""


LONG_PROMPT_TOKENS: Final = 32_768
"""Prompts from this length on are cut into chunks where the framework pipelines them, and searched with
context parallelism. [tokens] Source: vllm-project/vllm pull request 26864, whose authors see context
parallelism gain from inputs of 32K on."""

LONG_PROMPT_CHUNK_TOKENS: Final = 8192
"""Chunks of long prompts where the service says nothing. [tokens] Source: the default of a server of vLLM
0.33 on parts of 70 to 160 GiB (EngineArgs.get_batch_defaults), and of SGLang 0.5.23 on parts of 60 to 160 GiB
(arg_groups/memory_hook.py)."""

PIPELINED_CHUNKS: Final = {
    "vllm": "vLLM 0.33, v1/core/sched/scheduler.py: with a pipeline all tokens of a prompt may be scheduled "
    "before its first chunk is finished",
    "sglang": "docs.sglang.io/advanced_features/pipeline_parallelism: chunks of one request are computed by "
    "different stages at once",
}
"""Frameworks in which chunks of one prompt follow each other through a pipeline, with the source. Not known
of TensorRT-LLM: there each chunk waits for the one before."""


@dataclass(frozen=True, slots=True)
class SpeculativeDecoding:
    """A draft proposes tokens, one step of the model verifies them.

    Attributes
    ----------
    draft_tokens : int
        Tokens proposed a step.
    acceptance_ratio : float
        Chance that a proposed token is accepted, given that those before it were.
    draft_cost_ratio : float
        Time of one proposed token over the time of the verifying step.
    draft_gib_per_accelerator : float
        Memory of the draft's weights and cache. [GiB]
    method : {"draft-model", "eagle", "eagle3", "mtp"} or None
        What proposes; None where nothing says, and the plan has no launch command.
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
    """Memory that keeps the cache of sessions between their requests.

    Attributes
    ----------
    tier : {"hbm", "dram", "flash"}
        Which memory.
    gib_per_accelerator : float
        What sessions may take of it. [GiB]
    gb_per_s : float or None
        Speed of loading into HBM, an accelerator; None for HBM itself. [GB/s]
    """

    tier: TierName
    gib_per_accelerator: float
    gb_per_s: float | None


@dataclass(frozen=True, slots=True)
class PersistentKv:
    """Caches of sessions are kept between requests.

    Attributes
    ----------
    hit_ratio : float
        Share of requests whose session would be found if all sessions were kept.
    sessions_per_accelerator : float
        Sessions that are kept.
    tiers : tuple[KvTier, ...]
        Where they are kept, fastest first; sessions that no tier holds are lost.
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
        Speed of the link, an accelerator and direction. [GB/s]
    """

    weights_ratio: float
    kv_ratio: float
    gb_per_s: float


@dataclass(frozen=True, slots=True)
class ExpertRouting:
    """How tokens spread over the experts of a mixture.

    Attributes
    ----------
    activation : {"uniform", "balanced", "log-linear"}
        How many experts a step reaches.
    log_linear_intercept, log_linear_slope : float or None
        Experts reached = intercept + slope * ln(tokens); log-linear alone. [experts]
    busiest_expert_ratio : float or None
        Share of routed tokens that the busiest expert receives; None is an even spread.
    placement : {"mixed", "random", "sorted"}
        How experts are dealt to expert-parallel ranks: hot with cold, by chance, or by load.
    balance : {"auto", "eplb", "none", "perfect"}
        How tokens spread over expert-parallel ranks: by a load balancer with redundant experts, as they come,
        or evenly. auto is eplb where more accelerators than a host of eight share the experts, else none.
    redundant_experts : int or None
        Copies of experts that the load balancer places; None is one for eight experts.
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
    """How a prompt's cache travels from prefill to decode.

    Attributes
    ----------
    overlap : bool
        Each layer's cache is sent while later layers compute.
    gb_per_s : float or None
        Link of one accelerator; None is its network, or its scale-up links without one. [GB/s]
    """

    overlap: bool = False
    gb_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Techniques:
    """Techniques of a service; equal ones compare and hash alike.

    Attributes
    ----------
    chunk_tokens : int or None
        Most prompt tokens of an iteration of a rank; None computes prompts whole. [tokens]
    samples_per_prompt : int
        Generations that share one prefill. A request is one prompt with all of them.
    shared_prefix_tokens : int
        Cached tokens that all requests begin with: kept once, and read once by a whole batch. [tokens]
    speculative, persistent_kv, offload
        None where switched off.
    experts : ExpertRouting
        Of mixtures; without effect on dense models.
    kv_transfer : KvTransfer
        Of disaggregated serving.
    sampling : {"greedy", "top-p"}
        Whether the likeliest token is taken, or one is drawn from the most likely ones.
    expert_overlap : {"none", "two-batch", "single-batch"}
        What is computed while tokens travel to experts and back, where that is faster.
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
    """One way to serve a service: another model, precision or prompt compression, with its quality.

    Attributes
    ----------
    name : str
        What placements call it.
    model : str
        As in a service.
    weights, kv : str
        Precision.
    quality : float
        Score on the service's own scale.
    input_tokens_ratio : float
        New prompt tokens over those of the workload: below 1 with context compression.
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
