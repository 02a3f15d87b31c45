"""Families 1, 2 and 9, and the latency targets: what serves the demand."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.planner.problem import Phase
from fleetplan.planner.statements import Violation, exceeds
from fleetplan.planner.verify.plan_check import PlanCheck


def check_coverage(check: PlanCheck) -> Iterator[Violation]:
    """Every class is served in both phases, up to what is declared unmet."""
    unmet = {
        (row.service, row.region, row.period, row.request_class): row.requests_per_s
        for row in check.plan.unmet
    }
    if unmet and check.problem.fleet.policy.unmet == "forbid":
        yield Violation("coverage", "demand is unmet, and the policy forbids it")
    for cell in check.problem.cells:
        rows = check.in_cell(cell.service, cell.region, cell.period)
        for k, demand in enumerate(cell.requests_per_s):
            name = check.problem.services[cell.service].classes[k].name
            served = dict.fromkeys(Phase, 0.0)
            for row, candidate in rows:
                served[candidate.phase] += row.requests_per_s_by_class.get(name, 0.0)
            separate = min(served[Phase.PREFILL], served[Phase.DECODE])
            period = check.problem.periods[cell.period]
            missing = unmet.get((cell.service, cell.region, period, name), 0.0)
            total = served[Phase.AGGREGATED] + separate + missing
            label = f"{cell.service} {name} {cell.region} {period}"
            if exceeds(demand, total):
                yield Violation("coverage", f"{label}: {total} of {demand} requests/s are served")
            if exceeds(served[Phase.PREFILL], separate) or exceeds(served[Phase.DECODE], separate):
                yield Violation("coverage", f"{label}: the phases serve different rates: {served}")


def check_latency(check: PlanCheck) -> Iterator[Violation]:
    """Every placement meets the latency targets of its service."""
    for row, candidate in check.rows:
        service = check.problem.services[row.service]
        for k, request_class in enumerate(service.classes):
            if request_class.name not in row.requests_per_s_by_class:
                continue
            ttft, tpot = candidate.ttft_ms[k], candidate.tpot_ms[k]
            label = f"{row.service} {row.config} {request_class.name}"
            if ttft is not None and service.ttft_ms is not None:
                total = ttft + service.network_latency_ms
                if exceeds(total, service.ttft_ms):
                    yield Violation("latency", f"{label}: TTFT {total} ms of {service.ttft_ms} ms")
            if tpot is not None and service.tpot_ms is not None and exceeds(tpot, service.tpot_ms):
                yield Violation("latency", f"{label}: TPOT {tpot} ms of {service.tpot_ms} ms")


def check_replica_load(check: PlanCheck) -> Iterator[Violation]:
    """Replicas carry their traffic with its headroom."""
    for row, candidate in check.rows:
        service = check.problem.services[row.service]
        names = [request_class.name for request_class in service.classes]
        load = 0.0
        for name, rate in row.requests_per_s_by_class.items():
            capacity = candidate.requests_per_s[names.index(name)]
            if capacity <= 0:
                yield Violation("replica_load", f"{row.config} cannot serve {row.service} {name}")
                continue
            load += rate * (1 + service.headroom) / capacity
        if exceeds(load, row.replicas):
            yield Violation("replica_load", f"{row.service} {row.config}: {load} on {row.replicas}")


def check_configurations(check: PlanCheck) -> Iterator[Violation]:
    """A service runs few enough configurations, on hardware and runtimes that it allows."""
    limit = check.problem.fleet.policy.max_configs_per_service_region
    for cell in check.problem.cells:
        rows = check.in_cell(cell.service, cell.region, cell.period)
        running = {(row.phase, row.hardware, row.config) for row, _ in rows}
        if limit is not None and len(running) > limit:
            yield Violation("configurations", f"{cell.service} {cell.region}: {len(running)} > {limit}")
        service = check.problem.services[cell.service]
        for row, candidate in rows:
            runtime = "aggregated" if candidate.phase is Phase.AGGREGATED else "disaggregated"
            if runtime not in service.runtimes:
                yield Violation("configurations", f"{row.service} does not allow {runtime}")
            allowed = service.allowed_hardware
            if allowed is not None and row.hardware not in allowed:
                yield Violation("configurations", f"{row.service} does not allow {row.hardware}")
