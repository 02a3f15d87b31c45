"""Deadline of one question, shared by all solves that answer it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.planner.search.work import TimeSpent

LEAST_WORK_S: Final = 0.05
"""Least work charged for a solve, for building its model. [s]"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Point in time, or amount of work, at which a question must be answered.

    Attributes
    ----------
    ends : float
        End by `time.monotonic`, or by accumulated work; infinite for none. [s]
    spent : TimeSpent or None
        Counter of work in reproducible runs, where the clock must not decide; None for clock time.
    """

    ends: float
    spent: TimeSpent | None = None

    @classmethod
    def after(cls, seconds: float, counted: bool = False) -> Deadline:
        """Return a deadline this many seconds from now, of work if `counted`."""
        return cls(seconds, TimeSpent(counted=True)) if counted else cls(time.monotonic() + seconds)

    @property
    def _now(self) -> float:
        return time.monotonic() if self.spent is None else self.spent.seconds

    def note(self, work_s: float) -> None:
        """Charge the work of a solve, at least `LEAST_WORK_S`. [s]"""
        if self.spent is not None:
            self.spent.add(max(work_s, LEAST_WORK_S))

    @property
    def left_s(self) -> float:
        """Return the remaining time, at least 0. [s]"""
        return max(self.ends - self._now, 0.0)

    @property
    def passed(self) -> bool:
        """Return whether no time is left."""
        return self.left_s == 0.0

    def within(self, seconds: float) -> Deadline:
        """Return the earlier of this deadline and one this many seconds from now."""
        return replace(self, ends=min(self.ends, self._now + seconds))

    def share(self, part: float) -> Deadline:
        """Return a deadline after this share of the remaining time."""
        return self if math.isinf(self.ends) else replace(self, ends=self._now + part * self.left_s)


NEVER: Final = Deadline(math.inf)
"""No deadline."""
