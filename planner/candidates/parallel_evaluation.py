"""Parallel evaluation ahead: other processes evaluate the last hardware while this one evaluates the first.

They only fill the caches of landscapes, operator tables and simulated rates. This process would compute the
same values, so no answer depends on them. They work from the last step to the first, so that each reads the
tables of other hardware. They end with their parent, which ends them when it is done.

A single-threaded process on Linux forks: its copies have the imports, which take a tenth of the first check
of twelve services, and start at once. Other processes start new interpreters.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from fleetplan.fleet.files import is_cache_on
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.machine import child_environment, usable_cores
from fleetplan.perfmodel.landscape.cache import cache_folder
from fleetplan.planner.candidates.evaluations import Evaluations, HardwareStep

SWITCH: Final = "FLEETPLAN_EVALUATE_AHEAD"
"""Environment variable: `off` evaluates in one process."""

START_S: Final = 1.5
"""Time to start another interpreter, on one core. [s]"""

FORK_S: Final = 0.05
"""Time of a fork, including the pages that both write. [s]"""

LEAST_LEFT_STARTS: Final = 2
"""Least remaining work for which processes are started, as a multiple of a start: a process takes over half
of it, and begins later."""

SURELY_LONG: Final = 24
"""Evaluations without cached results that surely take longer than a fork: each takes at least a twentieth of
a second."""

MOST_PROCESSES: Final = 8
"""More processes would wait for each other's tables. Each takes about 400 MB."""


@contextlib.contextmanager
def evaluating_in_parallel(
    fleet: Fleet, steps: Sequence[HardwareStep], least_left_s: float | None = None
) -> Iterator[Callable[[int], None]]:
    """Evaluate the last steps of a fleet in other processes, if that takes long and cores are free.

    Parameters
    ----------
    fleet : Fleet
        Resolved fleet.
    steps : Sequence[HardwareStep]
        Steps in order of evaluation.
    least_left_s : float, optional
        Work that this process does alone; by default twice the time of a start. [s]

    Yields
    ------
    callable
        Function to call before each evaluation of a service on one hardware, with the number of evaluations
        left.
    """
    began_s: list[float] = []
    ends: list[Callable[[], None]] = []
    most = _free_cores() if is_cache_on() and os.environ.get(SWITCH) != "off" else 0
    start_s = FORK_S if _may_fork() else START_S
    least_s = LEAST_LEFT_STARTS * start_s if least_left_s is None else least_left_s

    def about_to_evaluate(left: int) -> None:
        nonlocal most
        began_s.append(time.monotonic())
        lasted_s = [end - start for start, end in pairwise(began_s[-3:])]
        # The first evaluation on a hardware opens its tables, even if nothing is evaluated; of two in a row,
        # one does not.
        is_long = len(lasted_s) == 2 and min(lasted_s) * left >= least_s
        if not most or not (is_long or (len(began_s) == 1 and _is_surely_long(left))):
            return
        # This process keeps the step it is at.
        count = min(most, len(steps) - 1)
        most = 0
        for number in range(count):
            part = steps[:0:-1][number::count]
            # If no process can be started, this one does the work.
            with contextlib.suppress(OSError):
                ends.append(_started(fleet, part))

    try:
        yield about_to_evaluate
    finally:
        for end in ends:
            end()


def _free_cores() -> int:
    """Return the cores that this process leaves free; none if it is itself one of several."""
    if multiprocessing.parent_process() is not None:
        return 0
    return min(usable_cores() - 1, MOST_PROCESSES)


def _may_fork() -> bool:
    """Return whether a fork is safe: no other thread holds a lock."""
    return sys.platform == "linux" and threading.active_count() == 1


def _is_surely_long(left: int) -> bool:
    """Return whether these evaluations surely take longer than a fork, before the first is timed."""
    return left >= SURELY_LONG and _may_fork() and not any(cache_folder().glob("*.npz"))


def _started(fleet: Fleet, steps: Sequence[HardwareStep]) -> Callable[[], None]:
    """Evaluate steps of a fleet in another process; return a function that ends it."""
    return _forked(fleet, steps) if _may_fork() else _spawned(fleet, steps)


def _forked(fleet: Fleet, steps: Sequence[HardwareStep]) -> Callable[[], None]:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_evaluate_silently, args=(fleet, steps, os.getpid()), daemon=True)
    with warnings.catch_warnings():
        # From Python 3.12 it warns of threads of numerical libraries, which restart them after a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()

    def end() -> None:
        process.kill()
        process.join()
        process.close()

    return end


def _spawned(fleet: Fleet, steps: Sequence[HardwareStep]) -> Callable[[], None]:
    # Not a pipe: a large fleet fills it before the process, still importing, reads.
    with tempfile.TemporaryFile() as given:
        pickle.dump((fleet, steps), given)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "fleetplan.planner.candidates.parallel_evaluation", str(os.getpid())],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A separate session: Ctrl-C goes to the parent, which ends it.
            start_new_session=True,
            # It starts no processes itself.
            env=child_environment(**{SWITCH: "off"}),
        )

    def end() -> None:
        process.kill()
        process.wait()

    return end


def _evaluate_silently(fleet: Fleet, steps: Sequence[HardwareStep], parent: int) -> None:
    """Evaluate steps in a forked process, in a separate session without a terminal."""
    os.setsid()
    with Path(os.devnull).open("r+", encoding="utf-8") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
        # The caller may have replaced these streams.
        sys.stdout = sys.stderr = nothing
        _evaluate(fleet, steps, parent)


def _evaluate(fleet: Fleet, steps: Sequence[HardwareStep], parent: int) -> None:
    """Evaluate steps while this process is the child of the given parent."""
    # The parent reports errors in the fleet when it reaches them.
    Evaluations(fleet, out_of_time=lambda: os.getppid() != parent).evaluate(steps)


def main(arguments: Sequence[str]) -> None:
    """Evaluate the steps from standard input while this process is the child of the given parent."""
    (parent,) = (int(each) for each in arguments)
    fleet, steps = pickle.load(sys.stdin.buffer)
    _evaluate(fleet, steps, parent)


if __name__ == "__main__":
    main(sys.argv[1:])
