"""Memory use of a configuration on its fullest accelerator, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import BYTES_PER_GIB
from fleetplan.perfmodel.architecture import (
    Attention,
    CompressedAttention,
    DenseFfn,
    GroupedQueryAttention,
    LinearAttention,
    ModelArchitecture,
    MoeFfn,
    index_bytes_per_token,
)
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, BYTES_PER_ELEMENT, FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps.experts import placed_experts
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape
from fleetplan.perfmodel.steps.sharding import (
    activation_width,
    cache_elements_per_token,
    state_bytes_per_sequence,
    weights_per_accelerator,
)

KvResidency = Literal["all", "microbatch"]
"""Whether the KV cache of all pipeline micro-batches is resident, or of one alone (as the paper counts)."""

FRAMEWORK_RESERVE_RATIO: Final = 0.10
"""Part of the memory that serving frameworks leave free: CUDA context, allocator, fragmentation.
Source: vLLM, `gpu_memory_utilization`, documented default 0.9; TensorRT-LLM,
`free_gpu_memory_fraction`, documented default 0.9."""

RESERVE_OF_FREE_FRAMEWORKS: Final = frozenset({"trtllm"})
"""Frameworks whose reserve is a part of what weights and activations leave, not of the whole memory. Source:
TensorRT-LLM, `KvCacheConfig.free_gpu_memory_fraction`. Its perf-overview serves Llama-70B in FP8 on one H100
with a cache that 0.9 of the whole memory has no room for."""

COMMUNICATION_BUFFER_GIB: Final = 0.5
"""Buffers of the collectives of an accelerator that has peers. [GiB]
Source: NCCL keeps `NCCL_BUFFSIZE` = 4 MiB (documented default) a channel, direction and communicator: 2 x 32
channels for each of two communicators."""

LOGIT_BYTES: Final = 4.0
"""Frameworks sample from FP32 logits. [bytes]"""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of the fullest accelerator of each configuration, each array of shape (n_configs,). [GiB].

    Attributes
    ----------
    weights_gib, kv_gib, activations_gib, communication_gib : FloatArray
        Memory by content.
    reserve_ratio : float
        Part of the memory that is left to the framework.
    reserve_of_free : bool
        Whether it is a part of what all but the cache leaves, or of the capacity.
    capacity_gib : float
        Memory of the accelerator.
    slots_gib : FloatArray or float
        With a separate pool of slots for states, the memory that this pool needs beside a cache of its size;
        `kv_gib` is the other side (`steps.state_slots`): both fit if the larger one fits.
    """

    weights_gib: FloatArray
    kv_gib: FloatArray
    activations_gib: FloatArray
    communication_gib: FloatArray
    reserve_ratio: float
    reserve_of_free: bool
    capacity_gib: float
    slots_gib: FloatArray | float = 0.0

    @property
    def reserve_gib(self) -> FloatArray:
        """Left to the framework, shape (n_configs,). [GiB]."""
        used = self.weights_gib + self.activations_gib + self.communication_gib
        free = np.maximum(0.0, self.capacity_gib - used)
        whole = np.full_like(free, self.capacity_gib)
        return self.reserve_ratio * (free if self.reserve_of_free else whole)

    @property
    def total_gib(self) -> FloatArray:
        """All of it, with the reserve, shape (n_configs,). [GiB]."""
        return self.without_kv_gib + np.maximum(self.kv_gib, self.slots_gib)

    @property
    def without_kv_gib(self) -> FloatArray:
        """All of it but the KV cache, shape (n_configs,). [GiB]."""
        return self.weights_gib + self.activations_gib + self.communication_gib + self.reserve_gib

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether it fits, shape (n_configs,)."""
        return self.total_gib <= self.capacity_gib

    @property
    def weights_fit(self) -> NDArray[np.bool_]:
        """Whether the weights alone fit beside the reserve, shape (n_configs,)."""
        return self.weights_gib + self.reserve_gib <= self.capacity_gib


def memory_use(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    accelerator: Accelerator,
    shape: StepShape,
    sequences: IntArray,
    kv_tokens: IntArray,
    kv_residency: KvResidency = "all",
) -> MemoryUse:
    """Return the memory that configurations keep.

    Parameters
    ----------
    architecture, dtypes, accelerator
        Model, data types, and accelerator.
    shape : StepShape
        The largest step, for activations.
    sequences : IntArray
        Sequences of one attention-DP rank in one micro-batch whose cache is kept, shape (n_configs,).
    kv_tokens : IntArray
        Tokens that the cache keeps of each, shape (n_configs,). [tokens]
    kv_residency : {"all", "microbatch"}
        Whether all micro-batches in flight keep their cache, or one alone.
    """
    layouts = shape.layouts
    in_flight = layouts.pp if kv_residency == "all" else np.ones_like(layouts.pp)
    kv = in_flight * sequences * kv_gib_per_sequence(architecture, dtypes, layouts, kv_tokens)
    has_peers = layouts.accelerators > 1
    encoder = 0 if architecture.vision is None else architecture.vision.weights * ACTIVATION_BYTES
    return MemoryUse(
        # The first stage holds the encoder of images, in BF16.
        weights_gib=encoder / layouts.tp / BYTES_PER_GIB
        + weights_gib(architecture, dtypes, layouts, even=accelerator.sram_only),
        kv_gib=kv,
        activations_gib=_activations_gib(architecture, shape),
        communication_gib=np.where(has_peers & (not accelerator.sram_only), COMMUNICATION_BUFFER_GIB, 0.0),
        reserve_ratio=0.0 if accelerator.sram_only else FRAMEWORK_RESERVE_RATIO,
        reserve_of_free=False,
        capacity_gib=accelerator.hbm_gib,
    )


def weights_gib(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    layouts: Layouts,
    even: bool = False,
    redundant_experts: IntArray | int = 0,
) -> FloatArray:
    """Return the weights of the fullest accelerator, shape (n_configs,). [GiB].

    A stage has whole layers, the mean of the model's; the first stage also has the embedding and the last the
    LM head, so the fullest stage of a pipeline has one of the two. With `even`, a compiler places every
    matrix freely, and all accelerators have the mean. `redundant_experts` are copies in addition to one of
    each expert.
    """
    per_layer: FloatArray = np.zeros(layouts.pp.shape)
    for group in architecture.groups:
        share = group.count / architecture.layer_count
        if group.attention is not None:
            weights = weights_per_accelerator(architecture.hidden_size, group.attention, layouts.tp)
            per_layer += share * weights * BYTES_PER_ELEMENT[dtypes.attention]
        per_layer += share * _ffn_bytes(architecture, dtypes, group.ffn, layouts, redundant_experts)
    matrix = architecture.vocab_size * architecture.hidden_size * BYTES_PER_ELEMENT[dtypes.other]
    one_stage = matrix if architecture.tied_embeddings else 2 * matrix
    if even:
        all_layers = per_layer * architecture.layer_count + one_stage / layouts.tp
        mean: FloatArray = all_layers / layouts.pp / BYTES_PER_GIB
        return mean
    ends = np.where(layouts.pp > 1, matrix, one_stage) / layouts.tp
    total: FloatArray = (per_layer * _stage_layers(architecture, layouts) + ends) / BYTES_PER_GIB
    return total


def kv_gib_per_sequence(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    layouts: Layouts,
    kv_tokens: IntArray | FloatArray,
    with_states: bool = True,
) -> FloatArray:
    """Return the cache of one sequence on one accelerator of a stage, shape (n_configs,). [GiB].

    Context parallelism shares out the tokens. Layers with a window keep that many, and those of compressed
    attention entries of all tokens as well; a key-value head is never split, so from `kv_heads` accelerators
    on each holds a whole one. Without `with_states`, recurrent states do not count.
    """
    per_layer = np.zeros(layouts.pp.shape)
    size = BYTES_PER_ELEMENT[dtypes.kv]
    for group in architecture.groups:
        if group.attention is None or (isinstance(group.attention, LinearAttention) and not with_states):
            continue
        cache = _cache_bytes(group.attention, size, layouts, -(-kv_tokens // layouts.cp))
        each = cache + state_bytes_per_sequence(group.attention, layouts.tp)
        # Not in place: the layouts and the tokens of a cross product have different shapes.
        per_layer = per_layer + group.count / architecture.layer_count * each
    total: FloatArray = per_layer * _stage_layers(architecture, layouts) / BYTES_PER_GIB
    return total


def state_gib_per_sequence(architecture: ModelArchitecture, layouts: Layouts) -> FloatArray:
    """Return the recurrent states of a sequence on one accelerator, shape (n_configs,). [GiB]."""
    per_layer = np.zeros(layouts.pp.shape)
    for group in architecture.groups:
        if isinstance(group.attention, LinearAttention):
            share = group.count / architecture.layer_count
            per_layer = per_layer + share * state_bytes_per_sequence(group.attention, layouts.tp)
    total: FloatArray = per_layer * _stage_layers(architecture, layouts) / BYTES_PER_GIB
    return total


def _cache_bytes(
    attention: Attention, size: float, layouts: Layouts, tokens: IntArray | FloatArray
) -> FloatArray:
    """Return the cache of tokens of a sequence in one layer on one accelerator, in bytes."""
    if isinstance(attention, CompressedAttention):
        return attention.cache_bytes(tokens, size)
    window = attention.window if isinstance(attention, GroupedQueryAttention) else 0
    kept = np.minimum(tokens, window) if window else tokens
    token = cache_elements_per_token(attention, layouts.tp) * size + index_bytes_per_token(attention)
    cache: FloatArray = kept * token
    return cache


def resident_sequences(one: MemoryUse, many: MemoryUse, many_sequences: IntArray) -> FloatArray:
    """Return the sequences of one rank and micro-batch that fit, shape (n_configs,).

    Cache, slots and activations each grow in a straight line with them. Below one where not even one fits.

    Parameters
    ----------
    one, many : MemoryUse
        Memory with one sequence, and with `many_sequences` of them, at least two.
    """
    pools = [(one.kv_gib, many.kv_gib)]
    if np.any(many.slots_gib):
        pools.append((np.asarray(one.slots_gib), np.asarray(many.slots_gib)))
    found = []
    for alone, together in pools:
        first = one.without_kv_gib + alone
        each_gib = (many.without_kv_gib + together - first) / (many_sequences - 1)
        found.append(1.0 + (one.capacity_gib - first) / each_gib)
    fitting: FloatArray = np.minimum.reduce(found)
    return fitting


def _stage_layers(architecture: ModelArchitecture, layouts: Layouts) -> IntArray:
    return -(-architecture.layer_count // layouts.pp)


def _ffn_bytes(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    ffn: DenseFfn | MoeFfn | None,
    layouts: Layouts,
    redundant_experts: IntArray | int,
) -> FloatArray:
    hidden = architecture.hidden_size
    match ffn:
        case None:
            return np.zeros(layouts.pp.shape)
        case DenseFfn():
            return ffn.weights(hidden) * BYTES_PER_ELEMENT[dtypes.dense_ffn] / layouts.ffn_tp
        case MoeFfn():
            routed = ffn.routed_weights(hidden) * BYTES_PER_ELEMENT[dtypes.routed_experts]
            shared = ffn.shared_weights(hidden) * BYTES_PER_ELEMENT[dtypes.shared_experts]
            router = ffn.router_weights(hidden) * BYTES_PER_ELEMENT[dtypes.other]
            placed = placed_experts(ffn.experts, np.asarray(redundant_experts), layouts.ep)
            held = placed / layouts.ep / ffn.experts
            mixture: FloatArray = routed * held / layouts.ffn_tp + shared / layouts.ffn_tp + router
            return mixture


def _activations_gib(architecture: ModelArchitecture, shape: StepShape) -> FloatArray:
    # The residual streams and a normed copy live through a layer, beside the widest of its blocks.
    layouts, hidden = shape.layouts, architecture.hidden_size
    widest = np.zeros(shape.rank_tokens.shape)
    for group in architecture.groups:
        if group.attention is not None:
            width = activation_width(group.attention, layouts.tp)
            widest = np.maximum(widest, shape.local_tokens * width)
        match group.ffn:
            case DenseFfn() as dense:
                block = 3 * dense.intermediate_size / layouts.ffn_tp + hidden
                widest = np.maximum(widest, shape.ffn_tokens * block)
            case MoeFfn() as moe:
                routed = shape.stage_tokens * moe.top_k / layouts.ep
                block = 3 * moe.intermediate_size / layouts.ffn_tp + hidden
                widest = np.maximum(widest, routed * block)
    logits = (shape.prefill_sequences + shape.decode_sequences) * architecture.vocab_size * LOGIT_BYTES
    kept = architecture.residual_streams + architecture.residual_blocks
    streams = (1 + kept) * shape.local_tokens * hidden
    total: FloatArray = (ACTIVATION_BYTES * (streams + widest) + logits) / BYTES_PER_GIB
    return total
