"""Processes of HiGHS for searches that run elsewhere: what a worker of a cluster does for them."""

from __future__ import annotations

import pickle
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.seats import ProcessSeats

MOST_SEARCHES: Final = 4
"""Searches whose programs a worker keeps: of one whose client has died, until others come."""

_PROGRAMS: Final[dict[str, Programs]] = {}
_RUNNING: Final[defaultdict[str, set[ProcessSeats]]] = defaultdict(set)
_LOCK: Final = threading.Lock()


class UnknownProgramsError(Exception):
    """A worker was not sent the programs of a search."""


def answers_here(jobs: Sequence[bytes], key: str, programs: Programs | None) -> bytes:
    """Answers of a process of this machine, pickled, which then waits for some seconds for more jobs.

    Parameters
    ----------
    jobs : Sequence[bytes]
        Pickled; done one after the other.
    key : str
        Of the search.
    programs : Programs or None
        That they name by number; None for those that this worker was sent before.

    Raises
    ------
    UnknownProgramsError
        If it was sent none, and has to be.
    ProcessLostError
        If `end_running` was called for the search.
    SeatsLostError
        If the process is killed each time.
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
    """End the processes that do jobs of a search now, and forget it; for the event loop of a worker."""
    with _LOCK:
        _PROGRAMS.pop(key, None)
        running = _RUNNING.pop(key, set())
    for seats in running:
        seats.end()
