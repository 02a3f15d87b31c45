"""Measures points that one device runs alone."""

from __future__ import annotations

import torch

from fleetplan.perfmodel.microbench.control import Control
from fleetplan.perfmodel.microbench.device import Device
from fleetplan.perfmodel.microbench.kernels import OUT_OF_MEMORY, kernel
from fleetplan.perfmodel.microbench.points import Measurement, Point, Unmeasurable
from fleetplan.perfmodel.microbench.timing import TimingEffort, stable_timing


def measure_alone(
    point: Point, device: Device, effort: TimingEffort, control: Control | None = None
) -> Measurement:
    """Measure a point on one device.

    Parameters
    ----------
    point : Point
        Point.
    device : Device
        Device.
    effort : TimingEffort
        Effort for it.
    control : Control, optional
        Run before and after it.

    Raises
    ------
    Unmeasurable
        The device or torch cannot run it.
    """
    before_us = None if control is None else control.time_us()
    try:
        found = kernel(point, device)
        timing = stable_timing(found, device, effort)
    except torch.OutOfMemoryError as error:
        # A captured graph keeps separate memory beside the operands.
        raise Unmeasurable(OUT_OF_MEMORY) from error
    state = device.state()
    after_us = None if control is None else control.time_us()
    return Measurement(
        point,
        timing.latency_us / found.operators,
        timing.spread_ratio,
        timing.repeats,
        state.power_w,
        state.clock_mhz,
        state.temperature_c,
        None if before_us is None or after_us is None else max(before_us, after_us),
    )
