"""The search over blocks behind `search`: every family, scarcity, stopping, repetition, and what it says."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ortools.sat.python import cp_model
from rich.console import Console
from tests.parts import first_parts
from tests.planner.random_fleets import PlanningCase, large_case, several_periods_case, tiny_case
from tests.planner.search.blocks.forced import send_all_to_blocks
from tests.planner.solving import Solved, solve
from typer.testing import CliRunner

from fleetplan.planner import api
from fleetplan.planner.api import NoPlanFoundError
from fleetplan.planner.cli import app
from fleetplan.planner.formulation.build import PlanningModel, build_model
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.report.search_console import SearchLog, print_search
from fleetplan.planner.search import unmet
from fleetplan.planner.search.blocks import pricing_search, restricted_masters
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.block_pricing import BlockPricing, PricingRound
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.integer_supply import IntegerSupply
from fleetplan.planner.search.blocks.linear import linear_optimum
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import PartFailedError, Prices
from fleetplan.planner.search.blocks.pricing_search import PricingSearch
from fleetplan.planner.search.blocks.request import BlockOutcome, WarmStart
from fleetplan.planner.search.blocks.search import BlockSearch
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.result import Progress, SearchLimits, SearchResult, SolveStatus
from fleetplan.planner.search.run import search
from fleetplan.planner.search.solvers.best import WITHDRAWN
from fleetplan.planner.search.solvers.cpsat import hint
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import FloatArray, read_program
from fleetplan.planner.search.solvers.relaxation import Relaxation
from fleetplan.planner.search.solvers.request import (
    Listener,
    ModelOutcome,
    ModelStatus,
    Overtime,
    Patience,
    SolverLimits,
    Step,
)
from fleetplan.planner.search.solvers.workers import Workers

TINY = Path(__file__).parents[4] / "scenarios" / "tiny.yaml"


@pytest.fixture(params=first_parts((False, True), 1), ids=("four blocks", "six blocks"))
def large(request: pytest.FixtureRequest) -> bool:
    """Whether a fleet has six blocks, as `in_parts` makes them."""
    is_large: bool = request.param
    return is_large


def in_parts(large: bool) -> tuple[PlanningModel, Split]:
    """A fleet that is to be served at least cost, and its blocks.

    There are six of two kinds of hardware, whose rounds take a third of a second, or four of one kind, whose
    rounds take a quarter of that.
    """
    case = large_case(1, 3, 2, 2) if large else large_case(1, 2, 2, 1)
    planning = build_model(build_problem(case.fleet, case.candidates), allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    parts = block_solve.decomposed(planning)
    assert parts is not None
    return planning, parts


def cases(large: tuple[int, int, int, int]) -> list[PlanningCase]:
    return [several_periods_case(2), tiny_case(4), tiny_case(9), large_case(*large)]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    ("large", "whole_effort", "parts_effort"),
    first_parts(
        (
            ((1, 3, 2, 1), (0.02, 3.0), (0.01, 2.0)),
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
    """A search of counted work by two workers, and what it told."""
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
    assert "linear relaxation of the whole program" in shown


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
    given_up = told.index("given up: HiGHS did not solve the master LP: Unbounded")
    # Work goes on until its limit.
    assert result.deterministic_time >= 0.9 * limit_s
    assert all(step.source in ("neighbourhood", "construction") for step in steps[given_up + 1 :])


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
        log(Progress("cost", 1.0, None, 5.0, "construction", "no plan moment by moment"))
        raise NoPlanFoundError("no plan within 1 s; raise --time-limit")

    monkeypatch.setattr(api, "plan_fleet", without_plan)
    ended = CliRunner().invoke(app, ["solve", str(TINY), "--explain-search"])
    assert isinstance(ended.exception, NoPlanFoundError)
    assert "no plan moment by moment" in ended.stderr


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(
    ("size", "limit_s", "counted"),
    first_parts((((1, 2, 2, 1), 0.3, True), ((1, 4, 2, 2), 15.0, False), ((1, 8, 3, 4), 36.0, False)), 1),
    ids=("counted", "small", "large"),
)
def test_who_may_leave_demand_unmet_and_need_not_has_all_of_the_time(
    size: tuple[int, int, int, int], limit_s: float, counted: bool
) -> None:
    case = large_case(*size)
    policy = replace(case.fleet.policy, unmet="penalise")
    problem = build_problem(replace(case.fleet, policy=policy), case.candidates)
    seen: list[Progress] = []
    # On a busy machine the first plan takes some seconds: a third of the limit is far more. The search goes
    # on for longer than that, and is stopped then; counted work ends at its limit.
    stop = Stop()
    patience_s = limit_s * unmet.FULL_SERVICE_SHARE_OF_TIME
    if not counted:
        threading.Timer(patience_s + 1.0, stop.request).start()
    limits = SearchLimits(limit_s, 0.0, 1, 2, reproducible=counted)
    result = search(problem, limits, seen.append, stop)
    assert stop.requested or result.deterministic_time > 2 * patience_s
    assert result.solution is not None
    assert not result.solution.unmet
    assert {each.stage for each in seen} == {"cost"}
    bounds = [each.bound_usd for each in seen if each.bound_usd is not None]
    assert bounds == sorted(bounds)
    plans = [each.objective_usd for each in seen if each.objective_usd is not None]
    assert plans[-1] <= plans[0]


def with_priorities(case: PlanningCase, most_units: int | None) -> PlanningCase:
    """The case with two priorities in turn, demand that may stay unmet, and so many units of each offer."""
    offers = tuple(replace(offer, max_units=(most_units,)) for offer in case.fleet.offers)
    services = tuple(
        replace(service, priority=1 + index % 2) for index, service in enumerate(case.fleet.services)
    )
    policy = replace(case.fleet.policy, unmet="penalise")
    return replace(case, fleet=replace(case.fleet, offers=offers, services=services, policy=policy))


def unmet_share(solved: Solved, priority: int) -> float:
    """Share of the demand of a priority that a plan leaves unmet."""
    problem = solved.problem
    names = {each.name for each in problem.services.values() if each.priority == priority}
    asked = sum(sum(cell.requests_per_s) for cell in problem.cells if cell.service in names)
    rows = solved.plan.unmet if solved.plan is not None else ()
    return sum(row.requests_per_s for row in rows if row.service in names) / asked


def stages_of(seen: Sequence[Progress]) -> list[str]:
    """What was minimised, without the part of the fleet, each once."""
    return list(dict.fromkeys(each.stage.partition(" of part")[0] for each in seen))


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(
    ("size", "units", "limit_s"),
    first_parts((((1, 4, 2, 2), 24, 0.4), ((1, 6, 2, 3), 12, 2.0)), 1),
    ids=("small", "large"),
)
def test_where_supply_is_scarce_the_lower_priority_goes_without(
    size: tuple[int, int, int, int], units: int, limit_s: float
) -> None:
    case = with_priorities(large_case(*size), units)
    seen: list[Progress] = []
    found = solve(case.fleet, case.candidates, time_limit_s=limit_s, watch=seen.append, reproducible=True)
    # CP-SAT, one priority after the other: everything, and 74 % (small) or 78 % of the second left.
    assert unmet_share(found, 1) < 0.01
    assert 0.7 < unmet_share(found, 2) < 1.0
    assert stages_of(seen) == ["unmet demand and cost", "cost of what is served"]
    told = [each for each in seen if each.objective_usd is not None and each.bound_usd is not None]
    # Cost and bound are told in dollars before unmet demand is settled.
    assert stages_of(told)[0] == "unmet demand and cost"
    assert all(each.bound_usd <= each.objective_usd * (1 + 1e-9) for each in told)


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(
    ("size", "limit_s"), first_parts((((1, 2, 2, 1), 0.5), ((1, 6, 2, 3), 2.0)), 1), ids=("small", "large")
)
def test_who_gives_up_on_serving_everything_can_still_find_that_it_is_possible(
    size: tuple[int, int, int, int], limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unmet, "PATIENCE_ROUNDS", 1)
    monkeypatch.setattr(restricted_masters, "FIRST_MASTERS", 0)
    # A construction would have a plan before the first round.
    monkeypatch.setattr(PlanSearch, "_constructions", lambda _: [])
    case = with_priorities(large_case(*size), None)
    seen: list[Progress] = []
    found = solve(case.fleet, case.candidates, time_limit_s=limit_s, watch=seen.append, reproducible=True)
    assert stages_of(seen) == ["cost", "unmet demand and cost", "cost of what is served"]
    attempts = [each for each in seen if each.stage.partition(" of part")[0] == "cost"]
    assert all(each.objective_usd is None for each in attempts)
    assert unmet_share(found, 1) <= 1e-3
    assert unmet_share(found, 2) <= 1e-3


MUST_BE_UNMET = (79.9, 88.87)
"""Least unmet demand of the first priority: what CP-SAT proves in ten seconds, and what a plan has. [1/s]"""


@pytest.mark.parametrize("limit_s", first_parts((3.0, 6.0), 1))
def test_what_blocks_leave_unmet_is_bounded_by_what_must_be(
    limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = with_priorities(large_case(1, 6, 2, 3), 5)
    monkeypatch.setattr(block_solve, "LEAST_VARIABLES", 0)
    monkeypatch.setattr(block_solve, "LEAST_BLOCKS", 1)
    monkeypatch.setattr(block_solve, "LARGEST_BLOCK_SHARE", 1.0)
    found = solve(case.fleet, case.candidates, gap=0.01, time_limit_s=limit_s).result.unmet
    # Bounds of lower priorities are of plans that leave no more of the higher ones unmet.
    assert 0 <= found[1].bound <= MUST_BE_UNMET[1] * (1 + 1e-6)
    assert found[1].value >= MUST_BE_UNMET[0] * (1 - 1e-6)


@pytest.mark.slow
def test_what_must_be_unmet_is_what_one_solver_proves() -> None:
    case = with_priorities(large_case(1, 6, 2, 3), 5)
    least = solve(case.fleet, case.candidates, gap=0.05, time_limit_s=10.0).result.unmet
    assert 0 < least[1].bound <= MUST_BE_UNMET[1]
    assert least[1].value >= MUST_BE_UNMET[0]


@pytest.mark.usefixtures("blocks_for_all")
def test_a_plan_that_is_far_from_good_is_given_more_time(large: bool) -> None:
    def work_s(overtime: Overtime | None) -> float:
        planning, parts = in_parts(large)
        limits = SolverLimits(0.2, 1, 1, Stop(), overtime=overtime)
        return block_solve.solve_in_blocks(
            planning, parts, limits, lambda *_: False, lambda _: None, True
        ).deterministic_time

    without = work_s(None)
    assert work_s(Overtime(0.4, lambda *_: True)) == without < 0.5
    assert work_s(Overtime(0.4, lambda *_: False)) > 0.5


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
@pytest.mark.parametrize("times", first_parts((0.0, 1.0), 1))
def test_rounds_may_begin_at_any_prices_and_bounds_stay_bounds(times: float, large: bool) -> None:
    """Prices of nothing, and those of the linear relaxation, which is then not solved again."""
    planning, parts = in_parts(large)
    linear = linear_optimum(planning.model, continuous_indices(planning.variables), Stop(), 60.0)
    assert linear is not None

    def solved(row_duals: FloatArray | None) -> tuple[ModelOutcome, list[Step]]:
        steps: list[Step] = []
        outcome = block_solve.solve_in_blocks(
            planning,
            parts,
            SolverLimits(0.25, 1, 1, Stop()),
            lambda *_: False,
            steps.append,
            True,
            WarmStart(row_duals=row_duals),
        )
        return outcome, steps

    known, steps = solved(times * linear.row_duals)
    usual, _ = solved(None)
    assert steps[0].detail == "dual prices known before"
    assert None not in (known.objective, known.bound, usual.objective, usual.bound)
    assert steps[0].bound is not None
    assert steps[0].bound <= known.bound <= usual.objective
    assert usual.bound <= known.objective
    first = next(step.bound for step in steps if step.source == "pricing")
    # A round at the prices of the relaxation is no looser than it.
    relaxed = float(read_program(planning.model).cost @ linear.values)
    assert first is not None
    assert (first >= relaxed * (1 - 1e-4)) is bool(times)


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_a_search_that_knows_columns_chooses_among_them_beside_its_first_round(
    monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    price, beside = PricingSearch._price_blocks, []

    def look_and_price(self: PricingSearch, workers: Workers, prices: Prices) -> PricingRound | None:
        if not prices.rounds:
            beside.append(self._masters.pending is not None)
            # What known columns would make of the first prices is worth less than these.
            assert prices.current is prices.best
        return price(self, workers, prices)

    monkeypatch.setattr(PricingSearch, "_price_blocks", look_and_price)
    planning, parts = in_parts(large)
    beginning, limits = WarmStart(), SolverLimits(0.25, 1, 1, Stop())
    for _ in range(2):
        block_solve.solve_in_blocks(
            planning, parts, limits, lambda *_: False, lambda _: None, True, beginning
        )
    assert beside == [False, True]


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
@pytest.mark.parametrize("good", [True, False])
def test_a_plan_that_is_far_from_good_is_chosen_anew_after_every_round(
    good: bool, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    settle, waiting = PricingSearch._rounds, []

    stop = Stop()

    def settle_and_look(self: PricingSearch, workers: Workers, prices: Prices) -> bool:
        settled = settle(self, workers, prices)
        waiting.append(self._masters.pending is not None)
        stop.request()
        return settled

    monkeypatch.setattr(PricingSearch, "_rounds", settle_and_look)
    solve_in_overtime(large, good, stop, counted=True)
    # A good plan waits for a master beside the next round.
    assert waiting[0] is good


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
@pytest.mark.parametrize("far", [True, False])
def test_while_the_plan_is_far_from_good_a_master_runs_beside_every_round(
    far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    price, beside = BlockPricing.price, []

    def look(self: BlockPricing, *given: Any, **named: Any) -> object:
        beside.append(bool(named["side_jobs"]))
        return price(self, *given, **named)

    monkeypatch.setattr(BlockPricing, "price", look)
    monkeypatch.setattr(SearchState, "far", lambda _: far)
    # The program of integer supply and the construction may run beside a round too.
    monkeypatch.setattr(PlanSearch, "construction_side_jobs", lambda _: [])
    monkeypatch.setattr(IntegerSupply, "pays", lambda _self, _open_cost: False)
    monkeypatch.setattr(pricing_search, "SETTLED_RATIO", -math.inf)
    # Four blocks have all their columns after two rounds.
    planning, parts = in_parts(True)
    limits = SolverLimits(60.0, 1, 1, Stop())
    block_solve.solve_in_blocks(planning, parts, limits, lambda *_: len(beside) > 2, lambda _: None, True)
    # The first round has no columns yet.
    assert beside[:3] == [False, far, True]


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("far", [True, False])
def test_a_plan_that_is_far_from_good_has_columns_before_the_first_round(
    far: bool, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    parts: list[str] = []
    monkeypatch.setattr(SearchState, "far", lambda _: far)
    planning, blocks = in_parts(large)
    limits = SolverLimits(60.0, 1, 1, Stop())
    block_solve.solve_in_blocks(
        planning, blocks, limits, lambda *_: "pricing" in parts, lambda step: parts.append(step.source), True
    )
    assert ("columns" in parts) == far
    assert parts[-1] == "pricing" or "columns" in parts[: parts.index("pricing")]


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("late", [True, False])
def test_a_round_that_would_end_too_late_does_not_begin(
    late: bool, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    price, rounds, stop = PricingSearch._price_blocks, [], Stop()

    def note(self: PricingSearch, workers: Workers, prices: Prices) -> object:
        rounds.append(self._clock.left_s())
        # A second one has begun: more would show nothing else.
        if len(rounds) > 1:
            stop.request()
        found = price(self, workers, prices)
        self._round_s = math.inf if late else 0.0
        return found

    monkeypatch.setattr(PricingSearch, "_price_blocks", note)
    monkeypatch.setattr(IntegerSupply, "pays", lambda _self, _open_cost: False)
    for share in ("ROUNDS_SHARE_OF_TIME", "STEEP_ROUNDS_SHARE_OF_TIME"):
        monkeypatch.setattr(pricing_search, share, 0.0)
    monkeypatch.setattr(pricing_search, "SETTLED_RATIO", -math.inf)
    planning, blocks = in_parts(large)
    limits = SolverLimits(2.0 if large else 1.0, 1, 1, stop)
    block_solve.solve_in_blocks(planning, blocks, limits, lambda *_: False, lambda _: None, True)
    assert (len(rounds) == 1) == late


def solve_in_overtime(
    large: bool,
    good: bool = False,
    stop: Stop | None = None,
    on_step: Listener = lambda _: None,
    overtime_s: float = 3.0,
    counted: bool = False,
) -> ModelOutcome:
    """A fleet in blocks that begins with a plan, good or never: 1 s, and some more if it is not."""
    planning, parts = in_parts(large)
    first = cp_model.CpSolver()
    first.parameters.stop_after_first_solution = True
    assert first.solve(planning.model) == cp_model.FEASIBLE
    hint(planning.model, first)
    limits = SolverLimits(1.0, 1, 1, stop or Stop(), overtime=Overtime(overtime_s, lambda *_: good))
    return block_solve.solve_in_blocks(planning, parts, limits, lambda *_: False, on_step, counted)


@pytest.mark.usefixtures("blocks_for_all")
def test_who_stops_before_any_bound_is_proven_has_the_plan_it_began_with(large: bool) -> None:
    stop = Stop()
    stop.request()
    found = solve_in_overtime(large, stop=stop)
    assert found.status is ModelStatus.FOUND
    assert found.objective is not None
    assert found.bound is not None
    assert found.bound < found.objective
    assert found.bound_source == "bounds of the variables"


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_a_bound_that_its_plan_contradicts_is_not_told(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    monkeypatch.setattr(Relaxation, "bound", lambda *_: 1e18)
    steps: list[Step] = []
    found = solve_in_overtime(large, on_step=steps.append, overtime_s=0.2)
    assert found.status is ModelStatus.FOUND
    assert found.objective is not None
    assert found.bound is not None
    assert found.bound < found.objective
    assert found.bound_source == "bounds of the variables"
    assert ("linear relaxation", WITHDRAWN) in [(step.source, step.detail) for step in steps]


@pytest.mark.parametrize(("true", "status"), [(True, ModelStatus.INFEASIBLE), (False, ModelStatus.SOLVED)])
@pytest.mark.usefixtures("blocks_for_all")
def test_a_relaxation_without_a_plan_is_one_of_two_proofs(
    true: bool, status: ModelStatus, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    planning, parts = in_parts(large)
    if true:
        planning.model.add(planning.total_cost <= -1)
    nothing = BlockOutcome(None, None, -math.inf, "", infeasible=True, work_s=0.0)
    monkeypatch.setattr(BlockSearch, "run", lambda *_: nothing)
    limits = SolverLimits(20.0, 1, 1, Stop())
    found = block_solve.solve_in_blocks(planning, parts, limits, lambda *_: True, lambda _: None, False)
    assert found.status is status


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_overtime_lets_a_round_come_to_its_end(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """The first round of a large scarce fleet took longer than the time for weighing."""
    price, bounds = PricingSearch._price_blocks, []

    def when_time_is_over(self: PricingSearch, workers: Workers, prices: Prices) -> PricingRound | None:
        # On a slow machine it may be over already, and overtime have begun.
        if not bounds and not self._state._late:
            time.sleep(max(self._clock.left_s(), 0.0) + 0.01)
        new = price(self, workers, prices)
        bounds.append(prices.bound)
        stop.request()
        return new

    stop = Stop()
    monkeypatch.setattr(PricingSearch, "_price_blocks", when_time_is_over)
    # As much as a slow machine may take; the first round ends it.
    assert solve_in_overtime(large, stop=stop, overtime_s=120.0).objective is not None
    assert bounds[0] > -math.inf


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_whole_supply_waits_for_a_bound_of_every_block(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """A plan that comes after its round was cut may have overtime, and no block has a bound."""
    monkeypatch.setattr(SearchState, "expired", lambda self: not self._late)
    found = solve_in_overtime(large, overtime_s=1.0)
    assert found.objective is not None
    assert found.bound is not None
