"""Verify families 1, 2 and 9, and latency targets: the placements that serve the demand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.plan import MomentKey, Placement
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.problem.load_units import largest_demands
from fleetplan.planner.verify.offline import work_served
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.quantities import busy_replicas, carried, planned
from fleetplan.planner.verify.records import FORMATS_WITHOUT_MODEL_UNMET, OLDER_FORMATS
from fleetplan.planner.verify.rounding import (
    RATE_UNIT_RATIO,
    RELATIVE_TOLERANCE,
    SHARE_FLOOR,
    UNMET_RATIO,
    differs,
    exceeds,
)
from fleetplan.planner.verify.violations import Violation


def check_coverage(check: PlanCheck) -> Iterator[Violation]:
    """Check that every class is served in both phases, up to the declared unmet demand."""
    unmet = {
        (row.service, row.region, row.moment_key, row.request_class): row.requests_per_s
        for row in check.plan.unmet
    }
    fleet = check.problem.fleet
    if unmet and fleet.policy.unmet == "forbid" and fleet.objective != "served":
        yield Violation("coverage", "demand is unmet, and the policy forbids it")
    work = work_served(check)
    asked_for: set[tuple[str, str, MomentKey]] = set()
    for cell in check.problem.cells:
        rows = check.of_cell(cell.service, cell.region, cell.moment)
        service = check.problem.services[cell.service]
        moment = check.problem.moments[cell.moment]
        when, offline = check.key_of(moment), service.offline is not None
        asked_for.add((cell.service, cell.region, when))
        for k, asked in enumerate(cell.requests_per_s):
            name = service.classes[k].name
            demand = work[cell.service, cell.region, name, cell.moment] if offline else asked
            served = dict.fromkeys(Phase, 0.0)
            for row, candidate in rows:
                served[candidate.phase] += check.rates(row, cell.region).get(name, 0.0)
            separate = min(served[Phase.PREFILL], served[Phase.DECODE])
            missing = 0.0 if offline else unmet.get((cell.service, cell.region, when, name), 0.0)
            total = served[Phase.AGGREGATED] + separate + missing
            label = f"{cell.service} {name} {cell.region} {moment.label}"
            floor = SHARE_FLOOR * max(cell.most_requests_per_s)
            # Compare small unmet demand next to large served demand on its own: sums are not rounded.
            if not abs(demand - total) <= floor:
                yield Violation("coverage", f"{label}: {total} of {demand} requests/s are served or unmet")
            if differs(served[Phase.PREFILL], served[Phase.DECODE], floor):
                yield Violation("coverage", f"{label}: the phases serve different rates: {served}")
    yield from _unasked(check, asked_for)
    yield from _unmet_gaps(check)


def _unasked(check: PlanCheck, asked_for: set[tuple[str, str, MomentKey]]) -> Iterator[Violation]:
    """Yield traffic and unmet demand of services without demand in the region and moment."""
    for row, _ in check.rows:
        for origin in (row.region, *row.requests_per_s_by_origin):
            rate = sum(check.rates(row, origin).values())
            known = (row.service, origin, row.moment_key) in asked_for
            if not known and rate > RELATIVE_TOLERANCE * row.requests_per_s:
                yield Violation(
                    "coverage", f"{row.service}: {rate} requests/s of {origin}, which asks for none"
                )
    for each in check.plan.unmet:
        if (each.service, each.region, each.moment_key) not in asked_for:
            yield Violation(
                "coverage", f"{each.service}: nothing is asked for in {each.region} that is unmet"
            )


def _unmet_gaps(check: PlanCheck) -> Iterator[Violation]:
    """Check that unmet-demand gaps are stated for exactly the priorities with unmet demand."""
    plan, services = check.plan, check.problem.services
    lacking = {services[row.service].priority for row in plan.unmet}
    stated = [each.priority for each in plan.unmet_gaps]
    if len(set(stated)) < len(stated):
        yield Violation("coverage", f"gaps in unmet demand of the priorities {stated}")
    asked = check.problem.fleet.policy.unmet == "penalise" and check.problem.fleet.objective != "served"
    if asked and plan.format_version not in OLDER_FORMATS and lacking - set(stated):
        yield Violation("coverage", f"no gap is stated of the priorities {sorted(lacking - set(stated))}")
    for each in plan.unmet_gaps:
        if each.priority not in lacking:
            yield Violation("coverage", f"priority {each.priority} lacks nothing, and has a gap stated")
        if not 0 <= each.gap <= 1:
            yield Violation("coverage", f"a gap of {each.gap} in unmet demand of priority {each.priority}")
        if each.gap > UNMET_RATIO and plan.status == "optimal":
            yield Violation("coverage", f"optimal, and priority {each.priority} might lack less")
        if each.model_requests_per_s is None:
            if plan.format_version not in FORMATS_WITHOUT_MODEL_UNMET:
                text = f"priority {each.priority}: what the solver's model leaves unmet is not stated"
                yield Violation("coverage", text)
        elif each.priority in lacking:
            found, rounding = _mean_unmet(check, each.priority)
            if not abs(found - each.model_requests_per_s) <= RELATIVE_TOLERANCE * found + rounding:
                text = f"priority {each.priority}: {found} requests/s of the plan are unmet with headroom, "
                yield Violation("coverage", text + f"{each.model_requests_per_s} of the solver's model")


def _mean_unmet(check: PlanCheck, priority: int) -> tuple[float, float]:
    """Return the unmet demand of a priority with headroom (mean over moments), and its rounding tolerance."""
    total = rounding = 0.0
    largest = largest_demands(check.problem)
    for row in check.plan.unmet:
        service = check.problem.services[row.service]
        if service.priority == priority:
            moment = check.problem.moments[check.moments[row.moment_key]]
            share = check.weight(moment) / len(check.problem.periods)
            total += share * row.requests_per_s * service.planned_ratio
            rounding += share * RATE_UNIT_RATIO * largest[row.service]
    return total, rounding


def check_latency(check: PlanCheck) -> Iterator[Violation]:
    """Check that every placement meets the latency targets of its service for all origins."""
    for row, candidate in check.rows:
        service = check.problem.services[row.service]
        for k, request_class in enumerate(service.classes):
            label = f"{row.service} {row.config} {request_class.name}"
            if request_class.name not in row.requests_per_s_by_class:
                continue
            tpot = candidate.tpot_ms[k]
            late = tpot is not None and service.tpot_ms is not None and exceeds(tpot, service.tpot_ms)
            # Engine tables may state a TPOT for prefill replicas, which generate only the first token.
            if late and candidate.phase is not Phase.PREFILL:
                yield Violation("latency", f"{label}: TPOT {tpot} ms of {service.tpot_ms} ms")
            if candidate.phase is Phase.DECODE:
                continue
            for origin in (row.region, *row.requests_per_s_by_origin):
                if check.rates(row, origin).get(request_class.name, 0.0) <= 0:
                    continue
                way = _round_trip_ms(check, origin, row.region)
                if candidate.reach_ms is not None and exceeds(way, candidate.reach_ms):
                    text = f"its limits under load hold over {candidate.reach_ms} ms, the way takes {way} ms"
                    yield Violation("latency", f"{label} from {origin}: {text}")
                ttft = candidate.ttft_ms[k]
                if ttft is None or service.ttft_ms is None:
                    continue
                total = ttft + service.outside_ms.total_ms + way
                if exceeds(total, service.ttft_ms):
                    text = f"{label} from {origin}: TTFT {total} ms of {service.ttft_ms} ms"
                    yield Violation("latency", text)


def _round_trip_ms(check: PlanCheck, origin: str, region: str) -> float:
    """Return the round trip between two regions; infinite if not declared. [ms]"""
    return 0.0 if origin == region else check.problem.regions[origin].round_trip_ms.get(region, math.inf)


def check_origins(check: PlanCheck) -> Iterator[Violation]:
    """Check that requests only go to regions that their service allows; decode follows the cache."""
    for row, candidate in check.rows:
        service = check.problem.services[row.service]
        for origin in row.requests_per_s_by_origin:
            allowed = row.region in service.serve_from.get(origin, ())
            if candidate.phase is not Phase.DECODE and not allowed:
                text = f"{row.service}: {row.region} may not serve what comes from {origin}"
                yield Violation("coverage", text)


def check_replica_load(check: PlanCheck) -> Iterator[Violation]:
    """Check that replicas carry their traffic with its headroom."""
    for row, candidate in check.rows:
        index = check.class_index[row.service]
        for name, rate in row.requests_per_s_by_class.items():
            if rate > 0 and candidate.requests_per_s[index[name]] <= 0:
                yield Violation("replica_load", f"{row.config} cannot serve {row.service} {name}")
        busy = planned(check, row.service, busy_replicas(check, candidate, row.requests_per_s_by_class))
        most = carried(candidate, row.replicas)
        if exceeds(busy, most):
            pool = f"{row.replicas}" if not candidate.pooling else f"{row.replicas} that carry {most}"
            yield Violation("replica_load", f"{row.service} {row.config}: {busy} on {pool}")


def check_configurations(check: PlanCheck) -> Iterator[Violation]:
    """Check the number of configurations of each service, and its allowed hardware and runtimes."""
    limit = check.problem.fleet.policy.max_configs_per_service_region
    places: dict[tuple[str, str, MomentKey], list[tuple[Placement, Candidate]]] = defaultdict(list)
    for row, candidate in check.rows:
        places[row.service, row.region, row.moment_key].append((row, candidate))
    for (name, region, _), rows in places.items():
        running = {(row.phase, row.hardware, row.config) for row, _ in rows}
        if limit is not None and len(running) > limit:
            yield Violation("configurations", f"{name} {region}: {len(running)} > {limit}")
        service = check.problem.services[name]
        for row, candidate in rows:
            runtime = "aggregated" if candidate.phase is Phase.AGGREGATED else "disaggregated"
            if runtime not in service.runtimes:
                yield Violation("configurations", f"{row.service} does not allow {runtime}")
            allowed = service.allowed_hardware
            if allowed is not None and row.hardware not in allowed:
                yield Violation("configurations", f"{row.service} does not allow {row.hardware}")
