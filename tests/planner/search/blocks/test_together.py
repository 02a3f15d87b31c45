"""Changes that neighbourhoods find side by side are put together, with supply for all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.random_fleets import PlanningCase
from tests.planner.search.blocks.test_bound import EXACT, built, optimum, parts_of, request

from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import Structure
from fleetplan.planner.search.blocks.direct_neighbourhoods import Change
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.master import Master
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.blocks.subprograms import Parts
from fleetplan.planner.search.solvers.highs_jobs import Job
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers


class FoundChanges:
    """Stand-in for neighbourhoods that find some changes."""

    def __init__(self, changes: list[Change]) -> None:
        self._changes = changes

    def improve(self, *_: object) -> list[Change]:
        return self._changes


def two_services() -> PlanningCase:
    """Each runs on what is cheap or dear, of which as much is rented as both want."""
    return PlanningCase(
        fleet(
            services=[service("chat", 12.0), service("code", 6.0)],
            hardware=[hardware("cheap", 8), hardware("dear", 8)],
            pools=[],
            offers=[rent_offer("cheap", 1.0), rent_offer("dear", 3.0)],
        ),
        tuple(candidate(name, kind, 3.0) for name in ("chat", "code") for kind in ("cheap", "dear")),
    )


@pytest.mark.parametrize("least_first", [True, False])
def test_two_changes_that_rent_more_of_the_same_are_both_kept(least_first: bool) -> None:
    planning = built(two_services())
    parts = parts_of(planning)
    asked, clock = request(planning, parts, 1), Clock(math.inf, deterministic=True)
    relaxed = relax(parts.program, asked.continuous)
    cost = parts.program.cost * relaxed.variable_scale
    known = asked.roles
    structure = Structure(known, relaxed, cost, parts.linking_rows, parts.following_variables)
    state = SearchState(asked, clock, Incumbent(parts, relaxed, lambda _: None), -math.inf)
    master, pool = Master(parts, relaxed, cost), ColumnPool(parts, relaxed, cost)
    plans = PlanSearch(parts, structure, master, pool, state, clock, seed=1)
    whole, names = Parts(structure.program), [each.name for each in planning.model.proto.variables]
    with Workers(ProcessSeats(1, Programs.of(block_programs(parts, relaxed)))) as workers:

        def decided(variables: np.ndarray, held: FloatArray, closed: str = "") -> FloatArray:
            """The best of some variables, the others held."""
            part = whole.part(variables, held).program
            is_closed = np.array([bool(closed) and closed in names[each] for each in variables])
            upper = np.where(is_closed, part.lower, part.upper)
            answer = workers.solve_one(Job(part.within(part.lower, upper), cost[variables], EXACT))
            assert answer.values is not None
            return answer.values

        everything = np.arange(len(cost))
        dear = decided(everything, np.zeros(len(cost)), closed="cheap")
        assert plans.offer(dear)
        changes = []
        for number in range(2):
            own = np.flatnonzero((known.service == number) | (known.service < 0))
            values = decided(own, dear)
            changes.append(Change(own, values, float(cost[own] @ (dear[own] - values)), "one service"))
        changes.sort(key=lambda each: each.gain, reverse=not least_first)
        plans._direct = FoundChanges(changes)  # type: ignore[assignment]
        plans.improve(workers)
    assert all(change.gain > 0 for change in changes)
    assert state.incumbent.objective == pytest.approx(optimum(planning))
