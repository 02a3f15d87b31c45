"""Solves a fleet with given candidates and checks the plan, without the performance model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.assemble import build_plan, within_budgets
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.plan import Placement, Plan, PlanProvenance, Solve
from fleetplan.planner.problem import Candidate, Problem, build_problem
from fleetplan.planner.problem.current_plan import with_baseline
from fleetplan.planner.problem.scenarios import ScenarioOptimum
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.result import SearchLimits, SearchResult, SolveStatus, Watcher
from fleetplan.planner.verify import require_valid

NO_PROVENANCE = PlanProvenance(
    fleetplan_version="test",
    created="2026-01-01T00:00:00+00:00",
    inputs_sha256={},
    table_sources=(),
    price_sources=(),
    versions={},
    seed=1,
    time_limit_s=60.0,
    gap_limit=0.0,
    spend_share={},
)


def provenance_of(fleet: Fleet, gap: float = 0.0) -> PlanProvenance:
    """Return the provenance of a plan of a fleet built in code."""
    sources = {offer.price_source for offer in fleet.offers}
    sources |= {pool.rented.price_source for pool in fleet.pools if pool.rented is not None}
    stated = {
        "price_sources": tuple(sorted(sources)),
        "gap_limit": gap,
        "inputs_sha256": dict(fleet.input_hashes),
        "scenarios": fleet.scenarios,
        "assignments": fleet.assignments,
    }
    return NO_PROVENANCE.model_copy(update=stated)


@dataclass(frozen=True, slots=True)
class Solved:
    """A search with its plan; the plan is None where the fleet is infeasible or nothing was found."""

    problem: Problem
    result: SearchResult
    plan: Plan | None

    @property
    def usd(self) -> float | None:
        """TCO of the plan without rounding, or None without one."""
        return None if self.plan is None else self.plan.objective_usd

    def rows(self, **wanted: object) -> list[Placement]:
        """Placements with these values."""
        placements = () if self.plan is None else self.plan.placements
        return [row for row in placements if all(getattr(row, k) == v for k, v in wanted.items())]


def solve_unchecked(
    fleet: Fleet,
    candidates: Sequence[Candidate],
    *,
    gap: float = 0.0,
    seed: int = 1,
    workers: int = 1,
    time_limit_s: float = 60.0,
    watch: Watcher | None = None,
    baseline: Plan | None = None,
    scenario_optima: Mapping[str, ScenarioOptimum] | None = None,
    reproducible: bool = False,
) -> Solved:
    """Search and assemble; nothing is verified."""
    problem = replace(build_problem(fleet, candidates), scenario_optima=scenario_optima)
    if baseline is not None:
        problem, _ = with_baseline(problem, baseline)
    limits = SearchLimits(time_limit_s, gap, seed, workers, reproducible)
    result = search(problem, limits, watch, holds=within_budgets)
    if result.solution is None:
        return Solved(problem, result, None)
    solve = Solve(
        wall_s=result.wall_s,
        deterministic_time=result.deterministic_time,
        status=result.status.value,
        bound_source=result.bound_source,
    )
    found = CandidateSet(tuple(candidates), (), (), ())
    return Solved(problem, result, build_plan(problem, found, result, provenance_of(fleet, gap), solve))


def solve(fleet: Fleet, candidates: Sequence[Candidate], **limits: object) -> Solved:
    """Search, assemble and verify."""
    solved = solve_unchecked(fleet, candidates, **limits)  # type: ignore[arg-type]
    if solved.plan is not None:
        require_valid(solved.problem, solved.plan)
    return solved


def is_infeasible(fleet: Fleet, candidates: Sequence[Candidate]) -> bool:
    """Return whether the search proves that no plan exists."""
    return solve(fleet, candidates).result.status is SolveStatus.INFEASIBLE
