"""Deferral of offline work: the slices of the day within its deadline.

Requests that arrive evenly in one slice and are deferred to another are served in order of arrival, evenly
over that slice. The first waits from start to start, the last from end to end, any other in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetplan.fleet.units import HOURS_PER_DAY
from fleetplan.planner.problem.moments import Moment


def longest_wait_hours(moments: Sequence[Moment], arises_in: int, done_in: int) -> float:
    """Return the longest wait of a request that arises in one moment and is done in another of the day. [h]

    Parameters
    ----------
    moments : Sequence[Moment]
        All moments; those of a day are consecutive.
    arises_in, done_in : int
        Two moments of the same period and demand scenario. An earlier slice counts as that of the next day.
    """
    if arises_in == done_in:
        return 0.0
    starts = _starts(moments, arises_in)
    from_start = (starts[done_in] - starts[arises_in]) % HOURS_PER_DAY
    return max(from_start, from_start + moments[done_in].hours - moments[arises_in].hours)


def work_places(moments: Sequence[Moment], deadline_hours: float) -> Mapping[int, tuple[int, ...]]:
    """Return the moments in which the work of each moment may be done.

    Parameters
    ----------
    moments : Sequence[Moment]
        All moments.
    deadline_hours : float
        Longest time from a request to its answer. [h]
    """
    return {
        m: tuple(
            other
            for other in _same_day(moments, m)
            if longest_wait_hours(moments, m, other) <= deadline_hours
        )
        for m in range(len(moments))
    }


def _same_day(moments: Sequence[Moment], m: int) -> list[int]:
    here = (moments[m].period, moments[m].scenario, moments[m].day_kind)
    return [
        other for other, each in enumerate(moments) if (each.period, each.scenario, each.day_kind) == here
    ]


def _starts(moments: Sequence[Moment], m: int) -> dict[int, float]:
    """Return the start of each moment of a day, relative to its first. [h]"""
    starts, hours = {}, 0.0
    for other in _same_day(moments, m):
        starts[other] = hours
        hours += moments[other].hours
    return starts
