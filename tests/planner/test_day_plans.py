"""Plans with slices and demand scenarios where other plans meet them: as the plan in force, and in a diff."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import candidate
from tests.planner.family_examples import EXAMPLES, HALVES
from tests.planner.solving import solve
from tests.planner.uncertain_demand import RUNS, planned, question

from fleetplan.fleet.inventory import Fleet, Tidal
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.problem.current_plan import with_baseline
from fleetplan.planner.questions.diff import diff

SHIFTS = (candidate("day", "A", 1.0), candidate("night", "A", 1.0))


def shifts(**policy: object) -> Fleet:
    """Two replicas by day of one service, two by night of the other."""
    asked = EXAMPLES["tidal"]().fleet
    return replace(asked, policy=replace(asked.policy, **{"tidal": Tidal(), **policy}))  # type: ignore[arg-type]


def plan_of(asked: Fleet) -> Plan:
    plan = solve(asked, SHIFTS).plan
    assert plan is not None
    return plan


def test_the_plan_in_force_is_read_slice_by_slice() -> None:
    before = plan_of(shifts())
    asked = shifts(transition_usd_per_accelerator=1000.0)
    problem, warnings = with_baseline(build_problem(asked, SHIFTS), before)
    assert problem.running_before == {(0, 0, "day"): 2, (1, 0, "night"): 2}
    assert warnings == ()
    assert solve(asked, SHIFTS, baseline=before).usd == pytest.approx(2 * 2190.0)


def test_a_start_is_charged_for_the_hours_of_its_slice() -> None:
    nothing = plan_of(shifts()).model_copy(update={"placements": ()})
    asked = shifts(transition_usd_per_accelerator=1000.0)
    found = solve(asked, SHIFTS, baseline=nothing)
    # Two accelerators start for half of the day each time: two and two halves of 1000 USD.
    assert found.usd == pytest.approx(2 * 2190.0 + 4 * 0.5 * 1000.0)
    assert found.plan is not None
    assert sum(row.usd for row in found.plan.transitions) == pytest.approx(2000.0)


def test_a_plan_of_another_day_runs_what_it_runs_at_most() -> None:
    whole = replace(shifts(transition_usd_per_accelerator=1.0), slices=())
    problem, _ = with_baseline(build_problem(whole, SHIFTS), plan_of(shifts()))
    assert problem.running_before == {(0, 0, None): 2, (1, 0, None): 2}
    halves = replace(whole, slices=HALVES)
    problem, _ = with_baseline(build_problem(halves, SHIFTS), plan_of(whole))
    assert problem.running_before == {
        (service, 0, part): 2 for service in (0, 1) for part in ("day", "night")
    }


def test_the_likeliest_scenario_of_the_plan_in_force_runs() -> None:
    problem, warnings = with_baseline(build_problem(question(), RUNS), planned(question()))
    assert problem.running_before == {(0, 0, None): 10}
    assert warnings == ("plan in force: its placements for demand scenario high apply",)


def test_a_diff_tells_slices_and_scenarios_apart() -> None:
    before, after = planned(question()), planned(question("least-regret"))
    names = {change.name for change in diff(before, after).changes}
    assert {name for name in names if " if " in name} == {
        "chat aggregated x1 on A in here/A if high",
        "chat aggregated x1 on B in here/B if high",
    }
    assert diff(before, before).changes == ()
    # What stands is counted once, not once a slice.
    (pool,) = [
        change
        for change in diff(plan_of(shifts()).model_copy(update={"pools": ()}), plan_of(shifts())).changes
        if change.subject == "pool"
    ]
    assert {figure.name: figure.after for figure in pool.quantities} == {"accelerators": 2}
