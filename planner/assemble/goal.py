"""Value that a plan reaches of an objective before TCO, without rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleetplan.planner.assemble.costs import placed_kwh
from fleetplan.planner.formulation import Goal, Reached, grid_kg_per_kwh
from fleetplan.planner.plan import DemandScenarioCost, Placement, PoolUse, StatedGoal, Unmet
from fleetplan.planner.problem import Problem, find_candidate

NOISE_RATIO: Final = 1e-12
"""Share of the whole demand that sums of thousands of floats may be off by."""


def reached_goal(
    problem: Problem,
    reached: Reached | None,
    rows: Sequence[Placement],
    uses: Sequence[PoolUse],
    unmet: Sequence[Unmet],
    scenarios: Sequence[DemandScenarioCost],
) -> StatedGoal | None:
    """The goal's part of a plan document; None where TCO comes first.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    reached : Reached or None
        What the solver found, with its bound.
    rows, uses : Sequence[Placement], Sequence[PoolUse]
        What runs, and what stands.
    unmet : Sequence[Unmet]
        What is left unserved.
    scenarios : Sequence[DemandScenarioCost]
        What the plan costs in each demand scenario.
    """
    if reached is None:
        return None
    goal = reached.goal
    if goal.name == "served":
        value = _without_noise(_served(problem, unmet), goal)
        # Of what is unserved the model rounds the weights: a bound is as far above the plan as in the model.
        bound = value + _without_noise(max(reached.bound - reached.value, 0.0), goal)
    elif goal.name == "least-regret":
        value = max(row.regret_usd or 0.0 for row in scenarios)
        # It may be below zero: a budget that holds in the mean lets a scenario cost less than it does alone.
        bound = min(reached.bound, value)
    else:
        value = figure_of(problem, goal.name, rows, uses)
        bound = min(reached.bound, value)
    return StatedGoal(
        objective=goal.name,
        unit=goal.unit,
        value=value,
        bound=bound,
        gap=goal.told_gap(value, bound),
        model_value=reached.value,
    )


def _without_noise(served: float, goal: Goal) -> float:
    """Served demand, which is the whole less what is unmet, without what the floats of both leave."""
    return served if abs(served) > NOISE_RATIO * goal.most else 0.0


def _served(problem: Problem, unmet: Sequence[Unmet]) -> float:
    """Weighted demand less what is unmet, the mean of the periods. [weighted requests/s]"""
    total = 0.0
    for cell in problem.cells:
        share = problem.moments[cell.moment].weight / len(problem.periods)
        total += problem.services[cell.service].served_weight * share * sum(cell.requests_per_s)
    for row in unmet:
        share = problem.moment_of(row).weight / len(problem.periods)
        total -= problem.services[row.service].served_weight * share * row.requests_per_s
    return total


def figure_of(problem: Problem, name: str, rows: Sequence[Placement], uses: Sequence[PoolUse]) -> float:
    """Energy [kWh], carbon [kg CO2] or accelerators of running replicas and of idle accelerators."""
    running = sum(_used(problem, name, row) for row in rows)
    return running + sum(_idle(problem, name, use) for use in uses)


def _used(problem: Problem, name: str, row: Placement) -> float:
    """Return the energy [kWh], carbon [kg CO2] or accelerators that a placement adds."""
    candidate, moment = find_candidate(problem, row), problem.moment_of(row)
    if candidate is None:
        raise ValueError(f"no candidate {row.config}")
    if name == "accelerators":
        pool = next(pool for pool in problem.pools if pool.name == row.pool)
        footprint = pool.footprint_accelerators(candidate.accelerators)
        return footprint * row.replicas * moment.weight / len(problem.periods)
    kwh = placed_kwh(problem, row)
    return kwh * grid_kg_per_kwh(problem, row.region, moment.period) if name == "carbon" else kwh


def _idle(problem: Problem, name: str, use: PoolUse) -> float:
    """What accelerators without replicas add to energy [kWh] or carbon [kg CO2]."""
    if name == "accelerators" or not use.idle_energy_kwh:
        return 0.0
    if name == "carbon":
        return use.idle_energy_kwh * grid_kg_per_kwh(problem, use.region, problem.moment_of(use).period)
    return use.idle_energy_kwh
