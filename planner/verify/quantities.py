"""Energy, load and running cost of a placement, computed once for all checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from fleetplan.fleet.inventory import KvLink
from fleetplan.planner.plan import KvFlow, Placement
from fleetplan.planner.problem import Candidate
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.problem.moments import Moment
from fleetplan.planner.verify.plan_check import DAY_HOURS, PlanCheck, Run
from fleetplan.planner.verify.prices import (
    energy_usd_per_kwh,
    idle_kw,
    installed_w,
    period_hours,
    worth,
)
from fleetplan.planner.verify.supply_rules import FleetPool

SECONDS_PER_HOUR: Final = 3600.0


def planned(check: PlanCheck, service: str, rate: float) -> float:
    """Return a rate with the headroom of its service. [requests/s]"""
    return rate * (1 + check.problem.services[service].headroom)


def links_between(check: PlanCheck, sender: Collection[str], receiver: Collection[str]) -> list[KvLink]:
    """Return the links between two places, each given by the names of its pool and region."""
    links = check.problem.fleet.kv_links
    return [link for link in links if link.prefill in sender and link.decode in receiver]


def links_of(check: PlanCheck, flow: KvFlow) -> list[KvLink]:
    """Return the links that a flow uses."""
    sender, receiver = check.pool(flow.prefill_pool), check.pool(flow.decode_pool)
    return links_between(check, (sender.name, sender.region.name), (receiver.name, receiver.region.name))


def load(check: PlanCheck, run: Run) -> float:
    """Return the busy replicas of a placement, without headroom."""
    row, candidate = run
    return busy_replicas(check, candidate, row.requests_per_s_by_class)


def busy_replicas(check: PlanCheck, candidate: Candidate, rates: Mapping[str, float]) -> float:
    """Return the replicas kept busy by rates per class. [replicas]"""
    index = check.class_index[candidate.service]
    capacities = ((rate, candidate.requests_per_s[index[name]]) for name, rate in rates.items())
    return sum(rate / capacity for rate, capacity in capacities if capacity > 0)


def carried(candidate: Candidate, replicas: int) -> float:
    """Return the load that some replicas can carry, by the best pooling line if there is any. [replicas]"""
    by_line = [
        max(line.slope * replicas - line.loss, 0.0) if replicas >= line.least else 0.0
        for line in candidate.pooling
    ]
    return max(by_line) if by_line else float(replicas)


def hours(check: PlanCheck, moment: Moment) -> float:
    """Return the expected hours of a moment within its period. [h]"""
    return period_hours(check.problem.fleet.finance) * check.weight(moment)


def busy_kw(pool: FleetPool, candidate: Candidate) -> float:
    """Return a replica's charged power above idle at full load, before PUE and any cap. [kW]"""
    full, idle = candidate.power_kw or 0.0, idle_kw(pool, candidate.accelerators)
    if candidate.uncapped_kw is not None:
        full = candidate.accelerators * installed_w(pool) / 1000
    return full - idle if full > idle else 0.0


def busy_kwh(check: PlanCheck, run: Run) -> float:
    """Return the expected metered energy of a placement above idle. [kWh]"""
    row, candidate = run
    pool = check.pool(row.pool)
    kw = busy_kw(pool, candidate) * load(check, run)
    return kw * pool.region.pue * hours(check, check.moment_of(row))


def energy_kwh(check: PlanCheck, run: Run) -> float:
    """Return the expected metered energy of a placement, including its accelerators' idle draw. [kWh]"""
    row, candidate = run
    pool = check.pool(row.pool)
    held = row.replicas * pool.blocked_accelerators(candidate.accelerators)
    return busy_kwh(check, run) + idle_kwh(check, pool, held, check.moment_of(row))


def idle_kwh(check: PlanCheck, pool: FleetPool, accelerators: int, moment: Moment) -> float:
    """Return the expected metered energy of idle accelerators. [kWh]"""
    return idle_kw(pool, accelerators) * pool.region.pue * hours(check, moment)


@memoised
def unused_kwh(check: PlanCheck) -> dict[tuple[str, int], float]:
    """Return the energy of accelerators without replicas, by pool and moment. [kWh]"""
    found = {}
    for m, moment in enumerate(check.problem.moments):
        used: dict[str, int] = defaultdict(int)
        for row, candidate in check.at(m):
            used[row.pool] += row.replicas * check.pool(row.pool).blocked_accelerators(candidate.accelerators)
        for pool in check.pools.values():
            held = check.units[pool.name, moment.period] * pool.accelerators_per_unit
            found[pool.name, m] = idle_kwh(check, pool, held - used[pool.name], moment)
    return found


def energy_usd(check: PlanCheck, run: Run) -> float:
    """Return the cost of a placement's energy above idle; the pool pays the rest. [USD]"""
    row = run[0]
    price = energy_usd_per_kwh(check.problem.fleet, check.pool(row.pool), check.moment_of(row).period)
    return busy_kwh(check, run) * price


def data_usd(check: PlanCheck, run: Run) -> float:
    """Return the network cost of requests from other regions, charged where they are prefilled. [USD]"""
    row, candidate = run
    if candidate.phase == "decode":
        return 0.0
    moment, service = check.moment_of(row), check.problem.services[row.service]
    seconds = hours(check, moment) * SECONDS_PER_HOUR
    usd = 0.0
    for origin, rates in row.requests_per_s_by_origin.items():
        per_gb = check.problem.regions[origin].network_usd_per_gb.get(row.region, 0.0)
        usd += sum(rates.values()) * seconds * service.mb_per_request / 1000 * per_gb
    return usd * worth(check.problem.fleet.finance, moment.period + 1)


def carbon_kg(check: PlanCheck, runs: Iterable[Run], unused: Iterable[tuple[str, int]]) -> float | None:
    """Return the carbon of placements and idle hardware; None if a grid or power has no figure. [kg CO2]

    `unused` selects the pools and moments whose accelerators without replicas count.
    """
    total, kwh = 0.0, unused_kwh(check)
    for pool, m in unused:
        intensity = check.pool(pool).region.grid_kg_co2_per_kwh
        if kwh[pool, m]:
            if intensity is None:
                return None
            total += kwh[pool, m] * intensity[check.problem.moments[m].period]
    for row, candidate in runs:
        grid = check.pool(row.pool).region.grid_kg_co2_per_kwh
        if grid is None or candidate.power_kw is None:
            return None
        total += energy_kwh(check, (row, candidate)) * grid[check.moment_of(row).period]
    return total


def million_tokens(check: PlanCheck, runs: Iterable[Run]) -> float | None:
    """Return prefill input and decode output tokens of placements at the peak rate. [1e6]

    None if a served class has no lengths.
    """
    total = 0.0
    for row, candidate in runs:
        seconds = hours(check, check.moment_of(row)) * SECONDS_PER_HOUR
        classes = check.problem.services[row.service].classes
        for name, rate in row.requests_per_s_by_class.items():
            lengths = classes[check.class_index[row.service][name]]
            if rate == 0:
                continue
            if lengths.input_tokens is None or lengths.output_tokens is None:
                return None
            read = lengths.input_tokens if candidate.phase != "decode" else 0
            written = lengths.output_tokens if candidate.phase != "prefill" else 0
            total += rate * seconds * (read + written)
    return total / 1e6


def transition_usd_each(check: PlanCheck, moment: Moment) -> float:
    """Return the expected cost per accelerator of a start, paid at the start of the period. [USD]"""
    fleet = check.problem.fleet
    usd = fleet.policy.transition_usd_per_accelerator * check.weight(moment)
    return float(usd * worth(fleet.finance, moment.period))


def tidal_usd_each(check: PlanCheck, moment: Moment) -> float:
    """Return the expected cost per accelerator of a replica that starts in a slice every day. [USD]"""
    fleet = check.problem.fleet
    days = period_hours(fleet.finance) / DAY_HOURS
    usd = fleet.policy.tidal.usd_per_accelerator * days * check.days(moment) * check.probability(moment)
    return float(usd * worth(fleet.finance, moment.period + 1))


def worst_ms(
    check: PlanCheck, row: Placement, candidate: Candidate, latencies: tuple[float | None, ...]
) -> float | None:
    """Return the longest latency of the classes that a placement serves; None if unknown. [ms]"""
    served = [check.class_index[candidate.service][name] for name in row.requests_per_s_by_class]
    return max((value for k in served if (value := latencies[k]) is not None), default=None)
