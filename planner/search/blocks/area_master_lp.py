"""Master LP solved area by area at prices of the joint limits; each area starts from its last basis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.area_decomposition import AreaDecomposition
from fleetplan.planner.search.blocks.area_scopes import AreaScopes
from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.composite_jobs import SlottedJob
from fleetplan.planner.search.blocks.master import PriceRange
from fleetplan.planner.search.blocks.roles import NONE
from fleetplan.planner.search.solvers.highs_jobs import Answer, Basis, BasisStatus, Job, Rows
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.workers import Workers

LEAST_COLUMNS: Final = 8000
"""Below this number of columns, one LP is faster on one core: 0.2 s instead of 0.4 s for 1,806 columns in 8
areas. For 9,586 columns in 20 areas it is 1.0 to 1.4 s instead of 2.4 s, but no job takes more than 0.2 s."""


class AreaMasterLP:
    """Solver of consecutive master LPs by areas.

    Parameters
    ----------
    areas : AreaScopes
        Areas of the master.
    """

    def __init__(self, areas: AreaScopes) -> None:
        self._areas = areas
        # Prices do not settle where many joint limits bind, as with scarce supply.
        self._prices_settle = True
        # Last basis of each area, and the columns it covers.
        self._ended: list[tuple[list[Column], Basis]] = []

    def solve(
        self, workers: Workers, job: Job, columns: Sequence[Column], within: PriceRange, first: FloatArray
    ) -> Answer | None:
        """Solve a master LP.

        Parameters
        ----------
        workers : Workers
            Processes that solve the jobs.
        job : Job
            Master LP over all columns.
        columns : Sequence[Column]
            Its columns: the first variables of the LP.
        within : PriceRange
            Price range of the linking rows.
        first : FloatArray
            First prices of the linking rows.

        Returns
        -------
        Answer or None
            Optimum within the tolerance of `AreaDecomposition`; None with few columns, or if prices do not
            settle or did not in an earlier call.
        """
        if not self._prices_settle or len(columns) < LEAST_COLUMNS or isinstance(job.rows, int):
            return None
        areas, program = self._areas.in_linear_job(columns), job.rows
        chosen = [[columns[i] for i in each.variables.tolist() if i < len(columns)] for each in areas]
        starts: list[Basis | None] = [None] * len(areas)
        if self._ended:
            starts = [_over(own, *ended) for own, ended in zip(chosen, self._ended, strict=True)]
        apart = [
            _without_slots(program.among(each.variables, each.rows), job.cost[each.variables], start)
            for each, start in zip(areas, starts, strict=True)
        ]
        found = AreaDecomposition(program, job.cost, areas, apart, within)
        answer = found.solve(workers, first)
        self._prices_settle = answer is not None
        if answer is not None and answer.values is not None:
            self._pass_limits(program, answer.values)
        bases = [each.basis for each in found.answers]
        self._ended = [(own, basis) for own, basis in zip(chosen, bases, strict=True) if basis is not None]
        return answer

    def _pass_limits(self, program: Rows, values: FloatArray) -> None:
        """Set the slack variables of joint limits, which belong to no area."""
        joint, n_linking = self._areas.joint, self._areas.n_linking
        used = (program.rows @ values)[joint]
        values[joint - 2 * n_linking] = np.maximum(program.row_lower[joint] - used, 0.0)
        values[joint - n_linking] = np.maximum(used - program.row_upper[joint], 0.0)


def _without_slots(program: Rows, cost: FloatArray, start: Basis | None) -> SlottedJob:
    """Return a linear program over all its variables, with a first basis."""
    nothing = np.zeros(1, dtype=bool)
    slot = np.full(len(cost), NONE, dtype=np.int64)
    return SlottedJob(
        program=program, cost=cost, slot=slot, open_slots=nothing, start=start, length=float(len(cost))
    )


def _over(columns: Sequence[Column], before: Sequence[Column], basis: Basis) -> Basis:
    """Return a basis extended to other columns of an area; new columns are at zero."""
    status = dict(zip(map(id, before), basis.columns.tolist(), strict=False))
    of_columns = [status.get(id(column), int(BasisStatus.LOWER)) for column in columns]
    others = basis.columns[len(before) :]
    return Basis(np.concatenate([np.array(of_columns, dtype=np.int8), others]), basis.rows)
