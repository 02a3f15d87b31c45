r"""Objective least regret: no scenario's extra cost over its own optimum exceeds the regret.

For each demand scenario s, with C + cost[s] the TCO if s occurs (supply, plus the full running cost of its
moments) and V[s] the TCO of the best known plan for s alone::

    C + cost[s] - V[s] <= regret                                          regret[...]

The regret is then minimised. Without this objective, or without every V, there is no row.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.objective.tco import fixed_usd, scenario_cost
from fleetplan.planner.formulation.scaling import usd_units
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem

FAMILY = 15


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every demand scenario."""
    for regret in variables.regret.values():
        for scenario, best in (problem.scenario_optima or {}).items():
            allowed = usd_units(best.usd - fixed_usd(problem))
            row = regret + allowed >= scenario_cost(problem, variables, scenario)
            model.add(row).with_name(f"regret[{scenario}]")
