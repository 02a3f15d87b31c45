r"""Goals besides TCO: optimised first, with TCO as the second objective.

With load w, replicas n and unmet demand u of a moment m, h its share of the horizon's hours times its
probability, installed accelerators u, and P the number of periods::

    served        max sum h g[s] (D - u) / (1 + headroom[s]) / P        requests/s, each weighted with g[s]
    energy        min sum h' (kW[c] - a[c] idle) PUE w / (1 + headroom[s]) + sum h' idle PUE u
                                                                        kWh, with the hours h' of the moment;
                                                                         by served rate (objective/traffic.py)
    carbon        min of the energy with the grid's kg CO2 a kWh        kg
    accelerators  min sum h a'[c] n / P                                 accelerators, the mean of the periods
    least-regret  min regret (constraints/regret.py)                    USD

g[s] is the weight of a request in the fleet file, or 1 / priority. Energy covers served traffic and idle
accelerators, whether or not a rent pays for it. Goals are integers in objective units in the model, and
numbers with a unit elsewhere.
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
"""Most objective units per accelerator, where the moments' weights have no smaller common unit."""

ROUNDING_RATIO: Final = 1e-5
"""Relative difference of energy or carbon below which plans count as equal: a few load units."""

USED_UNITS: Final = 10**16
"""Objective units of the largest possible energy or carbon: a rate unit, 1e-8 of a demand, is some of them,
and sums stay within 64 bits."""

FINE_WEIGHT: Final = 10**5
"""Least objective units of a rate unit to sum up what is served: rounding them changes it by 5e-6. If a rate
unit has fewer, the draw of the whole demand is exact, and that of unmet demand is rounded."""

SERVED_SCALE_RATIO: Final = 1e-6
"""Least base of a gap of served demand, as a share of the whole demand: served demand is demand less unmet
demand, and near 0 float noise of 1e-16 of the demand remains."""

SERVED_DIGITS: Final = 6
"""Digits of the smallest weight of a rate unit of served demand: fewer would misorder services and make the
reported value less accurate than the solver's."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal: an objective besides TCO, for one problem.

    Attributes
    ----------
    name : str
        Name in the fleet file.
    unit : str
        Unit of its values.
    resolution : int
        Objective units per unit of the goal.
    most : float
        Value if nothing were minimised: the whole demand for `served`; 0 otherwise.
    scale : float
        Least base of a gap: the cost of a scenario for a regret near 0, a little of the whole demand for
        served demand near 0.
    unproven : float
        Additional amount by which a plan may miss the optimum: regret is relative to the best plans found for
        each scenario, and cheaper ones may exist.
    provable : bool
        Whether bounds of the model are valid: not for a regret relative to a plan that serves too little and
        therefore costs too little.
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
        """Return whether more is better."""
        return self.name == "served"

    def figure(self, units: float) -> float:
        """Convert a value of the minimised objective to the unit of the goal."""
        value = units / self.resolution
        return self.most - value if self.rising else value

    def rounding_units(self, units: float) -> float:
        """Return the difference below which plans count as equal, due to whole load units. [objective units]

        Only energy and carbon are counted by load unit.
        """
        if self.name not in ("energy", "carbon"):
            return 0.0
        return ROUNDING_RATIO * abs(self.figure(units)) * self.resolution

    def gap(self, value: float, bound: float) -> float:
        """Return the gap to the best plan, as a share of the larger value."""
        largest = max(abs(value), abs(bound), self.scale)
        return abs(bound - value) / largest if largest > 0 else 0.0

    def told_gap(self, value: float, bound: float) -> float:
        """Return the gap including what this goal's search cannot close."""
        return self.gap(value + self.unproven, bound)


UNITS: Final[Mapping[str, str]] = {
    "served": "weighted requests/s",
    "energy": "kWh",
    "carbon": "kg CO2",
    "accelerators": "accelerators",
    "least-regret": "USD",
}
"""Units of the goals."""


def goal_of(problem: Problem) -> Goal | None:
    """Return the goal that a problem optimises before TCO; None if TCO comes first."""
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
    """Return the goal as the sum to minimise. [objective units]"""
    return _SUMS[goal.name](problem, variables, goal)


def energy_kwh_per_load_unit(problem: Problem, key: LoadKey) -> float:
    """Return the expected energy above idle of one load unit over its moment, at the site's meter. [kWh]"""
    c, k, p, cell = key
    candidate, moment = problem.candidates[c], problem.moments[problem.cells[cell].moment]
    if candidate.power_kw is None:
        raise ValueError(f"{candidate.label} has no power figure")
    pue = problem.regions[problem.pools[p].region].pue
    planned_ratio = problem.services[candidate.service].planned_ratio
    hours = problem.fleet.calendar.hours * moment.weight
    return load_kw(problem, candidate) * pue * hours / load_units(problem, c, k) / planned_ratio


def grid_kg_per_kwh(problem: Problem, region: str, period: int) -> float:
    """Return the carbon intensity of a region's grid in a period. [kg CO2/kWh]"""
    grid = problem.regions[region].grid_kg_co2_per_kwh
    if grid is None:
        raise ValueError(f"{region} has no carbon intensity")
    return grid[period]


def _idle_by_period(problem: Problem, name: str, pool: SupplyPool) -> tuple[float, ...]:
    """Return the energy or carbon of one idle unit of a pool, by period. [kWh or kg CO2]"""
    kwh = idle_kwh(problem, pool, pool.accelerators_per_unit)
    periods = range(len(problem.periods))
    if name == "carbon" and kwh:
        return tuple(kwh * grid_kg_per_kwh(problem, pool.region, q) for q in periods)
    return tuple(kwh for _ in periods)


def _idle_of_existing(problem: Problem, name: str) -> float:
    """Return the energy or carbon of all existing units at idle. [kWh or kg CO2]"""
    return sum(
        pool.existing_units * sum(_idle_by_period(problem, name, pool))
        for pool in problem.pools
        if pool.region in problem.regions
    )


def _idle_terms(problem: Problem, variables: Variables, goal: Goal) -> Iterator[Term]:
    """Yield acquired and retired units with the idle draw of one. [kWh or kg CO2]"""
    for (p, a, ordered), units in variables.acquired.items():
        idle = _idle_by_period(problem, goal.name, problem.pools[p])
        acquisition = problem.pools[p].acquisitions[a]
        yield units, sum(each for q, each in enumerate(idle) if acquisition.serves(ordered, q))
    for (p, q), units in variables.retired.items():
        yield units, -sum(_idle_by_period(problem, goal.name, problem.pools[p])[q:])


def _used_per_load_unit(problem: Problem, name: str, key: LoadKey) -> float:
    """Return the energy [kWh] or carbon [kg CO2] of one load unit."""
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
    for unmet, units, each in traffic.served:
        weight = round(each * goal.resolution)
        if weight >= FINE_WEIGHT:
            decided += weight * (units - unmet)
        else:
            constant += units * each
            decided -= weight * unmet
    return decided + round(constant * goal.resolution)


def _accelerators(problem: Problem, variables: Variables, goal: Goal) -> cp_model.LinearExprT:
    weights = []
    for c, p, m in variables.replicas:
        footprint = problem.pools[p].footprint_accelerators(problem.candidates[c].accelerators)
        share = problem.moments[m].exact_weight / len(problem.periods)
        weights.append(round(footprint * share * goal.resolution))
    return cp_model.LinearExpr.weighted_sum(list(variables.replicas.values()), weights)


def _regret(_: Problem, variables: Variables, __: Goal) -> cp_model.LinearExprT:
    return sum(variables.regret.values())


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
    """Return the weight of a cell's request/s in the mean over the horizon."""
    cell = problem.cells[cell_index]
    share = problem.moments[cell.moment].weight / len(problem.periods)
    return problem.services[cell.service].served_weight * share


def _whole_demand(problem: Problem) -> float:
    """Return the demand of all cells. [weighted requests/s]"""
    return sum(_weight(problem, i) * sum(cell.requests_per_s) for i, cell in enumerate(problem.cells))


def _accelerator_resolution(problem: Problem) -> int:
    """Return objective units per accelerator, a common unit of the moments' shares."""
    shares = (moment.exact_weight / len(problem.periods) for moment in problem.moments)
    return min(math.lcm(*(share.denominator for share in shares)), MOST_ACCELERATOR_UNITS)


@memoised
def _used_resolution(problem: Problem) -> int:
    """Return objective units per kWh or kg CO2: `USED_UNITS` for all that may serve or idle."""
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
    """Return objective units per weighted request/s: as fine as 64 bits allow and weights need."""
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
    # Demand is rounded up by cell and class; a factor of two covers that.
    largest = math.floor(math.log10(LARGEST_SUM / max(2 * _whole_demand(problem), 1.0)))
    return int(10 ** max(min(finest, largest), 0))
