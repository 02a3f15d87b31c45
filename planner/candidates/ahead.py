"""Hardware that comes last, evaluated by other processes while this one evaluates the first.

They fill the caches of landscapes, operator tables and simulated rates, and nothing else: what this process
then finds there it would have computed itself, so no answer depends on them. They work from the last step of
the evaluation to the first, so that each reads the tables of other hardware, and end with their parent, which
ends them when it is done.

A process of one thread on Linux forks: its copies have the imports, which take a tenth of the first check of
twelve services, and begin at once. Any other one starts programs.
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
"""What another program takes to start, on one core. [s]"""

FORK_S: Final = 0.05
"""What a fork of this process takes, with the pages that both write. [s]"""

LEAST_LEFT_STARTS: Final = 2
"""Work left for which none is started, in times of a start: it takes half of what is left off this one, and
begins later."""

SURELY_LONG: Final = 24
"""Evaluations of a service on one hardware, none of them kept, that take longer than a fork in any case:
each takes a twentieth of a second and more."""

MOST_PROCESSES: Final = 8
"""More processes than this wait for one another's tables. Each takes about 400 MB."""


@contextlib.contextmanager
def evaluating_ahead(
    fleet: Fleet, steps: Sequence[HardwareStep], least_left_s: float | None = None
) -> Iterator[Callable[[int], None]]:
    """Let other processes evaluate the last steps of a fleet, where that takes long and cores are free.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    steps : Sequence[HardwareStep]
        What is evaluated, in this order.
    least_left_s : float, optional
        Work that this process does alone; twice what it takes to start another by default. [s]

    Yields
    ------
    callable
        To be told, before each evaluation of a service on one hardware, how many are left.
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
        # The first on a hardware looks at its tables, also where nothing is evaluated: one of two does not.
        is_long = len(lasted_s) == 2 and min(lasted_s) * left >= least_s
        if not most or not (is_long or (len(began_s) == 1 and _is_surely_long(left))):
            return
        # The step that this process is at counts as one that it does alone.
        count = min(most, len(steps) - 1)
        most = 0
        for number in range(count):
            part = steps[:0:-1][number::count]
            # Where no process can be started this one does the work.
            with contextlib.suppress(OSError):
                ends.append(_started(fleet, part))

    try:
        yield about_to_evaluate
    finally:
        for end in ends:
            end()


def _free_cores() -> int:
    """Cores beside that of this process; none where it is one of several that share the work."""
    if multiprocessing.parent_process() is not None:
        return 0
    return min(usable_cores() - 1, MOST_PROCESSES)


def _may_fork() -> bool:
    """Tell whether a fork of this process is sure to go on: no other thread holds a lock in it."""
    return sys.platform == "linux" and threading.active_count() == 1


def _is_surely_long(left: int) -> bool:
    """Tell whether so many evaluations take long before the first one is timed: a fork can begin with it."""
    return left >= SURELY_LONG and _may_fork() and not any(cache_folder().glob("*.npz"))


def _started(fleet: Fleet, steps: Sequence[HardwareStep]) -> Callable[[], None]:
    """Let another process evaluate some steps of a fleet; return what ends it."""
    return _forked(fleet, steps) if _may_fork() else _spawned(fleet, steps)


def _forked(fleet: Fleet, steps: Sequence[HardwareStep]) -> Callable[[], None]:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_evaluate_silently, args=(fleet, steps, os.getpid()), daemon=True)
    with warnings.catch_warnings():
        # From Python 3.12 on it warns of threads that numerical libraries have, which start them anew.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()

    def end() -> None:
        process.kill()
        process.join()
        process.close()

    return end


def _spawned(fleet: Fleet, steps: Sequence[HardwareStep]) -> Callable[[], None]:
    # Not a pipe: a large fleet fills it, and the process reads nothing before it has its imports.
    with tempfile.TemporaryFile() as given:
        pickle.dump((fleet, steps), given)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "fleetplan.planner.candidates.ahead", str(os.getpid())],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A session of its own: Ctrl-C is for the parent, which ends it.
            start_new_session=True,
            # It starts no others itself.
            env=child_environment(**{SWITCH: "off"}),
        )

    def end() -> None:
        process.kill()
        process.wait()

    return end


def _evaluate_silently(fleet: Fleet, steps: Sequence[HardwareStep], parent: int) -> None:
    """Evaluate steps in a fork of a process, in a session of its own and without its terminal."""
    os.setsid()
    with Path(os.devnull).open("r+", encoding="utf-8") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
        # Whoever calls may have put others in their place.
        sys.stdout = sys.stderr = nothing
        _evaluate(fleet, steps, parent)


def _evaluate(fleet: Fleet, steps: Sequence[HardwareStep], parent: int) -> None:
    """Evaluate steps as long as the process with the given number is the parent."""
    # Whatever is wrong with the fleet, the parent comes to it and says so.
    Evaluations(fleet, out_of_time=lambda: os.getppid() != parent).evaluate(steps)


def main(arguments: Sequence[str]) -> None:
    """Evaluate what standard input says as long as the process with the given number is the parent."""
    (parent,) = (int(each) for each in arguments)
    fleet, steps = pickle.load(sys.stdin.buffer)
    _evaluate(fleet, steps, parent)


if __name__ == "__main__":
    main(sys.argv[1:])
