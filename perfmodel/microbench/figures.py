"""Figures of a machine that no operator table holds: copies, the fastest product, and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from fleetplan.perfmodel.microbench.device import Device
from fleetplan.perfmodel.microbench.kernels import kernel
from fleetplan.perfmodel.microbench.operands import Kernel, Run
from fleetplan.perfmodel.microbench.points import point
from fleetplan.perfmodel.microbench.timing import TimingEffort, stable_timing
from fleetplan.perfmodel.operators import OperatorKind

COPY_BYTES: Final = 2**28
"""Size of a copy whose bandwidth counts: far beyond any cache. [bytes]"""

PRODUCT_SIDE: Final = {"cpu": 2048, "cuda": 8192}
"""Side of the square product whose throughput represents the matrix peak."""


@dataclass(frozen=True, slots=True)
class MeasuredFigures:
    """Measured peaks of a machine.

    Attributes
    ----------
    bf16_tflops : float
        Throughput of a large product. [TFLOPS]
    memory_gb_per_s : float
        Read and written by a copy within the memory. [GB/s]
    memory_gib : float
        Free memory at the time of the query. [GiB]
    host_to_device_gb_per_s, device_to_host_gb_per_s : float or None
        Bandwidth of copies between pinned host memory and the device; None if the device is the host. [GB/s]
    """

    bf16_tflops: float
    memory_gb_per_s: float
    memory_gib: float
    host_to_device_gb_per_s: float | None = None
    device_to_host_gb_per_s: float | None = None


def measured_figures(device: Device, effort: TimingEffort) -> MeasuredFigures:
    """Measure them; no more than half of the free memory is used."""
    memory_gib = device.free_bytes() / 2**30
    elements = int(min(COPY_BYTES, device.free_bytes() / 4)) // 4
    source = torch.zeros(elements, dtype=torch.float32, device=device.where)
    target = torch.empty_like(source)
    within = _gb_per_s(lambda: target.copy_(source), 8 * elements, device, effort)
    to_device = to_host = None
    if device.where.type != "cpu":
        host = torch.zeros(elements, dtype=torch.float32, pin_memory=True)
        to_device = _gb_per_s(lambda: target.copy_(host, non_blocking=True), 4 * elements, device, effort)
        to_host = _gb_per_s(lambda: host.copy_(source, non_blocking=True), 4 * elements, device, effort)
    return MeasuredFigures(_bf16_tflops(device, effort), within, memory_gib, to_device, to_host)


def _bf16_tflops(device: Device, effort: TimingEffort) -> float:
    side = PRODUCT_SIDE[device.where.type]
    product = kernel(point(OperatorKind.GEMM, "bf16", m=side, n=side, k=side), device)
    return 2 * side**3 / stable_timing(product, device, effort).latency_us / 1e6


def _gb_per_s(run: Run, moved_bytes: int, device: Device, effort: TimingEffort) -> float:
    return moved_bytes / stable_timing(Kernel.of(run), device, effort).latency_us / 1e3
