r"""What a request that is not served is made to cost, where demand is too large for what can be had.

Unmet demand comes before cost, priority by priority. In large fleets each of these stages would take the time
of a whole solve, and all but the last would know no costs. So one solve weighs shortage against cost, and
what it leaves unmet is the limit for the solve that minimises cost alone.

*Strict* prices let no number of cheap requests of a priority, whatever they need, outweigh a dear one above.
They are up to a million times what a request costs, and beside them a plan's cost would be noise. Linear
relaxations of the whole model say how much less will do. The first, at strict prices, says what each priority
lacks and what the supply of the others is worth to those that lack it; one beside it whether everything can
be served, which tolerances at such prices may hide. The last looks for the least cost that leaves little more
unmet, and says what the last requests served cost. The price of the highest priority that lacks something is
`PRICE_RATIO` times that; those above cost as many times what their supply is worth, and those below less than
theirs is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, Variables, rate_scales, unmet_demand
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.search.blocks.linear import linear_optimum, linear_outcomes
from fleetplan.planner.search.blocks.roles import indicator_variables
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.units import USD_RESOLUTION

PRICE_RATIO: Final = 2.0
"""Price of an unserved request over what the last of its priority costs, so that serving is worth it; and of
one priority over the next, where their requests cost the same."""

LITTLE_RATIO: Final = 1e-3
"""Share of the demand of a priority that may stay unmet beyond the least where it is asked what the last
requests cost: at the very least, where supply ends, there is no end to that."""

SERVED_RATIO: Final = 1e-6
"""Unmet share of a demand that is served for all that a linear relaxation knows."""

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


@dataclass(frozen=True, slots=True, eq=False)
class LeastShortage:
    """What a linear relaxation leaves unmet where higher priorities come first, and what that says of prices.

    Attributes
    ----------
    lacking : tuple[int, ...]
        Priorities that lack more than a little, highest first.
    impossible : bool
        Whether no plan serves everything, within the tolerances of floating point.
    limits : dict[int, int]
        A little more than each priority lacks. [units of unmet demand]
    dearest : dict[int, float]
        What the supply of served demand is worth to those that lack it, by priority, at the most.
        [objective units]
    cheapest : dict[int, float]
        The same of demand that is not served, at the least. [objective units]
    all_served_duals : FloatArray or None
        Dual prices of all constraints where everything is served at least cost; None where a linear
        relaxation cannot serve everything. [objective units]
    """

    lacking: tuple[int, ...]
    impossible: bool
    limits: Mapping[int, int]
    dearest: Mapping[int, float]
    cheapest: Mapping[int, float]
    all_served_duals: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class UnmetPrices:
    """What unmet demand is made to cost.

    Attributes
    ----------
    by_priority : dict[int, float]
        Price of a rate unit of unmet demand, lowest priority first. [objective units]
    row_duals : FloatArray or None
        What one more unit of the limit of each constraint of the model is worth where the least cost leaves
        little more unmet; None beside strict prices. [objective units]
    """

    by_priority: Mapping[int, float]
    row_duals: FloatArray | None = None


def least_shortage(planning: PlanningModel, stop: Stop, limit_s: float) -> LeastShortage | None:
    """What cannot be served, by linear relaxations: of what is lacking, and of serving everything.

    Parameters
    ----------
    planning : PlanningModel
        In which demand may stay unmet; its objective changes.
    stop, limit_s : Stop, float
        When it is given up. [s]
    """
    strict = strict_prices(planning.problem)
    weighing = weigh(planning, strict)
    # Nothing of cost: beside strict prices it is less than the tolerances of a linear solver, and with it the
    # relaxation takes up to six times as long (benchmarks/RESULTS.md).
    unserved = [planning.model.get_int_var_from_proto_index(index) for index in weighing.prices]
    planning.model.minimize(cp_model.LinearExpr.weighted_sum(unserved, list(weighing.prices.values())))
    all_served = planning.model.clone()
    for variable in planning.variables.unmet.values():
        all_served.get_int_var_from_proto_index(variable.index).proto.domain[1] = 0
    all_served.minimize(planning.total_cost)
    models, indicators = [planning.model, all_served], indicator_variables(planning.variables)
    outcomes = linear_outcomes(models, planning.continuous, stop, limit_s, indicators)
    if outcomes is None or outcomes[0].optimum is None:
        return None
    best, served = outcomes[0].optimum, outcomes[1].optimum
    limits, dearest, cheapest, lacking = {}, {}, {}, []
    for priority in sorted(strict):
        unmet = flat(unmet_demand(planning.problem, planning.variables, priority))
        columns = np.array([variable.index for variable in unmet.vars])
        units, most = np.array(unmet.coeffs), np.array([each.proto.domain[1] for each in unmet.vars])
        left = best.values[columns]
        worth = weighing.coarse * best.worth[columns] / units
        dearest[priority] = float(worth[left <= SERVED_RATIO * most].max(initial=0.0))
        cheapest[priority] = float(worth[left >= (1 - SERVED_RATIO) * most].min(initial=math.inf))
        little = LITTLE_RATIO * float(units @ most)
        if units @ left > little:
            lacking.append(priority)
        limits[priority] = math.floor(units @ left + little)
    return LeastShortage(
        lacking=tuple(lacking),
        impossible=outcomes[1].infeasible,
        limits=limits,
        dearest=dearest,
        cheapest=cheapest,
        all_served_duals=None if served is None else served.row_duals,
    )


def prices_of_unmet(
    planning: PlanningModel, least: LeastShortage | None, stop: Stop, limit_s: float
) -> UnmetPrices:
    """Prices at which unmet demand comes before cost.

    Parameters
    ----------
    planning : PlanningModel
        In which demand may stay unmet.
    least : LeastShortage or None
        What cannot be served. Where that is not known, prices are strict.
    stop, limit_s : Stop, float
        When the linear relaxation is given up, and strict prices are taken. [s]
    """
    strict = strict_prices(planning.problem)
    if least is None:
        return UnmetPrices(strict)
    lenient, limits = planning.model.clone(), {}
    for priority, most in least.limits.items():
        limits[priority] = len(lenient.proto.constraints)
        lenient.add(unmet_demand(planning.problem, planning.variables, priority) <= most)
    lenient.minimize(planning.total_cost)
    indicators = indicator_variables(planning.variables)
    nearly = linear_optimum(lenient, planning.continuous, stop, limit_s, indicators)
    if nearly is None:
        return UnmetPrices(strict)
    last = {priority: abs(float(nearly.row_duals[row])) for priority, row in limits.items()}
    # The highest priority that lacks something: what supply is left is worth what it serves of that.
    marginal = min(least.lacking, default=next(iter(strict)))
    # Where serving costs nothing, any price will do.
    scale = min(1.0, PRICE_RATIO * last[marginal] / strict[marginal]) or 1.0
    prices: dict[int, float] = {}
    for priority, highest in strict.items():
        if priority > marginal:
            # Half of what its supply is worth, at the most: it must not be preferred.
            wanted = max(scale * highest, min(highest, scale * least.cheapest[priority] / PRICE_RATIO))
        elif priority == marginal:
            wanted = scale * highest
        else:
            worth_more = max(scale * least.dearest[priority], last[priority], *prices.values())
            wanted = min(highest, PRICE_RATIO * worth_more)
        prices[priority] = wanted
    return UnmetPrices(prices, nearly.row_duals[: len(planning.model.proto.constraints)])


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """TCO and the price of unmet demand as one objective.

    Attributes
    ----------
    objective : LinearExprT
        The sum of both, in units that fit a solver's integers.
    coarse : int
        Objective units of TCO that one of these stands for.
    prices : dict[int, int]
        Price of a unit of the variables of unmet demand, by their indices. [units of the sum]
    """

    objective: cp_model.LinearExprT
    coarse: int
    prices: Mapping[int, int]

    def shortage(self, values: Sequence[int] | NDArray[np.int64]) -> int:
        """Price of what a plan leaves unmet. [units of the sum]

        Parameters
        ----------
        values : sequence of int
            Of all variables of the model.
        """
        return sum(price * int(values[index]) for index, price in self.prices.items())

    def rounding(self) -> int:
        """Price of one rate unit more of all unmet demand. [units of the sum]"""
        return sum(self.prices.values())

    def cost(self, value: float, shortage: int) -> float:
        """TCO of a plan by its value and shortage. [objective units]

        Of a bound on the value: a bound on the TCO of every plan that leaves no more unmet, as these could be
        worth no less.
        """
        return self.coarse * (value - shortage)


def weigh(planning: PlanningModel, prices: Mapping[int, float]) -> Weighing:
    """TCO and the price of unmet demand, in units as fine as fit a solver's integers.

    Parameters
    ----------
    planning : PlanningModel
        In which demand may stay unmet.
    prices : dict[int, float]
        Of a rate unit of unmet demand by priority. [objective units]
    """
    cost = flat(planning.total_cost)
    unmet = [flat(unmet_demand(planning.problem, planning.variables, priority)) for priority in prices]
    largest = [[max(map(abs, variable.proto.domain)) for variable in part.vars] for part in (cost, *unmet)]
    # Where supply costs next to nothing, unmet demand may cost any multiple of it.
    raised = max(1.0, LEAST_WEIGHT / min(prices.values()))
    coarse = 1
    while True:
        # Beyond what fits, weights become equal from below: priorities then count alike.
        weights = [max(1, math.ceil(raised * each / coarse)) for each in prices.values()]
        # Costs are rounded down: a bound on their sum is then one on what they are rounded from.
        kept = [int(each) // coarse for each in cost.coeffs]
        priced = [
            [weight * int(each) for each in part.coeffs] for weight, part in zip(weights, unmet, strict=True)
        ]
        if sum(map(_most, (kept, *priced), largest)) < LARGEST_OBJECTIVE:
            break
        coarse *= 10
    by_index = {
        variable.index: each
        for part, own in zip(unmet, priced, strict=True)
        for variable, each in zip(part.vars, own, strict=True)
    }
    sums = map(cp_model.LinearExpr.weighted_sum, [part.vars for part in (cost, *unmet)], (kept, *priced))
    return Weighing(cp_model.LinearExpr.sum(list(sums)), coarse, by_index)


def strict_prices(problem: Problem) -> dict[int, float]:
    """Price of a rate unit of unmet demand by priority, lowest first: no number of them outweighs one above.

    Returns
    -------
    dict[int, float]
        Of the priorities that ask for something. [objective units]
    """
    costs: dict[int, list[float]] = {}
    asking = {cell.service for cell in problem.cells}
    for service in (each for each in problem.fleet.services if each.name in asking):
        costs.setdefault(service.priority, []).extend(_request_usd(problem, service.name))
    rate_units = 10 ** max(scale.exponent for scale in rate_scales(problem).values())
    prices: dict[int, float] = {}
    most_per_usd = 1.0
    for priority in sorted(costs, reverse=True):
        dearest, cheapest = max(costs[priority], default=1.0), min(costs[priority], default=1.0)
        # What one request's supply could serve of lower priorities must be worth less than the request.
        usd = PRICE_RATIO * most_per_usd * dearest
        prices[priority] = usd * USD_RESOLUTION / rate_units
        most_per_usd = max(most_per_usd, usd / cheapest)
    return prices


def rounding_of(unmet: cp_model.LinearExprT) -> int:
    """What unmet demand grows by if each part of it is rounded up by one rate unit."""
    return sum(int(each) for each in flat(unmet).coeffs)


def flat(expression: cp_model.LinearExprT) -> cp_model.FlatIntExpr:
    """Variables and coefficients of a sum."""
    return cp_model.FlatIntExpr(cp_model.LinearExpr.sum([expression]))


def _most(coefficients: Sequence[int], largest: Sequence[int]) -> int:
    """The most that a sum may be in size, by the most that its variables may be."""
    return sum(abs(each) * most for each, most in zip(coefficients, largest, strict=True))


def _request_usd(problem: Problem, service: str) -> Iterator[float]:
    """Cost over the horizon of serving one request per second, by class, at the dearest supply. [USD s]"""
    usd = max(
        (
            max(acquisition.unit_usd) / pool.accelerators_per_unit
            for pool in problem.pools
            for acquisition in pool.acquisitions
        ),
        default=0.0,
    )
    if usd <= 0:
        # Prices only rank where supply costs nothing.
        usd = 1.0
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
