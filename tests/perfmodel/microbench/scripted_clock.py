"""A device whose executions take as long as a script says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.lazily import Lazily

from fleetplan.perfmodel.microbench.timing import TimingEffort

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.device import DeviceState
    from fleetplan.perfmodel.microbench.operands import Kernel

torch: Any = Lazily("torch")
device, figures, kernels, operands, ranks, reference, single = (
    Lazily(f"fleetplan.perfmodel.microbench.{name}")
    for name in ("device", "figures", "kernels", "operands", "ranks", "reference", "single")
)

QUICK = TimingEffort(most_s=0.02, block_s=0.002)


class ScriptedClock:
    """A device whose times are given."""

    name = "clock"

    def __init__(self, times: Iterable[float]) -> None:
        self.where = torch.device("cpu")
        self._times = iter(times)
        self.asked: list[int] = []
        self.arena = operands.Arena(self.where, 2**16)

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
        return device.DeviceState(power_w=1.0)
