"""When everything that belongs to one question is to be over, however many solves it takes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment that is passed down to every step of an answer, so that all of them together keep it.

    Attributes
    ----------
    ends : float
        By `time.monotonic`; infinite for none. [s]
    """

    ends: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The moment in so many seconds."""
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Time until then, 0 at the least. [s]"""
        return max(self.ends - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether there is no time left."""
        return self.left_s == 0.0

    def within(self, seconds: float) -> Deadline:
        """The moment in so many seconds, or this one where it is earlier."""
        return Deadline(min(self.ends, time.monotonic() + seconds))

    def share(self, part: float) -> Deadline:
        """The end of a part of the time that is left."""
        return self if math.isinf(self.ends) else Deadline(time.monotonic() + part * self.left_s)


NEVER: Final = Deadline(math.inf)
"""No deadline: what is done is limited by itself."""
