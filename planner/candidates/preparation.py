"""Candidates and problem of a resolved fleet. Independent of the solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates.candidate_cache import kept_candidates
from fleetplan.planner.candidates.candidate_set import CandidateSet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.problem.current_plan import configurations_in_force, with_baseline


def prepare(
    fleet: Fleet,
    announce: Callable[[str], None],
    baseline: Plan | None = None,
    out_of_time: Callable[[], bool] = lambda: False,
) -> tuple[CandidateSet, Problem]:
    """Return candidates and problem of a fleet and its plan in force; raises as `build_candidates`."""
    keep = frozenset() if baseline is None else configurations_in_force(baseline)
    candidates = kept_candidates(fleet, announce, keep, out_of_time)
    problem = build_problem(fleet, candidates.candidates)
    warnings: tuple[str, ...] = ()
    if baseline is not None:
        problem, warnings = with_baseline(problem, baseline)
    elif fleet.policy.transition_usd_per_accelerator > 0 and not problem.counts_changes:
        text = "policy.transition_usd_per_accelerator has no effect: one period, and no plan in force"
        warnings = (f"{text} (--baseline)",)
    return replace(candidates, warnings=(*candidates.warnings, *warnings)), problem
