"""Jobs that HiGHS solves in child processes, and its answers.

The child (highs_child.py) imports this module. It loads other modules, such as scipy, only when a job needs
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import scipy.sparse as sp

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Statuses = NDArray[np.int8]

ANY_NODES = 2**31 - 1
"""No limit on nodes."""


class CompressedRows(NamedTuple):
    """Arrays of a sparse matrix by rows, with scipy's names."""

    shape: tuple[int, int]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: Array


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Constraints, bounds and integrality (`whole`) of a program."""

    rows: sp.csr_array
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    whole: Mask

    def among(self, variables: Indices, rows: Indices | None = None) -> Rows:
        """Return the program restricted to these variables, in these rows or in all."""
        own, limits = self.rows, (self.row_lower, self.row_upper)
        if rows is not None:
            own, limits = own[rows], (self.row_lower[rows], self.row_upper[rows])
        bounds = self.lower[variables], self.upper[variables]
        return Rows(own[:, variables].tocsr(), *limits, *bounds, self.whole[variables])

    def within(self, lower: Array, upper: Array) -> Rows:
        """Return the program with other bounds of its variables."""
        return replace(self, lower=lower, upper=upper)

    def without_scipy(self) -> Rows:
        """Return the program without scipy, for a child that only passes it to HiGHS.

        Importing scipy would double the child's start-up time.
        """
        matrix = self.rows
        plain = CompressedRows(matrix.shape, matrix.indptr, matrix.indices, matrix.data)
        return replace(self, rows=cast("sp.csr_array", plain))


@dataclass(frozen=True, slots=True, eq=False)
class StackedRows:
    """Independent programs stacked in few large arrays, from which each program is a slice.

    Attributes
    ----------
    rows : CompressedRows
        Rows of all programs; indices are positions among the variables of the row's program.
    row_lower, row_upper, lower, upper, whole
        As in `Rows`, for all programs.
    first_row, first_variable : Indices
        First row and variable of each program, and the end of the last.
    """

    rows: CompressedRows
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    whole: Mask
    first_row: Indices
    first_variable: Indices

    def program(self, number: int) -> Rows:
        """Return one program. Its matrix has only the fields of scipy's that HiGHS needs."""
        rows = slice(*self.first_row[number : number + 2])
        variables = slice(*self.first_variable[number : number + 2])
        starts = self.rows.indptr[rows.start : rows.stop + 1]
        entries = slice(starts[0], starts[-1])
        shape = (rows.stop - rows.start, variables.stop - variables.start)
        own = CompressedRows(shape, starts - starts[0], self.rows.indices[entries], self.rows.data[entries])
        return Rows(
            rows=cast("sp.csr_array", own),
            row_lower=self.row_lower[rows],
            row_upper=self.row_upper[rows],
            lower=self.lower[variables],
            upper=self.upper[variables],
            whole=self.whole[variables],
        )


def no_programs() -> StackedRows:
    """Return an empty stack."""
    none, nothing = np.zeros(0), np.zeros(1, dtype=np.int64)
    rows = CompressedRows((0, 0), nothing, np.zeros(0, dtype=np.int64), none)
    return StackedRows(rows, none, none, none, none, np.zeros(0, dtype=bool), nothing, nothing)


@dataclass(frozen=True, slots=True)
class Effort:
    """Stop conditions and options of a HiGHS solve.

    Attributes
    ----------
    time_limit_s : float or None
        Wall time; None if the answer must not depend on the machine. [s]
    node_limit : int
        Search nodes.
    gap_ratio : float
        Relative gap at which to stop.
    cuts : bool
        Whether to search cuts, which pay off in large trees.
    gap : float
        Absolute gap at which to stop. [objective units]
    rounds : bool
        Whether to round and shift linear solutions, which yields plans sooner.
    improvements : int or None
        Number of improving solutions after which to stop; None for no limit.
    restarts : bool
        Whether to restart once much of a program is fixed. On small fleets a restart costs more than it
        saves: ten of them, with three seeds each, take 68 s without and 83 s with restarts.
    for_a_bound : bool
        Whether to favour the bound over solutions: branch early, without sub-MIP heuristics.
    firm : bool
        Whether limits are exact: the solution becomes a plan, and the bound is not reported. If all replicas
        are full, a plan of programs with relaxed limits has no whole requests.
    """

    time_limit_s: float | None
    node_limit: int
    gap_ratio: float
    cuts: bool = True
    gap: float = 0.0
    rounds: bool = False
    improvements: int | None = None
    restarts: bool = True
    for_a_bound: bool = False
    firm: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Program to solve.

    Attributes
    ----------
    rows : Rows or int
        The program, or the number of a stacked program.
    cost : Array
        Objective coefficients.
    effort : Effort or None
        Limits; None for the linear relaxation, which has no limits.
    start : Array or None
        Starting solution.
    length : float
        Relative expected duration: the longest jobs start first, so that all end together.
    upper : Array or None
        Upper bounds of the variables that replace the program's.
    """

    rows: Rows | int
    cost: Array
    effort: Effort | None
    start: Array | None = None
    length: float = 0.0
    upper: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SearchJob:
    """Integer program that several HiGHS searches solve, reporting every improvement.

    Attributes
    ----------
    rows, cost, effort
        As in `Job`.
    below : float
        Limit on the objective of the solutions to search, and the bound if there are none; infinite for no
        limit.
    """

    rows: Rows
    cost: Array
    effort: Effort
    below: float = np.inf


ONE_MORE = "one more"
"""Request to a process with a `SearchJob` for another search."""


class BasisStatus(IntEnum):
    """Status of a variable or row, in HiGHS's numbers; HiGHS has others for upper limits and free ones."""

    LOWER = 0
    BASIC = 1


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Basis at which the simplex method ended, or should start.

    Attributes
    ----------
    columns, rows : Statuses
        Status of variables and rows, in HiGHS's numbering.
    """

    columns: Statuses
    rows: Statuses


class GrowingProgram(Protocol):
    """Linear program solved among some variables, then among more, from the last solution."""

    def add(self, variables: Indices) -> None:
        """Add variables, which were zero so far."""
        ...

    def solve(self) -> Answer:
        """Return the optimum among present variables, with values of all variables and prices of all rows."""
        ...


class Solver(Protocol):
    """Solver for the programs of a composite job, in the process that runs it."""

    def __call__(self, job: Job) -> Answer:
        """Solve one program."""
        ...

    def program(self, number: int) -> Rows:
        """Return the program with this number."""
        ...

    def growing(
        self, program: Rows, cost: Array, variables: Indices, start: Basis | None = None
    ) -> GrowingProgram:
        """Return a growing linear program that starts with some variables, and from a basis if known."""
        ...


class CompositeJob(Protocol):
    """Job of many programs, each of which depends on earlier answers."""

    @property
    def length(self) -> float:
        """Return the expected length, as in `Job`."""
        ...

    def run(self, solver: Solver) -> Answer:
        """Run the job."""
        ...


AnyJob = Job | CompositeJob
"""Job for a worker."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Answer of HiGHS to a job.

    Attributes
    ----------
    values : Array or None
        Best solution.
    objective, bound : float
        Objective of that solution, and a bound on all; infinite if there is none.
    row_duals, reduced_costs : Array or None
        For a linear relaxation: dual price by row, and reduced cost by variable.
    infeasible : bool
        Whether there is no solution, within floating-point tolerances.
    nodes : int
        Search nodes.
    work_s : float
        Work in machine-independent seconds (planner/search/work.py). [s]
    status : str
        Model status reported by HiGHS.
    basis : Basis or None
        For a growing linear program: its final basis.
    """

    values: Array | None
    objective: float
    bound: float
    row_duals: Array | None = None
    reduced_costs: Array | None = None
    infeasible: bool = False
    nodes: int = 0
    work_s: float = 0.0
    status: str = ""
    basis: Basis | None = None
