"""What runs the kernels and takes their time: a GPU by events, a CPU by its clock."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import torch

from fleetplan.fleet.errors import InputError, Issue

Run = Callable[[], object]
"""A kernel with its operands."""

FLUSH_CACHES: Final = 2.0
"""What is written between executions, over the size of the last cache of a GPU, so that nothing of the
operands is left in it."""

CPU_FLUSH_BYTES: Final = 64 * 2**20
"""What is written between executions on a CPU [bytes]: more than the caches of a core, and less than that
which its cores share, in which the weights of a small decoder stay between two uses."""

BUSY_RATIO: Final = 0.2
"""A GPU that is used for more of the time by others gives no times worth keeping."""

FP8_CAPABILITY: Final = (8, 9)
"""First compute capability with FP8 matrix units. Source: NVIDIA, CUDA C++ Programming Guide, features by
compute capability."""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What can be said of a device right now; None where nothing says it.

    Attributes
    ----------
    power_w, clock_mhz, temperature_c : float or None
        Of the board.
    busy_ratio : float or None
        Part of the recent time in which kernels ran.
    """

    power_w: float | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    busy_ratio: float | None = None


class Device(Protocol):
    """Where kernels run.

    Attributes
    ----------
    name : str
        What provenance calls it.
    where : torch.device
        For operands.
    """

    name: str
    where: torch.device

    def missing(self, dtype: str) -> str:
        """Say why it has no matrix units for a data type; an empty string where it has."""
        ...

    def free_bytes(self) -> float:
        """Memory that operands may take. [bytes]."""
        ...

    def times_us(self, run: Run, repeats: int) -> list[float]:
        """Execute a kernel so often, each time with cold caches. [us]."""
        ...

    def state(self) -> DeviceState:
        """Power, clock, temperature and use."""
        ...


class CpuDevice:
    """The CPU, with a fixed number of threads.

    With one thread, the processor time of that thread counts, of which other processes take nothing (they do
    take bandwidth and caches). With more, the time on the clock counts, and the machine has to be idle.

    Attributes
    ----------
    name, where
        As in `Device`.
    """

    def __init__(self, threads: int = 1, flush_bytes: int | None = None) -> None:
        torch.set_num_threads(threads)
        self.name = f"{_cpu_name()}, {threads} thread{'s' if threads > 1 else ''}"
        self.where = torch.device("cpu")
        written = CPU_FLUSH_BYTES if flush_bytes is None else flush_bytes
        self._flush = torch.zeros(max(1, written // 8), dtype=torch.float64)
        self._clock_ns = time.thread_time_ns if threads == 1 else time.perf_counter_ns

    def missing(self, dtype: str) -> str:
        """Everything but BF16 has no kernels that a server would use."""
        return "" if dtype == "bf16" else f"{self.name} has no kernels for {dtype}"

    def free_bytes(self) -> float:
        """Memory that Linux calls available."""
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
        raise OSError("/proc/meminfo does not say what is available")

    def times_us(self, run: Run, repeats: int) -> list[float]:
        """Execute a kernel so often, each time with the caches of the core overwritten."""
        times = []
        for _ in range(repeats):
            self._flush.add_(1.0)
            start = self._clock_ns()
            run()
            times.append((self._clock_ns() - start) / 1e3)
        return times

    def state(self) -> DeviceState:
        """A CPU says nothing that is worth keeping."""
        return DeviceState()


class CudaDevice:
    """A GPU: kernels in a captured graph, as servers run them, between two events.

    Attributes
    ----------
    name, where
        As in `Device`.

    Raises
    ------
    InputError
        There is no GPU of that number, or others use it.
    """

    def __init__(self, index: int = 0, allow_busy: bool = False) -> None:
        if not torch.cuda.is_available():
            raise _refused(f"cuda:{index}", "this torch sees no GPU", "--device cpu measures the CPU")
        if index >= torch.cuda.device_count():
            known = ", ".join(f"cuda:{each}" for each in range(torch.cuda.device_count()))
            raise _refused(f"cuda:{index}", "there is no such GPU", f"allowed: {known}")
        self.where = torch.device("cuda", index)
        torch.cuda.set_device(self.where)
        properties = torch.cuda.get_device_properties(self.where)
        self.name = str(properties.name)
        self._capability = torch.cuda.get_device_capability(self.where)
        busy = self.state().busy_ratio
        if busy is not None and busy > BUSY_RATIO and not allow_busy:
            message = f"{self.name} is in use for {busy:.0%} of the time: its times would mean nothing"
            raise _refused(f"cuda:{index}", message, "wait, choose another GPU, or pass --allow-busy")
        cache = int(getattr(properties, "L2_cache_size", 0)) or 64 * 2**20
        self._flush = torch.zeros(int(cache * FLUSH_CACHES) // 4, dtype=torch.int32, device=self.where)

    def missing(self, dtype: str) -> str:
        """FP8 from its first compute capability on, BF16 everywhere; no other kernels of torch are used."""
        if dtype == "bf16" or (dtype == "fp8" and self._capability >= FP8_CAPABILITY):
            return ""
        if dtype == "fp8":
            return f"{self.name} (compute capability {self._capability}) has no FP8 units"
        return f"torch has no kernels for {dtype}"

    def free_bytes(self) -> float:
        """Memory that no process holds."""
        return float(torch.cuda.mem_get_info(self.where)[0])

    def times_us(self, run: Run, repeats: int) -> list[float]:
        """Execute a kernel so often, each time with the last cache overwritten before the first event."""
        replayed = self._captured(run)
        marks = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(repeats)
        ]
        for start, end in marks:
            self._flush.zero_()
            start.record()
            replayed()
            end.record()
        torch.cuda.synchronize(self.where)
        return [float(start.elapsed_time(end)) * 1e3 for start, end in marks]

    def state(self) -> DeviceState:
        """Figures of NVML, through torch; none of them where its Python package is not installed."""
        try:
            return DeviceState(
                power_w=float(torch.cuda.power_draw(self.where)) / 1e3,
                clock_mhz=float(torch.cuda.clock_rate(self.where)),
                temperature_c=float(torch.cuda.temperature(self.where)),
                busy_ratio=float(torch.cuda.utilization(self.where)) / 100,
            )
        except (ImportError, ModuleNotFoundError, RuntimeError):
            return DeviceState()

    def _captured(self, run: Run) -> Run:
        """The kernel as a graph; as it is where it cannot be captured (it waits for the host)."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                run()
        except RuntimeError:
            torch.cuda.synchronize(self.where)
            return run
        replay: Run = graph.replay
        return replay


def open_device(name: str, threads: int = 1, allow_busy: bool = False) -> Device:
    """Open a device by its name: cpu, cuda or cuda:1.

    Raises
    ------
    InputError
        There is no such device, or others use it.
    """
    if name == "cpu":
        return CpuDevice(threads)
    family, _, index = name.partition(":")
    if family != "cuda" or not (index or "0").isdigit():
        raise _refused(name, "is no device", "allowed: cpu, cuda, cuda:NUMBER")
    return CudaDevice(int(index or 0), allow_busy)


def _refused(device: str, message: str, hint: str) -> InputError:
    return InputError([Issue(f"--device {device}", 0, 0, "", message, hint)])


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
