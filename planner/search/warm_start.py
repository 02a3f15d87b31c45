"""Warm start from a known plan, such as the plan in force: hint its replicas, purchases and retirements.

Rows match by name, so a plan for other demand, prices or quarters serves too. The search decides the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import AcquireKey, PlanningModel, ReplicaKey, Solution
from fleetplan.planner.formulation.groups import KEPT, members
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.current_plan import period_in_force
from fleetplan.planner.problem.scenarios import FixedSupply

KeyT = TypeVar("KeyT", bound=Hashable)


def hint_known_plan(planning: PlanningModel) -> None:
    """Hint the replicas, purchases, rents and retirements of the known plan, if there is one.

    A period that the plan lacks is hinted from the period in force when the horizon begins.
    """
    problem, variables = planning.problem, planning.variables
    plan = problem.begins_with
    if plan is None:
        return
    before = period_in_force(plan, problem.periods, problem.fleet.calendar)
    source = {period: period if period in plan.periods else before for period in problem.periods}
    _hint(planning.model, variables.replicas, _replicas(problem, plan, source))
    _hint(planning.model, variables.acquired, _acquired(problem, plan))
    _hint(planning.model, variables.retired, _retired(problem, plan))


def hint_solution(planning: PlanningModel, solution: Solution) -> None:
    """Hint every variable of a solution, with 0 where it has no value."""
    planning.model.clear_hints()  # type: ignore[no-untyped-call]
    for group in KEPT:
        _hint(planning.model, members(group, planning.variables), getattr(solution, group.name))


def supply_of(problem: Problem, plan: Plan) -> FixedSupply:
    """Return the purchases, rents and retirements of a plan that match the problem's offers and pools."""
    return FixedSupply(_acquired(problem, plan), _retired(problem, plan))


def _hint(
    model: cp_model.CpModel, variables: Mapping[KeyT, cp_model.IntVar], counts: Mapping[KeyT, int]
) -> None:
    for key, variable in variables.items():
        least, *_, most = variable.proto.domain
        model.add_hint(variable, min(max(counts.get(key, 0), least), most))


def _replicas(problem: Problem, plan: Plan, source: Mapping[str, str | None]) -> Counter[ReplicaKey]:
    candidates = {candidate.key: c for c, candidate in enumerate(problem.candidates)}
    pools = {pool.name: p for p, pool in enumerate(problem.pools)}
    found: Counter[ReplicaKey] = Counter()
    for m, moment in enumerate(problem.moments):
        period, *rest = problem.moment_key(moment)
        wanted = (source[period], *rest)
        for row in plan.placements:
            candidate = candidates.get(row.key)
            if row.moment_key == wanted and candidate is not None and row.pool in pools:
                found[candidate, pools[row.pool], m] += row.replicas
    return found


def _acquired(problem: Problem, plan: Plan) -> Counter[AcquireKey]:
    keys = {
        (pool.name, acquisition.offer.name, period): (p, a, q)
        for p, pool in enumerate(problem.pools)
        for a, acquisition in enumerate(pool.acquisitions)
        for q, period in enumerate(problem.periods)
    }
    found: Counter[AcquireKey] = Counter()
    for row in plan.purchases:
        if (key := keys.get((row.pool, row.offer, row.period))) is not None:
            found[key] += row.units
    return found


def _retired(problem: Problem, plan: Plan) -> Counter[tuple[int, int]]:
    pools = {pool.name: p for p, pool in enumerate(problem.pools)}
    periods = {period: q for q, period in enumerate(problem.periods)}
    found: Counter[tuple[int, int]] = Counter()
    for row in plan.retirements:
        if row.pool in pools and row.period in periods:
            found[pools[row.pool], periods[row.period]] += row.hosts
    return found
