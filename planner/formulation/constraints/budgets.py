r"""Family 6, budgets: capital, operating cost and TCO stay within their limits.

With fixed cost C of what exists (its operating part C_op) and order period q; costs of the last two rows are
rounded up, so that a plan keeps them without rounding::

    sum_p capex[o] acquired[o,p,q] <= capex limit of q                    capex[period]
    sum_{q} of the same            <= capex limit                         capex[horizon]
    C_op + operating cost          <= opex limit                          opex[horizon]
    C + cost                       <= TCO limit                           tco[horizon]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.objective.supply import supply_charges
from fleetplan.planner.formulation.objective.tco import (
    Term,
    cost_terms,
    fixed_usd,
    running_terms,
)
from fleetplan.planner.formulation.scaling import usd_units, whole_row
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import CAPITAL_KINDS
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, exact

COST_DIGITS: Final = 12
"""Digits of a cost that is computed in floats."""

FLOAT_RATIO: Final = 1e-10
"""Share of a limit that may be float noise: the cost of a plan is a limit that the plan keeps."""


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
        left = budget.opex_usd - _fixed_operating_usd(problem)
        _limit(model, _operating_terms(problem, variables), left, "opex[horizon]")
    if budget.tco_usd is not None:
        _limit(model, cost_terms(problem, variables), budget.tco_usd - fixed_usd(problem), "tco[horizon]")


def _limit(model: cp_model.CpModel, terms: Sequence[Term], usd: float, name: str) -> None:
    """Let a sum of costs be at most a limit."""
    bounds = [int(variable.proto.domain[1]) for variable, _ in terms]
    limit = exact(usd + FLOAT_RATIO * abs(usd))
    weights, most = whole_row([_decimal(each) for _, each in terms], bounds, limit)
    spent = cp_model.LinearExpr.weighted_sum([variable for variable, _ in terms], weights)
    model.add(spent <= most).with_name(name)


def _decimal(usd: float) -> Fraction:
    """A cost without the noise of its float: of a load unit, a short decimal over the units of a replica."""
    return exact(float(f"{usd * LOAD_UNITS_PER_REPLICA:.{COST_DIGITS}g}")) / LOAD_UNITS_PER_REPLICA


def _fixed_operating_usd(problem: Problem) -> float:
    """Cost of what exists without its depreciation. [USD]"""
    return sum(
        sum(values)
        for pool in problem.pools
        for kind, values in pool.fixed_cost_kinds.items()
        if kind not in CAPITAL_KINDS
    )


def _operating_terms(problem: Problem, variables: Variables) -> list[Term]:
    """Rent, hosting, maintenance, energy and starts of what the plan adds, retires and runs. [USD]"""
    terms = [
        (
            variable,
            sum(sum(usd) for kind, usd in charges(problem, key).items() if kind not in CAPITAL_KINDS),
        )
        for name, charges in supply_charges().items()
        for key, variable in getattr(variables, name).items()
    ]
    return terms + running_terms(problem, variables, [1.0] * len(problem.moments))
