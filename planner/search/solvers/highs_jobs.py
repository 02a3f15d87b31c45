"""Programs that HiGHS solves in child processes, and what it answers.

The child (highs_child.py) imports this module. Other modules, scipy among them, are loaded there only when a
job that was sent refers to them.
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
"""Nodes of a tree without a limit."""


class CompressedRows(NamedTuple):
    """The arrays of a sparse matrix by rows, under the names that scipy gives them."""

    shape: tuple[int, int]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: Array


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Constraints and bounds of a program; `whole` says which variables are integers."""

    rows: sp.csr_array
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    whole: Mask

    def among(self, variables: Indices, rows: Indices | None = None) -> Rows:
        """The same with some variables alone, in some rows or in all, with the limits that these have."""
        own, limits = self.rows, (self.row_lower, self.row_upper)
        if rows is not None:
            own, limits = own[rows], (self.row_lower[rows], self.row_upper[rows])
        bounds = self.lower[variables], self.upper[variables]
        return Rows(own[:, variables].tocsr(), *limits, *bounds, self.whole[variables])

    def within(self, lower: Array, upper: Array) -> Rows:
        """The same with other bounds of its variables."""
        return replace(self, lower=lower, upper=upper)

    def without_scipy(self) -> Rows:
        """The same for a child that only passes it on to HiGHS: importing scipy would double its start."""
        matrix = self.rows
        plain = CompressedRows(matrix.shape, matrix.indptr, matrix.indices, matrix.data)
        return replace(self, rows=cast("sp.csr_array", plain))


@dataclass(frozen=True, slots=True, eq=False)
class StackedRows:
    """Programs that share nothing, one below the other: few large arrays, of which a program is a slice.

    Attributes
    ----------
    rows : CompressedRows
        Rows of all programs; the indices are places among the variables of their own program.
    row_lower, row_upper, lower, upper, whole
        As `Rows` has them, of all programs.
    first_row, first_variable : Indices
        Where the rows and the variables of each program begin, and where the last ones end.
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
        """One of the programs, which HiGHS takes as it is: its matrix has the fields of scipy's alone."""
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
    """A stack without any program."""
    none, nothing = np.zeros(0), np.zeros(1, dtype=np.int64)
    rows = CompressedRows((0, 0), nothing, np.zeros(0, dtype=np.int64), none)
    return StackedRows(rows, none, none, none, none, np.zeros(0, dtype=bool), nothing, nothing)


@dataclass(frozen=True, slots=True)
class Effort:
    """When HiGHS may stop.

    Attributes
    ----------
    time_limit_s : float or None
        Wall time; None where the answer must not depend on the machine. [s]
    node_limit : int
        Nodes of its tree.
    gap_ratio : float
        Gap at which it is content.
    cuts : bool
        Whether it looks for cuts: they pay where a tree is large.
    gap : float
        Gap at which it is content as well. [objective units]
    rounds : bool
        Whether it also rounds and shifts what linear programs find: it has plans sooner.
    improvements : int or None
        Solutions, each better than the one before, after which it is content; None for no such limit.
    restarts : bool
        Whether it may begin anew once much of a program is fixed. On small fleets a restart costs more than
        it saves: ten of them, three seeds each, took 68 s without any instead of 83 s.
    for_a_bound : bool
        Whether its bound is wanted rather than its solution: it branches soon, and looks for solutions by no
        smaller integer programs beside its tree.
    firm : bool
        Whether limits give nothing: what is found becomes a plan, and its bound is told to nobody. Where all
        replicas are full, a plan of programs whose limits give has no whole requests.
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
    """One program to solve.

    Attributes
    ----------
    rows : Rows or int
        The program, or the number of one that the workers were started with.
    cost : Array
        Objective.
    effort : Effort or None
        None for the linear relaxation, which is solved to its end.
    start : Array or None
        A solution to begin with.
    length : float
        About how long it takes compared with others: the longest are begun first, so that all end together.
    upper : Array or None
        Upper bounds of the variables instead of the program's.
    """

    rows: Rows | int
    cost: Array
    effort: Effort | None
    start: Array | None = None
    length: float = 0.0
    upper: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SearchJob:
    """An integer program to search by several HiGHS at once, which answer whenever they know more.

    Attributes
    ----------
    rows, cost, effort
        As `Job` has them.
    below : float
        Only solutions of a lower objective are looked for; infinite for all. Where there is none, it is the
        bound.
    """

    rows: Rows
    cost: Array
    effort: Effort
    below: float = np.inf


ONE_MORE = "one more"
"""Asks a process with a `SearchJob` for one search more."""


class BasisStatus(IntEnum):
    """Where a variable or a row stands, in the numbers of HiGHS; it has others at a limit or free."""

    LOWER = 0
    BASIC = 1


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Where the simplex method ended, or where it is to begin.

    Attributes
    ----------
    columns, rows : Statuses
        Of variables and rows, in the numbers of HiGHS.
    """

    columns: Statuses
    rows: Statuses


class GrowingProgram(Protocol):
    """A linear program that is solved among some variables, and then among more from where it stands."""

    def add(self, variables: Indices) -> None:
        """Add some variables; those that are not there are zero."""
        ...

    def solve(self) -> Answer:
        """The optimum among those that are there, with values of all variables and prices of all rows."""
        ...


class Solver(Protocol):
    """Solves the programs of a composite job, where it is done."""

    def __call__(self, job: Job) -> Answer:
        """Solve one program."""
        ...

    def program(self, number: int) -> Rows:
        """One of the programs that jobs name by number."""
        ...

    def growing(
        self, program: Rows, cost: Array, variables: Indices, start: Basis | None = None
    ) -> GrowingProgram:
        """Begin with some variables of a linear program, and from a basis of all of it where one is known."""
        ...


class CompositeJob(Protocol):
    """A job of many programs, each of which follows from the answers to those before."""

    @property
    def length(self) -> float:
        """As `Job` has it."""
        ...

    def run(self, solver: Solver) -> Answer:
        """Do it."""
        ...


AnyJob = Job | CompositeJob
"""What a worker does."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What HiGHS found.

    Attributes
    ----------
    values : Array or None
        The best solution.
    objective, bound : float
        Of it, and proven of all; infinite where there is none.
    row_duals, reduced_costs : Array or None
        Of a linear relaxation: what one more unit of a row's limit is worth, by row, and what one more unit
        of a variable would cost, by variable.
    infeasible : bool
        Whether there is no solution, within the tolerances of floating point.
    nodes : int
        Of its tree.
    work_s : float
        Its work as time that is the same on every machine (planner/search/work.py). [s]
    status : str
        What HiGHS says of the model.
    basis : Basis or None
        Of a growing linear program: where it ended.
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
