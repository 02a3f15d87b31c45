"""From raw solver values to the rows of a plan, its bill and what limits it, in unrounded numbers.

In: a `Problem` and a `Solution`. Out: placements, pools, purchases, unmet demand (`rows`), costs and their
lines (`costs`, `bill`), changes, flows, binding limits and the inputs that a plan rests on.
"""

from fleetplan.planner.assemble.goal import used
from fleetplan.planner.assemble.plan import build_plan
from fleetplan.planner.assemble.provenance import provenance, solve_record

__all__ = [
    "build_plan",
    "provenance",
    "solve_record",
    "used",
]
