r"""Family 6, budgets: limits on capital expenditure, operating cost and TCO.

With fixed cost C of existing hosts (operating part C_op) and order period q::

    sum_p capex[o] acquired[o,p,q] <= capex limit of q                    capex[period]
    sum_{q} of the same            <= capex limit                         capex[horizon]
    C_op + operating cost          <= opex limit                          opex[horizon]
    C + cost                       <= TCO limit                           tco[horizon]

The last two rows charge traffic by its rate (objective/traffic.py), so a plan costs at most what they state.
A budget equal to a plan's cost must admit that plan, even if whole load units cannot express it: the rows
allow one load unit of each class on other than the cheapest replicas. If a plan exceeds the limit that way,
planner/search/budgets_kept.py looks for another, if need be without this allowance
(`Problem.strict_budgets`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.objective.supply import supply_charges
from fleetplan.planner.formulation.objective.tco import (
    Term,
    change_terms,
    fixed_usd,
    load_usd,
    supply_terms,
)
from fleetplan.planner.formulation.objective.traffic import TrafficSum, traffic_sum
from fleetplan.planner.formulation.scaling import usd_units, whole_limit
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import CAPITAL_KINDS
from fleetplan.planner.units import exact

FAMILY = 6

ROUNDING_RATIO: Final = 1e-7
"""Relative tolerance of a limit, for rates in whole units and for floats: a plan's own cost is a valid
limit."""

ERROR_RATIO: Final = 5e-7
"""Relative excess that rounding of the row to integers may allow. With `ROUNDING_RATIO`, it stays below the
verifier's tolerance."""


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add a row for each budget."""
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
    if budget.opex_usd is None and budget.tco_usd is None:
        return
    traffic = traffic_sum(problem, variables, partial(load_usd, problem))
    changes = change_terms(problem, variables)
    if budget.opex_usd is not None:
        terms = _operating_terms(problem, variables) + changes
        _limit(model, problem, (terms, traffic), (_fixed_operating_usd(problem), budget.opex_usd), "opex")
    if budget.tco_usd is not None:
        terms = supply_terms(problem, variables) + changes
        _limit(model, problem, (terms, traffic), (fixed_usd(problem), budget.tco_usd), "tco")


def _limit(
    model: cp_model.CpModel,
    problem: Problem,
    costs: tuple[Sequence[Term], TrafficSum],
    amounts: tuple[float, float],
    name: str,
) -> None:
    """Limit the sum of fixed, variable and traffic costs."""
    (sums, traffic), (fixed, limit) = costs, amounts
    terms = [*sums, *traffic.terms, *((unmet, -each) for unmet, _, each in traffic.served)]
    bounds = [int(variable.proto.domain[1]) for variable, _ in terms]
    room = 0.0 if problem.strict_budgets else traffic.whole_units
    whole_demand = sum(units * exact(each) for _, units, each in traffic.served)
    left = (
        exact(limit + ROUNDING_RATIO * limit + room) - exact(fixed) - exact(traffic.constant) - whole_demand
    )
    weights, most = whole_limit(
        [exact(each) for _, each in terms], bounds, left, exact(ERROR_RATIO * abs(limit))
    )
    spent = cp_model.LinearExpr.weighted_sum([variable for variable, _ in terms], weights)
    model.add(spent <= most).with_name(f"{name}[horizon]")


def _fixed_operating_usd(problem: Problem) -> float:
    """Return the operating cost of existing hosts. [USD]"""
    return sum(
        sum(values)
        for pool in problem.pools
        for kind, values in pool.fixed_cost_kinds.items()
        if kind not in CAPITAL_KINDS
    )


def _operating_terms(problem: Problem, variables: Variables) -> list[Term]:
    """Return rent, hosting and maintenance of acquired and retired units. [USD]"""
    return [
        (
            variable,
            sum(sum(usd) for kind, usd in charges(problem, key).items() if kind not in CAPITAL_KINDS),
        )
        for name, charges in supply_charges().items()
        for key, variable in getattr(variables, name).items()
    ]
