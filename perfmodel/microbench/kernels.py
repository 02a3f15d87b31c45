"""The operators in torch: for each, the library's best kernel with operands of the asked shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 - the name that torch's own documentation has

from fleetplan.perfmodel.microbench.device import Device, Run
from fleetplan.perfmodel.microbench.points import Point, Unmeasurable
from fleetplan.perfmodel.microbench.timing import WARM_UPS
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, OperatorKind
from fleetplan.perfmodel.work import work

Maker = Callable[[Point, torch.device], Sequence[Run]]
"""Makes the kernels that may run a point."""

SPARE_MEMORY_RATIO: Final = 0.8
"""Part of the free memory that operands may take."""

NORM_WIDTH: Final = 1024
"""Elements of a row of the norms that stand for small kernels."""


def kernel(point: Point, device: Device) -> Run:
    """Return the fastest kernel for a point, with its operands.

    Raises
    ------
    Unmeasurable
        The device has no units for the data type or not the memory, or torch has no kernel.
    """
    reason = device.missing(point.dtype)
    if reason:
        raise Unmeasurable(reason)
    if point.dtype != "bf16" and point.kind is not OperatorKind.GEMM:
        raise Unmeasurable(f"torch has no kernel for {point.kind} in {point.dtype}")
    maker = MAKERS.get(point.kind)
    if maker is None:
        raise Unmeasurable(f"no kernel of torch stands for {point.kind}")
    needed, free = operand_bytes(point), device.free_bytes() * SPARE_MEMORY_RATIO
    if needed > free:
        raise Unmeasurable(f"needs {needed / 2**30:.1f} GiB of operands, {free / 2**30:.1f} GiB are free")
    try:
        return _fastest(maker(point, device.where), device)
    except torch.OutOfMemoryError as error:
        raise Unmeasurable("ran out of memory") from error


def operand_bytes(point: Point) -> float:
    """Memory that the operands of a point take, in bytes."""
    import numpy as np  # noqa: PLC0415  (the rest of this module speaks torch)

    dims = {name: np.array([value]) for name, value in point.dims}
    for name in ("prefix_tokens", "stride"):
        dims.setdefault(name, np.zeros(1, dtype=np.int64))
    done = work(point.kind, point.dtype, dims)
    return float((done.weight_bytes + done.kv_bytes + done.activation_bytes)[0])


def _fastest(runs: Sequence[Run], device: Device) -> Run:
    """The fastest of several kernels; those that this device cannot run are passed over."""
    found: list[tuple[float, int, Run]] = []
    problem = ""
    for position, run in enumerate(runs):
        try:
            run()
            found.append((min(device.times_us(run, WARM_UPS)), position, run))
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            # What torch raises for a kernel or dtype that the device lacks; said below if none is left.
            problem = str(error).splitlines()[0]
    if not found:
        raise Unmeasurable(f"torch cannot run it here: {problem}")
    return min(found)[2]


def _bf16(where: torch.device, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float32, device=where).to(torch.bfloat16)


def _gemm(point: Point, where: torch.device) -> Sequence[Run]:
    inputs, weights = _bf16(where, point["m"], point["k"]), _bf16(where, point["n"], point["k"])
    if point.dtype == "bf16":
        return [lambda: F.linear(inputs, weights)]
    narrow = torch.float8_e4m3fn
    left, right, one = inputs.to(narrow), weights.to(narrow).t(), torch.ones((), device=where)
    return [lambda: torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)]


def _batched_gemm(point: Point, where: torch.device) -> Sequence[Run]:
    left = _bf16(where, point["groups"], point["m"], point["k"])
    right = _bf16(where, point["groups"], point["k"], point["n"])
    return [lambda: torch.bmm(left, right)]


def prompt_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Causal attention; tensors of shape (batch, heads, tokens, width), fewer heads of keys and values."""
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)


def prompt_attention_repeated(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Return the same, with keys and values repeated for every query head."""
    times = queries.shape[1] // keys.shape[1]
    wide = (each.repeat_interleave(times, dim=1) for each in (keys, values))
    return F.scaled_dot_product_attention(queries, *wide, is_causal=True)


def token_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attention of one new token a sequence, whose query heads are the rows of their key-value head."""
    batch, heads, _, width = queries.shape
    grouped = queries.reshape(batch, keys.shape[1], heads // keys.shape[1], width)
    return F.scaled_dot_product_attention(grouped, keys, values).reshape(batch, heads, 1, -1)


def token_attention_gqa(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return the same, with the sharing of heads left to the library."""
    return F.scaled_dot_product_attention(queries, keys, values, enable_gqa=True)


def _no_window(point: Point) -> None:
    if point["window"]:
        raise Unmeasurable("torch has no kernel for attention with a window")


def _prefill(point: Point, where: torch.device) -> Sequence[Run]:
    _no_window(point)
    batch, tokens, width = point["batch"], point["new_tokens"], point["head_dim"]
    queries = _bf16(where, batch, point["heads"], tokens, width)
    keys, values = (_bf16(where, batch, point["kv_heads"], tokens, width) for _ in range(2))
    return [
        lambda: prompt_attention(queries, keys, values),
        lambda: prompt_attention_repeated(queries, keys, values),
    ]


def _decode(point: Point, where: torch.device) -> Sequence[Run]:
    _no_window(point)
    batch, tokens, width = point["batch"], point["context_tokens"], point["head_dim"]
    queries = _bf16(where, batch, point["heads"], 1, width)
    keys, values = (_bf16(where, batch, point["kv_heads"], tokens, width) for _ in range(2))
    return [
        lambda: token_attention(queries, keys, values),
        lambda: token_attention_gqa(queries, keys, values),
    ]


def _latent_prefill(point: Point, where: torch.device) -> Sequence[Run]:
    shape = point["batch"], point["heads"], point["new_tokens"]
    queries, keys = (_bf16(where, *shape, point["key_head_dim"]) for _ in range(2))
    values = _bf16(where, *shape, point["value_head_dim"])
    return [lambda: F.scaled_dot_product_attention(queries, keys, values, is_causal=True)]


def _latent_decode(point: Point, where: torch.device) -> Sequence[Run]:
    width = point["kv_rank"] + point["rope_head_dim"]
    queries = _bf16(where, point["batch"], 1, point["heads"], width)
    cache = _bf16(where, point["batch"], 1, point["context_tokens"], width)
    latent = cache[..., : point["kv_rank"]]
    return [lambda: F.scaled_dot_product_attention(queries, cache, latent)]


def _experts(point: Point, where: torch.device) -> Sequence[Run]:
    """Gate-up, activation and down of the experts on one accelerator, for tokens that chose at random."""
    held, width = point["experts"] // point["moe_ep"], point["intermediate"] // point["moe_tp"]
    chooser = torch.Generator().manual_seed(0)
    chosen = torch.stack(
        [
            torch.randperm(point["experts"], generator=chooser)[: point["top_k"]]
            for _ in range(point["tokens"])
        ]
    )
    counts = torch.bincount(chosen.flatten(), minlength=point["experts"])[:held]
    rows = [_bf16(where, int(count), point["hidden"]) for count in counts]
    gate_up = _bf16(where, held, 2 * width, point["hidden"])
    down = _bf16(where, held, point["hidden"], width)
    joined, ends = torch.cat(rows), torch.cumsum(counts, 0).to(device=where, dtype=torch.int32)

    def one_by_one() -> None:
        for expert, inputs in enumerate(rows):
            if inputs.shape[0]:
                gate, up = F.linear(inputs, gate_up[expert]).chunk(2, dim=-1)
                F.linear(F.silu(gate) * up, down[expert])

    def grouped() -> None:
        gate, up = torch._grouped_mm(joined, gate_up.transpose(1, 2), offs=ends).chunk(2, dim=-1)
        torch._grouped_mm(F.silu(gate) * up, down.transpose(1, 2), offs=ends)

    return [one_by_one, grouped] if where.type == "cuda" else [one_by_one]


def norm_with_residual(
    stream: torch.Tensor, update: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add a block's output to the residual stream, and norm the sum for the next block."""
    summed = stream + update
    return summed, F.rms_norm(summed, (summed.shape[-1],), weight, 1e-6)


def _small(point: Point, where: torch.device) -> Sequence[Run]:
    # The residual stream and a block's output are read, the sum and its norm written: four elements each.
    elements = point["traffic_bytes"] / ACTIVATION_BYTES / 4
    width = int(min(NORM_WIDTH, max(1, elements)))
    rows = max(1, round(elements / width))
    stream, update = (_bf16(where, rows, width) for _ in range(2))
    weight = _bf16(where, width)
    return [lambda: norm_with_residual(stream, update, weight)]


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
"""What makes the kernels of an operator; collectives run in `fleetplan.perfmodel.microbench.ranks`."""
