"""Periods decided whole, step by step: in turn with plans and beside them, bounds and plans stay true."""

from __future__ import annotations

import pytest
from tests.parts import first_parts
from tests.planner.random_fleets import several_periods_case
from tests.planner.search.blocks.test_bound import built, optimum, parts_of

from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import ModelStatus, SolverLimits, Step

TOLERANCE = 1e-6


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("counted", [True, False], ids=("in turn", "beside"))
@pytest.mark.parametrize("seed", first_parts((5, 7, 9), 1))
def test_steps_lead_to_the_optimum_and_no_bound_passes_it(seed: int, counted: bool) -> None:
    planning = built(several_periods_case(seed))
    best = optimum(planning)
    assert best is not None
    seen: list[Step] = []

    def enough(objective: float, bound: float) -> bool:
        return objective - bound <= 1e-4 * abs(objective)

    limits = SolverLimits(20.0, 1, 2, Stop())
    outcome = block_solve.solve_in_blocks(planning, parts_of(planning), limits, enough, seen.append, counted)
    details = [step.detail for step in seen if step.source == "periods"]
    # Parts of replicas leave a gap in all of these fleets, of 5 % in one.
    assert any("periods decided whole" in detail for detail in details)
    assert outcome.objective is not None
    assert outcome.bound is not None
    assert all(step.bound is None or step.bound <= best + TOLERANCE * abs(best) for step in seen)
    assert outcome.objective >= best - TOLERANCE * abs(best)
    assert outcome.status is ModelStatus.SOLVED
