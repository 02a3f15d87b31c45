"""The mathematical model: variables, constraint families, objectives, and integers of floats.

In: a `Problem`. Out: a `PlanningModel` for CP-SAT, and the `Solution` that a solver finds of it.
FORMULATION.md states every row. Entry points: `build.build_model`, `groups` (the one list of variables),
`solution.Solution`, `objective.tco.total_cost`, `objective.goals.goal_of`; `constraints` holds one family a
module.
"""
