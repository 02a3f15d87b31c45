"""What a construction of a first plan is told: stages, slots worth looking at, and what a limit is worth."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.composite_jobs import RollingJob, SiftingJob
from fleetplan.planner.search.blocks.effort import COUNTED_CORES, Clock
from fleetplan.planner.search.blocks.roles import NONE, VariableRoles
from fleetplan.planner.search.blocks.split import MASTER
from fleetplan.planner.search.blocks.subprograms import USED, SlotPrices, spans
from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    Effort,
    Indices,
    Mask,
    Rows,
)
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import Relaxation

CONSTRUCTION_SHARE_OF_TIME: Final = 0.15
"""Share of the time limit that a construction may take, within the limits below."""

TRAVELLING_SHARE_OF_TIME: Final = 0.45
"""Share of it for one among many slots where several regions can serve a service, which runs beside whatever
is next. Elsewhere columns of rounds soon make better plans than any construction."""

BESIDE_SUPPLY_SHARE_OF_TIME: Final = 0.2
"""The same beside decisions what is worth buying, which lead to better plans and need the core: teams 2 and 5
end 30 s at 1.5 and 3.1 % so, at 3.2 and 3.9 % with the share above."""

LEAST_CONSTRUCTION_S: Final = 2.0
"""Its least time: that of a first plan of a company's year (12 services, 12 moments). [s]"""

MOST_STAGE_S: Final = 3.0
"""Its most time for each moment. [s]"""

MOST_CONSTRUCTION_S: Final = 14.0
"""Its most time for all of them, whose relaxation comes before: a company has a first plan after 20 s. [s]"""

STAGE_GAP: Final = 1e-3
"""Gap of a stage, over an even share of what the relaxation spends: what follows improves on it anyway."""

SERVICE_GAP: Final = 3e-3
"""The same where a moment is decided service by service, which takes twice as long at a third of it."""

WIDER: Final = (0.0, 0.1, 0.3, 1.0, math.inf)
"""Slots that a stage looks at beside those of the relaxation, over their number, attempt by attempt."""

SLOTS_A_REGION: Final = 150
"""Slots of all moments that a wide construction looks at, for each region: whole replicas fill what is left
of a pool by slots that an optimum with parts of them does without. Companies' optima use 42 to 54."""

MOMENT_SHARE, WIDE_MOMENT_SHARE, SERVICES_MOMENT_SHARE = 1.5, 3.0, 5.0
"""Part of an even share of the time left that a moment may take among few slots, among many, and service by
service: the first ones decide most of the supply that the others use, which then take far less."""

LEAST_WIDE: Final = 0.3
"""The least of them beside those of the relaxation, over their number."""

STAGE_NODES: Final = 200
"""Nodes of a stage where work is counted."""

PENALTY_RATIO: Final = 2.0
"""Price of violating a limit, over the largest dual price in the relaxation and the dearest variable."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A relaxed program, with what its variables decide.

    Attributes
    ----------
    roles : VariableRoles
        What variables decide.
    relaxation : Relaxation
        The program.
    cost : FloatArray
        Of its variables, scaled.
    linking : Indices
        Rows that blocks share.
    following : Mask
        Variables that are whole wherever the others are.
    """

    roles: VariableRoles
    relaxation: Relaxation
    cost: FloatArray
    linking: Indices
    following: Mask

    @property
    def program(self) -> Rows:
        """The program for HiGHS, which need not branch on what follows."""
        rows = self.relaxation.program
        return replace(rows, whole=rows.whole & ~self.following)

    @property
    def linking_mask(self) -> Mask:
        """Which rows blocks share."""
        found = np.zeros(len(self.relaxation.row_lower), dtype=bool)
        found[self.linking] = True
        return found


@dataclass(frozen=True, slots=True, eq=False)
class RootRelaxation:
    """An optimum of the linear relaxation, and what it says of slots.

    Attributes
    ----------
    values, duals : FloatArray
        Scaled values of all variables, and prices of all scaled rows.
    rank : FloatArray
        By slot: 0 where the optimum uses it; the others in turns, one of every service and region a turn, by
        how much dearer it would be to serve by them. By price alone all that a stage looks at more may be of
        one service: with percentiles a company's moments then had no plan among as many slots again as the
        relaxation uses, and constructions ended beyond limits after 25 and 45 s instead of in plans after 17.
    """

    values: FloatArray
    duals: FloatArray
    rank: FloatArray


def root_of(structure: Structure, answer: Answer) -> RootRelaxation | None:
    """Read a solved relaxation; None where it has no optimum."""
    if answer.values is None or answer.row_duals is None:
        return None
    program, slot = structure.program, structure.roles.slot
    reduced = structure.cost - program.rows.T @ answer.row_duals
    price = SlotPrices(program, slot).at(reduced)
    used = slots_used(structure, answer.values)
    rank = np.zeros(len(price))
    others = np.flatnonzero(~used)
    others = others[np.argsort(price[others], kind="stable")]
    turn = _turns(_kinds_of_slots(structure.roles, len(price))[others])
    rank[others[np.argsort(turn, kind="stable")]] = np.arange(1, len(others) + 1)
    return RootRelaxation(answer.values, answer.row_duals, rank)


def _kinds_of_slots(roles: VariableRoles, n_slots: int) -> Indices:
    """What service each slot serves where, as a number."""
    kind, n_regions = np.full(n_slots, NONE, dtype=np.int64), int(roles.region.max(initial=NONE)) + 1
    slotted = roles.slot != NONE
    kind[roles.slot[slotted]] = roles.service[slotted] * n_regions + roles.region[slotted]
    return kind


def _turns(kind: Indices) -> Indices:
    """How many of the same kind come before each."""
    order = np.argsort(kind, kind="stable")
    _, first, count = np.unique(kind[order], return_index=True, return_counts=True)
    turn = np.empty(len(kind), dtype=np.int64)
    turn[order] = np.arange(len(kind)) - np.repeat(first, count)
    return turn


def root_at(structure: Structure, root: RootRelaxation, values: FloatArray) -> RootRelaxation:
    """Let constructions go by some values, and look at the slots that these use first.

    Parameters
    ----------
    structure : Structure
        The program.
    root : RootRelaxation
        Gives the prices, and the order of all other slots.
    values : FloatArray
        Scaled values of all variables, such as the best with whole supply and parts of replicas.
    """
    rank = np.where(slots_used(structure, values), 0.0, root.rank + 1.0)
    return RootRelaxation(values, root.duals, rank)


def sifting_job(structure: Structure, indicators: Collection[int] = ()) -> SiftingJob:
    """The linear relaxation, without the limits of rows that hold some indicators."""
    roles = structure.roles
    return SiftingJob(
        program=structure.relaxation.without_limits_on(indicators).program,
        cost=structure.cost,
        stage=np.where(roles.moment != NONE, roles.moment, roles.home),
        growth=roles.growth,
        slot=roles.slot,
        linking=structure.linking_mask,
        penalty_ratio=PENALTY_RATIO,
    )


def construction_job(
    structure: Structure,
    root: RootRelaxation,
    clock: Clock,
    attempt: int,
    wide: bool,
    parts: int = 1,
    travelling_share: float = TRAVELLING_SHARE_OF_TIME,
) -> RollingJob:
    """The rolling-horizon construction of a plan, guided by the root relaxation.

    Parameters
    ----------
    structure : Structure
        The program.
    root : RootRelaxation
        An optimum of its linear relaxation.
    clock : Clock
        Says how long.
    attempt : int
        1 for the first; each looks at more slots than the one before, for longer.
    wide : bool
        Whether to look at many slots at once, and to take the time for it.
    parts : int
        Constructions that make one plan together, and share the time for it.
    travelling_share : float
        Share of the time limit for one among many slots where several regions can serve a service.
    """
    roles, cost = structure.roles, structure.cost
    used = max(1, int((root.rank == 0).sum()))
    stages = _stages(structure, root)
    # Among few slots what several regions serve leaves each of them no better than what it parts.
    by_service = wide and bool(travelling(structure).any())
    widths = tuple((attempt - 1 + more) * used for more in WIDER)
    share, moment_share = CONSTRUCTION_SHARE_OF_TIME, WIDE_MOMENT_SHARE if wide else MOMENT_SHARE
    most_s = min(MOST_STAGE_S * len(stages), MOST_CONSTRUCTION_S)
    if wide:
        n_regions = len(np.unique(roles.region[roles.region != NONE]))
        widths = (attempt * max(SLOTS_A_REGION * n_regions - used, LEAST_WIDE * used), math.inf)
    if by_service:
        share, moment_share, most_s = travelling_share, SERVICES_MOMENT_SHARE, math.inf
    share_s = share * clock.limit_s * min(1.0, COUNTED_CORES / parts)
    seconds = attempt * min(max(share_s, LEAST_CONSTRUCTION_S), most_s)
    # What is spent, without what comes back by sales: the sum of both may be near zero.
    stage_gap = SERVICE_GAP if by_service else STAGE_GAP
    gap = stage_gap * float(np.abs(cost) @ np.abs(root.values)) / max(1, len(stages))
    return RollingJob(
        program=structure.program,
        cost=cost,
        root=root.values,
        stages=stages,
        service=roles.service,
        region=roles.region,
        growth=roles.growth,
        slot=roles.slot,
        rank=root.rank,
        widths=widths,
        moment_share=moment_share,
        follow_slots=len(stages) > len(np.unique(roles.period_of)),
        by_service=by_service,
        period_of_stage=np.array([roles.period_of[roles.moment[each[0]]] for each in stages], dtype=np.int64),
        helps=_periods_of_supply(structure),
        linking=structure.linking_mask,
        penalty=penalty_of(structure, root),
        effort=Effort(
            None if clock.deterministic else seconds,
            STAGE_NODES if clock.deterministic else 1_000_000,
            gap_ratio=0.0,
            gap=gap,
        ),
        length=np.inf,
    )


def slots_used(structure: Structure, values: FloatArray) -> Mask:
    """Which slots some values use, by slot."""
    slot = structure.roles.slot
    used = np.zeros(int(slot.max(initial=NONE)) + 1, dtype=bool)
    used[slot[(values > USED) & (slot != NONE)]] = True
    return used


def penalty_of(structure: Structure, root: RootRelaxation) -> FloatArray:
    """Price of violating each scaled limit by one, above what any is worth. [objective units]

    That is the largest price in the relaxation, the dearest variable, or the least supply that mends it:
    where nothing is scarce in fractions, all prices are zero, and a limit of a large pool is many hosts.
    """
    program, cost = structure.program, np.abs(structure.cost)
    dearest = (cost * np.minimum(program.upper, 1.0)).max(initial=1.0)
    anywhere = float(np.abs(root.duals[structure.linking]).max(initial=dearest))
    supply = np.flatnonzero(structure.roles.growth > 0)
    entries = program.rows[:, supply].tocoo()
    row, variable = entries.coords
    mends = np.where(
        entries.data < 0, np.isfinite(program.row_upper[row]), np.isfinite(program.row_lower[row])
    )
    needed = cost[supply[variable[mends]]] / np.abs(entries.data[mends])
    least = np.full(len(program.row_lower), np.inf)
    np.minimum.at(least, row[mends], needed)
    return PENALTY_RATIO * np.where(np.isfinite(least), np.maximum(least, anywhere), anywhere)


def travelling(structure: Structure) -> Mask:
    """Variables that place a service whose demand several regions can serve.

    Such a service has a row that parts what it does in one moment among regions, and nothing else.
    """
    roles, program = structure.roles, structure.program
    elsewhere = (roles.block_keys == MASTER) | (roles.region == NONE)
    one_service = (spans(program, roles.block_keys) == 1) & (abs(program.rows) @ elsewhere == 0)
    parted = program.rows[one_service & (spans(program, roles.region) > 1)]
    found: Mask = np.isin(roles.service, roles.service[parted.indices])
    return found


def _periods_of_supply(structure: Structure) -> sp.csr_array:
    """In which periods each variable of supply counts: those of the moments whose own rows hold it."""
    roles, rows = structure.roles, structure.program.rows
    n_variables, n_periods = len(roles.moment), int(roles.period_of.max(initial=0)) + 1
    placed = np.flatnonzero(roles.moment != NONE)
    period = roles.period_of[roles.moment[placed]]
    of_period = sp.csr_array((np.ones(len(placed)), (placed, period)), shape=(n_variables, n_periods))
    one_moment = (spans(structure.program, roles.moment) == 1).astype(float)
    supply = abs(rows).T.tocsr()[np.flatnonzero(roles.growth)]
    shared: sp.csr_array = (supply @ sp.diags_array(one_moment) @ (abs(rows) @ of_period)).tocsr()
    shared.eliminate_zeros()
    shared.data[:] = 1.0
    return shared


def _stages(structure: Structure, root: RootRelaxation) -> tuple[Indices, ...]:
    """Variables of each moment: by period, in a period the moment first whose supply is worth most.

    In a moment, what happens in the region with the dearest supply comes first, in a region what the service
    with the dearest does, and what services share last.
    """
    roles = structure.roles
    prices = np.where(structure.linking_mask, np.abs(root.duals), 0.0)
    worth = abs(structure.relaxation.rows).T @ prices * np.abs(root.values)
    present = np.unique(roles.moment[roles.moment != NONE])
    variables = {int(m): np.flatnonzero(roles.moment == m) for m in present}
    hardest_first = sorted(variables, key=lambda m: (roles.period_of[m], -worth[variables[m]].sum()))
    return tuple(_dearest_first(variables[m], roles, worth) for m in hardest_first)


def _dearest_first(variables: Indices, roles: VariableRoles, worth: FloatArray) -> Indices:
    """Variables of a moment by what the supply of their region, then that of their service, is worth."""
    keys = []
    for number in (roles.service[variables], roles.region[variables]):
        total = np.bincount(number + 1, worth[variables], int(number.max(initial=NONE)) + 2)
        # Those of none come last, and those of the same worth are not mixed.
        keys += [number, np.where(number == NONE, np.inf, -total[number + 1])]
    return variables[np.lexsort(keys)]
