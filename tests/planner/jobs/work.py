"""Jobs that other processes can import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fleetplan.planner.jobs import LOCAL, open_jobs

LONGEST_WAIT_S = 20.0
"""For another job, which a busy machine may hold up."""


def run_jobs(
    function: Callable[[Any], Any],
    arguments: Sequence[Any],
    backend: str = LOCAL,
    workers: int = 1,
    here: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Run jobs of one kind."""
    with open_jobs(backend, workers, here) as run:
        yield from run(function, arguments)


def square(number: int) -> int:
    """Return the square, after a moment."""
    time.sleep(0.02)
    return number * number


def killed_once(marker: str) -> int:
    """End its process the first time that it runs, and return its number the second time."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


def killed_always(marker: str) -> int:
    """End its process."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def refused(number: int) -> int:
    """Fail as a bug does."""
    raise ValueError(f"job {number}")


def slowly(number: int) -> int:
    """Return the number after a while: a process can be ended before all of some are done."""
    time.sleep(0.4)
    return number


def whose(seconds: float) -> int:
    """Return the number of its process after a time."""
    time.sleep(seconds)
    return os.getpid()


def whose_after(files: tuple[str, ...]) -> int:
    """Return the number of its process once all files but the first are there, and make that."""
    own, *others = map(Path, files)
    _wait_for(others)
    own.touch()
    return os.getpid()


def killed_elsewhere(asked: tuple[int, str]) -> int:
    """End its process, unless it is a given one; that waits until another one ends, which makes a file."""
    parent, file = asked
    if os.getpid() != parent:
        Path(file).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    _wait_for([Path(file)])
    return parent


def _wait_for(files: Sequence[Path]) -> None:
    until = time.monotonic() + LONGEST_WAIT_S
    while not all(file.exists() for file in files) and time.monotonic() < until:
        time.sleep(0.01)
