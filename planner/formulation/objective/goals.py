r"""Objectives besides TCO: what a plan is best at first, with TCO to choose among equals.

With the load w, the replicas n and the unmet demand u of a moment m, h its share of the horizon's hours times
its probability, the accelerators u that stand, and P the periods::

    served        max sum h g[s] (D - u) / (1 + headroom[s]) / P        requests/s, each weighted with g[s]
    energy        min sum h' (kW[c] - a[c] idle) PUE w / (1 + headroom[s]) + sum h' idle PUE u
                                                                        kWh, with the hours h' of the moment;
                                                                         by served rate (objective/traffic.py)
    carbon        min of the energy with the grid's kg CO2 a kWh        kg
    accelerators  min sum h a'[c] n / P                                 accelerators, the mean of the periods
    least-regret  min regret (constraints/regret.py)                    USD

g[s] is what the fleet file says a request counts, else 1 / priority. Energy is that of the served traffic
and of what stands idle, paid for by a rent or not. Each is a whole number of objective units in the model and
a figure with a unit outside of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.bounds import (
    served_cells,
    units_after_loss,
    units_that_serve_everything,
)
from fleetplan.planner.formulation.objective.tco import Term
from fleetplan.planner.formulation.objective.traffic import traffic_sum
from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.formulation.scaling import LARGEST_SUM, exact_planned_ratio
from fleetplan.planner.formulation.variables import LoadKey, Variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import load_units
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.problem.power_draw import idle_kwh, load_kw
from fleetplan.planner.problem.supply import SupplyPool
from fleetplan.planner.units import USD_RESOLUTION, exact

MOST_ACCELERATOR_UNITS: Final = 10**6
"""Objective units an accelerator, where the weights of the moments have no smaller common unit."""

ROUNDING_RATIO: Final = 1e-5
"""Share of the energy or carbon within which two plans draw the same: some load units."""

USED_UNITS: Final = 10**16
"""Objective units of energy or carbon for all that could be drawn: 1e-8 of a demand, a rate unit, is some
units of it, and sums stay within 64 bits."""

SERVED_SCALE_RATIO: Final = 1e-6
"""What a gap of served demand is a share of at least, over the whole demand: what is served is that less what
is unmet, and near 0 the floats of both leave 1e-16 of it."""

SERVED_DIGITS: Final = 6
"""The smallest weight of a rate unit of served demand has so many digits: coarser ones order services
wrongly, and what a plan is said to reach is then off by more than the solver's figures may be."""


@dataclass(frozen=True, slots=True)
class Goal:
    """An objective besides TCO, of one problem.

    Attributes
    ----------
    name : str
        As the fleet file has it.
    unit : str
        Of its figures.
    resolution : int
        Objective units for one of them.
    most : float
        What would be reached if nothing were minimised: the whole demand, for `served`; 0 elsewhere.
    scale : float
        What a gap is a share of at least: a regret near 0 is compared with the cost of a scenario, served
        demand near 0 with a little of the whole demand.
    unproven : float
        By how much more a plan may miss the best: a regret counts from the best plans that were found for
        each scenario alone, and there may be cheaper ones.
    provable : bool
        Whether what is proven in the model holds: not of a regret that counts from a plan for one scenario
        that may serve too little, and cost too little.
    """

    name: str
    unit: str
    resolution: int
    most: float = 0.0
    scale: float = 0.0
    unproven: float = 0.0
    provable: bool = True

    @property
    def rising(self) -> bool:
        """Whether more of it is better."""
        return self.name == "served"

    def figure(self, units: float) -> float:
        """Convert a value of the model's minimised objective to the unit of the goal."""
        value = units / self.resolution
        return self.most - value if self.rising else value

    def rounding_units(self, units: float) -> float:
        """How far plans may be apart that reach the same: whole load units tell them apart. [objective units]

        Only energy and carbon are counted by load unit.
        """
        if self.name not in ("energy", "carbon"):
            return 0.0
        return ROUNDING_RATIO * abs(self.figure(units)) * self.resolution

    def gap(self, value: float, bound: float) -> float:
        """How far a plan may be from the best one, as a share of the larger figure."""
        largest = max(abs(value), abs(bound), self.scale)
        return abs(bound - value) / largest if largest > 0 else 0.0

    def told_gap(self, value: float, bound: float) -> float:
        """The same with what the search of this goal cannot close."""
        return self.gap(value + self.unproven, bound)


UNITS: Final[Mapping[str, str]] = {
    "served": "weighted requests/s",
    "energy": "kWh",
    "carbon": "kg CO2",
    "accelerators": "accelerators",
    "least-regret": "USD",
}
"""Units of the objectives besides TCO."""


def goal_of(problem: Problem) -> Goal | None:
    """Return the goal that a problem optimises before TCO; None where TCO comes first."""
    if problem.minimises_regret:
        best = (problem.scenario_optima or {}).values()
        least, unproven = min(abs(each.usd) for each in best), max(each.usd - each.bound_usd for each in best)
        return Goal(
            "least-regret",
            UNITS["least-regret"],
            USD_RESOLUTION,
            scale=least,
            unproven=unproven,
            provable=all(each.unmet_is_least for each in best),
        )
    name = problem.fleet.objective
    if name == "tco":
        return None
    if name == "served":
        whole = _whole_demand(problem)
        return Goal(name, UNITS[name], _served_resolution(problem), whole, SERVED_SCALE_RATIO * whole)
    if name == "accelerators":
        return Goal(name, UNITS[name], _accelerator_resolution(problem))
    return Goal(name, UNITS[name], _used_resolution(problem))


def goal_units(problem: Problem, variables: Variables, goal: Goal) -> cp_model.LinearExprT:
    """The goal as the sum that is minimised. [objective units]"""
    return _SUMS[goal.name](problem, variables, goal)


def energy_kwh_per_load_unit(problem: Problem, key: LoadKey) -> float:
    """Expected energy above idle of one load unit over the hours of its moment, at the site's meter. [kWh]"""
    c, k, p, cell = key
    candidate, moment = problem.candidates[c], problem.moments[problem.cells[cell].moment]
    if candidate.power_kw is None:
        raise ValueError(f"{candidate.label} has no power figure")
    pue = problem.regions[problem.pools[p].region].pue
    planned_ratio = problem.services[candidate.service].planned_ratio
    hours = problem.fleet.calendar.hours * moment.weight
    return load_kw(problem, candidate) * pue * hours / load_units(problem, c, k) / planned_ratio


def grid_kg_per_kwh(problem: Problem, region: str, period: int) -> float:
    """Carbon intensity of a region's grid in a period. [kg CO2/kWh]"""
    grid = problem.regions[region].grid_kg_co2_per_kwh
    if grid is None:
        raise ValueError(f"{region} has no carbon intensity")
    return grid[period]


def _idle_by_period(problem: Problem, name: str, pool: SupplyPool) -> tuple[float, ...]:
    """Energy or carbon of one unit of a pool that runs nothing. [kWh or kg CO2]"""
    kwh = idle_kwh(problem, pool, pool.accelerators_per_unit)
    periods = range(len(problem.periods))
    if name == "carbon" and kwh:
        return tuple(kwh * grid_kg_per_kwh(problem, pool.region, q) for q in periods)
    return tuple(kwh for _ in periods)


def _idle_of_existing(problem: Problem, name: str) -> float:
    """Energy or carbon of all units that stand before anything is decided, idle. [kWh or kg CO2]"""
    return sum(
        pool.existing_units * sum(_idle_by_period(problem, name, pool))
        for pool in problem.pools
        if pool.region in problem.regions
    )


def _idle_terms(problem: Problem, variables: Variables, goal: Goal) -> Iterator[Term]:
    """Units that come and go, with what one of each draws idle. [kWh or kg CO2]"""
    for (p, a, ordered), units in variables.acquired.items():
        idle = _idle_by_period(problem, goal.name, problem.pools[p])
        acquisition = problem.pools[p].acquisitions[a]
        yield units, sum(each for q, each in enumerate(idle) if acquisition.serves(ordered, q))
    for (p, q), units in variables.retired.items():
        yield units, -sum(_idle_by_period(problem, goal.name, problem.pools[p])[q:])


def _used_per_load_unit(problem: Problem, name: str, key: LoadKey) -> float:
    """Energy [kWh] or carbon [kg CO2] of one load unit."""
    kwh = energy_kwh_per_load_unit(problem, key)
    if name == "energy":
        return kwh
    period = problem.moments[problem.cells[key[3]].moment].period
    return kwh * grid_kg_per_kwh(problem, problem.pools[key[2]].region, period)


def _energy(problem: Problem, variables: Variables, goal: Goal) -> cp_model.LinearExprT:
    traffic = traffic_sum(problem, variables, partial(_used_per_load_unit, problem, goal.name))
    terms = [*traffic.terms, *_idle_terms(problem, variables, goal)]
    weights = [round(each * goal.resolution) for _, each in terms]
    decided = cp_model.LinearExpr.weighted_sum([variable for variable, _ in terms], weights)
    constant = traffic.constant + _idle_of_existing(problem, goal.name)
    return decided + round(constant * goal.resolution)


def _accelerators(problem: Problem, variables: Variables, goal: Goal) -> cp_model.LinearExprT:
    weights = []
    for c, p, m in variables.replicas:
        footprint = problem.pools[p].footprint_accelerators(problem.candidates[c].accelerators)
        share = problem.moments[m].exact_weight / len(problem.periods)
        weights.append(round(footprint * share * goal.resolution))
    return cp_model.LinearExpr.weighted_sum(list(variables.replicas.values()), weights)


def _regret(_: Problem, variables: Variables, __: Goal) -> cp_model.LinearExprT:
    return variables.regret["largest"]


def _unserved(problem: Problem, variables: Variables, goal: Goal) -> cp_model.LinearExprT:
    scales = rate_scales(problem)
    weights = []
    for cell_index, _ in variables.unmet:
        cell = problem.cells[cell_index]
        per_unit = exact(_weight(problem, cell_index)) / scales[cell.service].units_per_request_per_s
        planned_ratio = exact_planned_ratio(problem.services[cell.service].headroom)
        weights.append(round(per_unit / planned_ratio * goal.resolution))
    return cp_model.LinearExpr.weighted_sum(list(variables.unmet.values()), weights)


_SUMS: Final[Mapping[str, Callable[[Problem, Variables, Goal], cp_model.LinearExprT]]] = {
    "served": _unserved,
    "energy": _energy,
    "carbon": _energy,
    "accelerators": _accelerators,
    "least-regret": _regret,
}


def _weight(problem: Problem, cell_index: int) -> float:
    """Weight of a request/s of a cell in the mean over the horizon."""
    cell = problem.cells[cell_index]
    share = problem.moments[cell.moment].weight / len(problem.periods)
    return problem.services[cell.service].served_weight * share


def _whole_demand(problem: Problem) -> float:
    """Demand of all cells. [weighted requests/s]"""
    return sum(_weight(problem, i) * sum(cell.requests_per_s) for i, cell in enumerate(problem.cells))


def _accelerator_resolution(problem: Problem) -> int:
    """Objective units an accelerator: a common unit of the moments' shares, so that equal plans are equal."""
    shares = (moment.exact_weight / len(problem.periods) for moment in problem.moments)
    return min(math.lcm(*(share.denominator for share in shares)), MOST_ACCELERATOR_UNITS)


@memoised
def _used_resolution(problem: Problem) -> int:
    """Objective units a kWh, or a kg of CO2: `USED_UNITS` for all that may serve or stand idle."""
    name, served = problem.fleet.objective, served_cells(problem)
    total = _idle_of_existing(problem, name)
    for p, pool in enumerate(problem.pools):
        if pool.acquisitions and pool.region in problem.regions:
            offers = len(pool.acquisitions) * len(problem.periods)
            most = max(units_that_serve_everything(problem, served, p), units_after_loss(problem, p))
            total += most * offers * sum(_idle_by_period(problem, name, pool))
    for i, cell in enumerate(problem.cells):
        planned_ratio = problem.services[cell.service].planned_ratio
        for k, rate in enumerate(cell.most_requests_per_s):
            for c, p in problem.slots(cell):
                if problem.may_serve((c, p), k, cell.region):
                    replicas = rate * planned_ratio / problem.candidates[c].requests_per_s[k]
                    load = replicas * load_units(problem, c, k)
                    total += (load + 1) * _used_per_load_unit(problem, name, (c, k, p, i))
    return int(10 ** max(math.floor(math.log10(USED_UNITS / total)), 0)) if total > 0 else 1


def _served_resolution(problem: Problem) -> int:
    """Objective units of a weighted request/s: as fine as 64 bits allow, and no finer than weights need."""
    smallest = min(
        (
            _weight(problem, i) / problem.services[cell.service].planned_ratio
            for i, cell in enumerate(problem.cells)
            if _weight(problem, i) > 0
        ),
        default=1.0,
    )
    digits = SERVED_DIGITS + max(math.ceil(-math.log10(smallest)), 0)
    finest = max((scale.exponent for scale in rate_scales(problem).values()), default=0) + digits
    # Demand is rounded up by cell and class; a factor of two is more than that.
    largest = math.floor(math.log10(LARGEST_SUM / max(2 * _whole_demand(problem), 1.0)))
    return int(10 ** max(min(finest, largest), 0))
