"""Spending of a plan against its budgets, without rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fleetplan.planner.assemble.costs import cost_breakdown
from fleetplan.planner.assemble.placements import placements
from fleetplan.planner.assemble.traffic import spread_traffic
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import CAPITAL_KINDS
from fleetplan.planner.search import SearchResult

ROUNDING_RATIO: Final = 9e-7
"""Tolerance on a budget for rounding, below that of the verifier. [share]"""


def spent_usd(problem: Problem, costs: Mapping[str, float]) -> Iterator[tuple[str, float, float]]:
    """Yield the name, spending and limit of each cost budget. [USD]

    Parameters
    ----------
    problem : Problem
        Sets and data.
    costs : Mapping[str, float]
        TCO by kind.
    """
    total, budget = sum(costs.values()), problem.fleet.budget
    if budget.opex_usd is not None:
        yield "opex", total - sum(costs.get(kind, 0.0) for kind in CAPITAL_KINDS), budget.opex_usd
    if budget.tco_usd is not None:
        yield "tco", total, budget.tco_usd


def within_budgets(problem: Problem, result: SearchResult) -> bool:
    """Return whether the result of a search keeps the cost budgets."""
    budget, solution = problem.fleet.budget, result.solution
    if solution is None or (budget.opex_usd is None and budget.tco_usd is None):
        return True
    rows = placements(problem, spread_traffic(problem, solution), solution)
    costs = cost_breakdown(problem, solution, rows)
    return all(used <= limit * (1 + ROUNDING_RATIO) for _, used, limit in spent_usd(problem, costs))
