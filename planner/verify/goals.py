"""The objective that comes before TCO: what a plan reaches of it, from its placements and prices alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fleetplan.fleet.tco import HOURS_PER_QUARTER
from fleetplan.planner.verify.demand_scenarios import largest_regret_usd
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import GAP_TOLERANCE, RELATIVE_TOLERANCE, Violation

ROUNDING_RATIO: Final = 1e-4
"""What the solver's model may be off by: figures are rounded by load unit."""


def check_goal(check: PlanCheck) -> Iterator[Violation]:
    """The plan reaches what it states, and no more than its bound allows."""
    objective, goal = check.problem.fleet.objective, check.plan.goal
    if check.problem.fleet.demand_objective == "least-regret" and check.plan.demand_scenarios:
        objective = "least-regret"
    if goal is None or goal.objective != objective:
        stated = "TCO" if goal is None else goal.objective
        if objective != "tco" or goal is not None:
            yield Violation("goal", f"the objective is {objective}, the plan states {stated}")
        return
    values = {"served": _served, "least-regret": largest_regret_usd}
    value = values[objective](check) if objective in values else _used(check, objective)
    scale = _scale(check, objective)
    if abs(value - goal.value) > RELATIVE_TOLERANCE * max(abs(value), abs(goal.value), scale):
        yield Violation("goal", f"{objective}: {goal.value} {goal.unit} stated, {value} found")
    worse, better = (value, goal.bound) if objective == "served" else (goal.bound, value)
    if worse > better + ROUNDING_RATIO * max(abs(worse), abs(better), scale):
        yield Violation("goal", f"{objective}: {value} is better than the bound {goal.bound} {goal.unit}")
    if goal.model_value is not None:
        worse, better = (goal.model_value, value) if objective == "served" else (value, goal.model_value)
        if worse > better + ROUNDING_RATIO * max(abs(worse), abs(better), scale):
            text = f"{objective}: {value} {goal.unit}, the solver's model reached {goal.model_value}"
            yield Violation("goal", text)
    larger = max(abs(goal.value), abs(goal.bound), scale if objective == "least-regret" else 0.0)
    gap = abs(goal.value - goal.bound) / larger if larger > 0 else 0.0
    if abs(gap - goal.gap) > GAP_TOLERANCE:
        yield Violation("goal", f"{objective}: a gap of {goal.gap} is stated, {gap} follows")


def _scale(check: PlanCheck, objective: str) -> float:
    """What figures near 0 are compared with: a regret with a scenario's cost, served demand with all."""
    if objective == "least-regret":
        return min((abs(row.best_usd or 0.0) for row in check.plan.demand_scenarios), default=0.0)
    if objective != "served":
        return 0.0
    total = 0.0
    for cell in check.problem.cells:
        moment = check.problem.moments[cell.moment]
        weight = check.problem.services[cell.service].served_weight * moment.hours_share * moment.probability
        total += weight * sum(cell.requests_per_s)
    return total / len(check.problem.periods)


def _served(check: PlanCheck) -> float:
    """Served traffic with its weights, the mean of the periods. [weighted requests/s]"""
    total = 0.0
    for row, _ in check.rows:
        if row.phase != "decode":
            service, moment = check.problem.services[row.service], check.problem.moment_of(row)
            rate = sum(row.requests_per_s_by_class.values())
            total += service.served_weight * rate * moment.hours_share * moment.probability
    return total / len(check.problem.periods)


def _used(check: PlanCheck, objective: str) -> float:
    """Energy [kWh] or carbon [kg CO2] of the traffic, or accelerators that run, the mean of the periods."""
    total = 0.0
    for row, candidate in check.rows:
        pool, moment = check.pool(row.pool), check.problem.moment_of(row)
        weight = moment.hours_share * moment.probability
        if objective == "accelerators":
            hosts = -(-candidate.accelerators // pool.accelerators_per_unit)
            whole = candidate.accelerators > pool.accelerators_per_unit
            blocked = hosts * pool.accelerators_per_unit if whole else candidate.accelerators
            total += blocked * row.replicas * weight / len(check.problem.periods)
            continue
        names = [request_class.name for request_class in check.problem.services[row.service].classes]
        load = sum(
            rate / candidate.requests_per_s[names.index(name)]
            for name, rate in row.requests_per_s_by_class.items()
            if candidate.requests_per_s[names.index(name)] > 0
        )
        region = check.problem.regions[pool.region]
        kwh = load * (candidate.power_kw or 0.0) * region.pue * HOURS_PER_QUARTER * weight
        grid = region.grid_kg_co2_per_kwh or (0.0,) * len(check.problem.periods)
        total += kwh * (grid[moment.period] if objective == "carbon" else 1.0)
    return total
