"""Least additional power that lets a fleet serve all demand, found with one program."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, build_model
from fleetplan.planner.formulation.constraints.power import watts_drawn
from fleetplan.planner.formulation.scaling import LARGEST_SUM, WATTS_PER_KW, whole_weights
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.independent_parts import components
from fleetplan.planner.search.blocks.solve import solve_planning
from fleetplan.planner.search.result import LEAST_S, SearchLimits
from fleetplan.planner.search.solvers.cpsat import hint_values
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import ModelStatus, SolverLimits
from fleetplan.planner.search.unmet_prices import flat
from fleetplan.planner.units import exact

MOST_STEPS: Final = 2**20
"""Most power steps per region."""

FINEST: Final = 10**6
"""Finest fraction of a watt in a row's coefficients, if sums stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class PowerLimit:
    """Power limit of a region by period, and the step by which to raise it. [kW]"""

    region: str
    limit_kw: tuple[float, ...]
    step_kw: float


@dataclass(frozen=True, slots=True)
class LeastPower:
    """Steps by region that together suffice, and whether the total is proven to be the least."""

    steps: dict[str, int]
    least: bool


def least_power(problem: Problem, asked: Sequence[PowerLimit], limits: SearchLimits) -> LeastPower | None:
    """Find the least additional power with which all demand is served.

    Parameters
    ----------
    problem : Problem
        The fleet without power limits in these regions.
    asked : Sequence[PowerLimit]
        Their power limits and steps.
    limits : SearchLimits
        Time limit for all parts together; the gap is ignored.

    Returns
    -------
    LeastPower or None
        None if no sufficient power was found.
    """
    limits = limits.from_now()
    ends = limits.latest.within(limits.time_limit_s)
    steps: dict[str, int] = {}
    least = True
    parts = [part.problem for part in components(problem)]
    for done, part in enumerate(parts):
        own = [limit for limit in asked if limit.region in part.regions]
        seconds = max(ends.left_s / (len(parts) - done), LEAST_S)
        solver = SolverLimits(seconds, limits.seed, limits.workers, Stop(), latest=ends.within(seconds))
        found = _least_of_part(part, own, solver) if own else LeastPower({}, True)
        if found is None:
            return None
        steps |= found.steps
        least = least and found.least
    return LeastPower({region: n for region, n in steps.items() if n}, least)


def _least_of_part(problem: Problem, asked: Sequence[PowerLimit], limits: SolverLimits) -> LeastPower | None:
    """Return the least steps of one part, starting from what the cheapest plan without power limits draws.

    Large fleets have a plan at least cost within seconds; minimising power alone may take long to find any.
    """
    ends = limits.latest.within(limits.time_limit_s)
    planning = build_model(problem, allow_unmet=False)
    model = planning.model
    model.minimize(planning.guiding_cost)
    first = solve_planning(planning, limits, lambda *_: True).values
    steps = {limit.region: model.new_int_var(0, MOST_STEPS, f"steps[{limit.region}]") for limit in asked}
    rows = [row for limit in asked for row in _rows(planning, limit)]
    for row in rows:
        model.add(row.weight * row.drawn <= row.allowed + row.step * steps[row.region])
    if first is not None:
        enough = dict.fromkeys(steps, 0)
        for row in rows:
            missing = row.weight * first.value(row.drawn) - row.allowed
            enough[row.region] = max(enough[row.region], -(-missing // row.step))
        hint_values(model, [*first.response_proto.solution, *enough.values()])
    weights = whole_weights([exact(limit.step_kw) for limit in asked])
    model.minimize(cp_model.LinearExpr.weighted_sum(list(steps.values()), weights))
    smallest = min(weights)
    left = replace(limits, time_limit_s=max(ends.left_s, LEAST_S))
    outcome = solve_planning(planning, left, lambda found, bound: bound > found - smallest)
    if outcome.values is None:
        return None if first is None else LeastPower(enough, least=False)
    needed = {region: outcome.values.value(variable) for region, variable in steps.items()}
    return LeastPower(needed, outcome.status is ModelStatus.SOLVED)


@dataclass(frozen=True, slots=True, eq=False)
class _PowerRow:
    """Power row of a region and moment: weighted draw, allowed draw, and allowance added by a step.

    The weight keeps fractions of a watt: steps of 0.1 kW rounded down one by one would add up to too little.
    """

    region: str
    drawn: cp_model.LinearExprT
    weight: int
    allowed: int
    step: int


def _rows(planning: PlanningModel, limit: PowerLimit) -> Iterator[_PowerRow]:
    """Yield the power rows of a region, by moment and by lost region."""
    part, variables, region = planning.problem, planning.variables, limit.region
    pue, step = exact(part.regions[region].pue), WATTS_PER_KW * exact(limit.step_kw)
    running: dict[tuple[str | None, int], dict[tuple[int, int], cp_model.IntVar]] = defaultdict(dict)
    # Idle hosts draw power in moments without replicas too.
    running |= {(None, m): {} for m in range(len(part.moments))}
    for (c, p, m), replicas in variables.replicas.items():
        running[None, m][c, p] = replicas
    for (lost, c, p, m), replicas in variables.surviving.items():
        if lost != region:
            running[lost, m][c, p] = replicas
    for (_, m), runs in running.items():
        period = part.moments[m].period
        drawn = watts_drawn(part, variables, runs, (region, period))
        if not isinstance(drawn, int):
            allowed = WATTS_PER_KW * exact(limit.limit_kw[period])
            finest = LARGEST_SUM // math.ceil(2 * (pue * _most(drawn) + step * MOST_STEPS + allowed))
            common = math.lcm(pue.denominator, step.denominator, allowed.denominator)
            unit = max(1, min(common, FINEST, finest))
            whole = (math.ceil(pue * unit), math.floor(allowed * unit), math.floor(step * unit))
            yield _PowerRow(region, drawn, *whole)


def _most(drawn: cp_model.LinearExprT) -> int:
    """Return the most that a sum of decisions can draw. [W]"""
    terms = flat(drawn)
    bounds = (int(variable.proto.domain[1]) for variable in terms.vars)
    return sum(abs(int(each)) * bound for each, bound in zip(terms.coeffs, bounds, strict=True))
