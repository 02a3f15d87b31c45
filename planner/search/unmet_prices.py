r"""Prices of unmet demand, for fleets that cannot serve all of it.

Unmet demand comes before cost, priority by priority. For large fleets, one stage per priority would take the
time of a whole solve each, and only the last would see costs. Instead, one solve weighs unmet demand against
cost, and its unmet demand limits the solve that minimises cost alone.

*Strict* prices let no number of cheap requests outweigh an expensive request of a higher priority. They reach
a million times the cost of a request; beside them, the cost of a plan would be noise. Linear relaxations of
the whole model find lower prices that suffice. The first, at strict prices, returns each priority's unmet
demand and the value of the others' supply to it. The second tests whether all demand can be served, which
tolerances at strict prices may hide. The third minimises cost with little more unmet, and returns the
marginal cost of serving. The highest priority with unmet demand is priced at `PRICE_RATIO` times that cost,
higher priorities in proportion to the value of their supply, lower ones below it.
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
"""Price of an unserved request over the marginal cost of serving it; also of one priority over the next where
their requests cost the same."""

LITTLE_RATIO: Final = 1e-3
"""Share of a priority's demand that may stay unmet beyond the least when its marginal cost is computed:
exactly at the least, supply ends and that cost is unbounded."""

SERVED_RATIO: Final = 1e-6
"""Unmet share below which the linear relaxation counts a demand as served."""

LEAST_WEIGHT: Final = 16.0
"""Least weight of a rate unit of unmet demand: smaller weights would lose their order to rounding."""

LARGEST_OBJECTIVE: Final = 2**60
"""Limit of the weighted objective: CP-SAT rejects 2**63, and its own sums need room. [objective units]"""


def hint_nothing(model: cp_model.CpModel, variables: Variables) -> None:
    """Hint the plan that serves nothing: it gives every block of a large model a solution."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    unserved = {variable.index for variable in variables.unmet.values()}
    for index, proto in enumerate(model.proto.variables):
        domain = proto.domain
        variable = model.get_int_var_from_proto_index(index)
        model.add_hint(variable, domain[1] if index in unserved else domain[0])


@dataclass(frozen=True, slots=True, eq=False)
class LeastShortage:
    """Least unmet demand by priority from a linear relaxation, with its dual prices.

    Attributes
    ----------
    lacking : tuple[int, ...]
        Priorities with unmet demand beyond rounding, highest first.
    impossible : bool
        Whether no plan serves all demand, within floating-point tolerances.
    limits : dict[int, int]
        Slightly more than the least unmet demand of each priority. [units of unmet demand]
    dearest : dict[int, float]
        Largest value of served demand's supply to priorities that lack it, by priority. [objective units]
    cheapest : dict[int, float]
        Least such value of unserved demand. [objective units]
    all_served_duals : FloatArray or None
        Dual prices of all constraints when all demand is served at least cost; None where the relaxation
        cannot serve all demand. [objective units]
    """

    lacking: tuple[int, ...]
    impossible: bool
    limits: Mapping[int, int]
    dearest: Mapping[int, float]
    cheapest: Mapping[int, float]
    all_served_duals: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class UnmetPrices:
    """Prices of unmet demand by priority.

    Attributes
    ----------
    by_priority : dict[int, float]
        Price of a rate unit of unmet demand, lowest priority first. [objective units]
    row_duals : FloatArray or None
        Dual price of each constraint of the model at the least cost with little more unmet; None with strict
        prices. [objective units]
    """

    by_priority: Mapping[int, float]
    row_duals: FloatArray | None = None


def least_shortage(planning: PlanningModel, stop: Stop, limit_s: float) -> LeastShortage | None:
    """Compute the least unmet demand, and whether all demand can be served, by linear relaxations.

    Parameters
    ----------
    planning : PlanningModel
        Model in which demand may stay unmet; its objective changes.
    stop, limit_s : Stop, float
        Stop signal and time limit. [s]
    """
    strict = strict_prices(planning.problem)
    weighing = weigh(planning, strict)
    # Leave cost out: beside strict prices it is below the tolerances of a linear solver, and with it the
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
    """Compute prices at which unmet demand comes before cost.

    Parameters
    ----------
    planning : PlanningModel
        Model in which demand may stay unmet.
    least : LeastShortage or None
        Least unmet demand; None makes prices strict.
    stop, limit_s : Stop, float
        Stop signal and time limit of the linear relaxation; prices are strict without it. [s]
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
    # The highest priority with unmet demand: the value of scarce supply is what it serves there.
    marginal = min(least.lacking, default=next(iter(strict)))
    # Where serving costs nothing, any price works.
    scale = min(1.0, PRICE_RATIO * last[marginal] / strict[marginal]) or 1.0
    prices: dict[int, float] = {}
    for priority, highest in strict.items():
        if priority > marginal:
            # At most half the value of its supply, so that it is not preferred.
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
        Their sum, in units that fit the solver's integers.
    coarse : int
        Objective units of TCO per unit of the sum.
    prices : dict[int, int]
        Price of a unit of each unmet-demand variable, by index. [units of the sum]
    """

    objective: cp_model.LinearExprT
    coarse: int
    prices: Mapping[int, int]

    def shortage(self, values: Sequence[int] | NDArray[np.int64]) -> int:
        """Return the price of a plan's unmet demand. [units of the sum]

        Parameters
        ----------
        values : sequence of int
            Values of all variables of the model.
        """
        return sum(price * int(values[index]) for index, price in self.prices.items())

    def rounding(self) -> int:
        """Return the price of one more rate unit of every unmet demand. [units of the sum]"""
        return sum(self.prices.values())

    def cost(self, value: float, shortage: int) -> float:
        """Return the TCO of a plan, given its value and shortage. [objective units]

        Given a bound on the value, returns a TCO bound for all plans that leave no more unmet.
        """
        return self.coarse * (value - shortage)


def weigh(planning: PlanningModel, prices: Mapping[int, float]) -> Weighing:
    """Combine TCO and the price of unmet demand in the finest units that fit the solver's integers.

    Parameters
    ----------
    planning : PlanningModel
        Model in which demand may stay unmet.
    prices : dict[int, float]
        Price of a rate unit of unmet demand by priority. [objective units]
    """
    cost = flat(planning.total_cost)
    unmet = [flat(unmet_demand(planning.problem, planning.variables, priority)) for priority in prices]
    largest = [[max(map(abs, variable.proto.domain)) for variable in part.vars] for part in (cost, *unmet)]
    # Where supply costs next to nothing, unmet demand may cost any multiple of it.
    raised = max(1.0, LEAST_WEIGHT / min(prices.values()))
    coarse = 1
    while True:
        # Beyond the range of integers, the lowest weights become equal: those priorities then count alike.
        weights = [max(1, math.ceil(raised * each / coarse)) for each in prices.values()]
        # Costs are rounded down, so a bound on their sum also bounds the exact costs.
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
    """Return strict prices per rate unit, lowest priority first.

    No number of units of one priority outweighs a unit of a higher priority.

    Returns
    -------
    dict[int, float]
        Of priorities with demand. [objective units]
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
    """Return the growth of unmet demand if each part is rounded up by one rate unit."""
    return sum(int(each) for each in flat(unmet).coeffs)


def flat(expression: cp_model.LinearExprT) -> cp_model.FlatIntExpr:
    """Flatten a linear expression into variables and coefficients."""
    return cp_model.FlatIntExpr(cp_model.LinearExpr.sum([expression]))


def _most(coefficients: Sequence[int], largest: Sequence[int]) -> int:
    """Return the largest absolute value of a sum, given the largest values of its variables."""
    return sum(abs(each) * most for each, most in zip(coefficients, largest, strict=True))


def _request_usd(problem: Problem, service: str) -> Iterator[float]:
    """Yield the cost over the horizon of serving one request/s of each class, at most. [USD s]

    The supply is the most expensive one, the configuration the most efficient.
    """
    usd = max(
        (
            max(acquisition.unit_usd) / pool.accelerators_per_unit
            for pool in problem.pools
            for acquisition in pool.acquisitions
        ),
        default=0.0,
    )
    if usd <= 0:
        # Where supply costs nothing, prices only rank priorities.
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
