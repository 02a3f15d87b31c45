"""When the jobs of a search were done: what a schedule on other numbers of cores is computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobTime:
    """When a job was done.

    Attributes
    ----------
    batch : int
        Number of the jobs that were given out together.
    kind : str
        The class of the job.
    seat : int
        Who did it.
    began_s, wall_s : float
        When it began, by an arbitrary clock, and how long it took: its share, of several on one way. [s]
    """

    batch: int
    kind: str
    seat: int
    began_s: float
    wall_s: float


OnJob = Callable[[JobTime], None]
"""Told of each job that was done, by the thread of its seat."""


def nobody(_: JobTime) -> None:
    """Listen to no times."""
