"""Devices that run and time kernels; this module has the CPU, `gpu` has GPUs."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import torch
import torch.nn.functional as F  # noqa: N812 - the name that torch's own documentation has

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.perfmodel.microbench.operands import Arena, Kernel, Run

CPU_REUSE_BYTES: Final = 2**30
"""Default bytes that a step reads between two uses of a weight: more than the caches that a processor has for
one process. [bytes]"""

MEMORY_RATIO: Final = 1 / 16
"""Most that the arena of a CPU takes of the memory; of all memory, so that it is as large in every run."""

CPU_STREAM_BYTES: Final = 8 * 2**20
"""Weights that are read between two executions on a CPU [bytes]: those of a product, more than the caches of
one core (2 MB in servers of 2023 to 2026). In a step, every operator follows such a product, which evicts
activations and the code of small operators from these caches."""

_STREAM_WIDTH: Final = 1024

LOOK_S: Final = 0.5
"""Time to observe the use of cores. [s]"""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Current state of a device; None for unknown values.

    Attributes
    ----------
    power_w, clock_mhz, temperature_c : float or None
        Power, clock and temperature of the board.
    busy_ratio : float or None
        Part of the recent time in which kernels ran.
    """

    power_w: float | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    busy_ratio: float | None = None


class Device(Protocol):
    """A device that runs kernels.

    Attributes
    ----------
    name : str
        Name in provenance.
    where : torch.device
        For operands.
    arena : Arena
        Memory of weights and caches.
    """

    name: str
    where: torch.device
    arena: Arena

    def missing(self, dtype: str) -> str:
        """Return why it has no matrix units for a data type; an empty string if it has."""
        ...

    def free_bytes(self) -> float:
        """Return the memory that operands may take. [bytes]."""
        ...

    def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
        """Execute a kernel a number of times, each time with other operands. [us]."""
        ...

    def state(self) -> DeviceState:
        """Return the power, clock, temperature and use."""
        ...

    def agreed(self, value: float) -> float:
        """Return the largest value among processes that measure together, so that they decide equally."""
        ...

    def works(self) -> bool:
        """Whether it still runs kernels: some failures of one kernel end all others of the process."""
        ...


class CpuDevice:
    """The CPU, with a fixed number of threads.

    With one thread, its processor time counts, which excludes other processes (except their use of bandwidth
    and caches). With more threads, wall time counts, and the machine must be idle.

    Parameters
    ----------
    threads : int
        Device of torch.
    reuse_bytes : int, optional
        Bytes that a step reads between two uses of a weight. [bytes]

    Attributes
    ----------
    name, where, arena
        As in `Device`.
    """

    def __init__(self, threads: int = 1, reuse_bytes: int | None = None) -> None:
        torch.set_num_threads(threads)
        self.name = f"{_cpu_name()}, {threads} thread{'s' if threads > 1 else ''}"
        self.where = torch.device("cpu")
        wanted = CPU_REUSE_BYTES if reuse_bytes is None else min(reuse_bytes, CPU_REUSE_BYTES)
        self.arena = Arena(self.where, int(min(wanted, MEMORY_RATIO * _memory_bytes("MemTotal"))))
        self._clock_ns = time.thread_time_ns if threads == 1 else time.perf_counter_ns
        self._stream = self._between()

    def missing(self, dtype: str) -> str:
        """Everything but BF16 has no kernels that a server would use."""
        return "" if dtype == "bf16" else f"{self.name} has no kernels for {dtype}"

    def free_bytes(self) -> float:
        """Return the memory that Linux calls available."""
        return _memory_bytes("MemAvailable")

    def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
        """Execute a kernel a number of times, each of its parts after a product that reads other weights."""
        return [sum(self._part_us(part) for part in kernel.next_parts()) for _ in range(repeats)]

    def state(self) -> DeviceState:
        """A CPU reports no useful state."""
        return DeviceState()

    def agreed(self, value: float) -> float:
        """Nobody else measures."""
        return value

    def works(self) -> bool:
        """A CPU that fails takes the process with it."""
        return True

    def _part_us(self, part: Run) -> float:
        (between,) = self._stream.next_parts()
        between()
        start = self._clock_ns()
        part()
        return (self._clock_ns() - start) / 1e3

    def _between(self) -> Kernel:
        """The product of one token with the weights that are read between two executions."""
        read_bytes = min(CPU_STREAM_BYTES, self.arena.size_bytes // 8)
        rows = max(1, read_bytes // (2 * _STREAM_WIDTH))
        token = torch.randn(1, _STREAM_WIDTH).to(torch.bfloat16)
        weights = [self.arena.take(torch.bfloat16, rows, _STREAM_WIDTH) for _ in range(8)]
        return Kernel([[partial(F.linear, token, each)] for each in weights])


class Pinned:
    """Pins the threads of this process to a number of cores, the least used ones just before.

    A thread that moves to another core finds its caches empty. Afterwards the process may run everywhere.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._before: set[int] = set()

    def __enter__(self) -> Self:
        self._before = os.sched_getaffinity(0)
        if self._threads < len(self._before):
            used = _jiffies_used()
            time.sleep(LOOK_S)
            grown = {core: count - used.get(core, 0) for core, count in _jiffies_used().items()}
            calmest = sorted(self._before, key=lambda core: (grown.get(core, 0), core))
            os.sched_setaffinity(0, calmest[: self._threads])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.sched_setaffinity(0, self._before)


def open_device(
    name: str, threads: int = 1, allow_busy: bool = False, reuse_bytes: int | None = None
) -> Device:
    """Open a device by its name: cpu, cuda or cuda:1.

    Parameters
    ----------
    name : str
        Kind of the device.
    threads : int
        Threads of a CPU.
    allow_busy : bool
        Take a GPU that others use.
    reuse_bytes : int, optional
        Bytes that a step of the smallest model reads between two uses of a weight, if known. [bytes]

    Raises
    ------
    InputError
        The device does not exist, or others use it.
    """
    if name == "cpu":
        return CpuDevice(threads, reuse_bytes)
    family, _, index = name.partition(":")
    if family != "cuda" or not (index or "0").isdigit():
        raise refused(name, "is not a device", "allowed: cpu, cuda, cuda:NUMBER")
    from fleetplan.perfmodel.microbench.gpu import CudaDevice  # noqa: PLC0415  (it uses this module)

    return CudaDevice(int(index or 0), allow_busy)


def refused(device: str, message: str, hint: str) -> InputError:
    """Return the error that a device cannot be used."""
    return InputError([Issue(f"--device {device}", 0, 0, "", message, hint)])


def _jiffies_used() -> dict[int, int]:
    """Return the busy time of every core since the machine started. Source: proc(5), /proc/stat."""
    used = {}
    for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines():
        name, *counts = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system = (int(each) for each in counts[:3])
            used[int(name.removeprefix("cpu"))] = user + nice + system
    return used


def _memory_bytes(name: str) -> float:
    """Return one figure of the memory. Source: proc(5), /proc/meminfo."""
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return float(line.split()[1]) * 1024
    raise OSError(f"/proc/meminfo does not say {name}")


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
