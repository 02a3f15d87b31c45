"""Repair of plans whose columns lack replicas: add the replicas, then choose supply for all columns."""

from __future__ import annotations

from typing import Final

from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.workers import Workers

SUPPLY_S: Final = 1.0
"""Time limit to choose supply. With all columns fixed, it takes a tenth of it in a large fleet. [s]"""


class PlanRepair:
    """Keeps the best plan even if HiGHS's row tolerance left a column without part of a replica.

    One column of a thousand lacks a replica. With the replica added, a plan of a thousand columns may violate
    a limit or need another purchase.

    Parameters
    ----------
    master, pool : Master, ColumnPool
        Restricted master, and the known columns.
    state : SearchState
        Holds the best plan.
    clock : Clock
        Time limits.
    """

    def __init__(self, master: Master, pool: ColumnPool, state: SearchState, clock: Clock) -> None:
        self._master = master
        self._pool = pool
        self._state = state
        self._clock = clock
        # Cheapest selection with repaired columns whose supply is still to be chosen.
        self._pending: Selection | None = None

    def offer(self, selection: Selection) -> bool:
        """Keep a selection if it is exact and the best; repair its columns if it might become so."""
        incumbent = self._state.incumbent
        if incumbent.objective is not None and selection.cost >= incumbent.objective:
            return False
        if incumbent.offer(selection):
            return True
        mended = {id(column): (column, values) for column, values in incumbent.mended(selection)}
        for column, values in mended.values():
            self._pool.replace(column, values)
        if mended and (self._pending is None or selection.cost < self._pending.cost):
            columns = [
                self._pool.known(column.block, mended[id(column)][1]) if id(column) in mended else column
                for column in selection.columns
            ]
            self._pending = self._master.selection(columns, selection.master)
        return False

    def decide_supply(self, workers: Workers) -> None:
        """Choose supply for the cheapest repaired selection, with all columns fixed."""
        pending, self._pending = self._pending, None
        objective = self._state.incumbent.objective
        if pending is None or self._state.expired() or (objective is not None and pending.cost >= objective):
            return
        everything, columns = self._master.everything(), pending.columns
        effort = self._clock.master(SUPPLY_S, self._state.overtime_s())
        answer = workers.solve_one(self._master.integer_job(everything, columns, effort, None))
        selection = self._master.chosen(everything, columns, answer, None)
        if selection is not None and self._state.incumbent.offer(selection):
            self._state.tell("master", "chose supply after adding missing replicas")
