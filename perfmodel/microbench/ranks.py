"""Measures collectives: one process a rank, over NCCL between GPUs and gloo between processes of a CPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import torch
import torch.distributed as dist
import torch.multiprocessing

from fleetplan.perfmodel.microbench.device import DeviceState, open_device
from fleetplan.perfmodel.microbench.operands import Kernel
from fleetplan.perfmodel.microbench.points import Measurement, Point
from fleetplan.perfmodel.microbench.timing import TimingEffort, stable_timing
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, OperatorKind

START: Final = "forkserver" if "forkserver" in torch.multiprocessing.get_all_start_methods() else "spawn"
"""Start method of ranks: forks of a process that has imported torch, for all groups, and has never used a
GPU.

Started one by one, 14 ranks in groups of 2, 4 and 8 would each take two seconds of a core to import it."""

LONGEST_WAIT: Final = timedelta(minutes=2)
"""A rank that waits longer for the others gives up, and the run with it: no collective takes seconds."""

Result = tuple[Point, float, float, int, str]
"""A point with its time, spread and repeats, or with the reason why it has none."""


def measure_groups(
    points: Sequence[Point],
    device: str,
    effort: TimingEffort,
    keep: Callable[[Measurement | tuple[Point, str]], None],
) -> None:
    """Measure collectives by group size; every result is delivered immediately.

    Parameters
    ----------
    points : Sequence[Point]
        All-reduce, all-gather, reduce-scatter, all-to-all and messages between two.
    device : str
        cpu, or cuda: rank r takes GPU r.
    effort : TimingEffort
        Effort per point.
    keep : Callable
        Receives each measurement, or a point with the reason why there is none.
    """
    for ranks in sorted({ranks_of(each) for each in points}):
        asked = [each for each in points if ranks_of(each) == ranks]
        _measure_group(asked, ranks, device, effort, keep)


def ranks_of(each: Point) -> int:
    """Return the number of processes of a point."""
    return 2 if each.kind is OperatorKind.SEND_RECV else each["ranks"]


def _measure_group(
    points: Sequence[Point],
    ranks: int,
    device: str,
    effort: TimingEffort,
    keep: Callable[[Measurement | tuple[Point, str]], None],
) -> None:
    context = torch.multiprocessing.get_context(START)
    if START == "forkserver":
        context.set_forkserver_preload([__name__])
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="fleetplan-ranks-") as folder:
        meeting = f"file://{Path(folder) / 'meeting'}"
        workers = torch.multiprocessing.start_processes(
            _rank,
            (ranks, device, meeting, list(points), effort, results),
            nprocs=ranks,
            join=False,
            start_method=START,
        )
        try:
            for _ in points:
                while results.empty():
                    # Raises if a rank died, so that no process waits for its results.
                    workers.join(timeout=0.05)
                keep(_result(results.get()))
            while not workers.join():
                pass
        finally:
            for process in workers.processes:
                if process.is_alive():
                    process.terminate()


def _result(found: Result) -> Measurement | tuple[Point, str]:
    each, latency_us, spread_ratio, repeats, reason = found
    return (each, reason) if reason else Measurement(each, latency_us, spread_ratio, repeats)


class _Together:
    """A device whose ranks begin and end together; the slowest rank's time counts."""

    def __init__(self, device: str, rank: int) -> None:
        name = device if device == "cpu" else f"cuda:{rank}"
        # No weights are read.
        self._own = open_device(name, allow_busy=True, reuse_bytes=0)
        self.name, self.where, self.arena = self._own.name, self._own.where, self._own.arena

    def missing(self, dtype: str) -> str:
        return self._own.missing(dtype)

    def free_bytes(self) -> float:
        return self._own.free_bytes()

    def state(self) -> DeviceState:
        return self._own.state()

    def works(self) -> bool:
        return self._own.works()

    def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
        times = []
        for _ in range(repeats):
            dist.barrier()
            times += self._own.times_us(kernel, 1)
        return self._largest(times)

    def agreed(self, value: float) -> float:
        (largest,) = self._largest([value])
        return largest

    def _largest(self, values: list[float]) -> list[float]:
        shared = torch.tensor(values, dtype=torch.float64, device=self.where)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return [float(each) for each in shared.tolist()]


def _rank(
    rank: int,
    ranks: int,
    device: str,
    meeting: str,
    points: list[Point],
    effort: TimingEffort,
    results: torch.multiprocessing.SimpleQueue[Result],
) -> None:
    backend = "gloo" if device == "cpu" else "nccl"
    together = _Together(device, rank)
    dist.init_process_group(
        backend,
        init_method=meeting,
        rank=rank,
        world_size=ranks,
        timeout=LONGEST_WAIT,
        # So NCCL connects the ranks here, and not while a graph is captured.
        device_id=None if device == "cpu" else together.where,
    )
    try:
        for each in points:
            try:
                collective = Kernel.of(_collective(each, rank, together.where))
                timing = stable_timing(collective, together, effort)
            except (RuntimeError, ValueError) as error:
                # A collective that the backend lacks: the point goes back with its reason, the rest go on.
                found: Result = (each, 0.0, 0.0, 0, f"{backend}: {str(error).splitlines()[0]}")
            else:
                # A message goes there and back.
                trips = 2 if each.kind is OperatorKind.SEND_RECV else 1
                found = (each, timing.latency_us / trips, timing.spread_ratio, timing.repeats, "")
            if rank == 0:
                results.put(found)
    finally:
        dist.destroy_process_group()


def _collective(each: Point, rank: int, where: torch.device) -> Callable[[], object]:
    """Return the collective with its buffers; the message is what `OperatorKind` says it is."""
    ranks = ranks_of(each)
    # A whole share for every rank.
    share = max(1, int(each["message_bytes"] / ACTIVATION_BYTES) // ranks)
    whole = torch.zeros(share * ranks, dtype=torch.bfloat16, device=where)
    part = torch.zeros(share, dtype=torch.bfloat16, device=where)
    match each.kind:
        case OperatorKind.ALL_REDUCE:
            return lambda: dist.all_reduce(whole)
        case OperatorKind.ALL_GATHER:
            return lambda: dist.all_gather_into_tensor(whole, part)
        case OperatorKind.REDUCE_SCATTER:
            return lambda: dist.reduce_scatter_tensor(part, whole)
        case OperatorKind.ALL_TO_ALL:
            received = torch.empty_like(whole)
            return lambda: dist.all_to_all_single(received, whole)
        case _:
            return lambda: _there_and_back(whole, rank)


def _there_and_back(message: torch.Tensor, rank: int) -> None:
    if rank == 0:
        dist.send(message, 1)
        dist.recv(message, 1)
    else:
        dist.recv(message, 0)
        dist.send(message, 0)
