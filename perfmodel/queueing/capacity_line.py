"""A straight line below what pools of any size carry, as the planner uses it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """load <= slope * replicas - loss for pools of at least `least` replicas.

    Attributes
    ----------
    slope : float
        Load, in replicas that are always busy, that one replica more carries.
    loss : float
        Replicas that a pool keeps free for waiting times to stay short.
    least : int
        Smallest pool for the line.
    """

    slope: float
    loss: float
    least: int = 1

    def at(self, replicas: float) -> float:
        """Return the load that a pool carries by this line, at least none."""
        return 0.0 if replicas < self.least else max(0.0, self.slope * replicas - self.loss)
