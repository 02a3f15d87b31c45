"""Value of the plan's objective that precedes TCO, without rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleetplan.planner.assemble.costs import placed_kwh
from fleetplan.planner.formulation import Goal, ReachedGoal, grid_kg_per_kwh
from fleetplan.planner.plan import DemandScenarioCost, Placement, PoolUse, StatedGoal, Unmet
from fleetplan.planner.problem import Problem, find_candidate

NOISE_RATIO: Final = 1e-12
"""Floating-point error of sums of thousands of terms, as a share of the whole demand."""


def reached_goal(
    problem: Problem,
    reached: ReachedGoal | None,
    rows: Sequence[Placement],
    uses: Sequence[PoolUse],
    unmet: Sequence[Unmet],
    scenarios: Sequence[DemandScenarioCost],
) -> StatedGoal | None:
    """Return the goal record of a plan document, or None if TCO is the first objective.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    reached : ReachedGoal or None
        Result of the solver, with its bound.
    rows, uses : Sequence[Placement], Sequence[PoolUse]
        Placements and pools of the plan.
    unmet : Sequence[Unmet]
        Unserved demand.
    scenarios : Sequence[DemandScenarioCost]
        Cost of the plan in each demand scenario.
    """
    if reached is None:
        return None
    goal = reached.goal
    if goal.name == "served":
        value = _without_noise(_served(problem, unmet), goal)
        # For unserved demand, the model rounds the weights; the bound keeps its distance to the plan in the
        # model.
        bound = value + _without_noise(max(reached.bound - reached.value, 0.0), goal)
    elif goal.name == "least-regret":
        value = max(row.regret_usd or 0.0 for row in scenarios)
        # Regret can be negative: with a budget on the mean, one scenario may cost less than it does alone.
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
    """Return the served demand, with floating-point noise of its difference set to zero."""
    return served if abs(served) > NOISE_RATIO * goal.most else 0.0


def _served(problem: Problem, unmet: Sequence[Unmet]) -> float:
    """Return weighted demand less unmet demand, averaged over periods. [weighted requests/s]"""
    total = 0.0
    for cell in problem.cells:
        share = problem.moments[cell.moment].weight / len(problem.periods)
        total += problem.services[cell.service].served_weight * share * sum(cell.requests_per_s)
    for row in unmet:
        share = problem.moment_of(row).weight / len(problem.periods)
        total -= problem.services[row.service].served_weight * share * row.requests_per_s
    return total


def figure_of(problem: Problem, name: str, rows: Sequence[Placement], uses: Sequence[PoolUse]) -> float:
    """Return energy [kWh], carbon [kg CO2] or accelerators of running replicas and idle accelerators."""
    running = sum(_used(problem, name, row) for row in rows)
    return running + sum(_idle(problem, name, use) for use in uses)


def _used(problem: Problem, name: str, row: Placement) -> float:
    """Return the energy [kWh], carbon [kg CO2] or accelerators of a placement."""
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
    """Return the energy [kWh] or carbon [kg CO2] of accelerators without replicas."""
    if name == "accelerators" or not use.idle_energy_kwh:
        return 0.0
    if name == "carbon":
        return use.idle_energy_kwh * grid_kg_per_kwh(problem, use.region, problem.moment_of(use).period)
    return use.idle_energy_kwh
