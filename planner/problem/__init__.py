"""Sets and data of a planning problem: candidates, supply, demand by moment, the plan in force.

In: a resolved fleet and its candidates. Out: a `Problem`, shared by the model, the verifier and the
questions. Entry points: `build_problem`, `plan_in_force.with_baseline`, `independent_parts.components`.
Independent of the solvers; floats stay floats.
"""

from fleetplan.planner.problem.candidate import (
    Candidate,
    ConfigurationKey,
    Phase,
    ProvenanceShares,
    Slot,
)
from fleetplan.planner.problem.demand import Cell, moment_demand
from fleetplan.planner.problem.problem import KnownBound, Problem, build_problem, find_candidate

__all__ = [
    "Candidate",
    "Cell",
    "ConfigurationKey",
    "KnownBound",
    "Phase",
    "Problem",
    "ProvenanceShares",
    "Slot",
    "build_problem",
    "find_candidate",
    "moment_demand",
]
