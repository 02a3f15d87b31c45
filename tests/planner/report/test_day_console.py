"""Slices, offline work and demand scenarios on the console."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import NO_PROVENANCE, solve
from tests.planner.uncertain_demand import planned, question

from fleetplan.planner.plan import Infeasible, Plan, Solve
from fleetplan.planner.problem import build_problem
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.infeasible_console import print_infeasible
from fleetplan.planner.search.shortage import find_shortages


def printed(plan: Plan | None) -> list[str]:
    assert plan is not None
    stream = StringIO()
    print_plan(plan, Console(file=stream, width=160, color_system=None))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_day_is_one_line_a_slice() -> None:
    example = EXAMPLES["tidal"]()
    lines = printed(solve(example.fleet, example.candidates).plan)
    assert any(line.split()[:3] == ["day", "here", "day"] for line in lines)
    assert any(line.split()[:3] == ["night", "here", "night"] for line in lines)
    (pool,) = [line for line in lines if line.startswith("here/A ")]
    # Two serve and one of the other service waits for its turn.
    assert "3 / 3" in pool
    assert "100% / 100%" in pool
    (tides,) = [line for line in lines if line.startswith("Daily changes")]
    said = "Daily changes now, accelerators that start: 1 when day begins, 1 when night begins ($1.825 k)"
    assert tides == said


def test_offline_work_says_when_it_is_done() -> None:
    example = EXAMPLES["offline"]()
    (line,) = [
        line for line in printed(solve(example.fleet, example.candidates).plan) if line.startswith("Offline")
    ]
    assert line.startswith("Offline batch now, requests a day: 43,200 in day, 129,600 in night; ")
    assert line.endswith("43,200 of them deferred")


def test_slices_stand_in_the_order_of_the_day_and_those_without_starts_in_none() -> None:
    example = EXAMPLES["tidal"]()
    plan = solve(example.fleet, example.candidates).plan
    assert plan is not None
    freed = [row.model_copy(update={"accelerators": -1}) for row in plan.tides if row.slice == "night"]
    starting = [row for row in plan.tides if row.slice == "day"]
    changed = plan.model_copy(update={"tides": (*freed, *starting)})
    (tides,) = [line for line in printed(changed) if line.startswith("Daily changes")]
    assert tides.startswith("Daily changes now, accelerators that start: 1 when day begins (")
    example = EXAMPLES["offline"]()
    plan = solve(example.fleet, example.candidates).plan
    assert plan is not None
    changed = plan.model_copy(update={"offline_work": plan.offline_work[::-1]})
    (line,) = [line for line in printed(changed) if line.startswith("Offline")]
    assert line.startswith("Offline batch now, requests a day: 43,200 in day, 129,600 in night; ")


def test_scenarios_are_a_table_of_what_if() -> None:
    lines = printed(planned(question("least-regret")))
    start = next(i for i, line in enumerate(lines) if line.startswith("Demand scenarios"))
    assert lines[start].endswith("(planned for the least regret)")
    assert lines[start + 1].split() == ["low", "(10%)", "high", "(90%)"]
    assert lines[start + 2].split() == ["this", "plan", "$15", "k", "$21", "k"]
    assert lines[start + 3].split()[-4:] == ["$10", "k", "$20", "k"]
    assert lines[start + 4].startswith("regret")
    assert lines[start + 5].startswith("purchases made for low ")
    assert lines[start + 5].endswith(" $10 k  $10 k, 5 req/s unmet on average")
    # The likeliest scenario is the one whose placements are shown, at what it then costs.
    assert any(line.startswith("Placements if demand is high") for line in lines)


def test_a_plan_without_a_day_and_scenarios_looks_as_ever() -> None:
    example = EXAMPLES["coverage"]()
    text = "\n".join(printed(solve(example.fleet, example.candidates).plan))
    assert "slice" not in text
    assert "Demand scenarios" not in text
    assert "Daily changes" not in text


def test_an_infeasible_fleet_says_in_which_slice_it_is_short() -> None:
    example = EXAMPLES["tidal"]()
    problem = build_problem(replace(example.infeasible, policy=example.fleet.policy), example.candidates)
    shortage = find_shortages(problem, (), 1, 1).rows
    assert {row.slice for row in shortage} <= {"day", "night"}
    outcome = Infeasible(
        fleet="test",
        shortages=shortage,
        rejections=(),
        provenance=NO_PROVENANCE,
        solve=Solve(wall_s=0.0, deterministic_time=0.0, status="infeasible", bound_source="test"),
    )
    stream = StringIO()
    print_infeasible(outcome, False, Console(file=stream, width=160, color_system=None))
    first = outcome.shortages[0]
    assert f"in here {first.slice}: " in stream.getvalue()
