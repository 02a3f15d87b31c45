"""HiGHS processes of a cluster worker, for searches that run elsewhere."""

from __future__ import annotations

import pickle
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.seats import ProcessSeats

MOST_SEARCHES: Final = 4
"""Searches whose programs a worker keeps, because clients may die without cleaning up."""

_PROGRAMS: Final[dict[str, Programs]] = {}
_RUNNING: Final[defaultdict[str, set[ProcessSeats]]] = defaultdict(set)
_LOCK: Final = threading.Lock()


class UnknownProgramsError(Exception):
    """A worker lacks the programs of a search."""


def answers_here(jobs: Sequence[bytes], key: str, programs: Programs | None) -> bytes:
    """Answer jobs in a process of this machine, which then waits a few seconds for more; pickled.

    Parameters
    ----------
    jobs : Sequence[bytes]
        Pickled jobs, done one by one.
    key : str
        Key of the search.
    programs : Programs or None
        Programs that jobs refer to by number; None if this worker has them.

    Raises
    ------
    UnknownProgramsError
        If the worker lacks the programs.
    ProcessLostError
        If `end_running` was called for the search.
    SeatsLostError
        If the process is killed at each attempt.
    """
    with _LOCK:
        known = _PROGRAMS.setdefault(key, programs) if programs is not None else _PROGRAMS.get(key)
        if known is None:
            raise UnknownProgramsError(key)
        while len(_PROGRAMS) > MOST_SEARCHES:
            del _PROGRAMS[next(iter(_PROGRAMS))]
    seats = ProcessSeats(1, known)
    with _LOCK:
        _RUNNING[key].add(seats)
    try:
        answers = seats.ask(0, jobs)
    except BaseException:
        seats.end()
        raise
    finally:
        with _LOCK:
            _RUNNING[key].discard(seats)
    seats.leave()
    return pickle.dumps(answers, protocol=pickle.HIGHEST_PROTOCOL)


async def end_running(key: str) -> None:
    """End the processes of a search and forget its programs; runs in a worker's event loop."""
    with _LOCK:
        _PROGRAMS.pop(key, None)
        running = _RUNNING.pop(key, set())
    for seats in running:
        seats.end()
