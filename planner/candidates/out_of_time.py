"""The error of a time limit that comes before all candidates are evaluated."""

from __future__ import annotations

from fleetplan.fleet.errors import LimitReachedError


class OutOfTimeError(LimitReachedError):
    """The time was over before every service was evaluated on every hardware."""

    def within(self, time_limit_s: float) -> OutOfTimeError:
        """The same with the limit that was kept."""
        return OutOfTimeError(f"{self} within {time_limit_s:g} s; run again or raise --time-limit")
