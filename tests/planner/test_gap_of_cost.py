"""The gap of a cost that may be nothing, or less."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import candidate, fleet, hardware, owned_pool, rent_offer, service
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Owned
from fleetplan.planner.units import gap_of_cost
from fleetplan.planner.verify import verify


@pytest.mark.parametrize(
    ("cost", "bound", "gap"),
    [
        (100.0, 90.0, 0.1),
        (100.0, -100.0, 2.0),
        (0.0, 0.0, 0.0),
        (0.0, -100.0, 1.0),
        (-100.0, -100.0, 0.0),
        (-100.0, -150.0, 0.5),
        (-0.02, -0.025, 0.0),
    ],
)
def test_a_cost_below_zero_has_a_gap_as_any_other(cost: float, bound: float, gap: float) -> None:
    assert gap_of_cost(cost, bound) == pytest.approx(gap)


def test_a_plan_that_earns_is_held_to_its_bound() -> None:
    old = replace(
        owned_pool("old", 10, 1600.0, hardware="O"),
        owned=Owned(1600.0, None, 16, 0.0, resale_usd_per_host=(5000.0,)),
    )
    asked = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1), hardware("O", 8)],
        pools=[old],
        offers=[rent_offer("a", 1.0, hardware="A")],
    )
    solved = solve(asked, [candidate("chat", "A", 1.0)])
    plan = solved.plan
    assert plan is not None
    assert plan.objective_usd < 0
    assert plan.gap == 0
    assert verify(solved.problem, plan) == []
    # Twice as much might be earned: such a plan was called optimal.
    open_plan = plan.model_copy(update={"bound_usd": 2 * plan.objective_usd})
    assert {violation.family for violation in verify(solved.problem, open_plan)} == {"cost"}
    # With its gap it is called better than it is.
    told = open_plan.model_copy(update={"gap": 1.0})
    assert {violation.family for violation in verify(solved.problem, told)} == {"inputs"}
