"""Demand that no configuration can serve, detected without a solver."""

from __future__ import annotations

from fleetplan.planner.problem.candidate import Phase
from fleetplan.planner.problem.demand import Cell
from fleetplan.planner.problem.problem import Problem


def unservable(problem: Problem) -> tuple[str, ...]:
    """Return reasons why a problem has no plan, as far as its candidates show.

    Parameters
    ----------
    problem : Problem
        Sets and data.

    Returns
    -------
    tuple[str, ...]
        One sentence per service and class, with its regions; empty proves nothing.
    """
    regions: dict[tuple[str, str], dict[str, None]] = {}
    for cell in problem.cells:
        classes = problem.services[cell.service].classes
        for k, rate in enumerate(cell.requests_per_s):
            if rate > 0 and not _may_be_served(problem, cell, k):
                missing = f"{cell.service} ({classes[k].name})", _missing(problem, cell, k)
                regions.setdefault(missing, {})[cell.region] = None
    return tuple(f"{what} in {', '.join(where)}: {why}" for (what, why), where in regions.items())


def _may_be_served(problem: Problem, cell: Cell, k: int) -> bool:
    """Return whether aggregated replicas, or both phases, have a pool in a serving region."""
    phases = {
        candidate.phase
        for candidate in map(problem.candidates.__getitem__, problem.candidates_of(cell.service))
        if candidate.requests_per_s[k] > 0
        and any(problem.pools_for(candidate, region) for region in problem.serving_regions(cell))
    }
    return Phase.AGGREGATED in phases or {Phase.PREFILL, Phase.DECODE} <= phases


def _missing(problem: Problem, cell: Cell, k: int) -> str:
    able = [
        candidate
        for candidate in map(problem.candidates.__getitem__, problem.candidates_of(cell.service))
        if candidate.requests_per_s[k] > 0
    ]
    phases = {candidate.phase for candidate in able}
    if Phase.AGGREGATED in phases or {Phase.PREFILL, Phase.DECODE} <= phases:
        names = ", ".join(sorted({candidate.hardware for candidate in able}))
        return f"the region has no pool or offer of suitable hardware ({names})"
    if phases:
        return f"only {' and '.join(sorted(phases))} configurations remain, none of the other phase"
    return "no allowed configuration meets its limits and fits memory"
