"""Plans that exceed a budget by the rounding of whole load units are searched again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.family_examples import EXAMPLES

from fleetplan.planner.formulation import Solution
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.search import budgets_kept
from fleetplan.planner.search.result import LeastUnmet, SearchLimits, SearchResult, SolveStatus

LIMITS = SearchLimits(time_limit_s=60.0, gap_ratio=1e-2)


def found(usd: float, unmet: float, status: SolveStatus = SolveStatus.WITHIN_GAP) -> SearchResult:
    return SearchResult(
        status, Solution(load={(0, 0, 0, 0): 1}), usd, usd, "a solver", 1.0, 0.0,
        unmet={2: LeastUnmet(unmet, unmet)},
    )  # fmt: skip


def answered(
    monkeypatch: pytest.MonkeyPatch, answers: list[SearchResult], most_usd: float
) -> tuple[SearchResult, list[tuple[bool, float]]]:
    """Search with scripted answers; return the result, and of each search: strict budgets or not, and gap."""
    asked = []

    def search_parts(problem: Problem, limits: SearchLimits, *_: object) -> SearchResult:
        asked.append((problem.strict_budgets, limits.gap_ratio))
        return answers[len(asked) - 1]

    monkeypatch.setattr(budgets_kept, "search_parts", search_parts)
    example = EXAMPLES["budgets"]()
    problem = build_problem(example.fleet, example.candidates)
    result = budgets_kept.search(problem, LIMITS, holds=lambda _, each: (each.objective_usd or 0) <= most_usd)
    return result, asked


def test_the_cheapest_plan_comes_before_a_model_that_excludes_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a plan exceeds its budget by rounding, the cheapest plan is searched before a stricter model."""
    result, asked = answered(monkeypatch, [found(100.4, 7.4), found(100.0, 7.4)], most_usd=100.0)
    assert (result.objective_usd, result.status) == (100.0, SolveStatus.OPTIMAL)
    assert [strict for strict, _ in asked] == [False, False]
    assert asked[1][1] < 1e-8


def test_a_model_that_excludes_plans_proves_nothing_of_unmet_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [found(100.4, 7.4), found(100.2, 7.4), found(99.0, 7.5)]
    result, asked = answered(monkeypatch, answers, most_usd=100.0)
    assert [strict for strict, _ in asked] == [False, False, True]
    assert result.unmet == {2: LeastUnmet(7.5, 7.4)}
    assert result.status is SolveStatus.LIMIT
    assert result.wall_s == 3.0


def test_a_search_out_of_time_goes_to_the_strict_model(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [found(100.4, 7.4, SolveStatus.LIMIT), replace(found(99.0, 0.0), unmet={})]
    result, asked = answered(monkeypatch, answers, most_usd=100.0)
    assert [strict for strict, _ in asked] == [False, True]
    assert result.status is SolveStatus.OPTIMAL
