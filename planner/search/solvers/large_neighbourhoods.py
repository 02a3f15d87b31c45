"""Large neighbourhood search on any integer program, in the process that solves it.

Most integer variables keep the values of the best plan, some connected ones are reoptimised, and so on. HiGHS
proves a good bound of a small fleet within seconds, but may need a minute for a plan that this finds in ten
neighbourhoods (benchmarks/RESULTS.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    Array,
    Effort,
    Indices,
    Job,
    Mask,
    Rows,
    Solver,
)

FREE_SHARE: Final = 0.4
"""Share of the integer variables that the first neighbourhood frees."""

GROWTH: Final = 1.1
"""Factor on the share after a neighbourhood of little work, and divisor after one of much."""

LITTLE_WORK_S, MUCH_WORK_S = 0.3, 1.0
"""Work of a neighbourhood that counts as little, and as much, as in `Answer`. [s]"""

MOST_NODES: Final = 60
"""Search nodes of a neighbourhood."""

GAP: Final = 1e-3
"""Gap of a neighbourhood, and least relative gain that counts."""

WIDEST_ROW: Final = 60
"""Most entries of a row that connects variables; longer rows, such as budgets, connect all with all."""

PATIENCE: Final = 6
"""Consecutive neighbourhoods without gain after which a job ends."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NeighbourhoodsJob:
    """Plan to improve by neighbourhoods.

    Attributes
    ----------
    program : Rows
        Whole program.
    cost : Array
        Objective coefficients.
    start : Array
        The plan.
    target : float
        Objective that is good enough. [objective units]
    work_limit_s : float
        Work after which no neighbourhood starts, as in `Answer`. [s]
    seed : int
        Random seed of the neighbourhoods.
    length : float
        Expected length, as in `Job`.
    """

    program: Rows
    cost: Array
    start: Array
    target: float
    work_limit_s: float
    seed: int
    length: float = 0.0

    def run(self, solver: Solver) -> Answer:
        """Improve the plan; the answer has no bound."""
        search = LargeNeighbourhoods(self.program, self.cost, self.seed, PATIENCE)
        values, objective, spent_s = self.start, float(self.cost @ self.start), 0.0
        while not search.over and spent_s < self.work_limit_s and objective > self.target:
            answer = solver(search.job(values))
            spent_s += answer.work_s
            if search.gains(answer, objective) and answer.values is not None:
                values, objective = answer.values, answer.objective
        return Answer(values, objective, -np.inf)


class LargeNeighbourhoods:
    """Generator of neighbourhoods of a plan.

    Parameters
    ----------
    program : Rows
        Whole program.
    cost : Array
        Objective coefficients.
    seed : int
        Random seed.
    patience : int
        Consecutive neighbourhoods without gain after which the search is over.
    """

    def __init__(self, program: Rows, cost: Array, seed: int, patience: int) -> None:
        self._program, self._cost, self._patience = program, cost, patience
        self._graph, self._draw = _Graph(program), np.random.default_rng(seed)
        self._whole = np.flatnonzero(program.whole)
        self._share, self._idle = FREE_SHARE, 0

    @property
    def over(self) -> bool:
        """Return whether nothing can change, or the last neighbourhoods gained nothing."""
        return self._idle >= self._patience or not len(self._whole)

    def job(self, values: Array) -> Job:
        """Return the next neighbourhood, in which most integer variables keep these values."""
        program, count = self._program, max(1, round(self._share * len(self._whole)))
        held = program.whole & ~self._graph.around(self._whole, count, self._draw)
        kept = np.round(values)
        own = program.within(np.where(held, kept, program.lower), np.where(held, kept, program.upper))
        return Job(own, self._cost, Effort(None, MOST_NODES, GAP, restarts=False), start=values)

    def gains(self, answer: Answer, objective: float) -> bool:
        """Return whether an answer improves on a plan, and adapt the size of the next neighbourhood."""
        gained = answer.values is not None and objective - answer.objective > GAP * abs(objective)
        self._idle = 0 if gained else self._idle + 1
        if answer.work_s < LITTLE_WORK_S:
            self._share = min(1.0, self._share * GROWTH)
        elif answer.work_s > MUCH_WORK_S:
            self._share /= GROWTH
        return gained


class _Graph:
    """Graph of the variables that rows connect.

    Parameters
    ----------
    program : Rows
        The program; its matrix may lack scipy's operators.
    """

    def __init__(self, program: Rows) -> None:
        matrix = program.rows
        length = np.diff(matrix.indptr)
        row = np.repeat(np.arange(len(length)), length)
        narrow = (length <= WIDEST_ROW)[row]
        variable, row = np.asarray(matrix.indices)[narrow].astype(np.int64), row[narrow]
        self._count = matrix.shape[1]
        # Entries by row and by variable, with the start of each.
        self._in_row, self._row_begins = variable, np.searchsorted(row, np.arange(len(length) + 1))
        order = np.argsort(variable, kind="stable")
        self._of_variable = row[order]
        self._variable_begins = np.searchsorted(variable[order], np.arange(self._count + 1))

    def around(self, whole: Indices, count: int, draw: np.random.Generator) -> Mask:
        """Return variables connected to a random integer variable, with this count of integer variables."""
        is_whole, seen = np.zeros(self._count, dtype=bool), np.zeros(self._count, dtype=bool)
        is_whole[whole] = True
        front = draw.choice(whole, 1)
        seen[front] = True
        while (missing := count - int((seen & is_whole).sum())) > 0:
            rows = np.unique(_slices(self._of_variable, self._variable_begins, front))
            # Only half: otherwise the neighbourhood around a variable would always be the same.
            rows = draw.permutation(rows)[: (len(rows) + 1) // 2]
            near = np.unique(_slices(self._in_row, self._row_begins, rows))
            front = draw.permutation(near[~seen[near]])
            if not len(front):
                front = draw.choice(whole[~seen[whole]], 1)
            # Do not exceed the count of integer variables.
            front = front[np.cumsum(is_whole[front]) <= missing]
            seen[front] = True
        return seen


def _slices(entries: Indices, begins: Indices, numbers: Indices) -> Indices:
    """Return the entries of these rows or variables, concatenated."""
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *(entries[begins[each] : begins[each + 1]] for each in numbers.tolist())])
