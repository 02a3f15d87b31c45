"""Jobs of many programs that a child process does by itself: sifting, pricing, construction."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from fleetplan.planner.search.blocks.few_slots import price_few
from fleetplan.planner.search.blocks.rolling import construct
from fleetplan.planner.search.blocks.sifting import sift, sift_from
from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    Array,
    Basis,
    Effort,
    Indices,
    Job,
    Mask,
    Rows,
    Solver,
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WholeProgram:
    """The program that a child process solves part by part.

    Attributes
    ----------
    program : Rows
        Rows, bounds and which variables are whole.
    cost : Array
        Objective.
    growth : Indices
        By variable: 1 where more of it is more supply, -1 where less of it is, 0 elsewhere.
    slot : Indices
        By variable: the candidate and pool whose use it decides; -1 for none.
    linking : Mask
        Which rows may be violated at a price.
    length : float
        As `Job` has it.
    """

    program: Rows
    cost: Array
    growth: Indices
    slot: Indices
    linking: Mask
    length: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SiftingJob(WholeProgram):
    """A linear relaxation to solve among few slots, and among more of them while that lowers it.

    Attributes
    ----------
    stage : Indices
        By variable: the moment that it belongs to, and -1 where it joins moments.
    penalty_ratio : float
        Price of a violated row, over what the dearest variable costs.
    """

    stage: Indices
    penalty_ratio: float

    def run(self, solver: Solver) -> Answer:
        """Solve the relaxation."""
        return sift(self, solver)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SlottedJob:
    """A linear relaxation to solve among slots that are known, and among more of them while that lowers it.

    Attributes
    ----------
    program, cost, slot, length
        As `WholeProgram` has them.
    open_slots : Mask
        By slot: which are looked at first.
    start : Basis or None
        Where to begin among them; what closed slots decide is at its lower bound there.
    """

    program: Rows
    cost: Array
    slot: Indices
    open_slots: Mask
    start: Basis | None = None
    length: float = 0.0

    def run(self, solver: Solver) -> Answer:
        """Solve the relaxation."""
        return sift_from(self, solver)


@dataclass(frozen=True, slots=True, eq=False)
class FewSlotsJob:
    """A column of a block to look for among few slots.

    Attributes
    ----------
    block : Job
        What would look among all slots, beginning with the cheapest column that is known.
    slot : Indices
        By variable: number of the slot that it belongs to in this block; -1 for none.
    """

    block: Job
    slot: Indices

    @property
    def length(self) -> float:
        """As `Job` has it."""
        return self.block.length

    def run(self, solver: Solver) -> Answer:
        """Look for the column."""
        return price_few(self, solver)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RollingJob(WholeProgram):
    """A plan to construct moment by moment.

    Attributes
    ----------
    root : Array
        An optimum of its linear relaxation.
    stages : tuple[Indices, ...]
        Variables of a moment each, in the order of the decisions, in each the dearest region first, and in
        that the dearest service; others are supply, or join stages.
    service, region : Indices
        By variable: the service that it places, and the region where it runs; -1 for none.
    rank : Array
        By slot: 0 where the relaxation uses it, else its place among the others.
    widths : tuple[float, ...]
        Ranks up to which slots are looked at, one attempt after the other.
    moment_share : float
        Part of an even share of the time left that a moment may take: most take far less.
    follow_slots : bool
        Whether a moment looks at the slots of moments before it as at those of the relaxation, once time runs
        short: where moments of a period share its supply.
    by_service : bool
        Whether a moment is decided service by service, in all regions at once; else region by region.
    period_of_stage : Indices
        Period of each stage.
    helps : csr_array
        In which periods each variable of supply counts, in the order of the variables that grow or shrink it.
    penalty : Array
        Price of a violated row, which is paid if nothing else helps. [objective units per scaled unit]
    effort : Effort
        The time limit is that of the whole construction, the gaps and the nodes are those of a stage.
    """

    root: Array
    stages: tuple[Indices, ...]
    service: Indices
    region: Indices
    rank: Array
    widths: tuple[float, ...]
    moment_share: float
    follow_slots: bool
    by_service: bool
    period_of_stage: Indices
    helps: sp.csr_array
    penalty: Array
    effort: Effort

    def run(self, solver: Solver) -> Answer:
        """Construct the plan."""
        return construct(self, solver)
