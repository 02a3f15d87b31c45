"""Measures points that one device runs alone."""

from __future__ import annotations

from fleetplan.perfmodel.microbench.device import Device
from fleetplan.perfmodel.microbench.kernels import kernel
from fleetplan.perfmodel.microbench.points import Measurement, Point
from fleetplan.perfmodel.microbench.timing import Effort, stable_timing


def measure_alone(point: Point, device: Device, effort: Effort) -> Measurement:
    """Measure a point on one device.

    Raises
    ------
    Unmeasurable
        The device or torch cannot run it.
    """
    timing = stable_timing(kernel(point, device), device, effort)
    state = device.state()
    return Measurement(
        point,
        timing.latency_us,
        timing.spread_ratio,
        timing.repeats,
        state.power_w,
        state.clock_mhz,
        state.temperature_c,
    )
