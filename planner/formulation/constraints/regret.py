r"""Objective least regret: no scenario's extra cost over its own optimum exceeds the regret.

For each demand scenario s, with C + cost[s] the TCO if s occurs (supply, plus the full running cost of its
moments) and V[s] the TCO of the best known plan for s alone::

    C + cost[s] - V[s] <= regret                                          regret[...]

The regret is then minimised. Without this objective, or without every V, there is no row.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.objective.tco import fixed_usd, scenario_cost
from fleetplan.planner.formulation.scaling import LARGEST_SUM, usd_units
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem

FAMILY = 15

REGRET_RANGE = 100
"""Bound of the regret, as a multiple of the most expensive scenario's cost."""

REGRET_ROUNDING_RATIO = 1e-5
"""Share of that cost by which the regret may lie below the proven minimum, for whole load units."""


def decide(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Create the variable of the largest regret, if it is minimised.

    Its bounds are a multiple of the most expensive scenario's cost in both directions. Sales of hosts may
    exceed all other costs, so existing hosts count at full price. If all demand is served, no scenario costs
    less than its proven minimum.
    """
    if not problem.minimises_regret:
        return
    best = tuple((problem.scenario_optima or {}).values())
    dearest_usd = max(abs(each.usd) for each in best)
    standing_usd = sum(abs(usd) for pool in problem.pools for usd in pool.fixed_usd)
    # The rows add a scenario's cost, of up to `LARGEST_SUM`.
    most = min(REGRET_RANGE * usd_units(dearest_usd + standing_usd + 1), LARGEST_SUM // 2)
    least = -most
    if not variables.unmet and problem.bound_by_scenarios:
        proven_usd = max(each.bound_usd - each.usd for each in best)
        least = max(least, usd_units(proven_usd - REGRET_ROUNDING_RATIO * dearest_usd - 1))
    variables.regret["largest"] = model.new_int_var(least, most, "regret[largest]")


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every demand scenario."""
    for regret in variables.regret.values():
        for scenario, best in (problem.scenario_optima or {}).items():
            allowed = usd_units(best.usd - fixed_usd(problem))
            row = regret + allowed >= scenario_cost(problem, variables, scenario)
            model.add(row).with_name(f"regret[{scenario}]")
