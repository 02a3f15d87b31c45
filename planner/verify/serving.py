"""Verify families 1, 2 and 9, and latency targets: the placements that serve the demand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from fleetplan.fleet.figures import counted
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
from fleetplan.planner.verify.violations import Violation, above


def check_coverage(check: PlanCheck) -> Iterator[Violation]:
    """Check that every class is served in both phases, up to the declared unmet demand."""
    unmet = {
        (row.service, row.region, row.moment_key, row.request_class): row.requests_per_s
        for row in check.plan.unmet
    }
    fleet = check.problem.fleet
    if unmet and fleet.policy.unmet == "forbid" and fleet.objective != "served":
        yield Violation("coverage", "demand is unmet although the policy forbids it")
    work = work_served(check)
    with_demand: set[tuple[str, str, MomentKey]] = set()
    for cell in check.problem.cells:
        rows = check.of_cell(cell.service, cell.region, cell.moment)
        service = check.problem.services[cell.service]
        moment = check.problem.moments[cell.moment]
        when, offline = check.key_of(moment), service.offline is not None
        with_demand.add((cell.service, cell.region, when))
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
                text = f"{label}: served and unmet traffic is {total} of {demand} requests/s"
                yield Violation("coverage", text)
            if differs(served[Phase.PREFILL], served[Phase.DECODE], floor):
                prefill, decode = served[Phase.PREFILL], served[Phase.DECODE]
                text = f"{label}: prefill serves {prefill} requests/s, decode {decode}"
                yield Violation("coverage", text)
    yield from _without_demand(check, with_demand)
    yield from _unmet_gaps(check)


def _without_demand(check: PlanCheck, with_demand: set[tuple[str, str, MomentKey]]) -> Iterator[Violation]:
    """Yield traffic and unmet demand of services without demand in the region and moment."""
    for row, _ in check.rows:
        for origin in (row.region, *row.requests_per_s_by_origin):
            rate = sum(check.rates(row, origin).values())
            known = (row.service, origin, row.moment_key) in with_demand
            if not known and rate > RELATIVE_TOLERANCE * row.requests_per_s:
                text = f"{row.service}: {origin} has no demand, but {rate} requests/s of it are served"
                yield Violation("coverage", text)
    for each in check.plan.unmet:
        if (each.service, each.region, each.moment_key) not in with_demand:
            text = f"{each.service}: {each.region} has no demand, but unmet demand is stated"
            yield Violation("coverage", text)


def _unmet_gaps(check: PlanCheck) -> Iterator[Violation]:
    """Check that unmet-demand gaps are stated for exactly the priorities with unmet demand."""
    plan, services = check.plan, check.problem.services
    lacking = {services[row.service].priority for row in plan.unmet}
    stated = [each.priority for each in plan.unmet_gaps]
    if len(set(stated)) < len(stated):
        yield Violation("coverage", f"the gaps of unmet demand name a priority twice: {stated}")
    asked = check.problem.fleet.policy.unmet == "penalise" and check.problem.fleet.objective != "served"
    if asked and plan.format_version not in OLDER_FORMATS and lacking - set(stated):
        yield Violation(
            "coverage", f"priorities without a gap of unmet demand: {sorted(lacking - set(stated))}"
        )
    for each in plan.unmet_gaps:
        if each.priority not in lacking:
            yield Violation("coverage", f"priority {each.priority} has a gap, but no unmet demand")
        if not 0 <= each.gap <= 1:
            yield Violation(
                "coverage", f"priority {each.priority}: the gap of unmet demand is {each.gap}, outside 0 to 1"
            )
        if each.gap > UNMET_RATIO and plan.status == "optimal":
            text = f"priority {each.priority}: unmet demand has a gap of {each.gap} in an optimal plan"
            yield Violation("coverage", text)
        if each.model_requests_per_s is None:
            if plan.format_version not in FORMATS_WITHOUT_MODEL_UNMET:
                text = f"priority {each.priority}: model_requests_per_s is missing"
                yield Violation("coverage", text)
        elif each.priority in lacking:
            found, rounding = _mean_unmet(check, each.priority)
            if not abs(found - each.model_requests_per_s) <= RELATIVE_TOLERANCE * found + rounding:
                label = f"priority {each.priority}: unmet demand with headroom"
                text = f"{label} is {found} requests/s, {each.model_requests_per_s} in the solver's model"
                yield Violation("coverage", text)


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
                yield Violation("latency", above(f"{label}: TPOT", tpot, service.tpot_ms, "ms"))
            if candidate.phase is Phase.DECODE:
                continue
            for origin in (row.region, *row.requests_per_s_by_origin):
                if check.rates(row, origin).get(request_class.name, 0.0) <= 0:
                    continue
                way = _round_trip_ms(check, origin, row.region)
                if candidate.reach_ms is not None and exceeds(way, candidate.reach_ms):
                    text = f"the round trip is {way} ms, limits under load allow {candidate.reach_ms} ms"
                    yield Violation("latency", f"{label} from {origin}: {text}")
                ttft = candidate.ttft_ms[k]
                if ttft is None or service.ttft_ms is None:
                    continue
                total = ttft + service.outside_ms.total_ms + way
                if exceeds(total, service.ttft_ms):
                    text = above(f"{label} from {origin}: TTFT", total, service.ttft_ms, "ms")
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
                text = f"{row.service}: {row.region} may not serve requests from {origin}"
                yield Violation("coverage", text)


def check_replica_load(check: PlanCheck) -> Iterator[Violation]:
    """Check that replicas carry their traffic with its headroom."""
    for row, candidate in check.rows:
        index = check.class_index[row.service]
        for name, rate in row.requests_per_s_by_class.items():
            if rate > 0 and candidate.requests_per_s[index[name]] <= 0:
                yield Violation("replica_load", f"{row.service} {row.config}: it cannot serve class {name}")
        busy = planned(check, row.service, busy_replicas(check, candidate, row.requests_per_s_by_class))
        most = carried(candidate, row.replicas)
        if exceeds(busy, most):
            label = f"{row.service} {row.config}: the load of {counted(row.replicas, 'replica')}"
            yield Violation("replica_load", above(label, busy, most, "replicas"))


def check_configurations(check: PlanCheck) -> Iterator[Violation]:
    """Check the number of configurations of each service, and its allowed hardware and runtimes."""
    limit = check.problem.fleet.policy.max_configs_per_service_region
    places: dict[tuple[str, str, MomentKey], list[tuple[Placement, Candidate]]] = defaultdict(list)
    for row, candidate in check.rows:
        places[row.service, row.region, row.moment_key].append((row, candidate))
    for (name, region, _), rows in places.items():
        running = {(row.phase, row.hardware, row.config) for row, _ in rows}
        if limit is not None and len(running) > limit:
            text = f"{name} {region}: {counted(len(running), 'configuration', 'run')}"
            yield Violation("configurations", f"{text}, above the limit of {limit}")
        service = check.problem.services[name]
        for row, candidate in rows:
            runtime = "aggregated" if candidate.phase is Phase.AGGREGATED else "disaggregated"
            if runtime not in service.runtimes:
                yield Violation("configurations", f"{row.service} does not allow the runtime {runtime}")
            allowed = service.allowed_hardware
            if allowed is not None and row.hardware not in allowed:
                yield Violation("configurations", f"{row.service} does not allow the hardware {row.hardware}")
