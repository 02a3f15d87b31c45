"""Mathematical model: variables, constraint families, objectives, and conversion of floats to integers.

In: a `Problem`. Out: a `PlanningModel` for CP-SAT, and the `Solution` that a solver finds. FORMULATION.md
states every row. Entry points: `build.build_model`, `groups` (the list of all variables), `Solution`,
`objective.tco.total_cost`, `objective.goals.goal_of`; `constraints` has one module per family.
"""

from fleetplan.planner.formulation.bounds import needed_at_peak, replicas_for_load
from fleetplan.planner.formulation.build import FAMILIES, PlanningModel, build_model
from fleetplan.planner.formulation.groups import GROUPS, all_variables, continuous_indices, places
from fleetplan.planner.formulation.objective.cost_overflow import CostOverflowError
from fleetplan.planner.formulation.objective.data import data_usd_per_request_per_s
from fleetplan.planner.formulation.objective.goals import UNITS, Goal, goal_of, goal_units, grid_kg_per_kwh
from fleetplan.planner.formulation.objective.tco import (
    fixed_usd,
    started_usd,
    switched_usd,
    total_cost,
    unmet_demand,
    unmet_exponent,
    unmet_requests_per_s,
    unmet_units,
)
from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.formulation.solution import ReachedGoal, Solution, values_of
from fleetplan.planner.formulation.variables import AcquireKey, LoadKey, PairKey, ReplicaKey, Variables

__all__ = [
    "FAMILIES",
    "GROUPS",
    "UNITS",
    "AcquireKey",
    "CostOverflowError",
    "Goal",
    "LoadKey",
    "PairKey",
    "PlanningModel",
    "ReachedGoal",
    "ReplicaKey",
    "Solution",
    "Variables",
    "all_variables",
    "build_model",
    "continuous_indices",
    "data_usd_per_request_per_s",
    "fixed_usd",
    "goal_of",
    "goal_units",
    "grid_kg_per_kwh",
    "needed_at_peak",
    "places",
    "rate_scales",
    "replicas_for_load",
    "started_usd",
    "switched_usd",
    "total_cost",
    "unmet_demand",
    "unmet_exponent",
    "unmet_requests_per_s",
    "unmet_units",
    "values_of",
]
