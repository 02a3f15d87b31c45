"""Operators in torch: the library's best kernel for each, with operands of the requested shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 - the name that torch's own documentation has
from torch.nn.attention import SDPBackend, sdpa_kernel

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.perfmodel.microbench.device import Device
from fleetplan.perfmodel.microbench.layer_parts import (
    gated,
    heads_of,
    norm_with_residual,
    rotary_table,
    write_cache,
)
from fleetplan.perfmodel.microbench.operands import Kernel, Operands, Run
from fleetplan.perfmodel.microbench.points import Point, Unmeasurable
from fleetplan.perfmodel.microbench.timing import WARM_UPS
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, OperatorKind, work

Maker = Callable[[Point, Operands], Sequence[Run | Sequence[Run]]]
"""Makes the kernels that may run a point, with one set of operands; several runs are parts of one kernel."""

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Attention of queries, keys and values: one of the kernels that are measured."""

GPU_ATTENTION: Final = (
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
)
"""Libraries of attention kernels for GPUs. Torch chooses by shape alone, and not always the fastest."""

OUT_OF_MEMORY: Final = "ran out of memory"

SPARE_MEMORY_RATIO: Final = 0.8
"""Part of the free memory that operands may take."""

SMALL_HIDDEN: Final = 1024
SMALL_HEADS: Final = 8
SMALL_KV_HEADS: Final = 2
"""The dense layer whose small kernels are measured: hidden size, query heads, heads of keys and of values."""

SMALL_INTERMEDIATE_RATIO: Final = 3.5
"""Its width of the feed-forward block over the hidden size; all of them in the proportions of Llama 3 8B."""

OPERATORS_OF_SMALL: Final = 3
"""Elementwise operators of a dense layer: the norm before attention (with rotary positions and the write to
the cache), the norm before the feed-forward block, and its activation."""


def kernel(point: Point, device: Device) -> Kernel:
    """Return the fastest kernel for a point, with its operands.

    Raises
    ------
    Unmeasurable
        The device has no units for the data type or not the memory, or torch has no kernel.
    InputError
        The device failed for good.
    """
    reason = device.missing(point.dtype)
    if reason:
        raise Unmeasurable(reason)
    if point.dtype != "bf16" and point.kind is not OperatorKind.GEMM:
        raise Unmeasurable(f"torch has no kernel for {point.kind} in {point.dtype}")
    maker = MAKERS.get(point.kind)
    if maker is None:
        raise Unmeasurable(f"torch has no kernel for {point.kind}")
    needed, free = operand_bytes(point), device.free_bytes() * SPARE_MEMORY_RATIO
    if needed > free:
        raise Unmeasurable(f"needs {needed / 2**30:.1f} GiB of operands, {free / 2**30:.1f} GiB are free")
    operators = OPERATORS_OF_SMALL if point.kind is OperatorKind.ELEMENTWISE else 1
    try:
        sets = Operands(device.arena).sets(lambda operands: maker(point, operands))
        kernels = [
            Kernel([[each] if callable(each) else each for each in alternative], operators)
            for alternative in zip(*sets, strict=True)
        ]
        return fastest_kernel(kernels, device, point.label)
    except torch.OutOfMemoryError as error:
        raise Unmeasurable(OUT_OF_MEMORY) from error


def operand_bytes(point: Point) -> float:
    """Return the memory that the operands of a point take, in bytes."""
    import numpy as np  # noqa: PLC0415  (the rest of this module speaks torch)

    dims = {name: np.array([value]) for name, value in point.dims}
    for name in ("prefix_tokens", "stride"):
        dims.setdefault(name, np.zeros(1, dtype=np.int64))
    done = work(point.kind, point.dtype, dims)
    return float((done.weight_bytes + done.kv_bytes + done.activation_bytes)[0])


def fastest_kernel(kernels: Sequence[Kernel], device: Device, label: str) -> Kernel:
    """Return the fastest of several kernels; those that this device cannot run are passed over.

    Raises
    ------
    Unmeasurable
        The device can run none of them.
    InputError
        The device failed for good.
    """
    found: list[tuple[float, int, Kernel]] = []
    problem = ""
    for position, each in enumerate(kernels):
        try:
            # Torch warns of what a library lacks before it raises.
            with warnings.catch_warnings(action="ignore"):
                for part in each.next_parts():
                    part()
                found.append((min(device.times_us(each, WARM_UPS)), position, each))
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            # Errors that torch raises for a kernel or dtype that the device lacks; reported below if none is
            # left.
            problem = str(error).splitlines()[0]
            if not device.works():
                hint = "the same command continues after the known points"
                message = f"{device.name} failed permanently at {label}: {problem}"
                raise InputError([Issue("plan optables measure", 0, 0, "", message, hint)]) from error
    if not found:
        raise Unmeasurable(f"torch cannot run it on this device: {problem}")
    return min(found)[2]


def _gemm(point: Point, operands: Operands) -> Sequence[Run]:
    inputs = operands.warm(point["m"], point["k"])
    if point.dtype == "bf16":
        weights = operands.cold(point["n"], point["k"])
        return [lambda: F.linear(inputs, weights)]
    narrow = torch.float8_e4m3fn
    left = operands.once(lambda: inputs.to(narrow))
    one = operands.once(lambda: torch.ones((), device=operands.where))
    right = operands.cold(point["n"], point["k"], dtype=narrow).t()

    def product(fast: bool) -> Run:
        options = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16, "use_fast_accum": fast}
        return lambda: torch._scaled_mm(left, right, **options)

    return [product(fast=True), product(fast=False)]


def _batched_gemm(point: Point, operands: Operands) -> Sequence[Run]:
    left = operands.warm(point["groups"], point["m"], point["k"])
    right = operands.cold(point["groups"], point["k"], point["n"])
    return [lambda: torch.bmm(left, right)]


def prompt_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Causal attention; tensors of shape (batch, heads, tokens, width), fewer heads of keys and values."""
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)


def prompt_attention_repeated(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Return the same, with keys and values repeated for every query head."""
    times = queries.shape[1] // keys.shape[1]
    wide_keys, wide_values = (each.repeat_interleave(times, dim=1) for each in (keys, values))
    return F.scaled_dot_product_attention(queries, wide_keys, wide_values, is_causal=True)


def token_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attention of one new token a sequence, whose query heads are the rows of their key-value head."""
    batch, heads, _, width = queries.shape
    grouped = queries.reshape(batch, keys.shape[1], heads // keys.shape[1], width)
    return F.scaled_dot_product_attention(grouped, keys, values).reshape(batch, heads, 1, -1)


def token_attention_gqa(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return the same, with the sharing of heads left to the library."""
    return F.scaled_dot_product_attention(queries, keys, values, enable_gqa=True)


def prompt_attentions(where: torch.device) -> list[Attend]:
    """Return the kernels for attention of prompts on a device."""
    return _by_library([prompt_attention, prompt_attention_repeated], where)


def token_attentions(where: torch.device) -> list[Attend]:
    """Return the kernels for attention of new tokens on a device."""
    return _by_library([token_attention, token_attention_gqa], where)


def _by_library(attends: list[Attend], where: torch.device) -> list[Attend]:
    """Yield each as torch chooses, and on a GPU with each library."""
    libraries = GPU_ATTENTION if where.type == "cuda" else ()
    return [*attends, *(_with(library, each) for library in libraries for each in attends)]


def _with(library: SDPBackend, attend: Attend) -> Attend:
    def attend_by_library(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(library):
            return attend(queries, keys, values)

    return attend_by_library


def _no_window(point: Point) -> None:
    if point["window"]:
        raise Unmeasurable("torch has no kernel for attention with a window")


def _prefill(point: Point, operands: Operands) -> Sequence[Run]:
    _no_window(point)
    batch, tokens, width = point["batch"], point["new_tokens"], point["head_dim"]
    # As the projections before it leave them.
    queries, keys, values = (
        operands.warm(batch, tokens, point[heads], width).transpose(1, 2)
        for heads in ("heads", "kv_heads", "kv_heads")
    )
    return [partial(attend, queries, keys, values) for attend in prompt_attentions(operands.where)]


def _decode(point: Point, operands: Operands) -> Sequence[Run]:
    _no_window(point)
    batch, tokens, width = point["batch"], point["context_tokens"], point["head_dim"]
    queries = operands.warm(batch, point["heads"], 1, width)
    keys, values = (operands.cold(batch, point["kv_heads"], tokens, width) for _ in range(2))
    return [partial(attend, queries, keys, values) for attend in token_attentions(operands.where)]


def _latent_prefill(point: Point, operands: Operands) -> Sequence[Run]:
    shape = point["batch"], point["heads"], point["new_tokens"]
    queries, keys = (operands.warm(*shape, point["key_head_dim"]) for _ in range(2))
    values = operands.warm(*shape, point["value_head_dim"])
    attends = _by_library([partial(F.scaled_dot_product_attention, is_causal=True)], operands.where)
    return [partial(attend, queries, keys, values) for attend in attends]


def _latent_decode(point: Point, operands: Operands) -> Sequence[Run]:
    width = point["kv_rank"] + point["rope_head_dim"]
    queries = operands.warm(point["batch"], 1, point["heads"], width)
    cache = operands.cold(point["batch"], 1, point["context_tokens"], width)
    latent = cache[..., : point["kv_rank"]]
    attends = _by_library([F.scaled_dot_product_attention], operands.where)
    return [partial(attend, queries, cache, latent) for attend in attends]


def _tokens_of_experts(point: Point) -> torch.Tensor:
    """Return the tokens of each expert on one accelerator, where all of them chose at random."""
    held = point["experts"] // point["moe_ep"]
    chooser = torch.Generator().manual_seed(0)
    chosen = torch.stack(
        [
            torch.randperm(point["experts"], generator=chooser)[: point["top_k"]]
            for _ in range(point["tokens"])
        ]
    )
    return torch.bincount(chosen.flatten(), minlength=point["experts"])[:held]


def _experts(point: Point, operands: Operands) -> Sequence[Run]:
    """Gate-up, activation and down of the experts on one accelerator."""
    counts = operands.once(lambda: _tokens_of_experts(point))
    held, width = len(counts), point["intermediate"] // point["moe_tp"]
    joined = operands.warm(int(counts.sum()), point["hidden"])
    rows = joined.split(counts.tolist())
    gate_up = operands.cold(held, 2 * width, point["hidden"])
    down = operands.cold(held, point["hidden"], width)
    ends = torch.cumsum(counts, 0).to(device=operands.where, dtype=torch.int32)

    def one_by_one() -> None:
        for expert, inputs in enumerate(rows):
            if inputs.shape[0]:
                F.linear(gated(F.linear(inputs, gate_up[expert])), down[expert])

    def grouped() -> None:
        wide = torch._grouped_mm(joined, gate_up.transpose(1, 2), offs=ends)
        torch._grouped_mm(gated(wide), down.transpose(1, 2), offs=ends)

    # Older versions of torch have no grouped product, and CPUs no fast one.
    fused = operands.where.type == "cuda" and hasattr(torch, "_grouped_mm")
    return [one_by_one, grouped] if fused else [one_by_one]


def _small(point: Point, operands: Operands) -> Sequence[Sequence[Run]]:
    """All small kernels of a dense layer, which are three elementwise operators: a third counts for one."""
    # Elements that a token reads and writes: four of the hidden size and two of the projections; four; three
    # of the feed-forward width.
    projected_ratio = (SMALL_HEADS + 2 * SMALL_KV_HEADS) / SMALL_HEADS
    per_hidden = 4 + 2 * projected_ratio + 4 + 3 * SMALL_INTERMEDIATE_RATIO
    elements = OPERATORS_OF_SMALL * point["traffic_bytes"] / ACTIVATION_BYTES / per_hidden
    # Heads of an even width, narrower if there is less than a token of the layer.
    head_dim = 2 * max(1, round(min(SMALL_HIDDEN, elements) / SMALL_HEADS / 2))
    hidden = SMALL_HEADS * head_dim
    rows = max(1, round(elements / hidden))
    wide = int(2 * SMALL_INTERMEDIATE_RATIO * hidden)
    stream, update = operands.warm(1, rows, hidden), operands.warm(1, rows, hidden)
    projected = operands.warm(1, rows, (SMALL_HEADS + 2 * SMALL_KV_HEADS) * head_dim)
    gate_up = operands.warm(1, rows, wide)
    weight = operands.warm(hidden)
    cache = (
        operands.warm(1, SMALL_KV_HEADS, rows, head_dim),
        operands.warm(1, SMALL_KV_HEADS, rows, head_dim),
    )
    turns = operands.once(lambda: rotary_table(rows, head_dim, operands.where))

    def before_attention() -> None:
        _, keys, values = heads_of(projected, SMALL_HEADS, SMALL_KV_HEADS, turns)
        write_cache(cache, keys, values)

    def norm() -> None:
        norm_with_residual(stream, update, weight)

    # In a step each comes after a product or attention.
    return [[norm, before_attention, norm, lambda: gated(gate_up)]]


MAKERS: Final[dict[OperatorKind, Maker]] = {
    OperatorKind.GEMM: _gemm,
    OperatorKind.BATCHED_GEMM: _batched_gemm,
    OperatorKind.PREFILL_ATTENTION: _prefill,
    OperatorKind.DECODE_ATTENTION: _decode,
    OperatorKind.LATENT_PREFILL_ATTENTION: _latent_prefill,
    OperatorKind.LATENT_DECODE_ATTENTION: _latent_decode,
    OperatorKind.MOE: _experts,
    OperatorKind.ELEMENTWISE: _small,
}
"""Builders of the kernels of an operator; collectives run in `fleetplan.perfmodel.microbench.ranks`."""
