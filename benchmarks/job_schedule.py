"""What a search would take on other numbers of cores: its measured jobs, scheduled anew.

A search is a client and batches of jobs. The client works alone before each batch (it reads answers, builds
masters and the next jobs), gives out the batch, and waits for all of it. Where it may go on early it waits
until no job waits for a core and one is idle, and the batch before is done, as
planner/search/blocks/block_pricing.py does. Each job begins on the first core that is free, in the order in
which the search has begun them. What no number of cores shortens is the critical path: the client's own work,
and the longest job of each batch.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

UNLIMITED: Final = 10**6
"""Cores that are more than any batch has jobs."""


@dataclass(frozen=True, slots=True)
class JobBatch:
    """Jobs that were given out together.

    Attributes
    ----------
    client_s : float
        Work of the client before it gives them out. [s]
    job_s : tuple[float, ...]
        Of each job, in the order in which they begin. [s]
    may_go_on : bool
        Whether the client may go on before the last one has ended.
    kind : str
        The class of the longest job.
    """

    client_s: float
    job_s: tuple[float, ...]
    may_go_on: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredJob:
    """A job as it was measured.

    Attributes
    ----------
    batch : int
        Number of its batch.
    kind : str
        Its class.
    began_s, ended_s : float
        By the clock on the wall. [s]
    work_s : float
        What it takes alone on a core. [s]
    """

    batch: int
    kind: str
    began_s: float
    ended_s: float
    work_s: float


def batches_of(jobs: Sequence[MeasuredJob], client_s: float, n_blocks: int) -> list[JobBatch]:
    """Batches of a search that waited for each of them.

    Parameters
    ----------
    jobs : Sequence[MeasuredJob]
        All jobs.
    client_s : float
        Work of the client, which is shared out over the batches by the time that passed before each. [s]
    n_blocks : int
        Batches of so many jobs price all blocks: the client may go on before they end.
    """
    grouped: dict[int, list[MeasuredJob]] = {}
    for job in sorted(jobs, key=lambda each: (each.batch, each.began_s)):
        grouped.setdefault(job.batch, []).append(job)
    before = [0.0]
    ended_s = None
    for own in grouped.values():
        if ended_s is not None:
            before.append(max(own[0].began_s - ended_s, 0.0))
        ended_s = max(each.ended_s for each in own)
    share = client_s / sum(before) if sum(before) else 0.0
    longest = (max(own, key=lambda each: each.work_s).kind for own in grouped.values())
    return [
        JobBatch(share * gap, tuple(each.work_s for each in own), len(own) >= n_blocks, kind)
        for gap, own, kind in zip(before, grouped.values(), longest, strict=True)
    ]


def critical_s(batch: JobBatch) -> float:
    """What a batch takes on any number of cores: the client's work, and the longest job. [s]"""
    return batch.client_s + max(batch.job_s)


def makespan_s(batches: Sequence[JobBatch], cores: int, early: bool = False) -> float:
    """Time of the whole on some cores, beside that of the client. [s]

    Parameters
    ----------
    batches : Sequence[JobBatch]
        In their order.
    cores : int
        For jobs.
    early : bool
        Whether the client goes on early where it may.
    """
    most = max((len(batch.job_s) for batch in batches), default=1)
    # A batch that the client has left may still take as many.
    free = [0.0] * min(cores, 2 * most)
    now = left_until = 0.0
    for batch in batches:
        now += batch.client_s
        ends = now
        for seconds in batch.job_s:
            end = max(heapq.heappop(free), now) + seconds
            heapq.heappush(free, end)
            ends = max(ends, end)
        if early and batch.may_go_on:
            now, left_until = max(now, left_until, min(free[0], ends)), ends
        else:
            now = ends
    return max(now, left_until)
