"""Programs that HiGHS solves in child processes, as plain arrays, and what it answers.

The child (highs_worker.py) imports this module and nothing else of fleetplan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Constraints and bounds of a program; `whole` says which variables are integers."""

    rows: sp.csr_array
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    whole: NDArray[np.bool_]


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
    """

    time_limit_s: float | None
    node_limit: int
    gap_ratio: float
    cuts: bool = True


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
    threads : int
        Cores for a linear relaxation.
    """

    rows: Rows | int
    cost: Array
    effort: Effort | None
    start: Array | None = None
    length: float = 0.0
    threads: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What HiGHS found.

    Attributes
    ----------
    values : Array or None
        The best solution.
    objective, bound : float
        Of it, and proven of all; infinite where there is none.
    row_duals : Array or None
        Of a linear relaxation: what one more unit of a row's limit is worth, by row.
    infeasible : bool
        Whether there is no solution, within the tolerances of floating point.
    nodes : int
        Nodes of its tree.
    status : str
        What HiGHS says of the model.
    """

    values: Array | None
    objective: float
    bound: float
    row_duals: Array | None = None
    infeasible: bool = False
    nodes: int = 0
    status: str = ""
