"""A bound that a plan contradicts is taken back wherever it came from, and nothing breaks."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.family_examples import EXAMPLES

from fleetplan.planner.formulation.build import PlanningModel
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.problem.scenarios import FixedSupply, ScenarioOptimum
from fleetplan.planner.report.search_console import print_search
from fleetplan.planner.search import run, shortage
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.joint_plans import best_of
from fleetplan.planner.search.result import Progress, SearchLimits, SearchResult, SolveStatus
from fleetplan.planner.search.solvers.best import WITHDRAWN
from fleetplan.planner.search.solvers.proofs import VARIABLES
from fleetplan.planner.search.solvers.request import Enough, ModelOutcome, ModelStatus, SolverLimits

LIMITS = SearchLimits(20.0, 0.0, 1, 1)
USD = 2 * 2.0 * 2190
"""Two cards at 2 USD an hour for a quarter."""


def problem(most_cards: int = 9, configurations: int = 1) -> Problem:
    """Six requests/s on cards that serve three each, if any configuration does."""
    asked = fleet(
        services=[service("chat", 6.0)],
        hardware=[hardware("G", 1)],
        offers=[rent_offer("G", 2.0, maximum=most_cards)],
    )
    return build_problem(asked, (candidate("chat", "G", 3.0),) * configurations)


def test_a_plan_cheaper_than_its_bound_loses_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def dear(
        run: object, planning: PlanningModel, result: SearchResult, outcome: ModelOutcome
    ) -> SearchResult:
        return replace(result, bound_usd=2 * USD, bound_source="a false proof")

    monkeypatch.setattr(run.Run, "simplify", dear)
    steps: list[Progress] = []
    result = search(problem(), LIMITS, steps.append)
    assert result.objective_usd == pytest.approx(USD)
    assert result.bound_usd == pytest.approx(0.0)
    assert (result.bound_source, result.status) == (VARIABLES, SolveStatus.LIMIT)
    assert (steps[-1].source, steps[-1].detail) == ("a false proof", WITHDRAWN)


def test_what_the_scenarios_prove_is_not_told_where_a_plan_costs_less() -> None:
    example = EXAMPLES["regret"]()
    asked = build_problem(replace(example.fleet, demand_objective="expected-cost"), example.candidates)
    result = search(asked, LIMITS)
    assert result.objective_usd is not None
    supply = FixedSupply({}, {})

    def with_bound(usd: float) -> Problem:
        known = {each.name: ScenarioOptimum(usd, usd, 0.0, supply) for each in asked.fleet.demand_scenarios}
        return replace(asked, scenario_optima=known)

    loose = replace(result, bound_usd=0.0)
    told = best_of(with_bound(result.objective_usd / 2), loose, [], LIMITS)
    assert told.bound_usd == pytest.approx(result.objective_usd / 2)
    assert told.bound_source == "best plans of each scenario alone"
    false = best_of(with_bound(result.objective_usd * 2), loose, [], LIMITS)
    assert (false.bound_usd, false.bound_source) == (0.0, result.bound_source)
    assert false.status is SolveStatus.LIMIT


def test_a_bound_that_is_taken_back_is_shown_as_such() -> None:
    steps = [
        Progress("cost", 0.1, 300.0, 200.0, "CP-SAT, confirmed by HiGHS", "raised the bound"),
        Progress("cost", 0.2, 150.0, 100.0, "HiGHS", "found a better plan"),
        Progress("cost", 0.2, 150.0, 100.0, "CP-SAT", WITHDRAWN),
    ]
    written = io.StringIO()
    print_search(steps, Console(file=written, width=200))
    taken_back = next(line for line in written.getvalue().splitlines() if "0.2" in line and "HiGHS" in line)
    assert "$150" in taken_back
    assert "$100" in taken_back
    assert WITHDRAWN in written.getvalue()


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (ModelStatus.INFEASIBLE, "several limits together"),
        (ModelStatus.UNKNOWN, "limits that were not identified in time"),
    ],
)
def test_limits_are_named_together_only_where_it_is_proven(
    status: ModelStatus, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = ModelOutcome(status, None, None, None, "test", 0.0)
    solve = shortage.solve_planning

    def lifted(planning: PlanningModel, limits: SolverLimits, enough: Enough) -> ModelOutcome:
        return solve(planning, limits, enough) if planning.variables.unmet else nothing

    monkeypatch.setattr(shortage, "solve_planning", lifted)
    rows = shortage.find_shortages(problem(most_cards=1), (), seed=1, workers=1).rows
    assert [row.reason for row in rows] == [reason]


@pytest.mark.parametrize("status", [ModelStatus.INFEASIBLE, ModelStatus.UNKNOWN])
def test_no_time_for_shortages_is_no_proof_that_limits_leave_no_plan(
    status: ModelStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = ModelOutcome(status, None, None, None, "test", 0.0)
    monkeypatch.setattr(shortage, "solve_planning", lambda *_: nothing)
    found = shortage.find_shortages(problem(most_cards=1), (), seed=1, workers=1)
    assert not found.rows
    assert found.complete == (status is ModelStatus.INFEASIBLE)
    # What no configuration serves is known without a solve.
    known = shortage.find_shortages(problem(configurations=0), (), seed=1, workers=1)
    assert bool(known.rows) == (status is ModelStatus.UNKNOWN)
    for row in known.rows:
        assert row.unmet_requests_per_s == row.demand_requests_per_s == pytest.approx(6.0)
        assert row.reason == "a configuration that meets the SLO and fits memory"
