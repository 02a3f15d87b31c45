r"""Objective terms: unmet demand by priority, and total cost of ownership.

TCO over the horizon is the fixed cost of existing hosts, plus the price of each decision times its value::

    fixed + sum usd acquired[o,p,q] + sum usd retired[p,q] + sum usd w[c,k,p,i] / (1 + headroom[s])
      + sum usd a[c] started[c,p,m] + sum usd a[c] switched[c,p,m]

planner/formulation/objective/supply.py has the charges of acquired and retired units, idle power included. A
load unit costs its energy above idle (power of the replica above idle * PUE * price * hours / load units per
replica) and the data of requests from other regions. Headroom draws only idle power, because it is capacity,
not traffic. Costs of a moment are weighted by its share of the period's hours times the probability of its
demand; starts within the day by the days of the period. All costs are present values at the start of the
horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from ortools.sat.python import cp_model

from fleetplan.fleet.tco import present_value_ratio
from fleetplan.fleet.units import HOURS_PER_DAY
from fleetplan.planner.formulation.groups import GROUPS, members
from fleetplan.planner.formulation.objective.cost_overflow import too_dear
from fleetplan.planner.formulation.objective.data import data_usd_per_load_unit
from fleetplan.planner.formulation.objective.supply import supply_charges
from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.formulation.scaling import LARGEST_SUM, usd_units, whole_weights
from fleetplan.planner.formulation.variables import LoadKey, ReplicaKey, Variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import load_units
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.problem.power_draw import load_kw

Term: TypeAlias = tuple[cp_model.IntVar, float]
"""Variable, and the cost or draw of one unit."""

Prices: TypeAlias = Mapping[str, Callable[[Problem, Any], float]]
"""Price function of each group of decisions, by name and key. [USD]"""


def energy_usd_per_load_unit(problem: Problem, key: LoadKey) -> float:
    """Return the expected cost of energy above idle of one load unit over its moment. [USD]"""
    c, k, p, cell = key
    candidate, moment = problem.candidates[c], problem.moments[problem.cells[cell].moment]
    planned_ratio = problem.services[candidate.service].planned_ratio
    usd_per_kw = problem.pools[p].energy_usd_per_kw[moment.period] * moment.weight
    return load_kw(problem, candidate) * usd_per_kw / load_units(problem, c, k) / planned_ratio


def load_usd(problem: Problem, key: LoadKey) -> float:
    """Return the expected cost of one load unit: energy, and data to another region. [USD]"""
    return energy_usd_per_load_unit(problem, key) + data_usd_per_load_unit(problem, key)


def started_usd(problem: Problem, key: ReplicaKey) -> float:
    """Return the expected cost of starting one replica in a moment, paid at the period's start. [USD]"""
    moment, finance = problem.moments[key[2]], problem.fleet.finance
    accelerators = problem.candidates[key[0]].accelerators * moment.weight
    worth = present_value_ratio(finance.discount_rate_per_year, moment.period, finance.calendar)
    return problem.fleet.policy.transition_usd_per_accelerator * accelerators * worth


def switched_usd(problem: Problem, key: ReplicaKey) -> float:
    """Return the expected cost of starting one replica in a slice, every day of a period. [USD]"""
    moment, finance = problem.moments[key[2]], problem.fleet.finance
    days = finance.calendar.hours / HOURS_PER_DAY * float(moment.days_share) * moment.probability
    # Paid throughout the period, so discounted to its end like all running cost.
    worth = present_value_ratio(finance.discount_rate_per_year, moment.period + 1, finance.calendar)
    usd = problem.fleet.policy.tidal.usd_per_accelerator * problem.candidates[key[0]].accelerators
    return usd * days * worth


def prices_of_running() -> Prices:
    """Return the price functions of decisions that belong to a moment; expected over demand scenarios."""
    return {"load": load_usd, **prices_of_changes()}


def prices_of_changes() -> Prices:
    """Return the price functions of replicas that start in a moment."""
    return {"started": started_usd, "switched": switched_usd}


def total_cost(problem: Problem, variables: Variables) -> cp_model.LinearExprT:
    """Return the variable part of the expected TCO; `fixed_usd` is the rest. [objective units]"""
    everywhere = [1.0] * len(problem.moments)
    return _sum(
        problem, variables, supply_terms(problem, variables) + _running_terms(problem, variables, everywhere)
    )


def guiding_cost(problem: Problem, variables: Variables) -> cp_model.LinearExprT:
    """Return the total cost in a unit as coarse as 64-bit sums require, for a search for any plan.

    Offers and replicas beyond those of the fleet file may cost more than `total_cost` counts.
    """
    everywhere = [1.0] * len(problem.moments)
    terms = supply_terms(problem, variables) + _running_terms(problem, variables, everywhere)
    decisions, weights, sizes = _in_units(terms)
    coarse = -(-sum(sizes) // LARGEST_SUM) or 1
    # Truncated towards zero: the sum cannot grow.
    return cp_model.LinearExpr.weighted_sum(decisions, [int(weight / coarse) for weight in weights])


def scenario_cost(problem: Problem, variables: Variables, scenario: str) -> cp_model.LinearExprT:
    """Return the variable part of the TCO if one demand scenario occurs. [objective units]"""
    shares = [1 / moment.probability if moment.scenario == scenario else 0.0 for moment in problem.moments]
    return _sum(
        problem, variables, supply_terms(problem, variables) + _running_terms(problem, variables, shares)
    )


def supply_terms(problem: Problem, variables: Variables) -> list[Term]:
    """Return the terms of purchases, rentals and retirements, with the cost of one unit. [USD]"""
    return [
        (variable, sum(sum(by_period) for by_period in charges(problem, key).values()))
        for name, charges in supply_charges().items()
        for key, variable in getattr(variables, name).items()
    ]


def change_terms(problem: Problem, variables: Variables) -> list[Term]:
    """Return the terms of starting replicas, with the expected cost of each. [USD]"""
    return [
        (variable, usd(problem, key))
        for name, usd in prices_of_changes().items()
        for key, variable in getattr(variables, name).items()
    ]


def _running_terms(problem: Problem, variables: Variables, shares: Sequence[float]) -> list[Term]:
    """Return the terms of loads and changes in every moment, weighted by its share."""
    terms: list[Term] = []
    groups = {group.name: group for group in GROUPS}
    for name, usd in prices_of_running().items():
        place = groups[name].placer(problem)
        for key, variable in members(groups[name], variables).items():
            moment = place(key).moment
            terms.append((variable, usd(problem, key) * (1.0 if moment is None else shares[moment])))
    return terms


def _sum(problem: Problem, variables: Variables, terms: Sequence[Term]) -> cp_model.LinearExprT:
    decisions, weights, sizes = _in_units(terms)
    if sum(sizes) > LARGEST_SUM:
        most = max(sizes)
        raise too_dear(problem, variables, decisions[sizes.index(most)], (most, sum(sizes)))
    return cp_model.LinearExpr.weighted_sum(decisions, weights)


def _in_units(terms: Sequence[Term]) -> tuple[list[cp_model.IntVar], list[int], list[int]]:
    """Return the decisions of terms, the cost of one of each, and their largest costs. [objective units]"""
    decisions = [variable for variable, _ in terms]
    weights = [usd_units(usd) for _, usd in terms]
    sizes = [abs(each) * max(decisions[i].proto.domain) for i, each in enumerate(weights)]
    return decisions, weights, sizes


def fixed_usd(problem: Problem) -> float:
    """Return the fixed cost of existing hosts. [USD]"""
    return sum(sum(pool.fixed_usd) for pool in problem.pools)


def unmet_demand(problem: Problem, variables: Variables, priority: int) -> cp_model.LinearExprT:
    """Return the expected unmet demand of one priority. [rate units of the finest service scale]"""
    weights = _unmet_weights(problem, priority)
    return sum(weights[cell] * variable for (cell, _), variable in variables.unmet.items() if cell in weights)


def unmet_units(problem: Problem, unmet: Mapping[tuple[int, int], int], priority: int) -> int:
    """Return the unmet demand of a solution, from its unmet units by cell and class."""
    weights = _unmet_weights(problem, priority)
    return sum(weights[cell] * units for (cell, _), units in unmet.items() if cell in weights)


def unmet_requests_per_s(problem: Problem, unmet: Mapping[tuple[int, int], int], priority: int) -> float:
    """Return the unmet demand without rounded weights: with headroom, averaged over moments. [requests/s]"""
    scales = rate_scales(problem)
    total = Fraction(0)
    for (index, _), units in unmet.items():
        cell = problem.cells[index]
        if problem.services[cell.service].priority == priority:
            rate = units / scales[cell.service].units_per_request_per_s
            total += rate * problem.moments[cell.moment].exact_weight
    return float(total / sum(moment.exact_weight for moment in problem.moments))


@memoised
def unmet_exponent(problem: Problem) -> int:
    """Return the power of ten of the unit of unmet demand: that of the finest service scale.

    It is coarser where sums would overflow 64 bits, for services whose demands differ by nine powers of ten;
    the unmet demand of the smallest services is then overstated.
    """
    scales = rate_scales(problem)
    weights = whole_weights([moment.exact_weight for moment in problem.moments])
    exponents = [scale.exponent for scale in scales.values()]
    finest = max(exponents)
    while finest > min(exponents):
        total = 0
        for cell in problem.cells:
            scale = scales[cell.service]
            units = sum(scale.demand_units(rate) for rate in cell.most_requests_per_s)
            total += weights[cell.moment] * 10 ** max(0, finest - scale.exponent) * units
        if total <= LARGEST_SUM:
            break
        finest -= 1
    return finest


def _unmet_weights(problem: Problem, priority: int) -> dict[int, int]:
    """Return the weight of a unit of unmet demand in each cell of one priority's services."""
    scales, finest = rate_scales(problem), unmet_exponent(problem)
    weights = whole_weights([moment.exact_weight for moment in problem.moments])
    return {
        index: weights[cell.moment] * 10 ** max(0, finest - scales[cell.service].exponent)
        for index, cell in enumerate(problem.cells)
        if problem.services[cell.service].priority == priority
    }
