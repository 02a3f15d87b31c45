"""One fleet with two demand scenarios, and what makes plans of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import provenance_of

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import solve_problem
from fleetplan.planner.assemble import build_plan
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.plan import Plan, Solve
from fleetplan.planner.problem import Candidate, Problem, build_problem
from fleetplan.planner.search.result import SearchLimits, SearchResult
from fleetplan.planner.verify import require_valid

RUNS = EXAMPLES["regret"]().candidates


def question(objective: str = "expected-cost", **changes: object) -> Fleet:
    """Five requests/s with a probability of 0.1, ten with 0.9; the example says what A and B cost."""
    asked = EXAMPLES["regret"]().fleet
    return replace(asked, demand_objective=objective, **changes)  # type: ignore[arg-type]


def planned(asked: Fleet, *, forecasts: bool = True) -> Plan:
    problem = build_problem(asked, RUNS)
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)
    candidates = CandidateSet(RUNS, (), (), ())
    outcome = solve_problem(candidates, problem, limits, None, lambda _: None, forecasts=forecasts).outcome
    assert isinstance(outcome, Plan)
    return outcome


def builder(runs: tuple[Candidate, ...]) -> Callable[[Problem, SearchResult], Plan]:
    """Return a function that builds verified plans from search results on some configurations."""

    def built(part: Problem, result: SearchResult) -> Plan:
        solve = Solve(wall_s=0.0, deterministic_time=0.0, status=result.status.value, bound_source="test")
        plan = build_plan(part, CandidateSet(runs, (), (), ()), result, provenance_of(part.fleet), solve)
        require_valid(part, plan)
        return plan

    return built


def bought(plan: Plan) -> dict[str, int]:
    return {row.hardware: row.units for row in plan.purchases}
