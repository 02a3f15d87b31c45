"""The kernels on a CPU with torch: shapes, times, refusals, processes, and a reference decoder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.lazily import Lazily
from tests.perfmodel.fakes import accelerator, configurations
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
from fleetplan.perfmodel.microbench.control import Control
from fleetplan.perfmodel.microbench.journal import Journal, Origin
from fleetplan.perfmodel.microbench.points import Measurement, Point, Unmeasurable, point
from fleetplan.perfmodel.microbench.sites import model_sites
from fleetplan.perfmodel.microbench.timing import TimingEffort, is_known, quantile_of, stable_timing
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.steps import decode_shape, prefill_shape, step_operators

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.device import CpuDevice, DeviceState
    from fleetplan.perfmodel.microbench.operands import Kernel

pytestmark = needs_torch

torch: Any = Lazily("torch")
device, figures, kernels, operands, ranks, reference, single = (
    Lazily(f"fleetplan.perfmodel.microbench.{name}")
    for name in ("device", "figures", "kernels", "operands", "ranks", "reference", "single")
)

QUICK = TimingEffort(most_s=0.02, block_s=0.002)
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


class ScriptedClock:
    """A device whose times are given."""

    name = "clock"

    def __init__(self, times: Iterable[float]) -> None:
        self.where = torch.device("cpu")
        self._times = iter(times)
        self.asked: list[int] = []
        self.arena = operands.Arena(self.where, 2**16)

    def missing(self, dtype: str) -> str:
        return ""

    def free_bytes(self) -> float:
        return 1e9

    def agreed(self, value: float) -> float:
        return value

    def works(self) -> bool:
        return True

    def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
        self.asked.append(repeats)
        return [next(self._times) for _ in range(repeats)]

    def state(self) -> DeviceState:
        return device.DeviceState(power_w=1.0)


def nothing() -> Kernel:
    """A kernel that does nothing."""
    kernel: Kernel = operands.Kernel.of(lambda: None)
    return kernel


def test_a_kernel_runs_until_its_time_stands_still() -> None:
    # Three that do not count; then blocks of 64, of which two are of a slow spell.
    blocks = [[9.0] * 3, [4.0, 6.0] * 32, [20.0] * 64, [20.0] * 64, *[[4.0, 6.0] * 32] * 20]
    clock = ScriptedClock(chain.from_iterable(blocks))
    timing = stable_timing(nothing(), clock, TimingEffort())
    # The mean of a block, which no execution took; the spell is left out.
    assert timing.latency_us == 5.0
    assert clock.asked == [3, *[64] * 8]
    assert timing.repeats == 8 * 64


def test_a_time_is_known_when_blocks_no_longer_change_it() -> None:
    assert not is_known([5.0] * 7)
    assert is_known([5.0] * 8)
    rising = [5.0 + step for step in range(20)]
    assert not is_known(rising)
    assert is_known([*rising, *[14.5] * 3])


def test_what_is_known_when_the_time_is_up_counts() -> None:
    noisy = ScriptedClock(float(1 + position) for position in range(10_000_000))
    timing = stable_timing(nothing(), noisy, TimingEffort(most_s=0.0))
    # Two blocks, of which quartiles are made.
    assert noisy.asked == [3, 64, 64]
    assert timing.latency_us == (sum(range(4, 68)) + sum(range(68, 132))) / 128


def test_long_executions_are_blocks_of_their_own() -> None:
    class Slow(ScriptedClock):
        def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
            time.sleep(0.002 * repeats)
            return super().times_us(kernel, repeats)

    clock = Slow([1.0] * 1000)
    stable_timing(nothing(), clock, TimingEffort(most_s=0.01, block_s=0.002))
    assert set(clock.asked[1:]) == {1}


def test_processes_that_measure_together_stop_together() -> None:
    class Agreeing(ScriptedClock):
        def agreed(self, value: float) -> float:
            # Another one was slow: its block had one execution, and its time is up.
            return 100.0

    clock = Agreeing(float(position) for position in range(1, 1000))
    stable_timing(nothing(), clock, TimingEffort())
    assert clock.asked == [3, 1, 1]


def test_shares_of_a_list() -> None:
    assert [quantile_of([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


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


def test_the_control_is_run_before_and_after_a_point() -> None:
    # The choice of either kernel takes three executions; then four blocks of either.
    blocks = [[1.0] * 6, [4.0, 6.0] * 8, [8.0] * 8, [99.0] * 8, [7.0] * 32, [9.0] * 10_000]
    clock = ScriptedClock(chain.from_iterable(blocks))
    control = Control(clock)
    clock.asked.clear()
    # Of the first, halfway between means of 5 and 8; of the second, 7.
    assert control.time_us() == 6.5 + 7.0
    assert clock.asked == [8] * 8
    each = point(OperatorKind.GEMM, "bf16", m=1, n=16, k=16)
    # The longer one of before and after.
    assert single.measure_alone(each, clock, QUICK, control).control_us == 18.0
    assert single.measure_alone(each, clock, QUICK).control_us is None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core alone")
def test_threads_stay_on_their_cores_while_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.perfmodel.microbench.device.LOOK_S", 0.0)
    before = os.sched_getaffinity(0)
    used = iter([dict.fromkeys(before, 0), {core: 100 * (core != max(before)) for core in before}])
    monkeypatch.setattr("fleetplan.perfmodel.microbench.device._jiffies_used", lambda: next(used))
    with device.Pinned(1):
        # The core that nobody used meanwhile.
        assert os.sched_getaffinity(0) == {max(before)}
    assert os.sched_getaffinity(0) == before
    with device.Pinned(len(before)):
        assert os.sched_getaffinity(0) == before


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
