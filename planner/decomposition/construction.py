"""What a construction of a first plan is told: stages, slots worth looking at, and what a limit is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.planner.decomposition.effort import Clock
from fleetplan.planner.decomposition.highs_jobs import (
    Answer,
    Array,
    Effort,
    Indices,
    Mask,
    RollingJob,
    SiftingJob,
)
from fleetplan.planner.decomposition.linear import rows_of
from fleetplan.planner.decomposition.matrix import FloatArray
from fleetplan.planner.decomposition.relaxation import Relaxation
from fleetplan.planner.decomposition.themes import NONE, Outline

CONSTRUCTION_SHARE_OF_TIME: Final = 0.12
"""Share of the time limit that a construction may take, within the limits below."""

LEAST_CONSTRUCTION_S, MOST_CONSTRUCTION_S = 2.0, 20.0
"""Its least and most time: a first plan of a company's year (12 services, 12 moments) takes two. [s]"""

STAGE_GAP: Final = 1e-3
"""Gap of a stage, over an even share of the relaxation's cost: what follows improves on it anyway."""

STAGE_NODES: Final = 200
"""Nodes of a stage where work is counted."""

USED: Final = 1e-7
"""Value from which the relaxation uses a column. [scaled units]"""

PENALTY_RATIO: Final = 2.0
"""Price of passing a limit, over the largest price of a limit in the relaxation."""


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """An optimum of the linear relaxation, and what it says of slots.

    Attributes
    ----------
    values, duals : FloatArray
        Scaled values of all columns, and prices of all scaled rows.
    rank : FloatArray
        By slot: 0 where the optimum uses it; the others by how much dearer it would be to serve all by them.
    """

    values: FloatArray
    duals: FloatArray
    rank: FloatArray


def guide_of(outline: Outline, relaxation: Relaxation, cost: FloatArray, answer: Answer) -> Guide | None:
    """Read a solved relaxation; None where it has no optimum.

    Parameters
    ----------
    outline : Outline
        What columns decide.
    relaxation : Relaxation
        Of the whole program.
    cost : FloatArray
        Of its columns, scaled.
    answer : Answer
        Of the linear relaxation.
    """
    if answer.values is None or answer.row_duals is None:
        return None
    reduced = cost - relaxation.rows.T @ answer.row_duals
    return Guide(answer.values, answer.row_duals, _ranks(outline, relaxation, reduced, answer.values))


def _ranks(outline: Outline, relaxation: Relaxation, reduced: Array, values: Array) -> FloatArray:
    """Rank of every slot."""
    n_slots = int(outline.slot.max(initial=NONE)) + 1
    moments = int(outline.moment.max(initial=0)) + 1
    placed = np.flatnonzero(outline.slot != NONE)
    where = outline.slot[placed] * moments + outline.moment[placed]
    whole = relaxation.whole[placed]
    full = reduced[placed] * np.minimum(relaxation.upper[placed], relaxation.column_scale[placed].max())
    dearer = np.zeros(n_slots * moments)
    # A column of loads at 1 serves all of a class; what its replicas cost then comes on top.
    for kind in (whole, ~whole):
        most = np.full(n_slots * moments, -np.inf)
        np.maximum.at(most, where[kind], full[kind])
        dearer += np.where(np.isfinite(most), most, 0.0)
    known = np.zeros(n_slots * moments, dtype=bool)
    known[where] = True
    least = np.where(known, dearer, np.inf).reshape(n_slots, moments).min(axis=1)
    used = np.zeros(n_slots, dtype=bool)
    used[outline.slot[placed[values[placed] > USED]]] = True
    rank = np.zeros(n_slots)
    others = np.flatnonzero(~used)
    rank[others[np.argsort(least[others], kind="stable")]] = np.arange(1, len(others) + 1)
    return rank


def sifting_job(outline: Outline, relaxation: Relaxation, cost: FloatArray, linking: Indices) -> SiftingJob:
    """The linear relaxation among the slots that single moments want.

    Parameters
    ----------
    outline, relaxation, cost
        The program.
    linking : Indices
        Rows that blocks share.
    """
    return SiftingJob(
        program=rows_of(relaxation),
        cost=cost,
        stage=np.where(outline.moment != NONE, outline.moment, outline.home),
        growth=outline.growth,
        slot=outline.slot,
        linking=_mask(linking, len(relaxation.row_lower)),
        penalty_ratio=PENALTY_RATIO,
    )


def _mask(rows: Indices, n_rows: int) -> Mask:
    """Which rows are among some."""
    found = np.zeros(n_rows, dtype=bool)
    found[rows] = True
    return found


def construction_job(
    outline: Outline,
    relaxation: Relaxation,
    cost: FloatArray,
    guide: Guide,
    linking: Indices,
    clock: Clock,
    attempt: int,
    whole_supply: bool,
) -> RollingJob:
    """The construction of a plan that a guide begins.

    Parameters
    ----------
    outline, relaxation, cost
        The program.
    guide : Guide
        An optimum of its linear relaxation.
    linking : Indices
        Rows that blocks share.
    clock : Clock
        Says how long.
    attempt : int
        1 for the first; each looks at more slots than the one before, for longer.
    whole_supply : bool
        Whether supply, and which pools are in use, are decided before what runs.
    """
    used = int((guide.rank == 0).sum())
    stages = _stages(outline, relaxation, guide, linking)
    share_s = CONSTRUCTION_SHARE_OF_TIME * clock.limit_s
    seconds = attempt * min(max(share_s, LEAST_CONSTRUCTION_S), MOST_CONSTRUCTION_S)
    gap = STAGE_GAP * abs(float(cost @ guide.values)) / max(1, len(stages))
    return RollingJob(
        program=rows_of(relaxation),
        cost=cost,
        guide=guide.values,
        stages=stages,
        growth=outline.growth,
        slot=outline.slot,
        rank=guide.rank,
        widths=((attempt - 1.0) * used, float(len(guide.rank))),
        supply=_supply(outline, relaxation) & whole_supply,
        linking=_mask(linking, len(relaxation.row_lower)),
        penalty=penalty_of(guide, linking),
        effort=Effort(
            None if clock.deterministic else seconds,
            STAGE_NODES if clock.deterministic else 1_000_000,
            gap_ratio=0.0,
            gap=gap,
        ),
        length=np.inf,
    )


def penalty_of(guide: Guide, linking: Indices) -> float:
    """Price of passing a scaled limit by one, above what any is worth. [objective units]"""
    return PENALTY_RATIO * float(np.abs(guide.duals[linking]).max(initial=1.0))


def _supply(outline: Outline, relaxation: Relaxation) -> Mask:
    """Columns of supply, and those that say whether something that services share is in use."""
    yes_or_no = (relaxation.lower == 0) & (relaxation.upper == 1) & relaxation.whole
    shared = (outline.service == NONE) & (outline.moment != NONE)
    supply: Mask = (outline.growth != 0) | (shared & yes_or_no)
    return supply


def _stages(outline: Outline, relaxation: Relaxation, guide: Guide, linking: Indices) -> tuple[Indices, ...]:
    """Columns of each moment: by period, in a period the moment first whose supply is worth most."""
    prices = np.zeros(len(guide.duals))
    prices[linking] = np.abs(guide.duals[linking])
    worth = abs(relaxation.rows).T @ prices * np.abs(guide.values)
    present = np.unique(outline.moment[outline.moment != NONE])
    columns = {int(m): np.flatnonzero(outline.moment == m) for m in present}
    hardest_first = sorted(columns, key=lambda m: (outline.period_of[m], -worth[columns[m]].sum()))
    return tuple(columns[m] for m in hardest_first)
