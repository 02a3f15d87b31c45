"""The kernels on a CPU with torch: shapes, times, refusals, processes, and a reference decoder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import accelerator, configurations

torch = pytest.importorskip("torch", reason="needs the extra microbench (torch)")

from fleetplan.fleet.errors import InputError  # noqa: E402
from fleetplan.fleet.inventory import Precision  # noqa: E402
from fleetplan.perfmodel.architecture import (  # noqa: E402
    DenseFfn,
    GroupedQueryAttention,
    LayerGroup,
    LinearAttention,
    LinearVariant,
    ModelArchitecture,
)
from fleetplan.perfmodel.microbench import kernels  # noqa: E402
from fleetplan.perfmodel.microbench.control import Control  # noqa: E402
from fleetplan.perfmodel.microbench.device import CpuDevice, DeviceState, Pinned, open_device  # noqa: E402
from fleetplan.perfmodel.microbench.figures import measured_figures  # noqa: E402
from fleetplan.perfmodel.microbench.gpu import LEAST_EXECUTIONS, CudaDevice  # noqa: E402
from fleetplan.perfmodel.microbench.journal import Journal, Origin  # noqa: E402
from fleetplan.perfmodel.microbench.operands import Arena, Kernel, Operands  # noqa: E402
from fleetplan.perfmodel.microbench.points import Measurement, Point, Unmeasurable, point  # noqa: E402
from fleetplan.perfmodel.microbench.ranks import measure_groups  # noqa: E402
from fleetplan.perfmodel.microbench.reference import ReferenceDecoder  # noqa: E402
from fleetplan.perfmodel.microbench.single import measure_alone  # noqa: E402
from fleetplan.perfmodel.microbench.sites import model_sites  # noqa: E402
from fleetplan.perfmodel.microbench.timing import TimingEffort, is_known, quantile_of, stable_timing  # noqa: E402
from fleetplan.perfmodel.operators import OperatorKind  # noqa: E402
from fleetplan.perfmodel.steps import decode_shape, prefill_shape, step_operators  # noqa: E402

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
    return CpuDevice(threads=1, reuse_bytes=2**18)


def ids(each: object) -> str:
    return each.kind.value if isinstance(each, Point) else str(each)


@pytest.mark.parametrize("each", POINTS, ids=ids)
def test_every_operator_of_one_device_has_a_kernel(each: Point, cpu: CpuDevice) -> None:
    measured = measure_alone(each, cpu, QUICK)
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
        measure_alone(point(OperatorKind.GEMM, "bf16", m=m, n=512, k=512), cpu, QUICK).latency_us
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

    name, where = "clock", torch.device("cpu")

    def __init__(self, times: Iterable[float]) -> None:
        self._times = iter(times)
        self.asked: list[int] = []
        self.arena = Arena(self.where, 2**16)

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
        return DeviceState(power_w=1.0)


NOTHING = Kernel.of(lambda: None)


def test_a_kernel_runs_until_its_time_stands_still() -> None:
    # Three that do not count; then blocks of 64, of which two are of a slow spell.
    blocks = [[9.0] * 3, [4.0, 6.0] * 32, [20.0] * 64, [20.0] * 64, *[[4.0, 6.0] * 32] * 20]
    clock = ScriptedClock(chain.from_iterable(blocks))
    timing = stable_timing(NOTHING, clock, TimingEffort())
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
    timing = stable_timing(NOTHING, noisy, TimingEffort(most_s=0.0))
    # Two blocks, of which quartiles are made.
    assert noisy.asked == [3, 64, 64]
    assert timing.latency_us == (sum(range(4, 68)) + sum(range(68, 132))) / 128


def test_long_executions_are_blocks_of_their_own() -> None:
    class Slow(ScriptedClock):
        def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
            time.sleep(0.002 * repeats)
            return super().times_us(kernel, repeats)

    clock = Slow([1.0] * 1000)
    stable_timing(NOTHING, clock, TimingEffort(most_s=0.01, block_s=0.002))
    assert set(clock.asked[1:]) == {1}


def test_processes_that_measure_together_stop_together() -> None:
    class Agreeing(ScriptedClock):
        def agreed(self, value: float) -> float:
            # Another one was slow: its block had one execution, and its time is up.
            return 100.0

    clock = Agreeing(float(position) for position in range(1, 1000))
    stable_timing(NOTHING, clock, TimingEffort())
    assert clock.asked == [3, 1, 1]


def test_shares_of_a_list() -> None:
    assert [quantile_of([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


def test_weights_are_others_in_every_set_and_activations_are_the_same() -> None:
    arena = Arena(torch.device("cpu"), 2**16)
    sets = Operands(arena).sets(lambda own: (own.warm(8), own.cold(16, 64)))
    # 2 KiB of 64 a set.
    assert len(sets) == 32
    assert len({warm.data_ptr() for warm, _ in sets}) == 1
    places = sorted(cold.data_ptr() for _, cold in sets)
    assert all(later - earlier >= 2048 for earlier, later in pairwise(places))
    assert len({tuple(cold[0, :4].tolist()) for _, cold in sets}) > 20
    # What is large for the arena has memory of its own; without weights one set is enough.
    (one, two) = Operands(arena).sets(lambda own: own.cold(2**9, 2**5))
    assert one.data_ptr() != two.data_ptr()
    assert len(Operands(arena).sets(lambda own: own.warm(8))) == 1
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
    assert measure_alone(each, clock, QUICK).latency_us == 10.0
    # Each part comes after other weights were read.
    cpu._stream = Kernel.of(lambda: calls.append(1))
    cpu.times_us(Kernel([[lambda: calls.append(2), lambda: calls.append(3)]]), 2)
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
    assert measure_alone(each, clock, QUICK, control).control_us == 18.0
    assert measure_alone(each, clock, QUICK).control_us is None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core alone")
def test_threads_stay_on_their_cores_while_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.perfmodel.microbench.device.LOOK_S", 0.0)
    before = os.sched_getaffinity(0)
    used = iter([dict.fromkeys(before, 0), {core: 100 * (core != max(before)) for core in before}])
    monkeypatch.setattr("fleetplan.perfmodel.microbench.device._jiffies_used", lambda: next(used))
    with Pinned(1):
        # The core that nobody used meanwhile.
        assert os.sched_getaffinity(0) == {max(before)}
    assert os.sched_getaffinity(0) == before
    with Pinned(len(before)):
        assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [("tpu", "is not a device; allowed: cpu, cuda"), ("cuda:x", "is not a device")],
)
def test_devices_that_there_are_not(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_device(name)


class FakeCuda:
    """What `CudaDevice` asks of torch.cuda, in words."""

    def __init__(self, count: int, busy: float, capability: tuple[int, int] = (8, 0)) -> None:
        self._count, self._busy, self._capability = count, busy, capability

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = {
            "is_available": lambda: self._count > 0,
            "device_count": lambda: self._count,
            "set_device": lambda device: None,
            "get_device_properties": lambda device: type("P", (), {"name": "GPU", "L2_cache_size": 4096})(),
            "get_device_capability": lambda device: self._capability,
            "power_draw": lambda device: 250_000,
            "clock_rate": lambda device: 1700,
            "temperature": lambda device: 55,
            "utilization": lambda device: self._busy * 100,
            "mem_get_info": lambda device: (8 * 2**30, 80 * 2**30),
            "empty_cache": lambda: None,
            "synchronize": lambda device: None,
        }
        for name, answer in answers.items():
            monkeypatch.setattr(torch.cuda, name, answer)
        monkeypatch.setattr("fleetplan.perfmodel.microbench.gpu.Arena", lambda where, size: CPU_ARENA)


CPU_ARENA = Arena(torch.device("cpu"), 2**12)


def test_a_gpu_that_others_use_is_refused_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(2, busy=0.9).install(monkeypatch)
    with pytest.raises(InputError, match=r"in use for 90% of the time.*--allow-busy"):
        CudaDevice(0)
    device = CudaDevice(1, allow_busy=True)
    assert device.state() == DeviceState(250.0, 1700.0, 55.0, 0.9)
    assert device.free_bytes() == 8 * 2**30
    with pytest.raises(InputError, match="there is no such GPU; allowed: cuda:0, cuda:1"):
        CudaDevice(2)


def test_fp8_needs_a_gpu_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    assert "has no FP8 units" in CudaDevice().missing("fp8")
    FakeCuda(1, busy=0.0, capability=(9, 0)).install(monkeypatch)
    assert CudaDevice().missing("fp8") == ""
    assert "no kernels for int4" in CudaDevice().missing("int4")


def test_other_operators_than_products_run_in_bf16_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0, capability=(9, 0)).install(monkeypatch)
    narrow = Point(OperatorKind.MOE, "fp8", POINTS[6].dims)
    with pytest.raises(Unmeasurable, match="torch has no kernel for moe in fp8"):
        kernels.kernel(narrow, CudaDevice())


def test_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(0, busy=0.0).install(monkeypatch)
    with pytest.raises(InputError, match="this torch sees no GPU; --device cpu"):
        open_device("cuda")


def test_nothing_of_nvml_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)

    def missing(device: object) -> float:
        raise ModuleNotFoundError("pynvml")

    monkeypatch.setattr(torch.cuda, "power_draw", missing)
    assert CudaDevice().state() == DeviceState(None, 1700.0, 55.0, 0.0)


def test_a_figure_that_a_part_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.9).install(monkeypatch)

    class NVMLError_NotSupported(Exception):  # noqa: N801, N818 - as NVML's Python package names it
        pass

    def unsupported(device: object) -> float:
        raise NVMLError_NotSupported("Not Supported")

    # A part of a GPU (MIG) says nothing of its use: it is not refused.
    monkeypatch.setattr(torch.cuda, "utilization", unsupported)
    assert CudaDevice().state() == DeviceState(250.0, 1700.0, 55.0, None)

    def broken(device: object) -> float:
        raise KeyError("a bug")

    monkeypatch.setattr(torch.cuda, "utilization", broken)
    with pytest.raises(KeyError):
        CudaDevice()


def test_a_gpu_that_failed_for_good_ends_the_run_and_skips_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    device, each = CudaDevice(), POINTS[0]

    def fails(*_: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    monkeypatch.setitem(kernels.MAKERS, each.kind, lambda asked, operands: [fails])
    monkeypatch.setattr(torch.cuda, "synchronize", fails)
    message = "GPU failed for good at gemm bf16 .*illegal memory access.*the same command continues"
    with pytest.raises(InputError, match=message):
        kernels.kernel(each, device)


def test_memory_that_torch_keeps_is_given_back_before_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    device, kept = CudaDevice(), [40 * 2**30]
    monkeypatch.setattr(torch.cuda, "empty_cache", kept.clear)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda where: (60 * 2**30 - sum(kept), 80 * 2**30))
    assert device.free_bytes() == 60 * 2**30


class FakeGraphs:
    """Events, streams and graphs of torch.cuda, in words: an execution takes so long."""

    def __init__(self, captures: bool, execution_ms: float = 1.0) -> None:
        self.captures = captures
        self.execution_ms = execution_ms
        self.now_ms = 0.0
        self.graphs: list[int] = []
        self._inside = False

    def run(self) -> None:
        if self._inside and not self.captures:
            raise RuntimeError("operation not permitted when stream is capturing")
        if self._inside:
            self.graphs[-1] += 1
        else:
            self.now_ms += self.execution_ms

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        outer = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                self.at_ms = 0.0

            def record(self) -> None:
                self.at_ms = outer.now_ms

            def elapsed_time(self, later: Event) -> float:
                return later.at_ms - self.at_ms

        class Graph:
            place = 0

            def replay(self) -> None:
                outer.now_ms += outer.graphs[self.place] * outer.execution_ms

        @contextmanager
        def capturing(graph: Graph, **options: object) -> Iterator[None]:
            graph.place, outer._inside = len(outer.graphs), True
            outer.graphs.append(0)
            try:
                yield
            finally:
                outer._inside = False

        class Stream:
            def wait_stream(self, other: object) -> None:
                pass

        for name, answer in {
            "Event": Event,
            "CUDAGraph": Graph,
            "graph": capturing,
            "Stream": lambda where: Stream(),
            "stream": lambda stream: nullcontext(),
            "current_stream": lambda where: Stream(),
        }.items():
            monkeypatch.setattr(torch.cuda, name, answer)


@pytest.mark.parametrize("captures", [True, False])
def test_a_gpu_runs_a_graph_of_many_executions(captures: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    device, fake = CudaDevice(), FakeGraphs(captures)
    fake.install(monkeypatch)
    kernel = Kernel.of(fake.run)
    # One execution takes 1 ms, in a graph or one after another where it cannot be captured.
    assert device.times_us(kernel, 3) == [1000.0] * 3
    other = Kernel.of(fake.run)
    device.times_us(other, 1)
    assert device.times_us(kernel, 2) == [1000.0] * 2
    assert len(fake.graphs) == 2


@pytest.mark.parametrize(("execution_ms", "executions"), [(0.003, LEAST_EXECUTIONS), (0.5, 4), (30.0, 1)])
def test_a_graph_executes_a_kernel_often_that_is_over_soon(
    execution_ms: float, executions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    device, fake = CudaDevice(), FakeGraphs(captures=True, execution_ms=execution_ms)
    fake.install(monkeypatch)
    device.times_us(Kernel.of(fake.run), 1)
    assert fake.graphs == [executions]


def test_a_graph_that_runs_out_of_memory_leaves_the_point_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ScriptedClock([1.0] * 100)

    def too_large(kernel: Kernel, repeats: int) -> list[float]:
        if len(clock.asked) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        clock.asked.append(repeats)
        return [1.0] * repeats

    monkeypatch.setattr(clock, "times_us", too_large)
    with pytest.raises(Unmeasurable, match="ran out of memory"):
        measure_alone(POINTS[0], clock, QUICK)


def test_figures_of_a_cpu(cpu: CpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.perfmodel.microbench.figures.COPY_BYTES", 2**22)
    monkeypatch.setattr("fleetplan.perfmodel.microbench.figures.PRODUCT_SIDE", {"cpu": 128})
    found = measured_figures(cpu, QUICK)
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

    measure_groups(asked, "cpu", QUICK, keep)
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
    decoder = ReferenceDecoder(DECODER, torch.device("cpu"), 8)
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
        ReferenceDecoder(
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
    journal.add(measure_alone(POINTS[-1], clock, QUICK))
    (found,) = Journal(tmp_path, Origin("x", "clock", "torch", 1)).measured.values()
    assert (found.power_w, found.clock_mhz) == (1.0, None)
