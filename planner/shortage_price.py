r"""What a request that is not served is made to cost, where demand is too large for what can be had.

Unmet demand comes before cost, priority by priority. In large fleets each of these stages would take the time
of a whole solve, and all but the last would know no costs. So one solve weighs shortage against cost: a
request of the lowest priority costs `PRICE_RATIO` times the most that one costs to serve, one of the next
`PRICE_RATIO` times what its supply could earn with requests of lower priorities, so that no number of cheap
requests outweighs a dear one above. What it leaves unmet is then the limit for the solve that minimises cost
alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.objective import total_cost, unmet_demand
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.scaling import USD_RESOLUTION
from fleetplan.planner.variables import Variables, rate_scales

PRICE_RATIO: Final = 2.0
"""Price of an unserved request over the most that one costs to serve, so that serving is always worth it."""

LEAST_WEIGHT: Final = 16.0
"""Least weight of a rate unit of unmet demand: rounding smaller ones would put them out of order."""

LARGEST_OBJECTIVE: Final = 2**60
"""CP-SAT takes no objective that may pass 2**63; its own sums need some room. [objective units]"""


def hint_nothing(model: cp_model.CpModel, variables: Variables) -> None:
    """Begin with the plan that serves nothing: with it every part of a large model has some solution."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    unserved = {variable.index for variable in variables.unmet.values()}
    for index, proto in enumerate(model.proto.variables):
        domain = proto.domain
        variable = model.get_int_var_from_proto_index(index)
        model.add_hint(variable, domain[1] if index in unserved else domain[0])


def weighed_cost(problem: Problem, variables: Variables) -> cp_model.LinearExprT:
    """TCO and the price of unmet demand, in units as fine as fit a solver's integers."""
    units = 10 ** max(scale.exponent for scale in rate_scales(problem).values())
    cost = _flat(total_cost(problem, variables))
    prices = _prices_usd(problem)
    unmet = [_flat(unmet_demand(problem, variables, priority)) for priority in prices]
    ideal = [usd * USD_RESOLUTION / units for usd in prices.values()]
    # Where supply costs next to nothing, unmet demand may cost any multiple of it.
    raised = max(1.0, LEAST_WEIGHT / min(ideal))
    coarse = 1
    while True:
        weights = [max(1, math.ceil(raised * each / coarse)) for each in ideal]
        parts = [(1, coarse, cost), *((weight, 1, part) for weight, part in zip(weights, unmet, strict=True))]
        if sum(_largest(*part) for part in parts) < LARGEST_OBJECTIVE:
            return sum(_times(*part) for part in parts)
        # Beyond what fits, weights become equal from below: priorities then count alike.
        coarse *= 10


def rounding_of(unmet: cp_model.LinearExprT) -> int:
    """What unmet demand grows by if each part of it is rounded up by one rate unit."""
    return sum(int(each) for each in _flat(unmet).coeffs)


def _flat(expression: cp_model.LinearExprT) -> cp_model.FlatIntExpr:
    """Its variables and coefficients."""
    return cp_model.FlatIntExpr(cp_model.LinearExpr.sum([expression]))


def _prices_usd(problem: Problem) -> dict[int, float]:
    """Price of an unserved request per second by priority, the lowest priority first. [USD s]"""
    costs: dict[int, list[float]] = {}
    for service in problem.fleet.services:
        costs.setdefault(service.priority, []).extend(_request_usd(problem, service.name))
    prices: dict[int, float] = {}
    most_per_usd = 1.0
    for priority in sorted(costs, reverse=True):
        dearest, cheapest = max(costs[priority], default=1.0), min(costs[priority], default=1.0)
        # What one request's supply could serve of lower priorities must be worth less than the request.
        prices[priority] = PRICE_RATIO * most_per_usd * dearest
        most_per_usd = max(most_per_usd, prices[priority] / cheapest)
    return prices


def _times(weight: int, coarse: int, expression: cp_model.FlatIntExpr) -> cp_model.LinearExprT:
    """A weight times a sum whose coefficients are in units that are so many times coarser, rounded up."""
    coefficients = [weight * -(-each // coarse) for each in expression.coeffs]
    return cp_model.LinearExpr.weighted_sum(expression.vars, coefficients)


def _largest(weight: int, coarse: int, expression: cp_model.FlatIntExpr) -> int:
    """The most that its value may be in size."""
    bounds = (max(map(abs, variable.proto.domain)) for variable in expression.vars)
    return sum(
        abs(weight * -(-each // coarse)) * most for each, most in zip(expression.coeffs, bounds, strict=True)
    )


def _request_usd(problem: Problem, service: str) -> Iterator[float]:
    """Cost over the horizon of serving one request per second, by class, at the dearest supply. [USD s]"""
    usd = max(
        (
            max(acquisition.unit_usd) / pool.accelerators_per_unit
            for pool in problem.pools
            for acquisition in pool.acquisitions
        ),
        default=1.0,
    )
    own = [each for each in problem.candidates if each.service == service]
    for k in range(len(problem.services[service].classes)):
        least = {
            phase: min(
                (
                    each.accelerators / each.requests_per_s[k]
                    for each in own
                    if each.phase is phase and each.requests_per_s[k] > 0
                ),
                default=float("inf"),
            )
            for phase in Phase
        }
        needed = min(least[Phase.AGGREGATED], least[Phase.PREFILL] + least[Phase.DECODE])
        if needed < float("inf"):
            yield needed * usd
