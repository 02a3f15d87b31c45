"""Estimate the remaining time of a series of solves."""

from __future__ import annotations

import time

from fleetplan.fleet.figures import counted


class RemainingTime:
    """Counts finished solves, and estimates the time for the others.

    Parameters
    ----------
    count : int
        Total number of solves.
    each_s : float
        Prior estimate of the time per solve. [s]
    noun : str
        Name of a unit that takes several solves.
    at_most : bool
        Whether the estimate is a limit, because no similar solve has run.
    """

    def __init__(self, count: int, each_s: float, noun: str = "solve", at_most: bool = False) -> None:
        self.count = count
        self._noun, self._at_most = noun, at_most
        self.done = 0
        self._each_s = each_s
        self._started = time.monotonic()

    @property
    def counted(self) -> str:
        """Number and unit: `44 solves`."""
        return counted(self.count, self._noun)

    @property
    def announced(self) -> str:
        """Planned work: `44 solves, about 5 min`."""
        limit = " at most" if self._at_most else ""
        return f"{self.counted}, about {duration(self.count * self._each_s)}{limit}"

    def next(self) -> str:
        """Count one as finished and return the progress: `3 of 44, about 5 min left`."""
        self.done += 1
        left = self.count - self.done
        if not left:
            return f"{self.done} of {self.count}"
        left_s = (time.monotonic() - self._started) / self.done * left
        return f"{self.done} of {self.count}, about {duration(left_s)} left"


def duration(seconds: float) -> str:
    """Return a duration in words: `40 s`, `5 min`, `2 h 10 min`."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
