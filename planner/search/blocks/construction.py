"""What a construction of a first plan is told: stages, slots worth looking at, and what a limit is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.highs_jobs import (
    Answer,
    Effort,
    Indices,
    Mask,
    RollingJob,
    Rows,
    SiftingJob,
)
from fleetplan.planner.search.blocks.linear import rows_of
from fleetplan.planner.search.blocks.matrix import FloatArray
from fleetplan.planner.search.blocks.relaxation import Relaxation
from fleetplan.planner.search.blocks.subprograms import SlotPrices
from fleetplan.planner.search.blocks.themes import NONE, Outline

CONSTRUCTION_SHARE_OF_TIME: Final = 0.15
"""Share of the time limit that a construction may take, within the limits below."""

LEAST_CONSTRUCTION_S: Final = 2.0
"""Its least time: that of a first plan of a company's year (12 services, 12 moments). [s]"""

MOST_STAGE_S: Final = 3.0
"""Its most time for each moment. [s]"""

MOST_CONSTRUCTION_S: Final = 14.0
"""Its most time for all of them, whose relaxation comes before: a company has a first plan after 20 s. [s]"""

STAGE_GAP: Final = 1e-3
"""Gap of a stage, over an even share of what the relaxation spends: what follows improves on it anyway."""

WIDER: Final = (0.0, 0.1, 0.3, 1.0, math.inf)
"""Slots that a stage looks at beside those of the relaxation, over their number, attempt by attempt."""

STAGE_NODES: Final = 200
"""Nodes of a stage where work is counted."""

USED: Final = 1e-7
"""Value from which the relaxation uses a column. [scaled units]"""

PENALTY_RATIO: Final = 2.0
"""Price of passing a limit, over the largest price of a limit in the relaxation and the dearest column."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A relaxed program, with what its columns decide.

    Attributes
    ----------
    outline : Outline
        What columns decide.
    relaxation : Relaxation
        The program.
    cost : FloatArray
        Of its columns, scaled.
    linking : Indices
        Rows that blocks share.
    following : Mask
        Columns that are whole wherever the others are.
    """

    outline: Outline
    relaxation: Relaxation
    cost: FloatArray
    linking: Indices
    following: Mask

    @property
    def program(self) -> Rows:
        """The program for HiGHS, which need not branch on what follows."""
        rows = rows_of(self.relaxation)
        return replace(rows, whole=rows.whole & ~self.following)

    @property
    def linking_mask(self) -> Mask:
        """Which rows blocks share."""
        found = np.zeros(len(self.relaxation.row_lower), dtype=bool)
        found[self.linking] = True
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """An optimum of the linear relaxation, and what it says of slots.

    Attributes
    ----------
    values, duals : FloatArray
        Scaled values of all columns, and prices of all scaled rows.
    rank : FloatArray
        By slot: 0 where the optimum uses it; the others by how much dearer it would be to serve by them.
    """

    values: FloatArray
    duals: FloatArray
    rank: FloatArray


def guide_of(structure: Structure, answer: Answer) -> Guide | None:
    """Read a solved relaxation; None where it has no optimum."""
    if answer.values is None or answer.row_duals is None:
        return None
    program, slot = structure.program, structure.outline.slot
    reduced = structure.cost - program.rows.T @ answer.row_duals
    price = SlotPrices(program, slot).at(reduced)
    used = np.zeros(len(price), dtype=bool)
    used[slot[(slot != NONE) & (answer.values > USED)]] = True
    rank = np.zeros(len(price))
    others = np.flatnonzero(~used)
    rank[others[np.argsort(price[others], kind="stable")]] = np.arange(1, len(others) + 1)
    return Guide(answer.values, answer.row_duals, rank)


def sifting_job(structure: Structure) -> SiftingJob:
    """The linear relaxation among few slots."""
    outline = structure.outline
    return SiftingJob(
        program=structure.program,
        cost=structure.cost,
        stage=np.where(outline.moment != NONE, outline.moment, outline.home),
        growth=outline.growth,
        slot=outline.slot,
        linking=structure.linking_mask,
        penalty_ratio=PENALTY_RATIO,
    )


def construction_job(
    structure: Structure, guide: Guide, clock: Clock, attempt: int, whole_supply: bool
) -> RollingJob:
    """The construction of a plan that a guide begins.

    Parameters
    ----------
    structure : Structure
        The program.
    guide : Guide
        An optimum of its linear relaxation.
    clock : Clock
        Says how long.
    attempt : int
        1 for the first; each looks at more slots than the one before, for longer.
    whole_supply : bool
        Whether supply, and which pools are in use, are decided before what runs.
    """
    outline, relaxation, cost = structure.outline, structure.relaxation, structure.cost
    used = max(1, int((guide.rank == 0).sum()))
    stages = _stages(structure, guide)
    share_s = CONSTRUCTION_SHARE_OF_TIME * clock.limit_s
    most_s = min(MOST_STAGE_S * len(stages), MOST_CONSTRUCTION_S)
    seconds = attempt * min(max(share_s, LEAST_CONSTRUCTION_S), most_s)
    # What is spent, without what comes back by sales: the sum of both may be near zero.
    gap = STAGE_GAP * float(np.abs(cost) @ np.abs(guide.values)) / max(1, len(stages))
    return RollingJob(
        program=structure.program,
        cost=cost,
        guide=guide.values,
        stages=stages,
        service=outline.service,
        region=outline.region,
        growth=outline.growth,
        slot=outline.slot,
        rank=guide.rank,
        widths=tuple((attempt - 1 + more) * used for more in WIDER),
        supply=_supply(outline, relaxation) & whole_supply,
        linking=structure.linking_mask,
        penalty=penalty_of(structure, guide),
        effort=Effort(
            None if clock.deterministic else seconds,
            STAGE_NODES if clock.deterministic else 1_000_000,
            gap_ratio=0.0,
            gap=gap,
        ),
        length=np.inf,
    )


def penalty_of(structure: Structure, guide: Guide) -> float:
    """Price of passing a scaled limit by one, above what any is worth. [objective units]

    That is the largest price in the relaxation, or the dearest column: where nothing is scarce in fractions,
    all prices are zero.
    """
    dearest = np.abs(structure.cost * np.minimum(structure.relaxation.upper, 1.0)).max(initial=1.0)
    return PENALTY_RATIO * float(np.abs(guide.duals[structure.linking]).max(initial=dearest))


def _supply(outline: Outline, relaxation: Relaxation) -> Mask:
    """Columns of supply, and those that say whether something that services share is in use."""
    yes_or_no = (relaxation.lower == 0) & (relaxation.upper == 1) & relaxation.whole
    shared = (outline.service == NONE) & (outline.moment != NONE)
    supply: Mask = (outline.growth != 0) | (shared & yes_or_no)
    return supply


def _stages(structure: Structure, guide: Guide) -> tuple[Indices, ...]:
    """Columns of each moment: by period, in a period the moment first whose supply is worth most.

    In a moment, what happens in the region with the dearest supply comes first, in a region what the service
    with the dearest does, and what services share last.
    """
    outline = structure.outline
    prices = np.where(structure.linking_mask, np.abs(guide.duals), 0.0)
    worth = abs(structure.relaxation.rows).T @ prices * np.abs(guide.values)
    present = np.unique(outline.moment[outline.moment != NONE])
    columns = {int(m): np.flatnonzero(outline.moment == m) for m in present}
    hardest_first = sorted(columns, key=lambda m: (outline.period_of[m], -worth[columns[m]].sum()))
    return tuple(_dearest_first(columns[m], outline, worth) for m in hardest_first)


def _dearest_first(columns: Indices, outline: Outline, worth: FloatArray) -> Indices:
    """Columns of a moment by what the supply of their region, then that of their service, is worth."""
    keys = []
    for number in (outline.service[columns], outline.region[columns]):
        total = np.bincount(number + 1, worth[columns], int(number.max(initial=NONE)) + 2)
        # Those of none come last, and those of the same worth are not mixed.
        keys += [number, np.where(number == NONE, np.inf, -total[number + 1])]
    return columns[np.lexsort(keys)]
