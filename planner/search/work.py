"""Work, converted to seconds that are the same on every machine: the limit of reproducible runs.

HiGHS counts simplex iterations in all its algorithms, and the count is the same in every run. The time of an
iteration depends on the program. CPU seconds per million iterations, on one core of an EPYC with HiGHS 1.16:
blocks of 170 entries 57, of 1,200 entries 69; masters of 8,600 entries 119, of 16,800 entries 145, of 31,000
entries 163; whole models of 1,600 entries 74, of 8,200 entries 151.

Models are built in Python. A question may build hundreds of models that a solver decides at once, so building
them counts by size.

HiGHS accepts a limit of nodes, not of iterations. A node takes 16 to 22 ms in masters of 8,600 to 31,000
entries, 1.6 ms in a whole model of 1,600 entries, and 6 ms in one of 8,200.
"""

from __future__ import annotations

import time
from typing import Final

SECONDS_AN_ITERATION: Final = 6e-5
"""Time of an iteration, whatever the program. [s]"""

SECONDS_AN_ITERATION_AND_ENTRY: Final = 5e-9
"""Additional time per iteration and matrix entry. [s]"""

GROWING_ITERATION_S: Final = 2e-4
"""Time of an iteration in a linear program that grows by column generation: 0.17, 0.20, 0.17 and 0.3 ms with
20, 72, 118 and 404 thousand rows, on one core of an EPYC with HiGHS 1.16. [s]"""

BUILDING_S_A_VARIABLE: Final = 1e-4
"""Time per model variable to build a problem, its model and its blocks: 94 us with 1,400 variables, 112 to
117 us with 5,000 to 72,000, on one core of a busy EPYC. [s]"""

ITERATIONS_A_NODE: Final = 60
"""Iterations per node, cuts and heuristics included: 20 to 130 in the programs above."""


class TimeSpent:
    """Time that a question has spent: clock time, or solver work in reproducible runs.

    Parameters
    ----------
    counted : bool
        Whether to count work instead of clock time.
    """

    def __init__(self, counted: bool) -> None:
        self._counted = counted
        self._started = time.monotonic()
        self._work_s = 0.0

    def add(self, work_s: float) -> None:
        """Charge the work of a solve. [s]"""
        self._work_s += work_s

    @property
    def work_s(self) -> float:
        """Return the work of all solves so far. [s]"""
        return self._work_s

    @property
    def clock_s(self) -> float:
        """Return the clock time so far. [s]"""
        return time.monotonic() - self._started

    @property
    def seconds(self) -> float:
        """Return the time or work so far. [s]"""
        return self.work_s if self._counted else self.clock_s


def building_s(variables: int) -> float:
    """Return the time to build a model with this many variables. [s]"""
    return BUILDING_S_A_VARIABLE * variables


def iteration_s(entries: int) -> float:
    """Return the time of an iteration in a program with this many entries. [s]"""
    return SECONDS_AN_ITERATION + SECONDS_AN_ITERATION_AND_ENTRY * entries


def nodes_within(seconds: float, entries: int) -> int:
    """Return the number of search nodes that fit in a time, by the number of entries."""
    return max(1, round(seconds / (ITERATIONS_A_NODE * iteration_s(entries))))
