"""Error of a time limit reached before all candidates are evaluated."""

from __future__ import annotations

from fleetplan.fleet.errors import LimitReachedError


class OutOfTimeError(LimitReachedError):
    """Time was over before every service was evaluated on every hardware."""

    def within(self, time_limit_s: float) -> OutOfTimeError:
        """Return the error with the time limit in its message."""
        return OutOfTimeError(f"{self} within {time_limit_s:g} s; run again or raise --time-limit")
