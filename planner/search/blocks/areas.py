"""Areas: groups of regions that only joint limits connect, such as a shared offer or a budget.

Fleets of hundreds of services divide into areas. Each area is relaxed separately, without joint limits, which
leaves little to change for the whole relaxation. A first plan is constructed for each area within its share
of every joint limit, so that the areas' plans add up to a plan.

All regions that may serve a service's requests belong to one area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.composite_jobs import SiftingJob, SlottedJob
from fleetplan.planner.search.blocks.construction import RootRelaxation, Structure, root_of
from fleetplan.planner.search.blocks.roles import NONE
from fleetplan.planner.search.blocks.subprograms import USED
from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Basis, BasisStatus, Indices, Mask
from fleetplan.planner.search.solvers.relaxation import Relaxation

LEAST_AREAS: Final = 4
"""Below this number of areas, the program is relaxed and planned as one."""


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """Variables and rows of an area in the whole program.

    Attributes
    ----------
    variables : Indices
        Variables of the area.
    rows : Indices
        Rows with variables of this area only.
    joint : Indices
        Rows with variables of this and of other areas.
    """

    variables: Indices
    rows: Indices
    joint: Indices


def areas_of(structure: Structure) -> tuple[Area, ...]:
    """Return the areas of a program; none if they are few or some variables belong to no region."""
    roles, rows = structure.roles, structure.relaxation.rows
    if not len(roles.region) or (roles.region == NONE).any():
        return ()
    filled = np.diff(rows.indptr) > 0
    several = _differs(rows, roles.region, filled)
    # A row of one service over several regions splits its requests among them.
    parting = several & ~_differs(rows, roles.service, filled) & _has(rows, roles.service != NONE, filled)
    area = _connected(rows[parting], roles.region)[roles.region]
    n_areas = int(area.max()) + 1
    if n_areas < LEAST_AREAS:
        return ()
    joint = _differs(rows, area, filled)
    own = np.full(len(filled), NONE, dtype=np.int64)
    own[filled] = area[rows.indices[rows.indptr[:-1][filled]]]
    own[joint] = NONE
    shared = rows[joint].tocoo()
    touched = sp.csr_array(
        (np.ones(len(shared.data)), (area[shared.coords[1]], np.flatnonzero(joint)[shared.coords[0]])),
        shape=(n_areas, len(filled)),
    )
    return tuple(
        Area(np.flatnonzero(area == each), np.flatnonzero(own == each), np.unique(touched[[each]].indices))
        for each in range(n_areas)
    )


def _differs(rows: sp.csr_array, number: Indices, filled: Mask) -> Mask:
    """Return which rows have variables with different numbers."""
    found = np.zeros(len(filled), dtype=bool)
    begins, of_entry = rows.indptr[:-1][filled], number[rows.indices]
    found[filled] = np.minimum.reduceat(of_entry, begins) < np.maximum.reduceat(of_entry, begins)
    return found


def _has(rows: sp.csr_array, variables: Mask, filled: Mask) -> Mask:
    """Return which rows contain any of these variables."""
    found = np.zeros(len(filled), dtype=bool)
    found[filled] = np.logical_or.reduceat(variables[rows.indices], rows.indptr[:-1][filled])
    return found


def _connected(rows: sp.csr_array, region: Indices) -> Indices:
    """Return a group number by region: rows connect the regions of a group."""
    # Imported here because it loads scipy.linalg, which few fleets need.
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    entries = rows.tocoo()
    n_rows, n_regions = rows.shape[0], int(region.max()) + 1
    held = sp.csr_array(
        (np.ones(len(entries.data)), (entries.coords[0], region[entries.coords[1]])),
        shape=(n_rows, n_regions),
    )
    found: Indices = connected_components(held.T @ held, directed=False)[1].astype(np.int64)
    return found


def relaxations_apart(job: SiftingJob, areas: Sequence[Area]) -> list[SiftingJob]:
    """Return each area's linear relaxation, without joint limits.

    Parameters
    ----------
    job : SiftingJob
        Linear relaxation of the whole program.
    areas : Sequence[Area]
        Its areas.
    """
    return [
        replace(
            job,
            program=job.program.among(each.variables, each.rows),
            cost=job.cost[each.variables],
            growth=job.growth[each.variables],
            slot=job.slot[each.variables],
            stage=job.stage[each.variables],
            linking=job.linking[each.rows],
            length=float(len(each.variables)),
        )
        for each in areas
    ]


def relaxation_from(job: SiftingJob, areas: Sequence[Area], answers: Sequence[Answer]) -> SlottedJob | None:
    """Return the whole relaxation, started from those of its areas.

    Their bases, with slack on the joint rows, form a basis that few simplex steps make optimal: 1,619 for a
    fleet of 300 services, 1,536 for one of 1,000.

    Parameters
    ----------
    job : SiftingJob
        Linear relaxation of the whole program.
    areas, answers : Sequence[Area], Sequence[Answer]
        Its areas, and the answers to `relaxations_apart`.

    Returns
    -------
    SlottedJob or None
        None if an area has no solution.
    """
    n_rows, n_variables = job.program.rows.shape
    columns = np.full(n_variables, BasisStatus.LOWER, dtype=np.int8)
    rows = np.full(n_rows, BasisStatus.BASIC, dtype=np.int8)
    values = np.zeros(n_variables)
    for area, answer in zip(areas, answers, strict=True):
        if answer.values is None or answer.basis is None:
            return None
        values[area.variables] = answer.values
        columns[area.variables], rows[area.rows] = answer.basis.columns, answer.basis.rows
    basis = Basis(columns, rows)
    return SlottedJob(
        program=job.program,
        cost=job.cost,
        slot=job.slot,
        open_slots=slots_of(job.slot, values, basis),
        start=basis,
    )


def slots_of(slot: Indices, values: Array, basis: Basis) -> Mask:
    """Return the slots that a relaxation opens, given its values and basis."""
    used = slot[(values > USED) | (basis.columns == BasisStatus.BASIC)]
    found = np.zeros(int(slot.max(initial=0)) + 1, dtype=bool)
    found[used[used >= 0]] = True
    return found


@dataclass(frozen=True, slots=True, eq=False)
class AreaProgram:
    """Program of an area within its share of the joint limits.

    Attributes
    ----------
    area : Area
        Variables and rows in the whole program.
    structure : Structure
        Program of the area.
    root : RootRelaxation
        Optimum of the whole relaxation, restricted to the area.
    """

    area: Area
    structure: Structure
    root: RootRelaxation


def programs_of(structure: Structure, areas: Sequence[Area], root: RootRelaxation) -> list[AreaProgram]:
    """Return the program of each area.

    An area may use as much of a joint limit as in the relaxation, and of what is left a share in proportion
    to its use.

    Parameters
    ----------
    structure, areas : Structure, Sequence[Area]
        The whole program and its areas.
    root : RootRelaxation
        Optimum of the linear relaxation of the whole.
    """
    relaxed = structure.relaxation
    joint = np.unique(np.concatenate([each.joint for each in areas]))
    rows = relaxed.rows[joint].tocsc()
    takes = np.stack([rows[:, each.variables] @ root.values[each.variables] for each in areas])
    size = np.abs(takes).sum(axis=0)
    parts = np.where(size > 0, np.abs(takes) / np.where(size > 0, size, 1.0), 1 / len(areas))
    found = []
    for each, taken, part in zip(areas, takes, parts, strict=True):
        lower, upper = relaxed.row_lower.copy(), relaxed.row_upper.copy()
        for limit in (lower, upper):
            limit[joint] = part_of_limit(limit[joint], takes.sum(axis=0), taken, part)
        own = replace(structure, relaxation=replace(relaxed, row_lower=lower, row_upper=upper))
        program = _restricted(own, each)
        rooted = root_of(program, _restricted_answer(root, each))
        if rooted is not None:
            found.append(AreaProgram(each, program, rooted))
    return found


def part_of_limit(limit: Array, taken_by_all: Array, taken: Array, part: Array) -> Array:
    """Return joint limits for one area: its use plus its share of what is left; infinite limits stay."""
    left = limit - taken_by_all
    limited = np.isfinite(left)
    found: Array = np.where(limited, taken + part * np.where(limited, left, 0.0), limit)
    return found


def _restricted(structure: Structure, area: Area) -> Structure:
    """Return the program over an area's variables, with its own and the joint rows."""
    rows, variables = np.concatenate([area.rows, area.joint]), area.variables
    relaxed, roles = structure.relaxation, structure.roles
    slot = np.full(len(variables), NONE, dtype=np.int64)
    slotted = roles.slot[variables] != NONE
    slot[slotted] = np.unique(roles.slot[variables][slotted], return_inverse=True)[1]
    return Structure(
        roles=replace(
            roles,
            service=roles.service[variables],
            moment=roles.moment[variables],
            region=roles.region[variables],
            home=roles.home[variables],
            growth=roles.growth[variables],
            slot=slot,
        ),
        relaxation=Relaxation(
            rows=relaxed.rows[rows][:, variables].tocsr(),
            row_lower=relaxed.row_lower[rows],
            row_upper=relaxed.row_upper[rows],
            lower=relaxed.lower[variables],
            upper=relaxed.upper[variables],
            whole=relaxed.whole[variables],
            variable_scale=relaxed.variable_scale[variables],
            row_scale=relaxed.row_scale[rows],
        ),
        cost=structure.cost[variables],
        linking=np.flatnonzero(structure.linking_mask[rows]),
        following=structure.following[variables],
    )


def _restricted_answer(root: RootRelaxation, area: Area) -> Answer:
    """Return the whole relaxation's optimum on an area."""
    rows = np.concatenate([area.rows, area.joint])
    return Answer(root.values[area.variables], np.inf, -np.inf, row_duals=root.duals[rows])
