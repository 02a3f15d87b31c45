"""From raw solver values to a plan in unrounded numbers.

The solver's values only say how many replicas, units and load units there are. Traffic is then spread
over them in floating point, loads are scaled down to the demand, and replicas that carry nothing are
dropped; cost is recomputed from the result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from fleetplan.fleet.inventory import Offer
from fleetplan.planner.assemble.changes import started_replicas, switched_replicas, with_idle_replicas
from fleetplan.planner.assemble.offline_work import SECONDS_PER_HOUR, offline_work
from fleetplan.planner.formulation import (
    LoadKey,
    PairKey,
    ReplicaKey,
    Solution,
    data_usd_per_request_per_s,
    rate_scales,
    started_usd,
    switched_usd,
)
from fleetplan.planner.plan import (
    MomentKey,
    PhaseRatio,
    Placement,
    PoolUse,
    Purchase,
    Retired,
    Unmet,
)
from fleetplan.planner.problem import Candidate, Phase, Problem, Slot
from fleetplan.planner.problem.kv_pairs import Handovers, cell_handovers
from fleetplan.planner.problem.supply import SupplyPool
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

LOAD_TOLERANCE = 1e-7
"""Load above a whole number of replicas that is rounding, not traffic. [replicas]"""

SMALLEST_SHARE = 1e-12
"""Share of a class's demand below which nothing is served: float rounding. A rate unit is 1e-8 of the largest
demand of a service; of a load nothing can be said, as a replica may do any multiple of the demand."""

CRUMB_RATIO = 1e-7
"""Part of a class's separate traffic below which a pair of groups hands nothing over: some rate units, which
no plan needs and which would read as a flow of its own."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Who serves what.

    Attributes
    ----------
    rates : dict[LoadKey, float]
        Traffic by (candidate, class, pool, cell), headroom not included. [requests/s]
    replicas : dict[ReplicaKey, int]
        Replicas by (candidate, pool, moment); idle only where starting them anew would cost.
    unmet : dict[tuple[int, int], float]
        Unserved traffic by (cell, class). [requests/s]
    passed : dict[PairKey, float]
        Traffic that passes between a pair of groups of prefill and decode replicas. [requests/s]
    put_off : dict[tuple[int, int, int], float]
        Offline work by (cell in which it arises, cell in which it is done, class). [requests/day]
    """

    rates: dict[LoadKey, float]
    replicas: dict[ReplicaKey, int]
    unmet: dict[tuple[int, int], float]
    passed: dict[PairKey, float]
    put_off: dict[tuple[int, int, int], float]


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
    passed: dict[PairKey, float] = {}
    planned = _planned_rates(problem, solution)
    known = cell_handovers(problem)
    for cell_index, cell in enumerate(problem.cells):
        headroom = 1 + problem.services[cell.service].headroom
        for k, demand in enumerate(cell.requests_per_s):
            place = (cell_index, k)
            units = solution.unmet.get(place, 0)
            missing = min(scales[cell.service].requests_per_s(units) / headroom, demand)
            if missing > 0:
                unmet[place] = missing
    put_off = offline_work(problem, solution, unmet)
    for (cell_index, k), wanted in _served_rates(problem, unmet, put_off).items():
        place, service = (cell_index, k), problem.services[problem.cells[cell_index].service]
        own = planned[place]
        whole = {s: rate for s, rate in own.items() if problem.candidates[s[0]].phase is Phase.AGGREGATED}
        aggregated = min(sum(whole.values()), wanted)
        if service.average_quality_floor is not None:
            # All variants are scaled alike, so that the average stays.
            planned_apart = _apart(problem, solution, place, known[place]) / (1 + service.headroom)
            aggregated = wanted * _share(sum(whole.values()), planned_apart)
        apart = wanted - aggregated
        between = _passed(solution, place, known[place], apart if apart > SMALLEST_SHARE * wanted else 0.0)
        passed.update({(*place, g): rate for g, rate in enumerate(between)})
        scaled = _scaled(whole, aggregated)
        for phase in (Phase.PREFILL, Phase.DECODE):
            for index, group in enumerate(known[place].groups(phase)):
                through = sum(between[g] for g in known[place].pairs_of(phase, index))
                scaled |= _scaled({s: own[s] for s in group.slots if s in own}, through)
        rates.update({(c, k, p, cell_index): rate for (c, p), rate in scaled.items() if rate > 0})
    needed = _needed_replicas(problem, solution, rates)
    if problem.keeps_idle_replicas:
        needed = with_idle_replicas(problem, needed, solution.replicas)
    return Traffic(rates, needed, unmet, passed, put_off)


def _served_rates(
    problem: Problem, unmet: Mapping[tuple[int, int], float], put_off: Mapping[tuple[int, int, int], float]
) -> dict[tuple[int, int], float]:
    """What each cell serves of each class, headroom not included. [requests/s]"""
    rates = {}
    for i, cell in enumerate(problem.cells):
        offline = problem.services[cell.service].offline is not None
        for k, demand in enumerate(cell.requests_per_s):
            served = 0.0 if offline else demand - unmet.get((i, k), 0.0)
            rates[i, k] = served if served > SMALLEST_SHARE * demand else 0.0
    for (_, j, k), per_day in put_off.items():
        seconds = problem.moments[problem.cells[j].moment].hours * SECONDS_PER_HOUR
        rates[j, k] += per_day / seconds
    return rates


def _planned_rates(problem: Problem, solution: Solution) -> dict[tuple[int, int], dict[Slot, float]]:
    """Traffic that the solver's loads stand for, by (cell, class), the headroom taken out. [requests/s]"""
    planned: dict[tuple[int, int], dict[Slot, float]] = defaultdict(dict)
    for (c, k, p, cell), units in solution.load.items():
        headroom = 1 + problem.services[problem.candidates[c].service].headroom
        rate = problem.candidates[c].requests_per_s[k] * units / LOAD_UNITS_PER_REPLICA
        planned[cell, k][c, p] = rate / headroom
    return planned


def _passed(solution: Solution, place: tuple[int, int], known: Handovers, rate: float) -> list[float]:
    """What passes between each pair, in the solver's proportions. [requests/s]"""
    if len(known.pairs) == 1:
        return [rate]
    units = [solution.disaggregated.get((*place, g), 0) for g in range(len(known.pairs))]
    least = CRUMB_RATIO * sum(units)
    kept = [each if each > least else 0 for each in units]
    total = sum(kept)
    return [rate * each / total if total else 0.0 for each in kept]


def _apart(problem: Problem, solution: Solution, place: tuple[int, int], known: Handovers) -> float:
    """Rate that the solver lets pass between all pairs, with its headroom. [requests/s]"""
    scale = rate_scales(problem)[problem.cells[place[0]].service]
    return scale.requests_per_s(
        sum(solution.disaggregated.get((*place, g), 0) for g in range(len(known.pairs)))
    )


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 0.0


def _scaled(rates: Mapping[Slot, float], wanted: float) -> dict[Slot, float]:
    """Rates in the same proportions that add up to what is wanted; none where nothing is."""
    total = sum(rates.values())
    if total <= 0 or wanted <= 0:
        return {}
    return {slot: rate * wanted / total for slot, rate in rates.items()}


def _needed_replicas(
    problem: Problem, solution: Solution, rates: dict[LoadKey, float]
) -> dict[ReplicaKey, int]:
    """Replicas that the traffic with its headroom fills."""
    load: dict[ReplicaKey, float] = defaultdict(float)
    for (c, k, p, cell), rate in rates.items():
        candidate = problem.candidates[c]
        headroom = 1 + problem.services[candidate.service].headroom
        load[c, p, problem.cells[cell].moment] += rate * headroom / candidate.requests_per_s[k]
    return {
        key: _fewest_replicas(problem.candidates[key[0]], value, solution.replicas[key])
        for key, value in load.items()
        if value > 0
    }


def _fewest_replicas(candidate: Candidate, load: float, most: int) -> int:
    """Fewest replicas of one pool that carry a load, at most `most` of them."""
    fewest = max(math.ceil(load - LOAD_TOLERANCE), 1)
    while fewest < most and candidate.carried(fewest) < load - LOAD_TOLERANCE:
        fewest += 1
    return min(most, fewest)


def placements(problem: Problem, traffic: Traffic, solution: Solution) -> tuple[Placement, ...]:
    """One placement for each set of replicas, with its share of cost."""
    served: dict[ReplicaKey, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for (c, k, p, cell), rate in traffic.rates.items():
        served[c, p, problem.cells[cell].moment][k] += rate
    elsewhere = _rates_of_other_regions(problem, traffic)
    rows = []
    for (c, p, m), replicas in traffic.replicas.items():
        candidate, pool, moment = problem.candidates[c], problem.pools[p], problem.moments[m]
        names = [request_class.name for request_class in problem.services[candidate.service].classes]
        by_class = {names[k]: rate for k, rate in sorted(served[c, p, m].items())}
        load = sum(rate / candidate.requests_per_s[names.index(name)] for name, rate in by_class.items())
        energy = load * (candidate.power_kw or 0.0) * pool.energy_usd_per_kw[moment.period] * moment.weight
        footprint = pool.footprint_accelerators(candidate.accelerators) * replicas
        key = (c, p, m)
        transition = started_replicas(problem, traffic.replicas, key) * started_usd(problem, key)
        tidal = switched_replicas(problem, traffic.replicas, key) * switched_usd(problem, key)
        data = sum(
            sum(rates.values())
            * data_usd_per_request_per_s(problem, candidate.service, (origin, pool.region), m)
            for origin, rates in elsewhere.get(key, {}).items()
            if candidate.phase is not Phase.DECODE
        )
        units = units_in_pool(problem, solution, p, moment.period)
        share = footprint / (units * pool.accelerators_per_unit) * moment.weight
        rows.append(
            Placement(
                period=problem.periods[moment.period],
                slice=moment.slice,
                scenario=moment.scenario,
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
                requests_per_s_by_origin=elsewhere.get((c, p, m), {}),
                utilisation=load / replicas,
                utilisation_limit=candidate.carried(replicas) / replicas,
                ttft_ms=_worst(candidate.ttft_ms, names, by_class),
                tpot_ms=_worst(candidate.tpot_ms, names, by_class),
                usd=share * pool_usd(problem, solution, p, moment.period)
                + energy
                + transition
                + tidal
                + data,
                energy_usd=energy,
                transition_usd=transition,
                tidal_usd=tidal,
                data_usd=data,
                provenance=asdict(candidate.provenance),
            )
        )
    return _in_reading_order(problem, rows)


def _in_reading_order(problem: Problem, rows: Iterable[Placement]) -> tuple[Placement, ...]:
    """Placements as a reader looks for them: by moment, then by service as the fleet lists them."""
    order = {service.name: index for index, service in enumerate(problem.fleet.services)}
    phases = [phase.value for phase in (Phase.PREFILL, Phase.DECODE, Phase.AGGREGATED)]

    def place(row: Placement) -> tuple[int, int, str, int, str, str]:
        moment = problem.moment_index(row)
        if moment is None:
            raise ValueError(f"a placement of {row.service} stands in no moment of the problem")
        return moment, order[row.service], row.region, phases.index(row.phase), row.pool, row.config

    return tuple(sorted(rows, key=place))


def _rates_of_other_regions(
    problem: Problem, traffic: Traffic
) -> dict[ReplicaKey, dict[str, dict[str, float]]]:
    """Traffic that comes from another region, by replicas, region and class. [requests/s]"""
    found: dict[ReplicaKey, dict[str, dict[str, float]]] = {}
    for (c, k, p, index), rate in traffic.rates.items():
        cell = problem.cells[index]
        if cell.region != problem.pools[p].region:
            name = problem.services[cell.service].classes[k].name
            by_origin = found.setdefault((c, p, cell.moment), {})
            by_origin.setdefault(cell.region, {})[name] = rate
    return found


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
    """Cost of what stands in a pool in a period, and of what leaves it, by kind; without energy. [USD]"""
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


def leaving_usd(problem: Problem, solution: Solution, p: int, q: int) -> float:
    """What hosts that leave a pool at the start of a period cost at once, less their sale. [USD]"""
    retirement = problem.pools[p].retirement
    return 0.0 if retirement is None else solution.retired.get((p, q), 0) * retirement.leaving_usd(q)


def pool_usd(problem: Problem, solution: Solution, p: int, q: int) -> float:
    """Cost of what stands in a pool in a period, without energy and without what leaves it. [USD]"""
    kinds = pool_cost_kinds(problem, solution, p, q)
    return sum(kinds.values()) - leaving_usd(problem, solution, p, q)


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
    used: dict[tuple[int, int], int] = defaultdict(int)
    for (c, p, m), replicas in traffic.replicas.items():
        footprint = problem.pools[p].footprint_accelerators(problem.candidates[c].accelerators)
        used[p, m] += footprint * replicas
    rows = []
    for m, moment in enumerate(problem.moments):
        q = moment.period
        for p in range(len(problem.pools)):
            units = units_in_pool(problem, solution, p, q)
            if units or (p, q) in solution.retired:
                usd = pool_usd(problem, solution, p, q) * moment.weight
                leaving = leaving_usd(problem, solution, p, q) * moment.weight
                rows.append(_pool_use(problem, (p, m), units, used[p, m], (usd, leaving)))
    return tuple(rows)


def _pool_use(
    problem: Problem, place: tuple[int, int], units: int, used: int, costs: tuple[float, float]
) -> PoolUse:
    """One pool in one moment, of which some accelerators are used, with what stands and what leaves costs."""
    pool, moment = problem.pools[place[0]], problem.moments[place[1]]
    total = units * pool.accelerators_per_unit
    out_units = pool.maintenance_in(moment.period)
    out = out_units * pool.accelerators_per_unit
    reserve = reserved_accelerators(pool, units - out_units, used)
    return PoolUse(
        period=problem.periods[moment.period],
        slice=moment.slice,
        scenario=moment.scenario,
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
    )


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
        moment = problem.moments[cell.moment]
        rows.append(
            Unmet(
                period=problem.periods[moment.period],
                slice=moment.slice,
                scenario=moment.scenario,
                region=cell.region,
                service=cell.service,
                request_class=problem.services[cell.service].classes[k].name,
                requests_per_s=rate,
            )
        )
    return tuple(rows)


def phase_ratios(problem: Problem, rows: Iterable[Placement]) -> tuple[PhaseRatio, ...]:
    """Prefill to decode accelerators of every disaggregated service, region and moment."""
    totals: dict[tuple[MomentKey, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        totals[row.moment_key, row.region, row.service][row.phase] += row.accelerators
    return tuple(
        PhaseRatio(
            period=period,
            slice=slice_name,
            scenario=scenario,
            region=region,
            service=service,
            prefill_accelerators=by_phase[Phase.PREFILL],
            decode_accelerators=by_phase[Phase.DECODE],
            ratio=by_phase[Phase.PREFILL] / by_phase[Phase.DECODE],
        )
        for ((period, slice_name, scenario), region, service), by_phase in totals.items()
        if by_phase[Phase.PREFILL] and by_phase[Phase.DECODE]
    )
