"""Jobs that combine many programs in one child process: sifting, pricing, construction."""

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
    """Program that a child process solves part by part.

    Attributes
    ----------
    program : Rows
        Rows, bounds and integrality.
    cost : Array
        Objective coefficients.
    growth : Indices
        By variable: 1 if increasing it adds supply, -1 if decreasing it does, else 0.
    slot : Indices
        By variable: the slot (candidate and pool) whose use it decides; -1 for none.
    linking : Mask
        Rows that may be violated at a price.
    length : float
        As in `Job`.
    """

    program: Rows
    cost: Array
    growth: Indices
    slot: Indices
    linking: Mask
    length: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SiftingJob(WholeProgram):
    """Linear relaxation to solve by sifting: among few slots first, then among more while that lowers it.

    Attributes
    ----------
    stage : Indices
        Moment by variable; -1 for variables that join moments.
    penalty_ratio : float
        Price of a violated row, as a multiple of the largest cost.
    """

    stage: Indices
    penalty_ratio: float

    def run(self, solver: Solver) -> Answer:
        """Solve the relaxation."""
        return sift(self, solver)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SlottedJob:
    """Linear relaxation to solve among known slots first, then among more while that lowers it.

    Attributes
    ----------
    program, cost, slot, length
        As in `WholeProgram`.
    open_slots : Mask
        Slots to open first.
    start : Basis or None
        First basis on the open slots; variables of closed slots are at their lower bounds.
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
    """Search for a column of a block among few slots.

    Attributes
    ----------
    block : Job
        Same search among all slots, starting from the cheapest known column.
    slot : Indices
        Slot number in this block by variable; -1 for none.
    """

    block: Job
    slot: Indices

    @property
    def length(self) -> float:
        """Return the expected length, as in `Job`."""
        return self.block.length

    def run(self, solver: Solver) -> Answer:
        """Search the column."""
        return price_few(self, solver)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RollingJob(WholeProgram):
    """Construction of a plan moment by moment: a rolling horizon.

    Attributes
    ----------
    root : Array
        Optimum of the linear relaxation.
    stages : tuple[Indices, ...]
        Variables by moment, in the order of decisions; within a moment by region, then service, most
        expensive first. All other variables are supply, or join stages.
    service, region : Indices
        By variable: service placed and region used; -1 for none.
    rank : Array
        By slot: 0 if the relaxation uses it, else its rank among the others.
    widths : tuple[float, ...]
        Largest rank of the open slots, attempt by attempt.
    moment_share : float
        Time limit of a moment, as a multiple of an even share of the remaining time: most take far less.
    follow_slots : bool
        Whether moments that share the supply of a period also open slots of earlier moments once time runs
        short.
    by_service : bool
        Whether to decide a moment service by service in all regions, or region by region.
    period_of_stage : Indices
        Period of each stage.
    helps : csr_array
        Periods in which each supply variable counts, in the order of variables with nonzero `growth`.
    penalty : Array
        Price of violating each row, used as a last resort. [objective units per scaled unit]
    effort : Effort
        Time limit of the whole construction; gaps and nodes of one stage.
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
