"""The solves of uncertain demand: their order, their time, and what each of them gives the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.planner.solving import provenance_of
from tests.planner.uncertain_demand import RUNS, bought, builder, planned, question

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import NoPlanFoundError
from fleetplan.planner.assemble import build_plan, within_budgets
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.formulation import Goal, ReachedGoal, Solution
from fleetplan.planner.plan import Plan, Solve
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.problem.scenarios import FixedSupply
from fleetplan.planner.search import joint_plans, scenarios, uncertain_demand
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.joint_plans import best_of
from fleetplan.planner.search.result import SearchLimits, SearchResult, SolveStatus
from fleetplan.planner.search.scenarios import (
    Evaluation,
    KnownScenarios,
    with_scenario_optima,
    wrong_forecasts,
)
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.uncertain_demand import Found, search_scenarios


@pytest.mark.parametrize("objective", ["expected-cost", "least-regret"])
def test_plans_for_each_scenario_make_one_for_all(objective: str) -> None:
    """If the joint search finds nothing better, the purchases for one scenario serve the others too."""
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)

    built = builder(RUNS)
    evaluation = Evaluation(limits, Stop(), built, within_budgets)
    problem, alone = with_scenario_optima(build_problem(question(objective), RUNS), evaluation)
    _, others = wrong_forecasts(problem, evaluation)
    dear = search(replace(problem, fixed_supply=FixedSupply({(0, 0, 0): 10, (1, 0, 0): 10}, {})), limits)
    parts = {"high": alone["high"], "low": others["high", "low"]}
    short = {"low": alone["low"], "high": others["low", "high"]}
    best = best_of(problem, dear, [short, parts], limits)
    plan = built(problem, best)
    assert bought(plan) == {"A": 10}
    assert plan.objective_usd == pytest.approx(20_000)
    # Who knows the demand pays 0.1 * 10,000 + 0.9 * 20,000.
    assert plan.bound_usd >= 19_000 - 0.01
    assert (plan.goal is None) == (objective == "expected-cost")
    none = replace(dear, status=SolveStatus.NO_PLAN, solution=None, objective_usd=None, goal=None)
    assert best_of(problem, none, [short], limits) == none
    # A search that found nothing had no goal: the plan states the objective's, of which nothing is proven.
    only = built(problem, best_of(problem, none, [parts], limits))
    assert only.objective_usd == plan.objective_usd
    if plan.goal is not None:
        assert only.goal is not None
        assert (only.goal.value, only.goal.bound) == (plan.goal.value, 0.0)
    # What serves everything is better than what is cheap and does not.
    assert dear.solution is not None
    lacking = replace(dear, solution=replace(dear.solution, unmet={(0, 0): 1}), objective_usd=1.0, goal=None)
    assert best_of(problem, lacking, [parts], limits).objective_usd == pytest.approx(20_000)


@pytest.mark.parametrize("proven", [-45_435_700.0, -1.0, 4000.0])
def test_no_more_is_told_of_a_regret_than_was_proven(proven: float) -> None:
    """A regret may be below zero, so a bound below zero is not one of zero."""
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)
    evaluation = Evaluation(limits, Stop(), builder(RUNS), within_budgets)
    problem, alone = with_scenario_optima(build_problem(question("least-regret"), RUNS), evaluation)
    _, others = wrong_forecasts(problem, evaluation)
    found = best_of(
        problem, search(problem, limits), [{"high": alone["high"], "low": others["high", "low"]}], limits
    )
    assert found.goal is not None
    unproven = replace(found, status=SolveStatus.LIMIT, goal=replace(found.goal, bound=proven))
    goal = builder(RUNS)(problem, unproven).goal
    assert goal is not None
    assert (goal.value, goal.bound) == pytest.approx((5000, proven))


def test_plans_for_each_scenario_are_read_in_the_units_that_they_were_found_in() -> None:
    """Joined plans keep the load units of their own scenario, finer where demand is small."""
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)
    half_a_pool = replace(question().policy, max_share_per_pool=0.5)
    asked = question(policy=half_a_pool)
    runs = tuple(replace(run, requests_per_s=(45.0,)) if run.hardware == "A" else run for run in RUNS)

    built = builder(runs)
    evaluation = Evaluation(limits, Stop(), built, within_budgets)
    problem, alone = with_scenario_optima(build_problem(asked, runs), evaluation)
    _, others = wrong_forecasts(problem, evaluation)
    none = replace(alone["high"], status=SolveStatus.NO_PLAN, solution=None, objective_usd=None)
    parts = {"high": alone["high"], "low": others["high", "low"]}
    plan = built(problem, best_of(problem, none, [parts], limits))
    served = {(row.scenario, row.hardware): row.requests_per_s for row in plan.placements}
    assert served == pytest.approx(
        {("low", "A"): 2.5, ("low", "B"): 2.5, ("high", "A"): 5.0, ("high", "B"): 5.0}, rel=1e-3
    )


@pytest.mark.parametrize(
    ("objective", "value"), [("energy", 0.0), ("accelerators", 0.1 * 5 + 0.9 * 10), ("served", 9.5)]
)
def test_joint_plans_reach_the_goal_that_they_state(objective: str, value: float) -> None:
    """Joined from plans for each scenario alone, a plan states its own goal, and is better if cheaper."""
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)

    built = builder(RUNS)
    evaluation = Evaluation(limits, Stop(), built, within_budgets)
    asked = replace(question(), objective=objective)
    problem, alone = with_scenario_optima(build_problem(asked, RUNS), evaluation)
    _, others = wrong_forecasts(problem, evaluation)
    dear = search(replace(problem, fixed_supply=FixedSupply({(0, 0, 0): 10, (1, 0, 0): 10}, {})), limits)
    parts = {"high": alone["high"], "low": others["high", "low"]}
    best = best_of(problem, dear, [parts], limits)
    assert best.objective_usd == pytest.approx(20_000)
    goal = built(problem, best).goal
    assert goal is not None
    assert (goal.value, goal.model_value) == pytest.approx((value, value), abs=1e-6)
    none = replace(dear, status=SolveStatus.NO_PLAN, solution=None, objective_usd=None, goal=None)
    alone_known = built(problem, best_of(problem, none, [parts], limits)).goal
    assert alone_known is not None
    assert alone_known.value == pytest.approx(value, abs=1e-6)
    assert alone_known.bound == pytest.approx(10.0 * 0.9 + 5.0 * 0.1 if objective == "served" else 0.0)


def test_without_the_best_of_a_scenario_there_is_no_least_regret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the optimum of every scenario, least regret has no plan."""
    monkeypatch.setattr(uncertain_demand, "with_scenario_optima", lambda problem, *_: (problem, {}))
    monkeypatch.setattr(uncertain_demand, "wrong_forecasts", lambda *_: ((), {}))
    with pytest.raises(NoPlanFoundError, match="one scenario has no plan within"):
        planned(question("least-regret"))
    assert planned(question()).objective_usd > 0


def test_purchases_for_another_scenario_may_be_the_best_that_is_known() -> None:
    """The best plan of a scenario is at least as good as one with purchases for another scenario."""
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)

    def built(part: Problem, result: SearchResult) -> Plan:
        solve = Solve(wall_s=0.0, deterministic_time=0.0, status=result.status.value, bound_source="test")
        return build_plan(part, CandidateSet(RUNS, (), (), ()), result, provenance_of(part.fleet), solve)

    evaluation = Evaluation(limits, Stop(), built, within_budgets)
    problem, alone = with_scenario_optima(build_problem(question("least-regret"), RUNS), evaluation)
    wrong, others = wrong_forecasts(problem, evaluation)
    found = KnownScenarios(problem, alone, wrong, others)
    # Nothing is better than what is best.
    assert found.improved() is found
    best = dict(problem.scenario_optima or {})
    best["low"] = replace(best["low"], usd=25_000.0)
    known = replace(found, problem=replace(problem, scenario_optima=best)).improved()
    optima = known.problem.scenario_optima or {}
    assert optima["low"] == replace(best["high"], usd=20_000.0, bound_usd=best["low"].bound_usd)
    assert optima["high"] == best["high"]
    assert known.alone["low"] is others["high", "low"]
    assert known.others["low", "high"] is alone["high"]
    rows = {(row.planned_for, row.turns_out): (row.usd, row.extra_usd) for row in known.wrong}
    assert rows == {("low", "high"): (20_000.0, 0.0), ("high", "low"): (20_000.0, 0.0)}
    # Where a stop came before all pairs were looked at, nothing is taken over.
    part = replace(known, wrong=wrong[:1])
    assert part.improved() is part


@pytest.mark.parametrize(("status", "taken"), [(SolveStatus.LIMIT, True), (SolveStatus.WITHIN_GAP, False)])
def test_a_little_more_of_the_goal_is_not_taken_at_any_cost(status: SolveStatus, taken: bool) -> None:
    """Within the asked gap of the goal, the cheaper plan wins."""
    goal = Goal("energy", "kWh", 1)
    together = SearchResult(
        status, Solution(), 114e3, 113.9e3, "test", 0.0, 0.0, ReachedGoal(goal, 18_330.0, 18_250.0)
    )
    joined = replace(together, objective_usd=120e3, goal=ReachedGoal(goal, 18_290.0, 18_250.0))
    assert joint_plans._better(joined, together) is taken
    assert joint_plans._better(replace(joined, objective_usd=113e3), together)


def test_a_goal_before_tco_is_reached_in_all_scenarios_together() -> None:
    problem = build_problem(question("expected-cost"), RUNS)
    assert problem.scenarios_are_bounds
    energy = replace(problem, fleet=replace(problem.fleet, objective="energy"))
    assert not energy.scenarios_are_bounds


class SlowSearches:
    """Searches that take a part of the time that they may, and leave their gap open if asked to."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, together: float, alone: float, leave_open: bool
    ) -> None:
        self.asked: list[tuple[str, Problem, float]] = []
        self.stop = Stop()

        def searched(problem: Problem, limits: SearchLimits, *rest: Any) -> SearchResult:
            names = "+".join(each.name for each in problem.fleet.demand_scenarios)
            self.asked.append((names, problem, limits.time_limit_s))
            taken = limits.time_limit_s * (together if "+" in names else alone)
            result = replace(
                search(problem, SearchLimits(gap_ratio=0.0, workers=1)), deterministic_time=taken
            )
            if not leave_open:
                return result
            bound_usd = (result.objective_usd or 0.0) / 2
            return replace(result, status=SolveStatus.LIMIT, bound_usd=bound_usd, bound_source="test")

        monkeypatch.setattr(uncertain_demand, "search", searched)
        monkeypatch.setattr(scenarios, "search", searched)

    def run(self, asked: Fleet) -> Found:
        limits = SearchLimits(time_limit_s=10.0, gap_ratio=0.0, workers=1, reproducible=True)
        evaluation = Evaluation(limits, self.stop, builder(RUNS), within_budgets)
        return search_scenarios(build_problem(asked, RUNS), evaluation, None, True)

    def times(self) -> list[tuple[str, float]]:
        return [(names, pytest.approx(time_s)) for names, _, time_s in self.asked]


def test_a_search_keeps_its_time_while_its_gap_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The joint search keeps its time while its gap is open; scenarios alone get a small share."""
    slow = SlowSearches(monkeypatch, 1.0, 1.0, leave_open=True)
    _, result, wrong = slow.run(question())
    assert slow.times() == [
        ("low+high", 8.5),
        ("low", 0.375),
        ("high", 0.375),
        ("high", 0.375),
        ("low", 0.375),
    ]
    assert len(wrong) == 2
    assert result.deterministic_time == pytest.approx(10.0)
    assert result.objective_usd == pytest.approx(20_000)


def test_a_search_goes_on_in_the_time_that_single_scenarios_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowSearches(monkeypatch, 1.0, 0.1, leave_open=True)
    _, result, _ = slow.run(question())
    names, resumed, time_s = slow.asked[-1]
    assert (names, time_s) == ("low+high", pytest.approx(1.5 - sum(row[2] for row in slow.asked[1:-1]) / 10))
    assert resumed.begins_with is not None
    assert resumed.begins_with.objective_usd == pytest.approx(20_000)
    # Half of 10,000 and of 20,000 USD are proven of each alone, half of 20,000 USD of both together.
    assert resumed.bounded_by is not None
    assert resumed.bounded_by.usd == pytest.approx(10_000)
    assert result.deterministic_time == pytest.approx(10.0)


def test_a_closed_gap_leaves_half_of_the_time_for_single_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowSearches(monkeypatch, 0.1, 1.0, leave_open=False)
    slow.run(question())
    assert slow.times() == [("low+high", 8.5), ("low", 1.25), ("high", 1.25), ("high", 1.25), ("low", 1.25)]


def test_a_search_that_ends_late_leaves_a_little_time_for_single_scenarios(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = SlowSearches(monkeypatch, 1.3, 1.0, leave_open=True)
    problem, result, wrong = slow.run(question())
    assert slow.times() == [
        ("low+high", 8.5),
        ("low", 0.125),
        ("high", 0.125),
        ("high", 0.125),
        ("low", 0.125),
    ]
    assert problem.scenario_optima is not None
    assert len(wrong) == 2
    assert result.deterministic_time == pytest.approx(8.5 * 1.3 + 0.5)


def test_a_least_regret_has_the_time_that_single_scenarios_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowSearches(monkeypatch, 1.0, 1.0, leave_open=True)
    slow.run(question("least-regret"))
    assert slow.times() == [("low", 2.25), ("high", 2.25), ("high", 0.75), ("low", 0.75), ("low+high", 4.0)]


def test_a_stopped_search_asks_nothing_of_single_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowSearches(monkeypatch, 1.0, 1.0, leave_open=True)
    slow.stop.request()
    problem, result, wrong = slow.run(question())
    assert (problem.scenario_optima, wrong, len(slow.asked)) == (None, (), 1)
    assert result.objective_usd == pytest.approx(20_000)


def test_no_scenario_alone_costs_more_than_the_plan_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum of a scenario alone costs at most what the joint plan costs in it."""
    real = scenarios.search

    def dear(problem: Problem, *given: Any) -> SearchResult:
        if problem.fixed_supply is None and problem.fleet.demand_scenarios[0].name == "high":
            problem = replace(problem, fixed_supply=FixedSupply({(0, 0, 0): 12, (1, 0, 0): 10}, {}))
        return real(problem, *given)

    monkeypatch.setattr(scenarios, "search", dear)
    plan = planned(question())
    rows = {row.name: row for row in plan.demand_scenarios}
    assert rows["high"].best_usd == pytest.approx(20_000)
    assert rows["high"].regret_usd == pytest.approx(0.0, abs=0.01)
    assert rows["low"].best_usd == pytest.approx(10_000)
    # What is bought for it is what this plan buys, and so is what that costs where it was for nothing.
    assert {(row.scenario, row.units) for row in plan.scenario_purchases} == {("low", 5), ("high", 10)}
    wrong = {(row.planned_for, row.turns_out): row.usd for row in plan.wrong_forecasts}
    assert wrong["high", "low"] == pytest.approx(20_000)


def test_a_wrong_forecast_begins_with_what_was_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search after a wrong forecast starts from the placements of the forecast plan."""
    real = scenarios.search
    begun: dict[str, int] = {}

    def watched(problem: Problem, *given: Any) -> SearchResult:
        if problem.fixed_supply is not None and problem.begins_with is not None:
            rows = problem.begins_with.placements
            (turns_out,) = (each.name for each in problem.fleet.demand_scenarios)
            assert {row.scenario for row in rows} == {turns_out}
            begun[turns_out] = sum(row.replicas for row in rows)
        return real(problem, *given)

    monkeypatch.setattr(scenarios, "search", watched)
    planned(question())
    assert begun == {"low": 10, "high": 5}
