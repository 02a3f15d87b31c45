"""Verify the figures of each placement and pool that follow from decisions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict

from fleetplan.planner.plan import MomentKey, PhaseRatio, Placement, PoolUse
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.verify.changes import before_period, before_slice, running
from fleetplan.planner.verify.plan_check import PlanCheck, Run
from fleetplan.planner.verify.quantities import (
    carried,
    data_usd,
    energy_usd,
    load,
    tidal_usd_each,
    transition_usd_each,
    unused_kwh,
    worst_ms,
)
from fleetplan.planner.verify.records import compared, fields_compared
from fleetplan.planner.verify.supply import pool_kw
from fleetplan.planner.verify.supply_rules import FleetPool, may_stay_empty
from fleetplan.planner.verify.violations import Violation


def check_placement_figures(check: PlanCheck) -> Iterator[Violation]:
    """Check utilisation, latencies, evidence and every part of the cost of each placement."""
    for run, row in zip(check.rows, expected_placements(check), strict=True):
        label = (
            f"{row.service} {row.phase} {row.config} in {row.pool} {' '.join(filter(None, row.moment_key))}"
        )
        yield from fields_compared("cost", label, run[0], row, check.floor_usd)


@memoised
def expected_placements(check: PlanCheck) -> list[Placement]:
    """Return the placements with all fields that follow from the decisions."""
    moments = running(check)
    rows = []
    for run in check.rows:
        row, candidate = run
        pool, m = check.pool(row.pool), check.moments[row.moment_key]
        moment, size = check.problem.moments[m], candidate.accelerators
        key = (row.service, row.phase, row.hardware, row.config, row.pool, size)
        parts = {"energy_usd": energy_usd(check, run), "data_usd": data_usd(check, run)}
        for name, before, each in (
            ("transition_usd", before_period(check, moments, m), transition_usd_each(check, moment)),
            ("tidal_usd", before_slice(check, moments, m), tidal_usd_each(check, moment)),
        ):
            more = 0 if before is None else max(row.replicas - before[key], 0)
            parts[name] = more * size * each
        update = {
            "region": pool.region.name,
            "hardware": pool.hardware.name,
            "accelerators": row.replicas * size,
            "requests_per_s": sum(row.requests_per_s_by_class.values()),
            "utilisation": load(check, run) / row.replicas,
            "utilisation_limit": carried(candidate, row.replicas) / row.replicas,
            "ttft_ms": worst_ms(check, row, candidate, candidate.ttft_ms),
            "tpot_ms": worst_ms(check, row, candidate, candidate.tpot_ms),
            "provenance": asdict(candidate.provenance),
            "usd": sum(parts.values()) + _share_of_pool(check, run) * _pool_usd(check, pool, moment.period),
            **parts,
        }
        rows.append(row.model_copy(update=update))
    return rows


def _pool_usd(check: PlanCheck, pool: FleetPool, period: int) -> float:
    return sum(check.capacity_usd[pool.name, period].values())


def _share_of_pool(check: PlanCheck, run: Run) -> float:
    """Return a placement's share of a pool's cost in a period, by its accelerators and hours."""
    row, candidate = run
    pool, moment = check.pool(row.pool), check.moment_of(row)
    units = check.units[pool.name, moment.period]
    blocked = row.replicas * pool.blocked_accelerators(candidate.accelerators)
    return blocked / (units * pool.accelerators_per_unit) * check.weight(moment) if units > 0 else 0.0


def check_pools(check: PlanCheck) -> Iterator[Violation]:
    """Check that every non-empty pool is listed in every moment with its units, use and cost."""
    sizes: dict[tuple[str, MomentKey], Counter[int]] = defaultdict(Counter)
    for row, candidate in check.rows:
        sizes[row.pool, row.moment_key][candidate.accelerators] += row.replicas
    left = {(row.pool, check.period_index[row.period]) for row in check.plan.retirements}
    expected = []
    for m, moment in enumerate(check.problem.moments):
        when = check.key_of(moment)
        placed = check.at(m)
        for pool in check.pools.values():
            if check.units[pool.name, moment.period] or (pool.name, moment.period) in left:
                share = check.weight(moment)
                place = (pool.name, moment.period)
                costs = (
                    sum(check.capacity_usd[place].values()) * share,
                    sum(check.leaving_usd[place].values()) * share,
                )
                drawn_kw = pool_kw(check, pool, moment.period, placed)
                use = _pool_use(check, pool, when, sizes[pool.name, when], costs)
                expected.append(use.model_copy(update={"power_kw": drawn_kw}))
    key = ("pool", "period", "slice", "scenario")
    yield from compared("capacity", check.plan.pools, expected, key, check.floor_usd)


def _pool_use(
    check: PlanCheck, pool: FleetPool, when: MomentKey, sizes: Counter[int], costs: tuple[float, float]
) -> PoolUse:
    q = check.period_index[when[0]]
    used = sum(pool.blocked_accelerators(size) * count for size, count in sizes.items())
    units, out = check.units[pool.name, q], pool.maintenance_units(q)
    kept = 0 if used == 0 and may_stay_empty(check.problem.fleet, pool) else pool.kept_units(sizes)
    kept = min(kept, units - out)
    usable, held = (units - out - kept) * pool.accelerators_per_unit, units * pool.accelerators_per_unit
    usd, leaving_usd = costs
    return PoolUse(
        period=when[0],
        slice=when[1],
        scenario=when[2],
        pool=pool.name,
        region=pool.region.name,
        hardware=pool.hardware.name,
        accelerators=held,
        reserve_accelerators=kept * pool.accelerators_per_unit,
        maintenance_accelerators=out * pool.accelerators_per_unit,
        used_accelerators=used,
        utilisation=used / usable if usable > 0 else 0.0,
        usd=usd,
        idle_usd=usd if held == 0 else usd * (held - used) / held,
        retirement_usd=leaving_usd,
        idle_energy_kwh=unused_kwh(check)[pool.name, check.moments[when]],
    )


def check_phase_ratios(check: PlanCheck) -> Iterator[Violation]:
    """Check the accelerators of both phases for every service, region and moment that has both."""
    totals: dict[tuple[MomentKey, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row, candidate in check.rows:
        place = (row.moment_key, row.region, row.service)
        totals[place][candidate.phase.value] += row.replicas * candidate.accelerators
    expected = [
        PhaseRatio(
            period=when[0],
            slice=when[1],
            scenario=when[2],
            region=region,
            service=service,
            prefill_accelerators=by_phase["prefill"],
            decode_accelerators=by_phase["decode"],
            ratio=by_phase["prefill"] / by_phase["decode"],
        )
        for (when, region, service), by_phase in totals.items()
        if by_phase["prefill"] and by_phase["decode"]
    ]
    key = ("period", "slice", "scenario", "region", "service")
    yield from compared("placement", check.plan.phase_ratios, expected, key)
