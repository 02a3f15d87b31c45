"""GPUs on fakes of torch.cuda: refusals, what NVML does not say, memory, graphs, and attention by library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from tests.lazily import Lazily
from tests.perfmodel.microbench.torch_needed import needs_torch

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.microbench.points import Unmeasurable, point
from fleetplan.perfmodel.operators import OperatorKind

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.operands import Arena

pytestmark = needs_torch

torch: Any = Lazily("torch")
devices, gpu, kernels, operands = (
    Lazily(f"fleetplan.perfmodel.microbench.{name}") for name in ("device", "gpu", "kernels", "operands")
)

PRODUCT = point(OperatorKind.GEMM, "bf16", m=5, n=32, k=16)
EXPERTS_IN_FP8 = point(
    OperatorKind.MOE, "fp8", tokens=6, hidden=16, intermediate=8, top_k=2, experts=8, moe_tp=2, moe_ep=2
)


class FakeCuda:
    """Stand-in for the parts of torch.cuda that `CudaDevice` uses."""

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
        monkeypatch.setattr("fleetplan.perfmodel.microbench.gpu.Arena", lambda where, size: cpu_arena())


@cache
def cpu_arena() -> Arena:
    arena: Arena = operands.Arena(torch.device("cpu"), 2**12)
    return arena


def test_a_gpu_that_others_use_is_refused_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(2, busy=0.9).install(monkeypatch)
    with pytest.raises(InputError, match=r"in use for 90% of the time.*--allow-busy"):
        gpu.CudaDevice(0)
    device = gpu.CudaDevice(1, allow_busy=True)
    assert device.state() == devices.DeviceState(250.0, 1700.0, 55.0, 0.9)
    assert device.free_bytes() == 8 * 2**30
    with pytest.raises(InputError, match="there is no such GPU; allowed: cuda:0, cuda:1"):
        gpu.CudaDevice(2)


def test_fp8_needs_a_gpu_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    assert "has no FP8 units" in gpu.CudaDevice().missing("fp8")
    FakeCuda(1, busy=0.0, capability=(9, 0)).install(monkeypatch)
    assert gpu.CudaDevice().missing("fp8") == ""
    assert "no kernels for int4" in gpu.CudaDevice().missing("int4")


def test_other_operators_than_products_run_in_bf16_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0, capability=(9, 0)).install(monkeypatch)
    with pytest.raises(Unmeasurable, match="torch has no kernel for moe in fp8"):
        kernels.kernel(EXPERTS_IN_FP8, gpu.CudaDevice())


def test_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(0, busy=0.0).install(monkeypatch)
    with pytest.raises(InputError, match="this torch sees no GPU; --device cpu"):
        devices.open_device("cuda")


def test_nothing_of_nvml_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)

    def missing(device: object) -> float:
        raise ModuleNotFoundError("pynvml")

    monkeypatch.setattr(torch.cuda, "power_draw", missing)
    assert gpu.CudaDevice().state() == devices.DeviceState(None, 1700.0, 55.0, 0.0)


def test_a_figure_that_a_part_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.9).install(monkeypatch)

    class NVMLError_NotSupported(Exception):  # noqa: N801, N818 - as NVML's Python package names it
        pass

    def unsupported(device: object) -> float:
        raise NVMLError_NotSupported("Not Supported")

    # A part of a GPU (MIG) says nothing of its use: it is not refused.
    monkeypatch.setattr(torch.cuda, "utilization", unsupported)
    assert gpu.CudaDevice().state() == devices.DeviceState(250.0, 1700.0, 55.0, None)

    def broken(device: object) -> float:
        raise KeyError("a bug")

    monkeypatch.setattr(torch.cuda, "utilization", broken)
    with pytest.raises(KeyError):
        gpu.CudaDevice()


def test_a_gpu_that_failed_for_good_ends_the_run_and_skips_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    device, each = gpu.CudaDevice(), PRODUCT

    def fails(*_: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    monkeypatch.setitem(kernels.MAKERS, each.kind, lambda asked, operands: [fails])
    monkeypatch.setattr(torch.cuda, "synchronize", fails)
    message = "GPU failed permanently at gemm bf16 .*illegal memory access.*the same command continues"
    with pytest.raises(InputError, match=message):
        kernels.kernel(each, device)


def test_memory_that_torch_keeps_is_given_back_before_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    device, kept = gpu.CudaDevice(), [40 * 2**30]
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
    device, fake = gpu.CudaDevice(), FakeGraphs(captures)
    fake.install(monkeypatch)
    kernel = operands.Kernel.of(fake.run)
    # One execution takes 1 ms, in a graph or one after another where it cannot be captured.
    assert device.times_us(kernel, 3) == [1000.0] * 3
    other = operands.Kernel.of(fake.run)
    device.times_us(other, 1)
    assert device.times_us(kernel, 2) == [1000.0] * 2
    assert len(fake.graphs) == 2


@pytest.mark.parametrize(("execution_ms", "executions"), [(0.003, None), (0.5, 4), (30.0, 1)])
def test_a_graph_executes_a_kernel_often_that_is_over_soon(
    execution_ms: float, executions: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeCuda(1, busy=0.0).install(monkeypatch)
    device, fake = gpu.CudaDevice(), FakeGraphs(captures=True, execution_ms=execution_ms)
    fake.install(monkeypatch)
    device.times_us(operands.Kernel.of(fake.run), 1)
    assert fake.graphs == [executions or gpu.LEAST_EXECUTIONS]


def test_attention_on_a_gpu_is_tried_with_each_library(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[object] = []

    @contextmanager
    def choosing(library: object) -> Iterator[None]:
        chosen.append(library)
        yield

    monkeypatch.setattr("fleetplan.perfmodel.microbench.kernels.sdpa_kernel", choosing)
    queries, keys, values = (torch.randn(1, heads, 3, 8) for heads in (4, 2, 2))
    for attentions, own in (
        (kernels.prompt_attentions, queries),
        (kernels.token_attentions, queries[:, :, -1:]),
    ):
        assert len(attentions(torch.device("cpu"))) == 2
        found = attentions(torch.device("cuda"))
        results = [attend(own, keys, values) for attend in found]
        for other in results[1:]:
            torch.testing.assert_close(results[0], other)
    # As torch chooses, then each library twice: with shared heads of keys and with repeated ones.
    assert chosen == 2 * [library for library in kernels.GPU_ATTENTION for _ in range(2)]
