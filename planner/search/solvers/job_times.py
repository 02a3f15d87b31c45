"""Times of a search's jobs, from which schedules on other numbers of cores are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobTime:
    """Time of one job.

    Attributes
    ----------
    batch : int
        Number of the batch of jobs.
    kind : str
        Class name of the job.
    seat : int
        Seat that ran it.
    began_s, wall_s : float
        Start by an arbitrary clock, and duration: an even share if several were sent together. [s]
    """

    batch: int
    kind: str
    seat: int
    began_s: float
    wall_s: float


OnJob = Callable[[JobTime], None]
"""Callback for each finished job, called in the thread of its seat."""


def nobody(_: JobTime) -> None:
    """Ignore job times."""
