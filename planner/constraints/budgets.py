r"""Family 6, budgets: capital, operating cost and TCO stay within their limits.

With fixed cost C of what exists (its operating part C_op), order period q and in whole objective units::

    sum_p capex[o] acquired[o,p,q] <= capex limit of q                    capex[period]
    sum_{q} of the same            <= capex limit                         capex[horizon]
    C_op + operating cost          <= opex limit                          opex[horizon]
    C + cost                       <= TCO limit                           tco[horizon]
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.costs import CAPITAL_KINDS
from fleetplan.planner.objective import (
    fixed_usd,
    load_usd,
    started_usd,
    switched_usd,
    total_cost,
)
from fleetplan.planner.problem import Problem
from fleetplan.planner.scaling import usd_units
from fleetplan.planner.variables import Variables


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows of the budgets that are given."""
    budget = problem.fleet.budget
    capex = {
        (p, a, q): usd_units(problem.pools[p].acquisitions[a].capex_usd_per_unit)
        for p, a, q in variables.acquired
    }
    for q, (period, limit) in enumerate(zip(problem.periods, budget.capex_usd_by_period, strict=True)):
        if limit is not None:
            spent = sum(capex[key] * variables.acquired[key] for key in capex if key[2] == q)
            model.add(spent <= usd_units(limit)).with_name(f"capex[{period}]")
    if budget.capex_usd is not None:
        spent = sum(usd * variables.acquired[key] for key, usd in capex.items())
        model.add(spent <= usd_units(budget.capex_usd)).with_name("capex[horizon]")
    if budget.opex_usd is not None:
        left = usd_units(budget.opex_usd - _fixed_operating_usd(problem))
        model.add(_operating_cost(problem, variables) <= left).with_name("opex[horizon]")
    if budget.tco_usd is not None:
        left = usd_units(budget.tco_usd - fixed_usd(problem))
        model.add(total_cost(problem, variables) <= left).with_name("tco[horizon]")


def _fixed_operating_usd(problem: Problem) -> float:
    """Cost of what exists without its depreciation. [USD]"""
    return sum(
        sum(values)
        for pool in problem.pools
        for kind, values in pool.fixed_cost_kinds.items()
        if kind not in CAPITAL_KINDS
    )


def _operating_cost(problem: Problem, variables: Variables) -> cp_model.LinearExprT:
    """Rent, hosting, maintenance, energy and transitions of what the plan adds and runs. [objective units]"""
    terms: list[cp_model.LinearExprT] = []
    for p, a, q in variables.acquired:
        acquisition = problem.pools[p].acquisitions[a]
        usd = sum(
            values[q] for kind, values in acquisition.unit_cost_kinds.items() if kind not in CAPITAL_KINDS
        )
        terms.append(usd_units(usd) * variables.acquired[p, a, q])
    for (p, q), variable in variables.retired.items():
        retirement = problem.pools[p].retirement
        table = {} if retirement is None else retirement.unit_cost_by_period
        usd = sum(sum(rows[q]) for kind, rows in table.items() if kind not in CAPITAL_KINDS)
        terms.append(usd_units(usd) * variable)
    for key, variable in variables.load.items():
        terms.append(usd_units(load_usd(problem, key)) * variable)
    for started, variable in variables.started.items():
        terms.append(usd_units(started_usd(problem, started)) * variable)
    for switched, variable in variables.switched.items():
        terms.append(usd_units(switched_usd(problem, switched)) * variable)
    return sum(terms)
