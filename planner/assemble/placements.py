"""Rows of a plan by service: placements with their cost, and unmet demand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict

from fleetplan.planner.assemble.changes import started_replicas, switched_replicas
from fleetplan.planner.assemble.pools import pool_usd, units_in_pool
from fleetplan.planner.assemble.row_place import row_place
from fleetplan.planner.assemble.traffic import ServedTraffic
from fleetplan.planner.formulation import (
    ReplicaKey,
    Solution,
    data_usd_per_request_per_s,
    started_usd,
    switched_usd,
)
from fleetplan.planner.plan import (
    MomentKey,
    PhaseRatio,
    Placement,
    Unmet,
)
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.problem.power_draw import load_kw


def placements(problem: Problem, traffic: ServedTraffic, solution: Solution) -> tuple[Placement, ...]:
    """Return one placement per set of replicas, with its share of cost."""
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
        energy = load * load_kw(problem, candidate)
        energy *= pool.energy_usd_per_kw[moment.period] * moment.weight
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
        running = {"energy_usd": energy, "transition_usd": transition, "tidal_usd": tidal, "data_usd": data}
        units = units_in_pool(problem, solution, p, moment.period)
        share = footprint / (units * pool.accelerators_per_unit) * moment.weight
        rows.append(
            Placement(
                **row_place(problem, c, p, m),
                replicas=replicas,
                accelerators=replicas * candidate.accelerators,
                requests_per_s=sum(by_class.values()),
                requests_per_s_by_class=by_class,
                requests_per_s_by_origin=elsewhere.get((c, p, m), {}),
                utilisation=load / replicas,
                utilisation_limit=candidate.carried(replicas) / replicas,
                ttft_ms=_worst(candidate.ttft_ms, names, by_class),
                tpot_ms=_worst(candidate.tpot_ms, names, by_class),
                usd=sum(running.values(), start=share * pool_usd(problem, solution, p, moment.period)),
                **running,
                provenance=asdict(candidate.provenance),
            )
        )
    return _in_reading_order(problem, rows)


def _in_reading_order(problem: Problem, rows: Iterable[Placement]) -> tuple[Placement, ...]:
    """Return placements in reading order: by moment, then by service in the order of the fleet file."""
    order = {service.name: index for index, service in enumerate(problem.fleet.services)}
    phases = [phase.value for phase in (Phase.PREFILL, Phase.DECODE, Phase.AGGREGATED)]

    def place(row: Placement) -> tuple[int, int, str, int, str, str]:
        moment = problem.moment_index(row)
        if moment is None:
            raise ValueError(f"a placement of {row.service} is in no moment of the problem")
        return moment, order[row.service], row.region, phases.index(row.phase), row.pool, row.config

    return tuple(sorted(rows, key=place))


def _rates_of_other_regions(
    problem: Problem, traffic: ServedTraffic
) -> dict[ReplicaKey, dict[str, dict[str, float]]]:
    """Return the traffic from other regions by replicas, region and class. [requests/s]"""
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


def unmet_rows(problem: Problem, traffic: ServedTraffic) -> tuple[Unmet, ...]:
    """Return the unserved traffic by cell and class."""
    rows = []
    for (cell_index, k), rate in sorted(traffic.unmet.items()):
        cell = problem.cells[cell_index]
        rows.append(
            Unmet(
                **problem.row_moment(cell.moment),
                region=cell.region,
                service=cell.service,
                request_class=problem.services[cell.service].classes[k].name,
                requests_per_s=rate,
            )
        )
    return tuple(rows)


def phase_ratios(problem: Problem, rows: Iterable[Placement]) -> tuple[PhaseRatio, ...]:
    """Return prefill and decode accelerators of every disaggregated service, region and moment."""
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
