"""From raw solver values to a plan in unrounded numbers.

The solver's values only say how many replicas, units and load units there are. Traffic is then spread
over them in floating point, loads are scaled down to the demand, and replicas that carry nothing are
dropped; cost is recomputed from the result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from fleetplan.fleet.inventory import Offer
from fleetplan.planner.changes import started_replicas, with_idle_replicas
from fleetplan.planner.objective import started_usd
from fleetplan.planner.plan import PhaseRatio, Placement, PoolUse, Purchase, Retired, Unmet
from fleetplan.planner.problem import Candidate, Phase, Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA
from fleetplan.planner.search import Solution
from fleetplan.planner.supply import SupplyPool
from fleetplan.planner.variables import LoadKey, ReplicaKey, rate_scales

LOAD_TOLERANCE = 1e-7
"""Load above a whole number of replicas that is rounding, not traffic. [replicas]"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Who serves what.

    Attributes
    ----------
    rates : dict[LoadKey, float]
        Traffic by (candidate, class, pool, period), headroom not included. [requests/s]
    replicas : dict[ReplicaKey, int]
        Replicas by (candidate, pool, period); idle only where starting them anew would cost.
    unmet : dict[tuple[int, int], float]
        Unserved traffic by (cell, class). [requests/s]
    """

    rates: dict[LoadKey, float]
    replicas: dict[ReplicaKey, int]
    unmet: dict[tuple[int, int], float]


def spread_traffic(problem: Problem, solution: Solution) -> Traffic:
    """Traffic on every set of replicas, scaled to the demand.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Solver values.

    Returns
    -------
    Traffic
        Prefill and decode rates of a class add up to the same.
    """
    scales = rate_scales(problem)
    rates: dict[LoadKey, float] = {}
    unmet: dict[tuple[int, int], float] = {}
    by_cell: dict[tuple[str, str, int, int], list[LoadKey]] = defaultdict(list)
    for key in solution.load:
        c, k, p, q = key
        by_cell[problem.candidates[c].service, problem.pools[p].region, q, k].append(key)
    for cell_index, cell in enumerate(problem.cells):
        headroom = 1 + problem.services[cell.service].headroom
        for k, demand in enumerate(cell.requests_per_s):
            units = solution.unmet.get((cell_index, k), 0)
            missing = min(scales[cell.service].requests_per_s(units) / headroom, demand)
            if missing > 0:
                unmet[cell_index, k] = missing
            keys = by_cell[cell.service, cell.region, cell.period, k]
            rates.update(_scaled(problem, solution, keys, demand - missing, headroom))
    needed = _needed_replicas(problem, solution, rates)
    if problem.counts_changes:
        needed = with_idle_replicas(problem, needed, solution.replicas)
    return Traffic(rates, needed, unmet)


def _scaled(
    problem: Problem, solution: Solution, keys: Iterable[LoadKey], wanted: float, headroom: float
) -> dict[LoadKey, float]:
    """Rates of one cell and class: aggregated replicas first, the rest through both phases.

    The solver's loads hold the headroom (a factor of at least 1); traffic does not.
    """
    by_phase: dict[Phase, dict[LoadKey, float]] = {phase: {} for phase in Phase}
    for key in keys:
        candidate = problem.candidates[key[0]]
        planned = candidate.requests_per_s[key[1]] * solution.load[key] / LOAD_UNITS_PER_REPLICA
        by_phase[candidate.phase][key] = planned / headroom
    aggregated = min(sum(by_phase[Phase.AGGREGATED].values()), wanted)
    targets = {
        Phase.AGGREGATED: aggregated,
        Phase.PREFILL: wanted - aggregated,
        Phase.DECODE: wanted - aggregated,
    }
    scaled: dict[LoadKey, float] = {}
    for phase, rates in by_phase.items():
        total = sum(rates.values())
        if total > 0 and targets[phase] > 0:
            scaled.update({key: rate * targets[phase] / total for key, rate in rates.items()})
    return scaled


def _needed_replicas(
    problem: Problem, solution: Solution, rates: dict[LoadKey, float]
) -> dict[ReplicaKey, int]:
    """Replicas that the traffic with its headroom fills."""
    load: dict[ReplicaKey, float] = defaultdict(float)
    for (c, k, p, q), rate in rates.items():
        candidate = problem.candidates[c]
        headroom = 1 + problem.services[candidate.service].headroom
        load[c, p, q] += rate * headroom / candidate.requests_per_s[k]
    return {
        key: min(solution.replicas[key], math.ceil(value - LOAD_TOLERANCE))
        for key, value in load.items()
        if value > LOAD_TOLERANCE
    }


def placements(problem: Problem, traffic: Traffic, solution: Solution) -> tuple[Placement, ...]:
    """One placement for each set of replicas, with its share of cost."""
    rows = []
    for (c, p, q), replicas in traffic.replicas.items():
        candidate, pool = problem.candidates[c], problem.pools[p]
        names = [request_class.name for request_class in problem.services[candidate.service].classes]
        by_class = {
            name: traffic.rates[c, k, p, q] for k, name in enumerate(names) if (c, k, p, q) in traffic.rates
        }
        load = sum(rate / candidate.requests_per_s[names.index(name)] for name, rate in by_class.items())
        energy = load * (candidate.power_kw or 0.0) * pool.energy_usd_per_kw[q]
        footprint = pool.footprint_accelerators(candidate.accelerators) * replicas
        transition = started_replicas(problem, traffic.replicas, (c, p, q)) * started_usd(problem, (c, p, q))
        units = units_in_pool(problem, solution, p, q)
        share = footprint / (units * pool.accelerators_per_unit)
        rows.append(
            Placement(
                period=problem.periods[q],
                region=pool.region,
                pool=pool.name,
                service=candidate.service,
                phase=candidate.phase.value,
                hardware=candidate.hardware,
                config=candidate.config,
                replicas=replicas,
                accelerators=replicas * candidate.accelerators,
                requests_per_s=sum(by_class.values()),
                requests_per_s_by_class=by_class,
                utilisation=load / replicas,
                ttft_ms=_worst(candidate.ttft_ms, names, by_class),
                tpot_ms=_worst(candidate.tpot_ms, names, by_class),
                usd=share * pool_usd(problem, solution, p, q) + energy + transition,
                energy_usd=energy,
                transition_usd=transition,
                provenance=asdict(candidate.provenance),
            )
        )
    order = {service.name: index for index, service in enumerate(problem.fleet.services)}
    phases = [phase.value for phase in (Phase.PREFILL, Phase.DECODE, Phase.AGGREGATED)]
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                problem.periods.index(row.period),
                order[row.service],
                row.region,
                phases.index(row.phase),
                row.pool,
                row.config,
            ),
        )
    )


def _worst(latencies: tuple[float | None, ...], names: list[str], by_class: dict[str, float]) -> float | None:
    known = [
        latency
        for latency, name in zip(latencies, names, strict=True)
        if latency is not None and name in by_class
    ]
    return max(known, default=None)


def units_in_pool(problem: Problem, solution: Solution, p: int, q: int) -> int:
    """Units that stand in a pool in a period, reserve included."""
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
    """Cost of what stands in a pool in a period, by kind; energy is not among them. [USD]"""
    pool = problem.pools[p]
    kinds: dict[str, float] = defaultdict(float)
    for kind, values in pool.fixed_cost_kinds.items():
        kinds[kind] += values[q]
    for (pool_index, a, ordered), count in solution.acquired.items():
        acquisition = pool.acquisitions[a] if pool_index == p else None
        if acquisition is None or not acquisition.serves(ordered, q):
            continue
        for kind, table in acquisition.unit_cost_by_period.items():
            kinds[kind] += count * table[ordered][q]
    for (pool_index, left), count in solution.retired.items():
        if pool_index == p and pool.retirement is not None:
            for kind, table in pool.retirement.unit_cost_by_period.items():
                kinds[kind] += count * table[left][q]
    return dict(kinds)


def pool_usd(problem: Problem, solution: Solution, p: int, q: int) -> float:
    """Cost of what stands in a pool in a period, without energy. [USD]"""
    return sum(pool_cost_kinds(problem, solution, p, q).values())


def purchases(problem: Problem, solution: Solution) -> tuple[Purchase, ...]:
    """What is bought and rented, in the order of periods and offers."""
    rows = []
    for (p, a, q), units in sorted(solution.acquired.items(), key=lambda item: (item[0][2], item[0])):
        pool = problem.pools[p]
        acquisition = pool.acquisitions[a]
        offer = acquisition.offer
        rows.append(
            Purchase(
                period=problem.periods[q],
                offer=offer.name,
                region=pool.region,
                pool=pool.name,
                hardware=pool.hardware,
                kind=_kind(offer),
                units=units,
                unit=offer.unit,
                accelerators=units * pool.accelerators_per_unit,
                capex_usd=units * acquisition.capex_usd_per_unit,
                usd=units * acquisition.unit_usd[q],
                price_source=offer.price_source,
                price_as_of=offer.price_as_of,
            )
        )
    return tuple(rows)


def _kind(offer: Offer) -> str:
    if offer.capex_usd_per_host is not None:
        return "buy"
    if offer.spot_max_share is not None:
        return "spot"
    return "reserve" if offer.term_quarters > 1 else "rent"


def retirements(problem: Problem, solution: Solution) -> tuple[Retired, ...]:
    """Owned hosts that leave, in the order of periods and pools."""
    rows = []
    for (p, q), units in sorted(solution.retired.items(), key=lambda item: (item[0][1], item[0])):
        pool = problem.pools[p]
        if pool.retirement is None:
            raise ValueError(f"nothing may leave {pool.name}")
        resale = -sum(pool.retirement.unit_cost_by_period["resale"][q])
        rows.append(
            Retired(
                period=problem.periods[q],
                pool=pool.name,
                region=pool.region,
                hardware=pool.hardware,
                hosts=units,
                usd=units * pool.retirement.unit_usd[q],
                resale_usd=units * resale,
            )
        )
    return tuple(rows)


def pool_uses(problem: Problem, traffic: Traffic, solution: Solution) -> tuple[PoolUse, ...]:
    """What every pool holds and runs, pools that stay empty left out."""
    rows = []
    for q, period in enumerate(problem.periods):
        for p, pool in enumerate(problem.pools):
            units = units_in_pool(problem, solution, p, q)
            usd = pool_usd(problem, solution, p, q)
            if units == 0 and (p, q) not in solution.retired:
                continue
            used = sum(
                pool.footprint_accelerators(problem.candidates[c].accelerators) * replicas
                for (c, pool_index, when), replicas in traffic.replicas.items()
                if pool_index == p and when == q
            )
            total = units * pool.accelerators_per_unit
            out = pool.maintenance_in(q) * pool.accelerators_per_unit
            reserve = reserved_accelerators(pool, units - out // pool.accelerators_per_unit, used)
            rows.append(
                PoolUse(
                    period=period,
                    pool=pool.name,
                    region=pool.region,
                    hardware=pool.hardware,
                    accelerators=total,
                    reserve_accelerators=reserve,
                    used_accelerators=used,
                    utilisation=used / (total - reserve - out) if total > reserve + out else 0.0,
                    usd=usd,
                    idle_usd=usd * (1 - used / total) if total else usd,
                    maintenance_accelerators=out,
                )
            )
    return tuple(rows)


def reserved_accelerators(pool: SupplyPool, units: int, used: int) -> int:
    """Accelerators kept free: those of a pool that runs something, or that has no choice."""
    if pool.may_stay_empty and used == 0:
        return 0
    return min(pool.reserve_units, units) * pool.accelerators_per_unit


def unmet_rows(problem: Problem, traffic: Traffic) -> tuple[Unmet, ...]:
    """Unserved traffic by cell and class."""
    rows = []
    for (cell_index, k), rate in sorted(traffic.unmet.items()):
        cell = problem.cells[cell_index]
        rows.append(
            Unmet(
                period=problem.periods[cell.period],
                region=cell.region,
                service=cell.service,
                request_class=problem.services[cell.service].classes[k].name,
                requests_per_s=rate,
            )
        )
    return tuple(rows)


def phase_ratios(problem: Problem, rows: Iterable[Placement]) -> tuple[PhaseRatio, ...]:
    """Prefill to decode accelerators of every disaggregated service, region and period."""
    totals: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        totals[row.period, row.region, row.service][row.phase] += row.accelerators
    return tuple(
        PhaseRatio(
            period=period,
            region=region,
            service=service,
            prefill_accelerators=by_phase[Phase.PREFILL],
            decode_accelerators=by_phase[Phase.DECODE],
            ratio=by_phase[Phase.PREFILL] / by_phase[Phase.DECODE],
        )
        for (period, region, service), by_phase in totals.items()
        if by_phase[Phase.PREFILL] and by_phase[Phase.DECODE]
    )


def find_candidate(problem: Problem, row: Placement) -> Candidate | None:
    """The candidate that a placement runs, or None if the problem has none of that name."""
    for candidate in problem.candidates:
        if (candidate.service, candidate.phase.value, candidate.hardware, candidate.config) == (
            row.service,
            row.phase,
            row.hardware,
            row.config,
        ):
            return candidate
    return None
