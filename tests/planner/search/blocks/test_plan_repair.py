"""Repair of a choice of columns without enough replicas: the replica and its supply are added."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.planner.random_fleets import large_case
from tests.planner.search.blocks.test_bound import EXACT, built, parts_of, request
from tests.planner.search.blocks.test_columns import filled, priced_blocks

from fleetplan.planner.formulation.build import PlanningModel
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.exact_columns import ExactColumns
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.plan_repair import PlanRepair
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers


class Choices:
    """A fleet in blocks, with some columns of each, and what integer masters choose among them."""

    def __init__(self, planning: PlanningModel) -> None:
        self.planning, self.parts = planning, parts_of(planning)
        self.relaxed = relax(self.parts.program, continuous_indices(planning.variables))
        program = (self.parts, self.relaxed)
        self.pool = filled(program, priced_blocks(program))
        self.master = Master(self.parts, self.relaxed, self.pool.cost)
        self.programs = Programs.of(block_programs(self.parts, self.relaxed))

    def chosen(self, workers: Workers, columns: list[Column]) -> Selection | None:
        everything = self.master.everything()
        answer = workers.solve_one(self.master.integer_job(everything, columns, EXACT, None))
        return self.master.chosen(everything, columns, answer, None)

    def plan_repair(self) -> tuple[PlanRepair, SearchState]:
        """One that knows no plan yet."""
        clock = Clock(math.inf, deterministic=True)
        incumbent = Incumbent(self.parts, self.relaxed, lambda _: None)
        state = SearchState(request(self.planning, self.parts), clock, incumbent, -math.inf)
        return PlanRepair(self.master, self.pool, state, clock), state

    def without_a_replica(self, column: Column) -> Column | None:
        """The column with one replica less of the kind that it has most of, if that is then too few."""
        whole = self.relaxed.whole[self.parts.blocks[column.block].variables]
        values = column.values.copy()
        values[np.argmax(np.where(whole, values, 0))] -= 1
        short = Column(column.block, values, column.cost, column.entries)
        lacks = ExactColumns(self.parts, self.relaxed).mended(short) is not None
        return self.pool.known(column.block, values) if lacks else None


@pytest.fixture(scope="module")
def choices() -> Choices:
    return Choices(built(large_case(2, 4, 2, 2)))


def test_what_lacks_a_replica_gets_it_and_supply_for_it(choices: Choices) -> None:
    lacking = 0
    with Workers(ProcessSeats(1, choices.programs)) as workers:
        best = choices.chosen(workers, list(choices.pool.columns))
        assert best is not None
        for column in best.columns:
            short = choices.without_a_replica(column)
            if short is None:
                continue
            columns = [short if each is column else each for each in best.columns]
            found = choices.chosen(workers, columns)
            plan_repair, state = choices.plan_repair()
            if found is None or plan_repair.offer(found):
                continue
            lacking += 1
            assert choices.pool.current(short) is not short
            assert short not in choices.pool.columns
            assert state.incumbent.values is None
            plan_repair.decide_supply(workers)
            assert state.incumbent.values is not None
            assert choices.parts.program.holds(state.incumbent.values)
            assert state.incumbent.objective == choices.parts.program.value(state.incumbent.values)
    assert lacking > 0
