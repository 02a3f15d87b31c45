"""A plan that leaves demand unmet says how sure it is that so much must be."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from tests.planner.builders import candidate, fleet, hardware, rented_pool, service
from tests.planner.solving import Solved, provenance_of, solve

from fleetplan.fleet.figures import how_sure_unmet
from fleetplan.planner.assemble import build_plan
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.commands.shared import ExitCode
from fleetplan.planner.commands.solve import exit_code
from fleetplan.planner.plan import Solve, UnmetGap
from fleetplan.planner.problem import build_problem
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.search import stages
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.result import LeastUnmet, SearchLimits, SolveStatus
from fleetplan.planner.search.solvers.request import ModelOutcome, ModelStatus
from fleetplan.planner.verify import verify

RUNS = [candidate("batch", "A", 2.0), candidate("chat", "A", 1.0)]


def scarce(**more: Any) -> Solved:
    """Return a fleet of five accelerators: chat takes three, and batch has 4 of 8 requests/s unmet."""
    question = fleet(
        services=[service("batch", 8.0, priority=2), service("chat", 3.0, priority=1)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 5, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    return solve(replace(question, **more), RUNS)


def doubting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stages of unmet demand prove only half of it."""
    first = stages.solve_model

    def half(model: Any, *arguments: Any) -> ModelOutcome:
        found = first(model, *arguments)
        # Only these stages look at nothing but unmet demand.
        if found.bound and all("unmet" in model.proto.variables[j].name for j in model.proto.objective.vars):
            return replace(found, bound=found.bound / 2, status=ModelStatus.FOUND)
        return found

    monkeypatch.setattr(stages, "solve_model", half)


def test_a_small_fleet_proves_what_it_leaves_unmet() -> None:
    solved = scarce()
    assert solved.plan is not None
    assert solved.plan.unmet_gaps == (UnmetGap(priority=2, gap=0.0, model_requests_per_s=4.0),)
    assert solved.plan.status == "optimal"
    assert exit_code(solved.plan, 0.005) is ExitCode.FOUND
    console = Console(width=200, record=True, file=io.StringIO())
    print_plan(solved.plan, console)
    assert "4 requests/s unmet (proven least)" in console.export_text().splitlines()[0]
    assert solved.result.unmet[2].value == pytest.approx(4.0)


def test_what_is_unmet_at_several_times_is_its_most() -> None:
    plan = scarce().plan
    assert plan is not None
    less = [row.model_copy(update={"period": "later", "requests_per_s": 1.0}) for row in plan.unmet]
    console = Console(width=200, record=True, file=io.StringIO())
    print_plan(plan.model_copy(update={"unmet": (*plan.unmet, *less)}), console)
    assert "up to 4 requests/s unmet (proven least)" in console.export_text().splitlines()[0]


def test_how_much_more_another_plan_might_serve_is_said_of_the_goal_alone() -> None:
    """Where demand served is the goal, the upper bound is stated of it and not of unmet demand."""
    plan = scarce(objective="served").plan
    assert plan is not None
    assert plan.unmet
    console = Console(width=200, record=True, file=io.StringIO())
    print_plan(plan, console)
    first = console.export_text().splitlines()[0]
    assert "requests/s unmet, served" in first
    assert "upper bound" in first


def test_rounding_that_is_unmet_in_the_model_alone_has_no_gap() -> None:
    """A plan without unmet demand states no gap of unmet demand."""
    question = fleet(
        services=[service("batch", 8.0, priority=2), service("chat", 3.0, priority=1)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 9, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    problem = build_problem(question, RUNS)
    limits = SearchLimits(time_limit_s=20.0, gap_ratio=0.0, workers=1)
    found = replace(search(problem, limits), unmet={2: LeastUnmet(1e-7, 0.0)}, status=SolveStatus.LIMIT)
    stated = Solve(wall_s=0.0, deterministic_time=0.0, status="limit", bound_source="test")
    plan = build_plan(problem, CandidateSet(tuple(RUNS), (), (), ()), found, provenance_of(question), stated)
    assert (plan.unmet, plan.unmet_gaps) == ((), ())
    assert "coverage" not in {each.family for each in verify(problem, plan)}
    assert exit_code(plan, 0.005) is ExitCode.FOUND


@pytest.mark.usefixtures("plain_figures")
def test_a_plan_whose_unmet_demand_is_not_proven_is_not_optimal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doubting(monkeypatch)
    solved = scarce()
    assert solved.plan is not None
    assert [each.gap for each in solved.plan.unmet_gaps] == [pytest.approx(0.5)]
    assert solved.plan.status == "limit"
    assert (solved.plan.gap, solved.plan.open_gap) == (0.0, pytest.approx(0.5))
    assert exit_code(solved.plan, 0.005) is ExitCode.LIMIT
    print_plan(solved.plan, Console(width=200))
    shown = capsys.readouterr().out
    assert "4 requests/s unmet (another plan may leave up to 50% less)" in shown.splitlines()[0]
    # Of one priority the first line says it all.
    assert "priority 2: another plan" not in shown
    assert "among plans that serve as much" in shown
    assert "up to 50% less unmet" in report_page(solved.plan)


@pytest.mark.parametrize(
    ("gap", "status", "families"),
    [
        (-0.1, "limit", ["coverage"]),
        (1.1, "limit", ["coverage", "inputs"]),
        (0.5, "optimal", ["coverage", "inputs"]),
        (0.5, "within_gap", ["inputs"]),
        (0.5, "limit", []),
        (0.0, "optimal", []),
        (None, "optimal", ["coverage"]),
    ],
)
def test_the_verifier_reads_what_is_said_of_it(gap: float | None, status: str, families: list[str]) -> None:
    solved = scarce()
    assert solved.plan is not None
    stated = () if gap is None else (UnmetGap(priority=2, gap=gap, model_requests_per_s=4.0),)
    solve_record = solved.plan.solve.model_copy(update={"status": status})
    changed = solved.plan.model_copy(update={"unmet_gaps": stated, "status": status, "solve": solve_record})
    assert [each.family for each in verify(solved.problem, changed)] == families
    # Plans of format 1.1 need not say how sure it is.
    older = changed.model_copy(update={"format_version": "1.1"})
    assert [each.family for each in verify(solved.problem, older)] == ([] if gap is None else families)


def test_an_unmet_demand_that_is_small_beside_what_is_served_is_noticed() -> None:
    """The verifier compares small unmet demand by itself, not relative to the demand."""
    solved = scarce()
    assert solved.plan is not None
    (row,) = solved.plan.unmet
    changed = row.model_copy(update={"requests_per_s": row.requests_per_s + 7e-7})
    wrong = solved.plan.model_copy(update={"unmet": (changed,)})
    assert "coverage" in {each.family for each in verify(solved.problem, wrong)}


@pytest.mark.parametrize("model", [2.0, 4.001, 8.0, math.nan])
def test_the_verifier_notices_that_the_model_left_another_demand_unmet(model: float) -> None:
    """The unmet demand of the plan and of the solver's model agree in requests/s."""
    solved = scarce()
    assert solved.plan is not None
    stated = (UnmetGap(priority=2, gap=0.0, model_requests_per_s=model),)
    changed = solved.plan.model_copy(update={"unmet_gaps": stated})
    assert [each.family for each in verify(solved.problem, changed)] == ["coverage"]


@pytest.mark.parametrize(
    ("gap", "said"), [(2e-6, "no plan leaves less"), (0.25, "up to 25% less"), (1.0, "unproven")]
)
def test_what_is_said_follows_the_gap(gap: float, said: str) -> None:
    assert said in how_sure_unmet(3, gap)


def test_parts_that_share_nothing_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    doubting(monkeypatch)
    apart = fleet(
        services=[service("batch", 8.0, priority=2), service("chat", 3.0, priority=2)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[rented_pool("A", 3, 1.0, per_host=1), rented_pool("B", 1, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    solved = solve(apart, [candidate("batch", "A", 2.0), candidate("chat", "B", 1.0)])
    left = solved.result.unmet[2]
    assert (left.value, left.bound) == (pytest.approx(4.0), pytest.approx(2.0))


def test_a_plan_that_serves_everything_says_nothing_of_it() -> None:
    enough = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 5, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    solved = solve(enough, [candidate("chat", "A", 1.0)])
    assert solved.plan is not None
    assert solved.plan.unmet_gaps == ()
    assert "serves as much" not in report_page(solved.plan)
