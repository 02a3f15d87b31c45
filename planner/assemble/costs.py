"""Cost and carbon of a plan by period, service and pool, from its placements and pools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from fleetplan.planner.assemble.pools import capacity_kinds
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import RUNNING_KINDS, Cost, IncomeTaxCost, Placement, PoolUse
from fleetplan.planner.problem import Problem, find_candidate
from fleetplan.planner.problem.power_draw import idle_kwh, load_kw

NOISE_RATIO: Final = 1e-12
"""Ratio of a cost to the total below which it is floating-point noise. A float has sixteen digits, and no sum
here has ten thousand terms of similar size.
"""


def cost_rows(
    problem: Problem, solution: Solution, rows: Sequence[Placement], pools: Sequence[PoolUse]
) -> tuple[Cost, ...]:
    """Return the cost of a plan by period, by service and by pool.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Supply decisions.
    rows, pools : Sequence[Placement], Sequence[PoolUse]
        Placements and pools of the plan.

    Returns
    -------
    tuple[Cost, ...]
        Periods add up to the whole cost, as do pools; services do without idle capacity and retirements.
    """
    capacity = capacity_kinds(problem, solution)
    placed: dict[tuple[str, str], list[Placement]] = defaultdict(list)
    for row in rows:
        for key in (("period", row.period), ("service", row.service), ("pool", row.pool)):
            placed[key].append(row)
    found = []
    for period in problem.periods:
        kinds = _added([kinds for (_, when), kinds in capacity.items() if when == period])
        uses = [use for use in pools if use.period == period]
        found.append(_row(problem, ("period", period), placed["period", period], kinds, uses))
    for service in problem.services:
        own = placed["service", service]
        kinds = {"capacity": sum(row.usd - row.running_usd for row in own)}
        found.append(_row(problem, ("service", service), own, kinds, ()))
    for pool in dict.fromkeys(use.pool for use in pools):
        kinds = _added([kinds for (name, _), kinds in capacity.items() if name == pool])
        uses = [use for use in pools if use.pool == pool]
        found.append(_row(problem, ("pool", pool), placed["pool", pool], kinds, uses))
    return tuple(found)


def _added(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for part in parts:
        for kind, usd in part.items():
            total[kind] += usd
    return total


def _row(
    problem: Problem,
    key: tuple[str, str],
    placed: Sequence[Placement],
    capacity: Mapping[str, float],
    uses: Sequence[PoolUse],
) -> Cost:
    """Return the cost row of a scope; pool uses determine its idle and retirement parts."""
    kinds = {**capacity, **_running_kinds(placed)}
    usd = sum(kinds.values())
    million = million_tokens(problem, placed)
    return Cost(
        scope=key[0],
        name=key[1],
        usd=usd,
        usd_by_kind=stated_kinds(kinds),
        idle_usd=sum(use.idle_usd for use in uses),
        retirement_usd=sum(use.retirement_usd for use in uses),
        million_tokens=million,
        usd_per_million_tokens=usd / million if million else None,
        carbon_kg=carbon_kg(problem, placed, uses),
    )


def after_income_tax(problem: Problem, rows: Sequence[Cost], total_usd: float) -> IncomeTaxCost | None:
    """Return the cost of a plan after income tax, or None if the fleet states no tax.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    rows : Sequence[Cost]
        Cost rows of the plan; only periods are used.
    total_usd : float
        TCO of the plan. [USD]
    """
    tax = problem.fleet.finance.income_tax
    if tax is None:
        return None
    kept = 1 - tax.rate
    by_period = {row.name: kept * row.usd for row in rows if row.scope == "period"}
    return IncomeTaxCost(rate=tax.rate, usd=kept * total_usd, usd_by_period=by_period)


def usd_per_million_tokens(problem: Problem, placed: Sequence[Placement], usd: float) -> float | None:
    """Return a cost divided by the tokens at the peak rate; None without lengths or tokens. [USD/1e6]"""
    million = million_tokens(problem, placed)
    return usd / million if million else None


def million_tokens(problem: Problem, placed: Sequence[Placement]) -> float | None:
    """Return prefill input and decode output tokens at the peak rate; None without lengths. [1e6]"""
    tokens = 0.0
    for row in placed:
        seconds = problem.fleet.calendar.seconds * problem.moment_of(row).weight
        for request_class in problem.services[row.service].classes:
            rate = row.requests_per_s_by_class.get(request_class.name, 0.0)
            if not rate:
                continue
            if request_class.input_tokens is None or request_class.output_tokens is None:
                return None
            new = 0 if row.phase == "decode" else request_class.input_tokens
            generated = 0 if row.phase == "prefill" else request_class.output_tokens
            tokens += rate * seconds * (new + generated)
    return tokens / 1e6


def carbon_kg(problem: Problem, placed: Sequence[Placement], uses: Sequence[PoolUse]) -> float | None:
    """Return the carbon of running and idle hardware; None if a region or power has no figure. [kg CO2]

    Energy included in a rent counts like any other.
    """
    total = 0.0
    for row in placed:
        grid = problem.regions[row.region].grid_kg_co2_per_kwh
        candidate = find_candidate(problem, row)
        if grid is None or candidate is None or candidate.power_kw is None:
            return None
        total += placed_kwh(problem, row) * grid[problem.moment_of(row).period]
    for use in uses:
        if use.idle_energy_kwh:
            grid = problem.regions[use.region].grid_kg_co2_per_kwh
            if grid is None:
                return None
            total += use.idle_energy_kwh * grid[problem.moment_of(use).period]
    return total


def placed_kwh(problem: Problem, row: Placement) -> float:
    """Return the energy of a placement: its load, and the idle power of its accelerators. [kWh]"""
    candidate, moment = find_candidate(problem, row), problem.moment_of(row)
    pool = next(pool for pool in problem.pools if pool.name == row.pool)
    if candidate is None:
        raise ValueError(f"no candidate {row.config}")
    busy = load_kw(problem, candidate) * row.replicas * row.utilisation
    busy *= problem.regions[row.region].pue * problem.fleet.calendar.hours
    held = row.replicas * pool.footprint_accelerators(candidate.accelerators)
    return (busy + idle_kwh(problem, pool, held)) * moment.weight


def cost_breakdown(problem: Problem, solution: Solution, rows: Sequence[Placement]) -> dict[str, float]:
    """Return the TCO over the horizon by kind. [USD]"""
    kinds = {**_added(list(capacity_kinds(problem, solution).values())), **_running_kinds(rows)}
    return stated_kinds(kinds)


def stated_kinds(kinds: Mapping[str, float]) -> dict[str, float]:
    """Return the costs by kind that exceed floating-point noise of sums that cancel. [USD]"""
    noise_usd = NOISE_RATIO * sum(map(abs, kinds.values()))
    return {kind: usd for kind, usd in sorted(kinds.items()) if abs(usd) > noise_usd}


def _running_kinds(rows: Sequence[Placement]) -> dict[str, float]:
    """Return the running cost of placements by kind, without their shares of pools. [USD]"""
    return {kind: sum(getattr(row, f"{kind}_usd") for row in rows) for kind in RUNNING_KINDS}
