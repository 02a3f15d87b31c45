"""Programs that HiGHS solves in child processes, as plain arrays, and what it answers.

The child (highs_worker.py) imports this module and nothing else of fleetplan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Constraints and bounds of a program; `whole` says which variables are integers."""

    rows: sp.csr_array
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    whole: Mask

    def within(self, lower: Array, upper: Array) -> Rows:
        """The same with other bounds of its variables."""
        return replace(self, lower=lower, upper=upper)


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
    """

    time_limit_s: float | None
    node_limit: int
    gap_ratio: float
    cuts: bool = True
    gap: float = 0.0
    rounds: bool = False
    improvements: int | None = None


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
    """

    rows: Rows | int
    cost: Array
    effort: Effort | None
    start: Array | None = None
    length: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SiftingJob:
    """A linear relaxation to solve among few slots (planner/search/blocks/sifting.py).

    Attributes
    ----------
    program : Rows
        The whole program.
    cost : Array
        Objective.
    stage : Indices
        By variable: the moment that it belongs to, and -1 where it joins moments.
    growth, slot : Indices
        As `RollingJob` has them.
    linking : Mask
        Which rows may be violated at a price.
    penalty_ratio : float
        That price, over what the dearest variable costs.
    length : float
        As `Job` has it.
    """

    program: Rows
    cost: Array
    stage: Indices
    growth: Indices
    slot: Indices
    linking: Mask
    penalty_ratio: float
    length: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class RollingJob:
    """A plan to construct moment by moment (planner/search/blocks/rolling.py).

    Attributes
    ----------
    program : Rows
        The whole program.
    cost : Array
        Objective.
    root : Array
        An optimum of its linear relaxation.
    stages : tuple[Indices, ...]
        Variables of a moment each, in the order of the decisions, in each the dearest region first, and in
        that the dearest service; others are supply, or join stages.
    service, region : Indices
        By variable: the service that it places, and the region where it runs; -1 for none.
    growth : Indices
        By variable: 1 where more of it is more supply, -1 where less of it is, 0 elsewhere.
    slot : Indices
        By variable: the candidate and pool whose use it decides; -1 for none.
    rank : Array
        By slot: 0 where the relaxation uses it, else its place among the others.
    widths : tuple[float, ...]
        Ranks up to which slots are looked at, one attempt after the other.
    supply : Mask
        By variable: which are decided before all stages, with fractions of everything else; none without it.
    linking : Mask
        Which rows may be violated at a price if nothing else helps.
    penalty : float
        That price. [objective units per scaled unit]
    effort : Effort
        The time limit is that of the whole construction, the gaps and the nodes are those of a stage.
    length : float
        As `Job` has it.
    """

    program: Rows
    cost: Array
    root: Array
    stages: tuple[Indices, ...]
    service: Indices
    region: Indices
    growth: Indices
    slot: Indices
    rank: Array
    widths: tuple[float, ...]
    supply: Mask
    linking: Mask
    penalty: float
    effort: Effort
    length: float = 0.0


AnyJob = Job | SiftingJob | RollingJob
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
