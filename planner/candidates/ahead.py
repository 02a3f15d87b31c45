"""Services that come last, evaluated by other processes while this one evaluates the first.

They fill the caches of landscapes, operator tables and simulated rates, and nothing else: what this process
then finds there it would have computed itself, so no answer depends on them. They work from the end of the
fleet to its beginning and end with their parent, which ends them when it is done.
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
from dataclasses import replace
from typing import Final

from fleetplan.fleet.files import is_cache_on
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.machine import child_environment, usable_cores

SWITCH: Final = "FLEETPLAN_EVALUATE_AHEAD"
"""Environment variable: `off` evaluates in one process."""

AFTER_S: Final = 1.5
"""Evaluation for which no other process is started: about what one takes to start, on one core. [s]"""

LEAST_SERVICES: Final = 3
"""Fewer services are evaluated by one process: their tables are most of the work, and are read by each."""

MOST_PROCESSES: Final = 8
"""More processes than this wait for one another's tables. Each takes about 400 MB."""


@contextlib.contextmanager
def evaluating_ahead(fleet: Fleet, after_s: float = AFTER_S) -> Iterator[Callable[[int], None]]:
    """Let other processes evaluate the last services of a fleet, where that takes long and cores are free.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    after_s : float
        How long evaluation takes before they are started. [s]

    Yields
    ------
    callable
        To be told, before each evaluation, how many services are left.
    """
    start_s = time.monotonic()
    processes: list[subprocess.Popen[bytes]] = []
    most = _free_cores() if is_cache_on() and os.environ.get(SWITCH) != "off" else 0

    def about_to_evaluate(left: int) -> None:
        if processes or not most or left < LEAST_SERVICES or time.monotonic() - start_s < after_s:
            return
        count = min(most, left - 1)
        last = fleet.services[len(fleet.services) - left + 1 :]
        for number in range(count):
            part = last[::-1][number::count]
            # The other way round as well: of one service both then meet in the middle.
            turned = replace(fleet, services=part, pools=fleet.pools[::-1], offers=fleet.offers[::-1])
            # Where no process can be started this one does the work.
            with contextlib.suppress(OSError):
                processes.append(_started(turned))

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


def _started(fleet: Fleet) -> subprocess.Popen[bytes]:
    """Start a process that evaluates the services of a fleet."""
    # Not a pipe: a large fleet fills it, and the process reads nothing before it has its imports.
    with tempfile.TemporaryFile() as given:
        pickle.dump(fleet, given)
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
    """Evaluate the fleet on standard input as long as the process with the given number is the parent."""
    from fleetplan.planner.candidates.build import build_candidates  # noqa: PLC0415

    (parent,) = (int(each) for each in arguments)
    fleet: Fleet = pickle.load(sys.stdin.buffer)
    # Whatever is wrong with the fleet, the parent comes to it and says so.
    build_candidates(fleet, lambda _: None, out_of_time=lambda: os.getppid() != parent)


if __name__ == "__main__":
    main(sys.argv[1:])
