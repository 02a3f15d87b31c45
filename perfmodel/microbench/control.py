"""Notices that a machine has become slower: a control is run beside every point.

Other processes, the clock and the temperature change what a machine reaches, for seconds or for minutes. The
control computes and reads memory, so it becomes slower with either; points beside a slow control are
measured again later.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from fleetplan.perfmodel.microbench.points import Measurement, point
from fleetplan.perfmodel.microbench.timing import quantile_of
from fleetplan.perfmodel.operators import OperatorKind

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.device import Device

DRIFT_RATIO: Final = 1.1
"""A point is disturbed if the control beside it took longer by this factor than it does in calm times. While
others use a machine evenly, its time stays within 4 %."""

CALM_SHARE: Final = 0.25
"""Quantile of the controls that counts as calm: a machine that is slow for half of the time is measured in
the other half."""

CONTROL_SIDE: Final = {"cpu": 512, "cuda": 4096}
"""Side of the square product that is computed."""

_BLOCKS: Final = 4
_REPEATS: Final = 8


class Control:
    """The control of a device.

    Parameters
    ----------
    device : Device
        Device.
    """

    def __init__(self, device: Device) -> None:
        from fleetplan.perfmodel.microbench.kernels import kernel  # noqa: PLC0415  (imports torch)

        side = CONTROL_SIDE[device.where.type]
        product = point(OperatorKind.GEMM, "bf16", m=side, n=side, k=side)
        reading = point(OperatorKind.GEMM, "bf16", m=1, n=4 * side, k=side)
        self._device = device
        self._kernels = [kernel(each, device) for each in (product, reading)]

    def time_us(self) -> float:
        """Return the sum of both medians over some blocks. [us]."""
        return sum(
            median(fmean(self._device.times_us(each, _REPEATS)) for _ in range(_BLOCKS))
            for each in self._kernels
        )


def calm_control_us(measurements: Iterable[Measurement]) -> float | None:
    """Return the time of the control in calm times; None without controls. [us]."""
    times = [each.control_us for each in measurements if each.control_us is not None]
    return quantile_of(times, CALM_SHARE) if times else None


def control_ratio(measurement: Measurement, calm_us: float | None) -> float | None:
    """Return the ratio of the control beside a measurement to that of calm times; None without one."""
    if measurement.control_us is None or calm_us is None:
        return None
    return measurement.control_us / calm_us


def disturbed(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return the measurements beside a slow control, the slowest first."""
    listed = list(measurements)
    calm_us = calm_control_us(listed)
    slow = [(control_ratio(each, calm_us) or 1.0, each) for each in listed]
    return [each for ratio, each in sorted(slow, key=lambda pair: -pair[0]) if ratio > DRIFT_RATIO]
