"""Processes of HiGHS for searches that run elsewhere: what a worker of a cluster does for them."""

from __future__ import annotations

import pickle
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.seats import ProcessSeats

_RUNNING: Final[defaultdict[str, set[ProcessSeats]]] = defaultdict(set)
_LOCK: Final = threading.Lock()


def answers_here(jobs: Sequence[bytes], programs: Programs) -> bytes:
    """Answers of a process of this machine, pickled, which then waits for some seconds for more jobs.

    Parameters
    ----------
    jobs : Sequence[bytes]
        Pickled; done one after the other.
    programs : Programs
        That they name by number; their key names the search.

    Raises
    ------
    ProcessLostError
        If `end_running` was called for the search.
    SeatsLostError
        If the process is killed each time.
    """
    seats = ProcessSeats(1, programs)
    with _LOCK:
        _RUNNING[programs.key].add(seats)
    try:
        answers = seats.ask(0, jobs)
    except BaseException:
        seats.end()
        raise
    finally:
        with _LOCK:
            _RUNNING[programs.key].discard(seats)
    seats.leave()
    return pickle.dumps(answers, protocol=pickle.HIGHEST_PROTOCOL)


async def end_running(key: str) -> None:
    """End the processes that do jobs of a search now; for the event loop of a worker."""
    with _LOCK:
        running = _RUNNING.pop(key, set())
    for seats in running:
        seats.end()
