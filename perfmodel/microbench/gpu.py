"""GPUs: kernels in a captured graph, as servers run them, between two events."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final
from weakref import WeakKeyDictionary

import torch

from fleetplan.perfmodel.microbench.device import DeviceState, refused
from fleetplan.perfmodel.microbench.operands import Arena, Kernel, Run

REUSE_CACHES: Final = 2.0
"""Size of the arena divided by the last-level cache of a GPU, so that none of it remains in the cache at its
next use."""

LAST_CACHE_BYTES: Final = 64 * 2**20
"""Last cache of a GPU that does not say how large it is: more than that of an H100 (50 MB). [bytes]"""

BUSY_RATIO: Final = 0.2
"""A GPU that is used for more of the time by others gives no times worth keeping."""

FP8_CAPABILITY: Final = (8, 9)
"""First compute capability with FP8 matrix units. Source: NVIDIA, CUDA C++ Programming Guide, features by
compute capability."""

LEAST_EXECUTIONS: Final = 16
"""Executions of a captured graph, so that what its launch and the events take does not count."""

LEAST_GRAPH_US: Final = 2000.0
"""A graph that takes so long needs no more executions: its launch and the events take some 10 us. [us]"""


class CudaDevice:
    """A GPU.

    Attributes
    ----------
    name, where, arena
        As in `Device`.

    Raises
    ------
    InputError
        The GPU does not exist, or others use it.
    """

    def __init__(self, index: int = 0, allow_busy: bool = False) -> None:
        if not torch.cuda.is_available():
            raise refused(f"cuda:{index}", "this torch sees no GPU", "--device cpu measures the CPU")
        if index >= torch.cuda.device_count():
            known = ", ".join(f"cuda:{each}" for each in range(torch.cuda.device_count()))
            raise refused(f"cuda:{index}", "there is no such GPU", f"allowed: {known}")
        self.where = torch.device("cuda", index)
        torch.cuda.set_device(self.where)
        properties = torch.cuda.get_device_properties(self.where)
        self.name = str(properties.name)
        self._capability = torch.cuda.get_device_capability(self.where)
        busy = self.state().busy_ratio
        if busy is not None and busy > BUSY_RATIO and not allow_busy:
            message = f"{self.name} is in use for {busy:.0%} of the time: measured times would be meaningless"
            raise refused(f"cuda:{index}", message, "wait, choose another GPU, or pass --allow-busy")
        cache_bytes = int(getattr(properties, "L2_cache_size", 0)) or LAST_CACHE_BYTES
        self.arena = Arena(self.where, int(cache_bytes * REUSE_CACHES))
        # The control's graphs are used beside every point; those of a point go with its kernel.
        self._graphs: WeakKeyDictionary[Kernel, tuple[Run, int]] = WeakKeyDictionary()

    def missing(self, dtype: str) -> str:
        """Return why a data type has no kernels: FP8 below its compute capability, others except BF16."""
        if dtype == "bf16" or (dtype == "fp8" and self._capability >= FP8_CAPABILITY):
            return ""
        if dtype == "fp8":
            return f"{self.name} (compute capability {self._capability}) has no FP8 units"
        return f"torch has no kernels for {dtype}"

    def free_bytes(self) -> float:
        """Return memory that no process holds, after what torch keeps of earlier points was given back."""
        torch.cuda.empty_cache()
        return float(torch.cuda.mem_get_info(self.where)[0])

    def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
        """Execute a graph of the kernel with all its operands in turn; return means per execution."""
        replay, executions = self._graph(kernel)
        marks = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(repeats)
        ]
        for start, end in marks:
            start.record()
            replay()
            end.record()
        torch.cuda.synchronize(self.where)
        return [float(start.elapsed_time(end)) * 1e3 / executions for start, end in marks]

    def state(self) -> DeviceState:
        """Return the figures that NVML provides through torch; none if it is not installed."""
        power_mw = self._told(torch.cuda.power_draw)
        busy_percent = self._told(torch.cuda.utilization)
        return DeviceState(
            power_w=None if power_mw is None else power_mw / 1e3,
            clock_mhz=self._told(torch.cuda.clock_rate),
            temperature_c=self._told(torch.cuda.temperature),
            busy_ratio=None if busy_percent is None else busy_percent / 100,
        )

    def agreed(self, value: float) -> float:
        """Nobody else measures."""
        return value

    def works(self) -> bool:
        """Return whether kernels still run: after some errors, none does until the process ends."""
        try:
            torch.cuda.synchronize(self.where)
            torch.ones(1, device=self.where).add_(1)
            torch.cuda.synchronize(self.where)
        except torch.OutOfMemoryError:
            return True
        except RuntimeError:
            return False
        return True

    def _told(self, ask: Callable[[torch.device], float]) -> float | None:
        """Return one figure; None if its source is missing or the part lacks it (MIG: utilisation)."""
        try:
            return float(ask(self.where))
        except (ImportError, RuntimeError):
            return None
        except Exception as error:
            # NVML's errors derive from nothing narrower, and their module is there only with its package.
            if type(error).__name__.startswith("NVMLError"):
                return None
            raise

    def _graph(self, kernel: Kernel) -> tuple[Run, int]:
        """Return what runs a kernel with all its operands, and how many executions that are.

        It is a captured graph, or one execution after another where a kernel cannot be captured (it waits
        for the host).
        """
        if kernel not in self._graphs:
            turns = kernel.sets * -(-self._executions(kernel.sets[0]) // len(kernel.sets))
            self._graphs[kernel] = (self._capture(turns), len(turns))
        return self._graphs[kernel]

    def _executions(self, parts: tuple[Run, ...]) -> int:
        """Return the minimum executions of a kernel per graph; fewer if one execution takes long."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # Libraries set themselves up at their first call, which does not count.
        for run in parts:
            run()
        start.record()
        for run in parts:
            run()
        end.record()
        torch.cuda.synchronize(self.where)
        execution_us = max(1.0, float(start.elapsed_time(end)) * 1e3)
        return min(LEAST_EXECUTIONS, ceil(LEAST_GRAPH_US / execution_us))

    def _capture(self, turns: tuple[tuple[Run, ...], ...]) -> Run:
        def one_by_one() -> None:
            for parts in turns:
                for run in parts:
                    run()

        # Libraries set themselves up at their first call on a stream, which a capture must not hold.
        aside = torch.cuda.Stream(self.where)
        aside.wait_stream(torch.cuda.current_stream(self.where))
        with torch.cuda.stream(aside):
            for run in turns[0]:
                run()
        torch.cuda.current_stream(self.where).wait_stream(aside)
        torch.cuda.synchronize(self.where)
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads (NCCL's) may call the driver meanwhile.
            with torch.cuda.graph(graph, stream=aside, capture_error_mode="thread_local"):
                one_by_one()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            torch.cuda.synchronize(self.where)
            return one_by_one
        replay: Run = graph.replay
        return replay
