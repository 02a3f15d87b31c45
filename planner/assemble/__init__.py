"""Assemble a plan from solver values: its rows, its bill and its binding limits, without rounding.

Input: a `Problem` and the result of a search. Output: a `Plan`. `traffic` assigns requests to replicas;
`placements`, `pools`, `purchases` and others make the rows, `costs` and `bill` their costs, `binding` the
limits.
"""

from fleetplan.planner.assemble.budgets import within_budgets
from fleetplan.planner.assemble.goal import figure_of
from fleetplan.planner.assemble.plan import build_plan
from fleetplan.planner.assemble.provenance import provenance, solve_record

__all__ = [
    "build_plan",
    "figure_of",
    "provenance",
    "solve_record",
    "within_budgets",
]
