r"""What a request that is not served is made to cost, where demand is too large for what can be had.

Unmet demand comes before cost, priority by priority. In large fleets each of these stages would take the time
of a whole solve, and all but the last would know no costs. So one solve weighs shortage against cost: a
request of the lowest priority costs `PRICE_RATIO` times the most that any request costs to serve, one of the
next priority `PRICE_RATIO` times the ratio of the dearest request to the cheapest more, so that no cheap
requests outweigh a dear one above. What it leaves unmet is then the limit for the solve that minimises cost
alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.objective import total_cost, unmet_demand
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.scaling import usd_units
from fleetplan.planner.variables import Variables, rate_scales

PRICE_RATIO: Final = 2.0
"""Price of an unserved request over the most that one costs to serve, so that serving is always worth it."""


def hint_nothing(model: cp_model.CpModel, variables: Variables) -> None:
    """Begin with the plan that serves nothing: with it every part of a large model has some solution."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    unserved = {variable.index for variable in variables.unmet.values()}
    for index, proto in enumerate(model.proto.variables):
        domain = proto.domain
        variable = model.get_int_var_from_proto_index(index)
        model.add_hint(variable, domain[1] if index in unserved else domain[0])


def weighed_cost(problem: Problem, variables: Variables) -> cp_model.LinearExprT:
    """TCO and the price of unmet demand. [objective units]"""
    costs = [usd for service in problem.services for usd in _request_usd(problem, service)]
    cheapest, dearest = min(costs, default=1.0), max(costs, default=1.0)
    units = 10 ** max(scale.exponent for scale in rate_scales(problem).values())
    total = total_cost(problem, variables)
    weight = max(1.0, usd_units(PRICE_RATIO * dearest) / units)
    for priority in sorted({each.priority for each in problem.fleet.services}, reverse=True):
        total += math.ceil(weight) * unmet_demand(problem, variables, priority)
        weight = math.ceil(weight) * PRICE_RATIO * dearest / cheapest
    return total


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
