"""Plans whose columns lack replicas: the columns get them, and supply is decided anew for all of them."""

from __future__ import annotations

from typing import Final

from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.workers import Workers

SUPPLY_S: Final = 1.0
"""Most time for deciding supply anew. Where all columns are given, it takes a tenth in a large fleet. [s]"""


class Mending:
    """Keeps the best of what was found, although HiGHS takes rows for kept that lack a part of a replica.

    One column of a thousand lacks a replica. With it, a plan of a thousand columns may pass a limit, or want
    another purchase.

    Parameters
    ----------
    master, pool : Master, ColumnPool
        Selections of columns, and the columns that are known.
    state : SearchState
        Keeps the best plan.
    clock : Clock
        Says how long.
    """

    def __init__(self, master: Master, pool: ColumnPool, state: SearchState, clock: Clock) -> None:
        self._master = master
        self._pool = pool
        self._state = state
        self._clock = clock
        # The cheapest selection with columns that were mended, whose supply is to be decided.
        self._pending: Selection | None = None

    def offer(self, selection: Selection) -> bool:
        """Keep a selection if it is exact and the best; mend columns that lack replicas if it might be."""
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
        """Decide supply, and nothing else, for the cheapest selection that was mended."""
        pending, self._pending = self._pending, None
        objective = self._state.incumbent.objective
        if pending is None or self._state.expired() or (objective is not None and pending.cost >= objective):
            return
        everything, columns = self._master.everything(), pending.columns
        effort = self._clock.master(SUPPLY_S, self._state.overtime_s())
        answer = workers.solve_one(self._master.integer_job(everything, columns, effort, None))
        selection = self._master.chosen(everything, columns, answer, None)
        if selection is not None and self._state.incumbent.offer(selection):
            self._state.tell("master", "supply for columns that lacked replicas")
