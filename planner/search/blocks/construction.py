"""Input of constructions of a first plan: stages, open slots, and penalties of violated limits."""

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
"""Share of the time limit for a construction, within the limits below."""

TRAVELLING_SHARE_OF_TIME: Final = 0.45
"""Share for a construction among many slots where several regions can serve a service; it runs in parallel to
the next step. Elsewhere, columns soon yield better plans than any construction."""

BESIDE_SUPPLY_SHARE_OF_TIME: Final = 0.2
"""Share in parallel to supply decisions, which yield better plans and need the core: after 30 s, the gaps of
teams 2 and 5 are 1.5 and 3.1 %, instead of 3.2 and 3.9 % at the share above."""

LEAST_CONSTRUCTION_S: Final = 2.0
"""Least time: that of a first plan for a company's year (12 services, 12 moments). [s]"""

MOST_STAGE_S: Final = 3.0
"""Largest time per moment. [s]"""

MOST_CONSTRUCTION_S: Final = 14.0
"""Largest time of a construction, after the relaxation: a company then has a first plan after 20 s. [s]"""

STAGE_GAP: Final = 1e-3
"""Gap of a stage, over an even share of the relaxation's spending: later steps improve on it anyway."""

SERVICE_GAP: Final = 3e-3
"""Gap of a stage if moments are decided service by service; a third of it takes twice as long."""

WIDER: Final = (0.0, 0.1, 0.3, 1.0, math.inf)
"""Slots opened beyond those of the relaxation, as a multiple of their number, by attempt."""

SLOTS_A_REGION: Final = 150
"""Slots per region, over all moments, in a wide construction: whole replicas fill the rest of a pool with
slots that an optimum with fractional replicas does not use. Companies' relaxations use 42 to 54."""

MOMENT_SHARE, WIDE_MOMENT_SHARE, SERVICES_MOMENT_SHARE = 1.5, 3.0, 5.0
"""Time limit of a moment as a multiple of an even share: with few slots, with many, and service by service.
The first moments decide most of the supply; the others then take far less."""

LEAST_WIDE: Final = 0.3
"""Least slots opened beyond those of the relaxation, as a multiple of their number."""

STAGE_NODES: Final = 200
"""Search nodes per stage in reproducible runs."""

PENALTY_RATIO: Final = 2.0
"""Price of a violated limit, as a multiple of the largest dual price and of the largest cost."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Relaxed program with the role of each variable.

    Attributes
    ----------
    roles : VariableRoles
        Role of each variable.
    relaxation : Relaxation
        Relaxed program.
    cost : FloatArray
        Scaled costs.
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
        """Return the program for HiGHS, which need not branch on following variables."""
        rows = self.relaxation.program
        return replace(rows, whole=rows.whole & ~self.following)

    @property
    def linking_mask(self) -> Mask:
        """Return the linking rows as a mask."""
        found = np.zeros(len(self.relaxation.row_lower), dtype=bool)
        found[self.linking] = True
        return found


@dataclass(frozen=True, slots=True, eq=False)
class RootRelaxation:
    """Optimum of the linear relaxation, with a ranking of slots.

    Attributes
    ----------
    values, duals : FloatArray
        Scaled values of all variables, and prices of all scaled rows.
    rank : FloatArray
        By slot: 0 if the optimum uses it. The others are ranked in turns, one per service and region a turn,
        by their extra cost. Ranked by extra cost alone, all slots that a stage opens may belong to one
        service: a company's constructions then ended after 25 and 45 s beyond limits, instead of with plans
        after 17 s.
    """

    values: FloatArray
    duals: FloatArray
    rank: FloatArray


def root_of(structure: Structure, answer: Answer) -> RootRelaxation | None:
    """Return the ranking from a solved relaxation; None if it has no optimum."""
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
    """Return a number for the service and region of each slot."""
    kind, n_regions = np.full(n_slots, NONE, dtype=np.int64), int(roles.region.max(initial=NONE)) + 1
    slotted = roles.slot != NONE
    kind[roles.slot[slotted]] = roles.service[slotted] * n_regions + roles.region[slotted]
    return kind


def _turns(kind: Indices) -> Indices:
    """Return how many elements of the same kind precede each element."""
    order = np.argsort(kind, kind="stable")
    _, first, count = np.unique(kind[order], return_index=True, return_counts=True)
    turn = np.empty(len(kind), dtype=np.int64)
    turn[order] = np.arange(len(kind)) - np.repeat(first, count)
    return turn


def root_at(structure: Structure, root: RootRelaxation, values: FloatArray) -> RootRelaxation:
    """Return a root whose constructions follow other values and open the slots of these first.

    Parameters
    ----------
    structure : Structure
        The program.
    root : RootRelaxation
        Gives the prices, and the order of all other slots.
    values : FloatArray
        Scaled values of all variables, such as the best with whole supply and fractional replicas.
    """
    rank = np.where(slots_used(structure, values), 0.0, root.rank + 1.0)
    return RootRelaxation(values, root.duals, rank)


def sifting_job(structure: Structure, indicators: Collection[int] = ()) -> SiftingJob:
    """Return the linear relaxation without the limits of rows that contain indicators."""
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
    """Return the rolling-horizon construction of a plan, guided by the root relaxation.

    Parameters
    ----------
    structure : Structure
        The program.
    root : RootRelaxation
        Optimum of its linear relaxation.
    clock : Clock
        Time limits.
    attempt : int
        Counts from 1; each attempt opens more slots than the one before, for longer.
    wide : bool
        Whether to open many slots at once, with the time for it.
    parts : int
        Number of constructions that together make one plan and share its time.
    travelling_share : float
        Share of the time limit for a wide construction where several regions can serve a service.
    """
    roles, cost = structure.roles, structure.cost
    n_used = max(1, int((root.rank == 0).sum()))
    stages = _stages(structure, root)
    # Among few slots, deciding service by service gains nothing for services that split among regions.
    by_service = wide and bool(travelling(structure).any())
    widths = tuple((attempt - 1 + extra) * n_used for extra in WIDER)
    time_share, moment_share = CONSTRUCTION_SHARE_OF_TIME, WIDE_MOMENT_SHARE if wide else MOMENT_SHARE
    most_s = min(MOST_STAGE_S * len(stages), MOST_CONSTRUCTION_S)
    if wide:
        n_regions = len(np.unique(roles.region[roles.region != NONE]))
        widths = (attempt * max(SLOTS_A_REGION * n_regions - n_used, LEAST_WIDE * n_used), math.inf)
    if by_service:
        time_share, moment_share, most_s = travelling_share, SERVICES_MOMENT_SHARE, math.inf
    share_s = time_share * clock.limit_s * min(1.0, COUNTED_CORES / parts)
    seconds = attempt * min(max(share_s, LEAST_CONSTRUCTION_S), most_s)
    # Gross spending, because sales may bring the sum near zero.
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
    """Return a mask of the slots that these values use."""
    slot = structure.roles.slot
    used = np.zeros(int(slot.max(initial=NONE)) + 1, dtype=bool)
    used[slot[(values > USED) & (slot != NONE)]] = True
    return used


def penalty_of(structure: Structure, root: RootRelaxation) -> FloatArray:
    """Return the price of violating each scaled limit by one, above the value of any. [objective units]

    It is the largest dual price of the relaxation, the largest cost, or the cheapest supply that removes the
    violation: where no fractional supply is scarce, all dual prices are zero, and a limit of a large pool is
    many hosts.
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
    """Return a mask of variables that place a service whose demand several regions can serve.

    Such a service has a row that only splits its requests of one moment among regions.
    """
    roles, program = structure.roles, structure.program
    elsewhere = (roles.block_keys == MASTER) | (roles.region == NONE)
    one_service = (spans(program, roles.block_keys) == 1) & (abs(program.rows) @ elsewhere == 0)
    parted = program.rows[one_service & (spans(program, roles.region) > 1)]
    found: Mask = np.isin(roles.service, roles.service[parted.indices])
    return found


def _periods_of_supply(structure: Structure) -> sp.csr_array:
    """Return in which periods each supply variable counts: those of the moments whose rows contain it."""
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
    """Return the variables of each moment, by period, with the most valuable supply first.

    Within a moment, the region with the most valuable supply comes first, within a region the service;
    variables that services share come last.
    """
    roles = structure.roles
    prices = np.where(structure.linking_mask, np.abs(root.duals), 0.0)
    worth = abs(structure.relaxation.rows).T @ prices * np.abs(root.values)
    present = np.unique(roles.moment[roles.moment != NONE])
    variables = {int(m): np.flatnonzero(roles.moment == m) for m in present}
    hardest_first = sorted(variables, key=lambda m: (roles.period_of[m], -worth[variables[m]].sum()))
    return tuple(_dearest_first(variables[m], roles, worth) for m in hardest_first)


def _dearest_first(variables: Indices, roles: VariableRoles, worth: FloatArray) -> Indices:
    """Sort a moment's variables by the value of their region's supply, then of their service's."""
    keys = []
    for number in (roles.service[variables], roles.region[variables]):
        total = np.bincount(number + 1, worth[variables], int(number.max(initial=NONE)) + 2)
        # Variables without a region or service come last; ties are kept together.
        keys += [number, np.where(number == NONE, np.inf, -total[number + 1])]
    return variables[np.lexsort(keys)]
