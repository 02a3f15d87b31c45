"""The kernels on a CPU with torch: shapes, refusals, processes, and a reference decoder."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.perfmodel.fakes import accelerator, configurations
from tests.perfmodel.microbench.scripted_clock import (
    QUICK,
    ScriptedClock,
    device,
    figures,
    kernels,
    operands,
    ranks,
    reference,
    single,
    torch,
)
from tests.perfmodel.microbench.torch_needed import needs_torch

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    GroupedQueryAttention,
    LayerGroup,
    LinearAttention,
    LinearVariant,
    ModelArchitecture,
)
from fleetplan.perfmodel.microbench.journal import Journal, Origin
from fleetplan.perfmodel.microbench.points import Measurement, Point, Unmeasurable, point
from fleetplan.perfmodel.microbench.sites import model_sites
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.steps import decode_shape, prefill_shape, step_operators

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.device import CpuDevice
    from fleetplan.perfmodel.microbench.operands import Kernel

pytestmark = needs_torch
ATTENTION = {"heads": 4, "kv_heads": 2, "head_dim": 16, "window": 0}
POINTS = [
    point(OperatorKind.GEMM, "bf16", m=5, n=32, k=16),
    point(OperatorKind.BATCHED_GEMM, "bf16", m=5, groups=3, n=8, k=16),
    point(OperatorKind.PREFILL_ATTENTION, "bf16", batch=2, new_tokens=7, **ATTENTION),
    point(OperatorKind.DECODE_ATTENTION, "bf16", batch=2, context_tokens=9, **ATTENTION),
    point(
        OperatorKind.LATENT_PREFILL_ATTENTION,
        "bf16",
        batch=1,
        new_tokens=6,
        heads=2,
        key_head_dim=24,
        value_head_dim=16,
    ),
    point(
        OperatorKind.LATENT_DECODE_ATTENTION,
        "bf16",
        batch=2,
        context_tokens=6,
        heads=2,
        kv_rank=16,
        rope_head_dim=8,
    ),
    point(
        OperatorKind.MOE, "bf16", tokens=6, hidden=16, intermediate=8, top_k=2, experts=8, moe_tp=2, moe_ep=2
    ),
    point(OperatorKind.ELEMENTWISE, "bf16", traffic_bytes=65536),
]


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return device.CpuDevice(threads=1, reuse_bytes=2**18)


def ids(each: object) -> str:
    return each.kind.value if isinstance(each, Point) else str(each)


@pytest.mark.parametrize("each", POINTS, ids=ids)
def test_every_operator_of_one_device_has_a_kernel(each: Point, cpu: CpuDevice) -> None:
    measured = single.measure_alone(each, cpu, QUICK)
    assert measured.point == each
    assert measured.latency_us > 0
    assert measured.repeats >= 2
    assert kernels.operand_bytes(each) > 0


def test_attention_kernels_agree() -> None:
    queries, keys, values = (torch.randn(2, heads, 5, 16) for heads in (4, 2, 2))
    whole = kernels.prompt_attention(queries, keys, values)
    torch.testing.assert_close(whole, kernels.prompt_attention_repeated(queries, keys, values))
    last = kernels.token_attention(queries[:, :, -1:], keys, values)
    torch.testing.assert_close(last, kernels.token_attention_gqa(queries[:, :, -1:], keys, values))
    # The last query of a causal prompt sees what a generated token sees.
    torch.testing.assert_close(last[:, :, 0], whole[:, :, -1])


def test_larger_products_take_longer(cpu: CpuDevice) -> None:
    small, large = (
        single.measure_alone(point(OperatorKind.GEMM, "bf16", m=m, n=512, k=512), cpu, QUICK).latency_us
        for m in (8, 2048)
    )
    assert large > 3 * small


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        (point(OperatorKind.GEMM, "fp8", m=1, n=16, k=16), "has no kernels for fp8"),
        (point(OperatorKind.GEMM, "bf16", m=2**20, n=2**20, k=2**20), "GiB of operands"),
        (
            point(
                OperatorKind.DECODE_ATTENTION, "bf16", batch=1, context_tokens=9, **{**ATTENTION, "window": 4}
            ),
            "no kernel for attention with a window",
        ),
        (
            point(
                OperatorKind.UNGATED_MOE,
                "bf16",
                tokens=1,
                hidden=1,
                intermediate=1,
                top_k=1,
                experts=1,
                moe_tp=1,
                moe_ep=1,
            ),
            "torch has no kernel for ungated_moe",
        ),
    ],
)
def test_what_cannot_run_says_why(each: Point, reason: str, cpu: CpuDevice) -> None:
    with pytest.raises(Unmeasurable, match=reason):
        kernels.kernel(each, cpu)


def test_kernels_that_fail_are_passed_over_and_running_out_of_memory_is_named(
    cpu: CpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = POINTS[0]

    def makes(*runs: object) -> None:
        monkeypatch.setitem(kernels.MAKERS, each.kind, lambda asked, where: runs)

    def fails() -> None:
        raise RuntimeError("no such kernel\nand more")

    def too_large() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    makes(fails, lambda: 1)
    ((part,),) = kernels.kernel(each, cpu).sets
    assert part() == 1
    makes(fails)
    with pytest.raises(Unmeasurable, match=r"torch cannot run it on this device: no such kernel$"):
        kernels.kernel(each, cpu)
    makes(too_large)
    with pytest.raises(Unmeasurable, match="ran out of memory"):
        kernels.kernel(each, cpu)


def test_weights_are_others_in_every_set_and_activations_are_the_same() -> None:
    arena = operands.Arena(torch.device("cpu"), 2**16)
    sets = operands.Operands(arena).sets(lambda own: (own.warm(8), own.cold(16, 64)))
    # 2 KiB of 64 a set.
    assert len(sets) == 32
    assert len({warm.data_ptr() for warm, _ in sets}) == 1
    places = sorted(cold.data_ptr() for _, cold in sets)
    assert all(later - earlier >= 2048 for earlier, later in pairwise(places))
    assert len({tuple(cold[0, :4].tolist()) for _, cold in sets}) > 20
    # What is large for the arena has memory of its own; without weights one set is enough.
    (one, two) = operands.Operands(arena).sets(lambda own: own.cold(2**9, 2**5))
    assert one.data_ptr() != two.data_ptr()
    assert len(operands.Operands(arena).sets(lambda own: own.warm(8))) == 1
    assert arena.take(torch.float8_e4m3fn, 4, 4).dtype is torch.float8_e4m3fn


def test_a_gemm_reads_weights_that_it_has_not_read_for_long(cpu: CpuDevice) -> None:
    found = kernels.kernel(point(OperatorKind.GEMM, "bf16", m=1, n=128, k=128), cpu)
    # 32 KiB of 256 each.
    assert len(found.sets) == 8
    sums = {float(part().float().sum()) for (part,) in found.sets}
    assert len(sums) == 8


def test_small_kernels_of_a_layer_are_three_operators(cpu: CpuDevice) -> None:
    each = point(OperatorKind.ELEMENTWISE, "bf16", traffic_bytes=2**20)
    (parts,) = kernels.kernel(each, cpu).sets
    assert len(parts) == 4
    calls: list[int] = []
    clock = ScriptedClock([30.0] * 10_000)
    assert single.measure_alone(each, clock, QUICK).latency_us == 10.0
    # Each part comes after other weights were read.
    cpu._stream = operands.Kernel.of(lambda: calls.append(1))
    cpu.times_us(operands.Kernel([[lambda: calls.append(2), lambda: calls.append(3)]]), 2)
    assert calls == [1, 2, 1, 3, 1, 2, 1, 3]


@pytest.mark.parametrize(
    ("name", "message"),
    [("tpu", "is not a device; allowed: cpu, cuda"), ("cuda:x", "is not a device")],
)
def test_devices_that_there_are_not(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        device.open_device(name)


def test_a_graph_that_runs_out_of_memory_leaves_the_point_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ScriptedClock([1.0] * 100)

    def too_large(kernel: Kernel, repeats: int) -> list[float]:
        if len(clock.asked) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        clock.asked.append(repeats)
        return [1.0] * repeats

    monkeypatch.setattr(clock, "times_us", too_large)
    with pytest.raises(Unmeasurable, match="ran out of memory"):
        single.measure_alone(POINTS[0], clock, QUICK)


def test_figures_of_a_cpu(cpu: CpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.perfmodel.microbench.figures.COPY_BYTES", 2**22)
    monkeypatch.setattr("fleetplan.perfmodel.microbench.figures.PRODUCT_SIDE", {"cpu": 128})
    found = figures.measured_figures(cpu, QUICK)
    assert min(found.bf16_tflops, found.memory_gb_per_s, found.memory_gib) > 0
    assert found.host_to_device_gb_per_s is None


def test_collectives_run_in_processes_of_their_own() -> None:
    asked = [
        point(OperatorKind.ALL_REDUCE, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.ALL_GATHER, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.REDUCE_SCATTER, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.ALL_TO_ALL, "bf16", message_bytes=4096, ranks=2),
        point(OperatorKind.SEND_RECV, "bf16", message_bytes=4096),
    ]
    found: dict[Point, object] = {}

    def keep(result: Measurement | tuple[Point, str]) -> None:
        key = result.point if isinstance(result, Measurement) else result[0]
        found[key] = result

    ranks.measure_groups(asked, "cpu", QUICK, keep)
    assert list(found) == asked
    for each in (asked[0], asked[1], asked[4]):
        result = found[each]
        assert isinstance(result, Measurement), result
        assert result.latency_us > 0
    # What gloo cannot do is left out with its name.
    for result in found.values():
        assert isinstance(result, Measurement) or result[1].startswith("gloo: ")


DECODER = ModelArchitecture(
    name="small",
    model_type="llama",
    hidden_size=64,
    vocab_size=128,
    tied_embeddings=False,
    groups=(LayerGroup(2, GroupedQueryAttention(4, 2, 16, 16), DenseFfn(96)),),
)


def test_a_generated_token_of_the_reference_continues_its_prompt() -> None:
    decoder = reference.ReferenceDecoder(DECODER, torch.device("cpu"), 8)
    prompt = torch.randint(128, (2, 6))
    whole, cache = decoder.prefill(prompt)
    _, shorter = decoder.prefill(prompt[:, :-1])
    room = [
        tuple(torch.cat([each, torch.zeros_like(each[:, :, :1])], dim=2) for each in layer)
        for layer in shorter
    ]
    torch.testing.assert_close(decoder.decode(prompt[:, -1:], room), whole, rtol=0.1, atol=0.02)
    assert cache[0][0].shape == (2, 2, 6, 16)
    recurrent = LinearAttention(LinearVariant.MAMBA2, 1, 1, 1, 1, 1)
    with pytest.raises(ValueError, match="grouped-query attention"):
        reference.ReferenceDecoder(
            ModelArchitecture("m", "llama", 8, 8, False, (LayerGroup(1, recurrent, DenseFfn(8)),)),
            torch.device("cpu"),
            8,
        )


def test_the_sites_of_a_decoder_are_all_that_its_steps_look_up() -> None:
    sites = {(site.kind, site.fixed) for site in model_sites([(DECODER, Precision("bf16", "bf16"))], (1,))}
    dtypes_of = {kind for kind, _ in sites}
    asked = configurations(("TP1",), (3,), input_tokens=11, context_tokens=17)
    from fleetplan.perfmodel.steps import part_dtypes  # noqa: PLC0415

    dtypes = part_dtypes(DECODER, Precision("bf16", "bf16"))
    for shape in (prefill_shape(asked), decode_shape(asked)):
        for operator in step_operators(DECODER, dtypes, shape):
            if (
                operator.kind in dtypes_of
                and operator.kind is not OperatorKind.ELEMENTWISE
                and operator.count.any()
            ):
                fixed = {name: int(values[0]) for name, values in operator.dims.items()}
                assert any(
                    kind is operator.kind and dict(held).items() <= fixed.items() for kind, held in sites
                ), operator.name
    assert np.isfinite(accelerator().hbm_gib)


def test_a_journal_keeps_what_the_device_says(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Origin("x", "clock", "torch", 1))
    clock = ScriptedClock([5.0] * 100_000)
    journal.add(single.measure_alone(POINTS[-1], clock, QUICK))
    (found,) = Journal(tmp_path, Origin("x", "clock", "torch", 1)).measured.values()
    assert (found.power_w, found.clock_mhz) == (1.0, None)
