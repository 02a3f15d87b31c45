"""Rows of a plan by pool: units, their use, and their cost."""

from __future__ import annotations

from collections import Counter, defaultdict

from fleetplan.fleet.tco import it_power_kw
from fleetplan.planner.assemble.traffic import ServedTraffic
from fleetplan.planner.formulation import Solution
from fleetplan.planner.formulation.objective.supply import supply_charges
from fleetplan.planner.plan import PoolUse
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.power_draw import carried_kw, idle_kwh
from fleetplan.planner.problem.supply import SupplyPool
from fleetplan.planner.verify.packing import fewest_units


def units_in_pool(problem: Problem, solution: Solution, p: int, q: int) -> int:
    """Return the units in a pool in a period, including the reserve."""
    pool = problem.pools[p]
    arrived = sum(
        count
        for (pool_index, a, ordered), count in solution.acquired.items()
        if pool_index == p and pool.acquisitions[a].serves(ordered, q)
    )
    left = sum(
        count for (pool_index, when), count in solution.retired.items() if pool_index == p and when <= q
    )
    return pool.existing_units + arrived - left


def pool_cost_kinds(problem: Problem, solution: Solution, p: int, q: int) -> dict[str, float]:
    """Return the cost of a pool in a period by kind, including departing units and without energy. [USD]"""
    pool = problem.pools[p]
    kinds: dict[str, float] = defaultdict(float)
    for kind, values in pool.fixed_cost_kinds.items():
        kinds[kind] += values[q]
    for name, charges in supply_charges().items():
        for key, count in getattr(solution, name).items():
            if key[0] == p:
                for kind, by_period in charges(problem, key).items():
                    kinds[kind] += count * by_period[q]
    return dict(kinds)


def capacity_kinds(problem: Problem, solution: Solution) -> dict[tuple[str, str], dict[str, float]]:
    """Return the cost of every pool and period by kind, without energy. [USD]"""
    return {
        (pool.name, period): pool_cost_kinds(problem, solution, p, q)
        for p, pool in enumerate(problem.pools)
        for q, period in enumerate(problem.periods)
    }


def leaving_usd(problem: Problem, solution: Solution, p: int, q: int) -> float:
    """Return the write-off of departing hosts at the start of a period, less their sale. [USD]"""
    retirement = problem.pools[p].retirement
    return 0.0 if retirement is None else solution.retired.get((p, q), 0) * retirement.leaving_usd(q)


def pool_usd(problem: Problem, solution: Solution, p: int, q: int) -> float:
    """Return the cost of a pool in a period, without energy and departing hosts. [USD]"""
    kinds = pool_cost_kinds(problem, solution, p, q)
    return sum(kinds.values()) - leaving_usd(problem, solution, p, q)


def pool_uses(problem: Problem, traffic: ServedTraffic, solution: Solution) -> tuple[PoolUse, ...]:
    """Return the units and the use of every pool and moment; empty pools are left out."""
    sizes: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    loaded_kw: dict[tuple[int, int], float] = defaultdict(float)
    for (c, p, m), replicas in traffic.replicas.items():
        sizes[p, m][problem.candidates[c].accelerators] += replicas
        loaded_kw[p, m] += carried_kw(problem, problem.candidates[c]) * replicas
    rows = []
    for m, moment in enumerate(problem.moments):
        q = moment.period
        for p in range(len(problem.pools)):
            units = units_in_pool(problem, solution, p, q)
            if units or (p, q) in solution.retired:
                usd = pool_usd(problem, solution, p, q) * moment.weight
                leaving = leaving_usd(problem, solution, p, q) * moment.weight
                use = _pool_use(problem, (p, m), units, sizes[p, m], (usd, leaving))
                rows.append(use.model_copy(update={"power_kw": _pool_kw(problem, use, loaded_kw[p, m])}))
    return tuple(rows)


def _pool_kw(problem: Problem, use: PoolUse, loaded_kw: float) -> float:
    """Return the facility power of a pool from the extra draw of its replicas over idle. [kW]"""
    idle_w = problem.hardware[use.hardware].idle_w_per_accelerator
    return (loaded_kw + it_power_kw(idle_w, use.accelerators)) * problem.regions[use.region].pue


def _pool_use(
    problem: Problem, place: tuple[int, int], units: int, sizes: Counter[int], costs: tuple[float, float]
) -> PoolUse:
    """Return the use of a pool in a moment, from its replicas by size and its costs."""
    pool, moment = problem.pools[place[0]], problem.moments[place[1]]
    used = sum(pool.footprint_accelerators(size) * count for size, count in sizes.items())
    total = units * pool.accelerators_per_unit
    out_units = pool.maintenance_in(moment.period)
    out = out_units * pool.accelerators_per_unit
    in_use = fewest_units(sizes, pool.accelerators_per_unit) if pool.reserve_percent else used
    reserve = reserved_accelerators(pool, units - out_units, in_use)
    return PoolUse(
        **problem.row_moment(place[1]),
        pool=pool.name,
        region=pool.region,
        hardware=pool.hardware,
        accelerators=total,
        reserve_accelerators=reserve,
        used_accelerators=used,
        utilisation=used / (total - reserve - out) if total > reserve + out else 0.0,
        usd=costs[0],
        idle_usd=costs[0] * (1 - used / total) if total else costs[0],
        retirement_usd=costs[1],
        maintenance_accelerators=out,
        idle_energy_kwh=idle_kwh(problem, pool, total - used) * moment.weight,
    )


def reserved_accelerators(pool: SupplyPool, units: int, in_use: int) -> int:
    """Return the accelerators in reserve; a pool that may be empty needs none while it runs nothing.

    `units` are installed and in service, `in_use` of them hold replicas (for a fixed reserve, only zero or
    not matters).
    """
    if pool.may_stay_empty and in_use == 0:
        return 0
    return min(pool.reserve_of(in_use), units) * pool.accelerators_per_unit
