"""The search over blocks behind `search`: every family, stopping, repetition, and what it says."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.parts import first_parts, those_with
from tests.planner.random_fleets import PlanningCase, large_case, several_periods_case, tiny_case
from tests.planner.search.blocks.forced import send_all_to_blocks
from tests.planner.search.blocks.small_fleets import in_parts
from tests.planner.solving import solve
from typer.testing import CliRunner

from fleetplan.planner import api
from fleetplan.planner.api import NoPlanFoundError
from fleetplan.planner.cli import app
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.report.search_console import SearchLog, print_search
from fleetplan.planner.search.blocks import restricted_masters
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.pricing import PartFailedError
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.result import Progress, SearchLimits, SearchResult, SolveStatus
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import (
    ModelStatus,
    Patience,
    SolverLimits,
    Step,
)

TINY = Path(__file__).parents[4] / "scenarios" / "tiny.yaml"


def cases(large: tuple[int, int, int, int]) -> list[PlanningCase]:
    return [several_periods_case(2), tiny_case(4), tiny_case(9), large_case(*large)]


@pytest.mark.parametrize("number", those_with(range(4), (0, 3).__contains__))
@pytest.mark.parametrize(
    ("large", "whole_effort", "parts_effort"),
    first_parts(
        (
            ((1, 3, 2, 1), (0.02, 1.5), (0.01, 1.0)),
            ((1, 4, 2, 2), (0.01, 8.0), (0.005, 4.0)),
        ),
        1,
    ),
    ids=("short", "long"),
)
def test_plans_of_blocks_hold_and_are_no_better_than_the_optimum(
    number: int,
    large: tuple[int, int, int, int],
    whole_effort: tuple[float, float],
    parts_effort: tuple[float, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = cases(large)[number]
    gap, limit_s = whole_effort
    whole = solve(case.fleet, case.candidates, gap=gap, time_limit_s=limit_s)
    send_all_to_blocks(monkeypatch)
    # `solve` verifies the plan in unrounded numbers.
    gap, limit_s = parts_effort
    parts = solve(case.fleet, case.candidates, gap=gap, time_limit_s=limit_s)
    if whole.result.status is SolveStatus.INFEASIBLE:
        assert parts.result.status is SolveStatus.INFEASIBLE
        return
    assert None not in (whole.result.objective_usd, whole.result.bound_usd)
    assert None not in (parts.result.objective_usd, parts.result.bound_usd)
    assert parts.result.bound_usd <= whole.result.objective_usd * (1 + 1e-6)
    assert parts.result.objective_usd >= whole.result.bound_usd * (1 - 1e-6)


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("size", first_parts(([1, 4, 2, 2], [1, 8, 3, 4]), 1), ids=("small", "large"))
def test_a_stop_ends_the_search_with_its_best_plan(size: list[int]) -> None:
    case = large_case(*size)
    problem = build_problem(case.fleet, case.candidates)
    stop = Stop()
    seen = threading.Event()

    def watch(progress: Progress) -> None:
        if progress.objective_usd is not None:
            seen.set()

    def stop_soon() -> None:
        seen.wait(60)
        stop.request()

    threading.Thread(target=stop_soon, daemon=True).start()
    started = time.monotonic()
    result = search(problem, SearchLimits(300.0, 0.0, 1, 2), watch, stop)
    assert time.monotonic() - started < 200
    assert result.solution is not None
    assert result.objective_usd is not None
    assert result.bound_usd is not None
    assert result.bound_usd <= result.objective_usd


COUNTED = SearchLimits(0.25, 0.0, 1, 2, reproducible=True)
"""Counted work: a slow machine must not end it before the first round."""


@pytest.fixture(scope="module", params=first_parts(([1, 2, 2, 1], [1, 4, 2, 2]), 1), ids=("small", "large"))
def logged(request: pytest.FixtureRequest) -> tuple[Problem, SearchResult, SearchLog]:
    """Return a search of counted work by two workers, and its steps."""
    case = large_case(*request.param)
    problem, log = build_problem(case.fleet, case.candidates), SearchLog(lambda _: None)
    with pytest.MonkeyPatch.context() as changed:
        send_all_to_blocks(changed)
        return problem, search(problem, COUNTED, log), log


def repeated(result: SearchResult) -> object:
    return result.solution, result.objective_usd, result.bound_usd, result.deterministic_time


@pytest.mark.usefixtures("blocks_for_all")
def test_reproducible_searches_over_blocks_repeat_bit_for_bit(
    logged: tuple[Problem, SearchResult, SearchLog],
) -> None:
    problem, result, _ = logged
    # The number of processes changes who does what, and nothing else.
    assert repeated(search(problem, replace(COUNTED, workers=1))) == repeated(result)


@pytest.mark.slow
@pytest.mark.usefixtures("blocks_for_all")
def test_reproducible_searches_over_more_blocks_repeat_bit_for_bit() -> None:
    case = large_case(2, 4, 2, 3)
    problem = build_problem(case.fleet, case.candidates)
    first, alone, again = (repeated(search(problem, replace(COUNTED, workers=each))) for each in (2, 1, 2))
    assert first == alone == again


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
@pytest.mark.parametrize(("patience", "rounds"), [(Patience(seconds=1e-9), 1), (Patience(rounds=2), 2)])
def test_a_search_over_blocks_without_a_plan_gives_up_when_its_patience_ends(
    patience: Patience, rounds: int, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    monkeypatch.setattr(Incumbent, "offer", lambda *_: False)
    planning, parts = in_parts(large)
    steps: list[Step] = []
    limits = SolverLimits(3.0, 1, 1, Stop(), patience)
    # Counted work: a slow machine must not end it earlier.
    outcome = block_solve.solve_in_blocks(planning, parts, limits, lambda *_: False, steps.append, True)
    assert outcome.status is ModelStatus.UNKNOWN
    assert sum(step.source == "pricing" for step in steps) == rounds


def test_the_log_names_the_parts_of_the_search(
    logged: tuple[Problem, SearchResult, SearchLog], capsys: pytest.CaptureFixture[str]
) -> None:
    _, result, log = logged
    assert result.objective_usd is not None
    sources = {step.source for step in log.steps}
    assert {"root relaxation", "construction", "pricing"} <= sources
    plans = [step.objective_usd for step in log.steps if step.objective_usd is not None]
    bounds = [step.bound_usd for step in log.steps if step.bound_usd is not None]
    assert plans == sorted(plans, reverse=True)
    assert bounds == sorted(bounds)
    print_search(log.steps, Console(width=160))
    shown = capsys.readouterr().out
    assert "Parts of the search" in shown
    assert "solved the linear relaxation" in shown


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(
    ("size", "limit_s"),
    first_parts((((1, 2, 2, 1), 0.25), ((1, 4, 2, 2), 0.5), ((1, 4, 2, 2), 1.0)), 1),
    ids=("small", "large", "long"),
)
def test_a_part_that_fails_is_given_up_and_the_search_goes_on(
    size: tuple[int, int, int, int], limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PartFailedError("HiGHS did not solve the master LP: Unbounded")

    monkeypatch.setattr(restricted_masters.RestrictedMasters, "solve_lp_near_best", fail)
    case = large_case(*size)
    steps: list[Progress] = []
    limits = SearchLimits(limit_s, 0.0, 1, 2, reproducible=True)
    result = search(build_problem(case.fleet, case.candidates), limits, steps.append)
    assert result.solution is not None
    told = [step.detail for step in steps]
    given_up = told.index("gave up: HiGHS did not solve the master LP: Unbounded")
    # Work goes on until its limit.
    assert result.deterministic_time >= 0.9 * limit_s
    assert all(step.source in ("neighbourhood", "construction") for step in steps[given_up + 1 :])


@pytest.mark.usefixtures("plain_folders")
def test_explain_search_and_deterministic_are_switches_that_act(tmp_path: Path) -> None:
    runner = CliRunner()
    plans = []
    for name in ("one", "two"):
        arguments = ["solve", str(TINY), "--deterministic", "--explain-search", "--json"]
        ended = runner.invoke(app, [*arguments, "--out", str(tmp_path / name)])
        assert ended.exit_code == 0, ended.output
        assert "Search, step by step" in ended.stderr
        assert "Search, step by step" not in ended.stdout
        plans.append((tmp_path / name / "placements.csv").read_text())
    assert plans[0] == plans[1]


def test_explain_search_tells_the_steps_of_a_search_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_plan(_: object, __: object, log: SearchLog, *___: object) -> None:
        log(Progress("cost", 1.0, None, 5.0, "construction", "found no plan moment by moment"))
        raise NoPlanFoundError("no plan within 1 s; raise --time-limit")

    monkeypatch.setattr(api, "plan_fleet", without_plan)
    ended = CliRunner().invoke(app, ["solve", str(TINY), "--explain-search"])
    assert isinstance(ended.exception, NoPlanFoundError)
    assert "found no plan moment by moment" in ended.stderr
