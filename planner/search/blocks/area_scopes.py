"""Integer masters by area: each keeps to its share of the joint limits, so that all together keep them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fleetplan.planner.search.blocks.areas import Area, part_of_limit
from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.master import Master, Scope, Selection
from fleetplan.planner.search.blocks.roles import NONE
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray


class AreaScopes:
    """Areas of a master.

    Parameters
    ----------
    parts : Split
        Program in blocks.
    master : Master
        Restricted master.
    areas : Sequence[Area]
        Areas of the program.

    Attributes
    ----------
    blocks : list[IntArray]
        Block numbers by area.
    joint : IntArray
        Linking rows that areas share.
    n_linking : int
        Number of linking rows.
    """

    def __init__(self, parts: Split, master: Master, areas: Sequence[Area]) -> None:
        area = np.full(len(parts.block_of), NONE, dtype=np.int64)
        for number, each in enumerate(areas):
            area[each.variables] = number
        self._master = master
        self._of_block = np.array([area[block.variables[0]] for block in parts.blocks], dtype=np.int64)
        of_variable, numbers = area[parts.master_variables], range(len(areas))
        self.blocks: list[IntArray] = [np.flatnonzero(self._of_block == number) for number in numbers]
        self._variables = [np.flatnonzero(of_variable == number) for number in numbers]
        self._rows = [
            np.flatnonzero(np.isin(parts.linking_rows, np.concatenate([each.rows, each.joint])))
            for each in areas
        ]
        joint = np.concatenate([each.joint for each in areas])
        self.joint = np.flatnonzero(np.isin(parts.linking_rows, joint))
        self.n_linking = len(parts.linking_rows)
        self._own_rows = [np.setdiff1d(rows, self.joint) for rows in self._rows]

    def within(self, selection: Selection, wanted: FloatArray) -> list[Scope]:
        """Return what each area may decide while all others do.

        An area may use as much of a joint limit as it does now, and a share of what is left, in proportion to
        how much more it wants.

        Parameters
        ----------
        selection : Selection
            Plan from which each area starts.
        wanted : FloatArray
            Scaled values of the master's variables in a mixture of columns.
        """
        master, takes = self._master, self._taken(selection)
        more = np.maximum(self._of_variables(wanted) - self._of_variables(selection.master), 0.0)
        parts = more / np.where(more.sum(axis=0) > 0, more.sum(axis=0), 1.0)
        parts[:, more.sum(axis=0) <= 0] = 1 / len(self.blocks)
        scopes = []
        for number, rows in enumerate(self._rows):
            lower, upper = master.row_lower.copy(), master.row_upper.copy()
            for limit in (lower, upper):
                own = part_of_limit(limit[self.joint], takes.sum(axis=0), takes[number], parts[number])
                limit[self.joint] = own
            variables = self._variables[number]
            scopes.append(Scope(self.blocks[number], variables, rows, lower[rows], upper[rows]))
        return scopes

    def in_linear_job(self, columns: Sequence[Column]) -> list[Area]:
        """Return each area's variables and rows in the master LP; slack on joint limits belongs to none."""
        n_columns, n_variables = len(columns), len(self._master.cost)
        of_column = self._of_block[[column.block for column in columns]]
        first_slack, found = n_columns + n_variables, []
        for number, own in enumerate(self._own_rows):
            chosen, variables = np.flatnonzero(of_column == number), n_columns + self._variables[number]
            slack = np.concatenate([first_slack + own, first_slack + self.n_linking + own])
            found.append(
                Area(
                    np.concatenate([chosen, variables, slack]),
                    np.concatenate([own, self.n_linking + self.blocks[number]]),
                    np.intersect1d(self._rows[number], self.joint),
                )
            )
        return found

    def _taken(self, selection: Selection) -> FloatArray:
        """Return each area's use of each joint row, shape (n_areas, n_joint)."""
        taken = self._of_variables(selection.master)
        position = np.full(len(self._master.row_lower), NONE, dtype=np.int64)
        position[self.joint] = np.arange(len(self.joint))
        for column in selection.columns:
            of = position[column.entries[0]]
            if (of != NONE).any():
                np.add.at(taken[self._of_block[column.block]], of[of != NONE], column.entries[1][of != NONE])
        return taken

    def _of_variables(self, values: FloatArray) -> FloatArray:
        """Return the use of each joint row by the master's variables, by area."""
        rows = self._master.rows[self.joint].tocsc()
        return np.stack([rows[:, own] @ values[own] for own in self._variables])
