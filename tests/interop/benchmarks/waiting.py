"""Time for which processes wait for a CPU, from the counters of Linux."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

NS_PER_S: Final = 1e9
EVERY_S: Final = 0.02
"""Between two looks at the counts. [s]"""

_PROC: Final = Path("/proc")


class ProcessorWait:
    """Time that a process, its children and this one were ready to run and did not, over time. [s]"""

    def __init__(self) -> None:
        self._at: list[float] = []
        self._waited: list[float] = []
        self._last: Mapping[str, float] = {}

    def note(self, waited_s: Mapping[str, float]) -> None:
        """Note what each thread waited so far. Threads that ended take their counts with them."""
        more = sum(max(0.0, each - self._last.get(thread, 0.0)) for thread, each in waited_s.items())
        self._at.append(time.monotonic())
        self._waited.append(more + (self._waited[-1] if self._waited else 0.0))
        self._last = waited_s

    def between(self, start: float, end: float) -> float:
        """Return what was waited between two moments of the monotonic clock; 0 where nothing is counted."""
        if not self._at:
            return 0.0
        first, last = np.interp((start, end), self._at, self._waited)
        return float(last - first)


@contextmanager
def watched(process: int, own: int) -> Iterator[ProcessorWait]:
    """Count until the end of the block.

    Parameters
    ----------
    process, own : int
        A process, whose children count too, and another one without its children.
    """
    found, done = ProcessorWait(), threading.Event()

    def watch() -> None:
        while not done.wait(EVERY_S):
            processes = (own, *_tree(process))
            found.note({thread: s for each in processes for thread, s in _waited_s(each)})

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def _tree(process: int) -> Iterator[int]:
    yield process
    for each in _PROC.glob(f"{process}/task/*/children"):
        for child in _text(each).split():
            yield from _tree(int(child))


def _waited_s(process: int) -> Iterator[tuple[str, float]]:
    """Threads of a process; Linux counts time on the processor, time before it, and turns."""
    for each in _PROC.glob(f"{process}/task/*/schedstat"):
        counts = _text(each).split()
        if len(counts) > 1:
            yield each.parent.name, float(counts[1]) / NS_PER_S


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
