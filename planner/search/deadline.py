"""When everything that belongs to one question is to be over, however many solves it takes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.planner.search.work import Spent

LEAST_WORK_S: Final = 0.05
"""What a solve counts for at the least: its model has to be built. [s]"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment that is passed down to every step of an answer, so that all of them together keep it.

    Attributes
    ----------
    ends : float
        By `time.monotonic`, or by the work that is spent; infinite for none. [s]
    spent : Spent or None
        The work by which it is counted where the clock must not decide.
    """

    ends: float
    spent: Spent | None = None

    @classmethod
    def after(cls, seconds: float, counted: bool = False) -> Deadline:
        """The moment in so many seconds, of work where that is counted."""
        return cls(seconds, Spent(counted=True)) if counted else cls(time.monotonic() + seconds)

    @property
    def _now(self) -> float:
        return time.monotonic() if self.spent is None else self.spent.seconds

    def note(self, work_s: float) -> None:
        """Note the work of a solve, which takes a moment even if it was none. [s]"""
        if self.spent is not None:
            self.spent.add(max(work_s, LEAST_WORK_S))

    @property
    def left_s(self) -> float:
        """Time until then, 0 at the least. [s]"""
        return max(self.ends - self._now, 0.0)

    @property
    def passed(self) -> bool:
        """Whether there is no time left."""
        return self.left_s == 0.0

    def within(self, seconds: float) -> Deadline:
        """The moment in so many seconds, or this one where it is earlier."""
        return replace(self, ends=min(self.ends, self._now + seconds))

    def share(self, part: float) -> Deadline:
        """The end of a part of the time that is left."""
        return self if math.isinf(self.ends) else replace(self, ends=self._now + part * self.left_s)


NEVER: Final = Deadline(math.inf)
"""No deadline: what is done is limited by itself."""
