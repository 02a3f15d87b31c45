"""Hardware that comes last, evaluated by other processes while this one evaluates the first.

They fill the caches of landscapes, operator tables and simulated rates, and nothing else: what this process
then finds there it would have computed itself, so no answer depends on them. They work from the last step of
the evaluation to the first, so that each reads the tables of other hardware, and end with their parent, which
ends them when it is done.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from fleetplan.fleet.files import is_cache_on
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.machine import child_environment, usable_cores
from fleetplan.planner.candidates.evaluations import Evaluations, HardwareStep

SWITCH: Final = "FLEETPLAN_EVALUATE_AHEAD"
"""Environment variable: `off` evaluates in one process."""

START_S: Final = 1.5
"""What another process takes to start, on one core. [s]"""

LEAST_LEFT_S: Final = 2 * START_S
"""Work left for which none is started: it takes half of what is left off this one, and begins later. [s]"""

MOST_PROCESSES: Final = 8
"""More processes than this wait for one another's tables. Each takes about 400 MB."""


@contextlib.contextmanager
def evaluating_ahead(
    fleet: Fleet, steps: Sequence[HardwareStep], least_left_s: float = LEAST_LEFT_S
) -> Iterator[Callable[[int], None]]:
    """Let other processes evaluate the last steps of a fleet, where that takes long and cores are free.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    steps : Sequence[HardwareStep]
        What is evaluated, in this order.
    least_left_s : float
        Work that this process does alone. [s]

    Yields
    ------
    callable
        To be told, before each evaluation of a service on one hardware, how many are left.
    """
    began_s: list[float] = []
    processes: list[subprocess.Popen[bytes]] = []
    most = _free_cores() if is_cache_on() and os.environ.get(SWITCH) != "off" else 0

    def about_to_evaluate(left: int) -> None:
        nonlocal most
        began_s.append(time.monotonic())
        lasted_s = [end - start for start, end in pairwise(began_s[-3:])]
        # The first on a hardware looks at its tables, also where nothing is evaluated: one of two does not.
        if not most or len(lasted_s) < 2 or min(lasted_s) * left < least_left_s:
            return
        # The step that this process is at counts as one that it does alone.
        count = min(most, len(steps) - 1)
        most = 0
        for number in range(count):
            part = steps[:0:-1][number::count]
            # Where no process can be started this one does the work.
            with contextlib.suppress(OSError):
                processes.append(_started(fleet, part))

    try:
        yield about_to_evaluate
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _free_cores() -> int:
    """Cores beside that of this process; none where it is one of several that share the work."""
    if multiprocessing.parent_process() is not None:
        return 0
    return min(usable_cores() - 1, MOST_PROCESSES)


def _started(fleet: Fleet, steps: Sequence[HardwareStep]) -> subprocess.Popen[bytes]:
    """Start a process that evaluates some steps of a fleet."""
    # Not a pipe: a large fleet fills it, and the process reads nothing before it has its imports.
    with tempfile.TemporaryFile() as given:
        pickle.dump((fleet, steps), given)
        given.seek(0)
        return subprocess.Popen(
            [sys.executable, "-m", "fleetplan.planner.candidates.ahead", str(os.getpid())],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A session of its own: Ctrl-C is for the parent, which ends it.
            start_new_session=True,
            # It starts no others itself.
            env=child_environment(**{SWITCH: "off"}),
        )


def main(arguments: Sequence[str]) -> None:
    """Evaluate what standard input says as long as the process with the given number is the parent."""
    (parent,) = (int(each) for each in arguments)
    fleet, steps = pickle.load(sys.stdin.buffer)
    # Whatever is wrong with the fleet, the parent comes to it and says so.
    Evaluations(fleet, out_of_time=lambda: os.getppid() != parent).evaluate(steps)


if __name__ == "__main__":
    main(sys.argv[1:])
