"""Work as time that is the same on every machine: what a run that must repeat is limited by.

HiGHS counts the iterations of its simplex in whatever it does, and they are the same in every run. What one
takes depends on the program. Seconds of CPU a million of them, on one core of an EPYC with HiGHS 1.16: blocks
of 170 entries 57, of 1,200 entries 69; masters of 8,600 entries 119, of 16,800 entries 145, of 31,000 entries
163; whole models of 1,600 entries 74, of 8,200 entries 151.

Models are built in Python. A question about a fleet may build hundreds, most of which a solver decides at
once, so building counts by their size.

HiGHS cannot be limited by iterations, only by nodes: a node of a master of 8,600 to 31,000 entries took 16 to
22 ms, of a whole model of 1,600 entries 1.6 ms, of 8,200 entries 6 ms.
"""

from __future__ import annotations

import time
from typing import Final

SECONDS_AN_ITERATION: Final = 6e-5
"""Of an iteration, whatever the program. [s]"""

SECONDS_AN_ITERATION_AND_ENTRY: Final = 5e-9
"""What each entry of the program adds to that. [s]"""

GROWING_ITERATION_S: Final = 2e-4
"""Of an iteration of a linear program that grows, of which few variables are there: 0.17, 0.20, 0.17 and
0.3 ms on one core of an EPYC with HiGHS 1.16 in programs of 20, 72, 118 and 404 thousand rows. [s]"""

BUILDING_S_A_VARIABLE: Final = 1e-4
"""Of a problem, its model and the division of that into blocks, over the model's variables: 94 us where there
are 1,400, 112 to 117 us where there are 5,000 to 72,000, on one core of a busy EPYC. [s]"""

ITERATIONS_A_NODE: Final = 60
"""Iterations of a node, its part of cuts and heuristics included: 20 to 130 in the programs above."""


class Spent:
    """What a question has spent: by the clock, or the work of its solves where the clock must not decide.

    Parameters
    ----------
    counted : bool
        Whether work counts.
    """

    def __init__(self, counted: bool) -> None:
        self._counted = counted
        self._started = time.monotonic()
        self._work_s = 0.0

    def add(self, work_s: float) -> None:
        """Note the work of a solve. [s]"""
        self._work_s += work_s

    @property
    def work_s(self) -> float:
        """Work of the solves so far. [s]"""
        return self._work_s

    @property
    def clock_s(self) -> float:
        """Time by the clock so far. [s]"""
        return time.monotonic() - self._started

    @property
    def seconds(self) -> float:
        """What is spent so far. [s]"""
        return self.work_s if self._counted else self.clock_s


def building_s(variables: int) -> float:
    """Time to build a model of so many variables, and what it is built from. [s]"""
    return BUILDING_S_A_VARIABLE * variables


def iteration_s(entries: int) -> float:
    """Time of an iteration in a program of so many entries. [s]"""
    return SECONDS_AN_ITERATION + SECONDS_AN_ITERATION_AND_ENTRY * entries


def nodes_within(seconds: float, entries: int) -> int:
    """Nodes of a tree that take about so long in a program of so many entries."""
    return max(1, round(seconds / (ITERATIONS_A_NODE * iteration_s(entries))))
