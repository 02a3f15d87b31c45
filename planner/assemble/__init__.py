"""From raw solver values to the rows of a plan, its bill and what limits it, in unrounded numbers.

In: a `Problem` and what a search found of it. Out: a `Plan`. `traffic` says who serves what; `placements`,
`pools`, `purchases` and others make the rows of it, `costs` and `bill` what they cost, `binding`
what limits them.
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
