"""Steps of a waterfall: the largest ones, and one for the rest."""

from __future__ import annotations

import pytest

from fleetplan.planner.questions.diff import CostChange, PlanDiff
from fleetplan.planner.report.html.money_view import MOST_STEPS, changes


@pytest.mark.parametrize("services", [3, MOST_STEPS, MOST_STEPS + 1, 40])
def test_small_steps_are_one_only_where_there_are_several(services: int) -> None:
    costs = [CostChange(f"s{k}", 100.0, 200.0 + k) for k in range(services)]
    more = sum(cost.delta_usd for cost in costs)
    found = PlanDiff((), CostChange("TCO", 1000.0, 1000.0 + more), (), tuple(costs), ())
    first, *steps, last = changes(found, costs)
    assert sum(step.usd for step in (first, *steps)) == pytest.approx(last.usd)
    if services <= MOST_STEPS + 1:
        assert [step.name for step in steps] == [f"s{k}" for k in reversed(range(services))]
    else:
        assert len(steps) == MOST_STEPS + 1
        assert steps[0].name == f"s{services - 1}"
        assert steps[-1].name == f"{services - MOST_STEPS} smaller"
