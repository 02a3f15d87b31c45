"""A lower bound, linear in the pool size, on the load that a pool carries within its latency limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """load <= slope * replicas - loss for pools of at least `least` replicas.

    Attributes
    ----------
    slope : float
        Load of an additional replica, in replicas that are always busy.
    loss : float
        Idle replicas that a pool needs to keep waiting times within the limits.
    least : int
        Smallest pool to which the line applies.
    """

    slope: float
    loss: float
    least: int = 1

    def at(self, replicas: float) -> float:
        """Return the load that a pool of this size carries, at least 0."""
        return 0.0 if replicas < self.least else max(0.0, self.slope * replicas - self.loss)
