"""Goals that solved plans reach."""

from __future__ import annotations

from dataclasses import replace

from tests.planner.builders import (
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    service,
)
from tests.planner.solving import Solved

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import StatedGoal

QUARTER_H = 2190
RUNS = (
    candidate("chat", "hot", 2.0, power_kw=1.5),
    candidate("chat", "cool", 1.0, power_kw=0.5),
)


def question(objective: str, **changes: object) -> Fleet:
    """Three requests/s; hot accelerators are cheap and fast, cool ones draw a third."""
    here = region(pue=1.2, grid_kg_co2_per_kwh=(0.4,))
    asked = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("hot", 1), hardware("cool", 1)],
        offers=[rent_offer("hot", 1.0), rent_offer("cool", 3.0), rent_offer("cooler", 2.0, hardware="cool")],
        regions=[here],
    )
    return replace(asked, objective=objective, **changes)  # type: ignore[arg-type]


def reached(solved: Solved) -> StatedGoal:
    assert solved.plan is not None
    assert solved.plan.goal is not None
    return solved.plan.goal


def runs(solved: Solved) -> dict[str, int]:
    return {row.hardware: row.replicas for row in solved.rows()}
