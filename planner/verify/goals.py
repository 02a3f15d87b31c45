"""Verify the objective that precedes TCO, from placements and prices alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from fleetplan.planner.plan import Placement
from fleetplan.planner.problem.load_units import units_requests_per_s
from fleetplan.planner.verify.demand_scenarios import (
    best_serve_most,
    largest_regret_usd,
    unproven_regret_usd,
)
from fleetplan.planner.verify.plan_check import PlanCheck, Run
from fleetplan.planner.verify.quantities import energy_kwh, load, planned, unused_kwh
from fleetplan.planner.verify.rounding import RELATIVE_TOLERANCE, SHARE_FLOOR, differs
from fleetplan.planner.verify.violations import Violation, misstated

ROUNDING_RATIO: Final = 1e-4
"""Tolerance for the solver's model, which rounds figures per load unit."""

SERVED_SCALE_RATIO: Final = 1e-6
"""Minimum denominator of a gap in served demand, as a share of the whole demand."""

UNITS: Final = {
    "served": "weighted requests/s",
    "energy": "kWh",
    "carbon": "kg CO2",
    "accelerators": "accelerators",
    "least-regret": "USD",
}


def check_goal(check: PlanCheck) -> Iterator[Violation]:
    """Check that the plan reaches its stated value, and does not pass its bound."""
    objective, goal = check.problem.fleet.objective, check.plan.goal
    if check.problem.fleet.demand_objective == "least-regret" and check.plan.demand_scenarios:
        objective = "least-regret"
    if goal is None or goal.objective != objective:
        stated = "TCO" if goal is None else goal.objective
        if objective != "tco" or goal is not None:
            yield Violation("goal", f"the objective of the fleet is {objective}; the plan states {stated}")
        return
    if goal.unit != UNITS[objective]:
        yield Violation("goal", misstated(f"unit of {objective}", goal.unit, UNITS[objective]))
    values = {"served": _served, "least-regret": largest_regret_usd}
    value = values[objective](check) if objective in values else _used(check, objective)
    scale = _scale(check, objective)
    if not abs(value - goal.value) <= RELATIVE_TOLERANCE * max(abs(value), abs(goal.value), scale):
        yield Violation("goal", misstated(objective, goal.value, value, goal.unit))
    rounding = goal_rounding(check, objective, max(abs(value), abs(goal.bound), scale))
    worse, better = (value, goal.bound) if objective == "served" else (goal.bound, value)
    if not worse <= better + rounding:
        yield Violation("goal", f"{objective}: {value} {goal.unit} is better than the bound of {goal.bound}")
    if objective == "least-regret" and goal.bound > rounding and not best_serve_most(check):
        text = f"the bound of {goal.bound} USD compares with best plans that may leave more unmet than needed"
        yield Violation("goal", text)
    if goal.model_value is not None:
        worse, better = (goal.model_value, value) if objective == "served" else (value, goal.model_value)
        if not worse <= better + goal_rounding(check, objective, max(abs(worse), abs(better), scale)):
            text = f"{objective} is {value} {goal.unit}; the solver's model reached {goal.model_value}"
            yield Violation("goal", text)
    reached = goal.value + (unproven_regret_usd(check) if objective == "least-regret" else 0.0)
    least = SERVED_SCALE_RATIO * scale if objective == "served" else scale
    larger = max(abs(reached), abs(goal.bound), least)
    gap = abs(reached - goal.bound) / larger if larger > 0 else 0.0
    if differs(goal.gap, gap, SHARE_FLOOR):
        yield Violation("goal", misstated(f"gap of {objective}", goal.gap, gap))


def goal_rounding(check: PlanCheck, objective: str, figure: float) -> float:
    """Return the tolerance of the solver's model; for energy and carbon, at least a load unit per load."""
    if objective not in ("energy", "carbon"):
        return ROUNDING_RATIO * figure
    units = sum(_unit_of_each_load(check, objective, run) for run in check.rows)
    return max(ROUNDING_RATIO * figure, units)


def _unit_of_each_load(check: PlanCheck, objective: str, run: Run) -> float:
    """Return the energy [kWh] or carbon [kg CO2] of a load unit per class and origin of a placement."""
    (row, candidate), busy = run, load(check, run)
    index = check.class_index[row.service]
    names = [*row.requests_per_s_by_class, *itertools.chain(*row.requests_per_s_by_origin.values())]
    units = units_requests_per_s(check.problem, candidate)
    full = candidate.requests_per_s
    loads = sum(units[index[name]] / full[index[name]] for name in names if full[index[name]] > 0)
    share = loads / planned(check, row.service, busy) if busy else 0.0
    return share * energy_kwh(check, run) * _kg_per_kwh(check, objective, row)


def _scale(check: PlanCheck, objective: str) -> float:
    """Return the scale for figures near 0: a scenario's cost for a regret, all demand for served demand."""
    if objective == "least-regret":
        return min((abs(row.best_usd or 0.0) for row in check.plan.demand_scenarios), default=0.0)
    if objective != "served":
        return 0.0
    total = 0.0
    for cell in check.problem.cells:
        weight = check.weight(check.problem.moments[cell.moment])
        total += check.problem.services[cell.service].served_weight * weight * sum(cell.requests_per_s)
    return total / len(check.problem.periods)


def _served(check: PlanCheck) -> float:
    """Return weighted served traffic, averaged over periods. [weighted requests/s]"""
    total = 0.0
    for row, _ in check.rows:
        if row.phase != "decode":
            rate = sum(row.requests_per_s_by_class.values())
            weight = check.problem.services[row.service].served_weight
            total += weight * rate * check.weight(check.moment_of(row))
    return total / len(check.problem.periods)


def _used(check: PlanCheck, objective: str) -> float:
    """Return energy [kWh] or carbon [kg CO2] of installed hardware, or accelerators in use (period mean)."""
    total = 0.0
    for row, candidate in check.rows:
        pool, moment = check.pool(row.pool), check.moment_of(row)
        if objective == "accelerators":
            blocked = row.replicas * pool.blocked_accelerators(candidate.accelerators)
            total += blocked * check.weight(moment) / len(check.problem.periods)
            continue
        total += energy_kwh(check, (row, candidate)) * _kg_per_kwh(check, objective, row)
    if objective != "accelerators":
        for (name, m), kwh in unused_kwh(check).items():
            grid = check.pool(name).region.grid_kg_co2_per_kwh or (0.0,) * len(check.problem.periods)
            total += kwh * (grid[check.problem.moments[m].period] if objective == "carbon" else 1.0)
    return total


def _kg_per_kwh(check: PlanCheck, objective: str, row: Placement) -> float:
    """Return the grid intensity for carbon, else 1."""
    grid = check.pool(row.pool).region.grid_kg_co2_per_kwh or (0.0,) * len(check.problem.periods)
    return grid[check.moment_of(row).period] if objective == "carbon" else 1.0
