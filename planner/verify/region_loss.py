"""Verify family 10: after the loss of a region, other regions serve the protected services."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import MomentKey, SurvivingPlacement
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.verify.kv_transfer import most_passed
from fleetplan.planner.verify.packing import accelerators_of, fits
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.quantities import busy_replicas, carried, links_between, planned
from fleetplan.planner.verify.rounding import SHARE_FLOOR, differs, exceeds
from fleetplan.planner.verify.supply import region_kw
from fleetplan.planner.verify.violations import Violation, above

Runs = tuple[SurvivingPlacement, Candidate]


def check_region_loss(check: PlanCheck) -> Iterator[Violation]:
    """Check that the placements without each region are possible, sufficient and minimal."""
    for lost in check.problem.regions:
        rows: list[Runs] = []
        for row in check.plan.region_losses:
            if row.lost_region != lost:
                continue
            candidate = check.candidates[row.service, row.phase, row.hardware, row.config]
            place = (check.pool(row.pool).region.name, check.pool(row.pool).hardware.name)
            if row.region == lost or place != (row.region, row.hardware):
                yield Violation("region_loss", f"{lost} lost: {row.config} cannot run in {row.pool}")
            elif not check.problem.services[row.service].may_run_in(row.region):
                yield Violation("region_loss", f"{lost} lost: {row.service} may not run in {row.region}")
            else:
                rows.append((row, candidate))
        yield from _served(check, lost, rows)
        yield from _loads(check, lost, rows)
        yield from _held(check, lost, rows)


def _served(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """Check that exactly the demand of all regions is served, less declared unmet demand."""
    problem = check.problem
    asked: dict[tuple[str, MomentKey, str], float] = defaultdict(float)
    for cell in problem.cells:
        if cell.service in problem.fleet.policy.survive_region_loss:
            when = check.key_of(problem.moments[cell.moment])
            for request_class, rate in zip(
                problem.services[cell.service].classes, cell.requests_per_s, strict=True
            ):
                asked[cell.service, when, request_class.name] += rate
    unmet: dict[tuple[str, MomentKey, str], float] = defaultdict(float)
    for each in check.plan.unmet:
        unmet[each.service, each.moment_key, each.request_class] += each.requests_per_s
    serving_rows: dict[tuple[str, MomentKey, str], list[Runs]] = defaultdict(list)
    for run in rows:
        for name in run[0].requests_per_s_by_class:
            serving_rows[run[0].service, run[0].moment_key, name].append(run)
            asked[run[0].service, run[0].moment_key, name] += 0.0
    for (service, when, name), demand in asked.items():
        serving = serving_rows[service, when, name]
        by_phase = dict.fromkeys(Phase, 0.0)
        for row, candidate in serving:
            by_phase[candidate.phase] += row.requests_per_s_by_class[name]
        passed = _passed(check, serving, name)
        label = f"{lost} lost: {service} {name} {' '.join(filter(None, when))}"
        total = by_phase[Phase.AGGREGATED] + passed + unmet[service, when, name]
        if differs(demand, total):
            text = f"{label}: served and unmet traffic is {total} of {demand} requests/s"
            yield Violation("region_loss", text)
        floor = SHARE_FLOOR * demand
        if any(differs(by_phase[phase], passed, floor) for phase in (Phase.PREFILL, Phase.DECODE)):
            prefill, decode = by_phase[Phase.PREFILL], by_phase[Phase.DECODE]
            text = f"{label}: prefill serves {prefill} requests/s, decode {decode}"
            yield Violation("region_loss", text)


def _passed(check: PlanCheck, serving: Sequence[Runs], name: str) -> float:
    """Return the largest rate of a class that separate phases can serve with allowed transfers."""
    sent, received = (
        {
            i: row.requests_per_s_by_class[name]
            for i, (row, candidate) in enumerate(serving)
            if candidate.phase is phase
        }
        for phase in (Phase.PREFILL, Phase.DECODE)
    )
    return most_passed(sent, received, lambda i, j: _may_pass(check, serving[i], serving[j]))


def _may_pass(check: PlanCheck, sender: Runs, receiver: Runs) -> bool:
    (first, prefill), (second, decode) = sender, receiver
    policy = check.problem.fleet.policy
    if prefill.variant != decode.variant or not policy.may_pair(first.hardware, second.hardware):
        return False
    if policy.kv_transfer == "cross-region" and first.region != second.region:
        return bool(links_between(check, (first.pool, first.region), (second.pool, second.region)))
    return first.region == second.region and (policy.kv_transfer != "same-pool" or first.pool == second.pool)


def _loads(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """Check that replicas carry their traffic with headroom, including limits under load.

    One replica less must not be enough.
    """
    for row, candidate in rows:
        index = check.class_index[row.service]
        possible = all(candidate.requests_per_s[index[name]] > 0 for name in row.requests_per_s_by_class)
        busy = planned(check, row.service, busy_replicas(check, candidate, row.requests_per_s_by_class))
        most = carried(candidate, row.replicas)
        if not possible or exceeds(busy, most):
            label = f"{lost} lost: {row.service} {row.config}: the load of {counted(row.replicas, 'replica')}"
            yield Violation("region_loss", above(label, busy, most, "replicas"))
        elif row.replicas > 1 and exceeds(carried(candidate, row.replicas - 1), busy):
            text = f"{lost} lost: {row.service} {row.config}: fewer than {row.replicas} replicas carry"
            yield Violation("region_loss", f"{text} the load of {busy}")


def _held(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """Check that replicas fit into the units of their pool and the power of their region."""
    problem = check.problem
    for moment in problem.moments:
        q, when = moment.period, check.key_of(moment)
        here = [(row, candidate) for row, candidate in rows if row.moment_key == when]
        for pool in check.pools.values():
            sizes: Counter[int] = Counter()
            for row, candidate in here:
                if row.pool == pool.name:
                    sizes[candidate.accelerators] += row.replicas
            units = check.units[pool.name, q] - pool.maintenance_units(q)
            if sizes and not fits(sizes, pool.accelerators_per_unit, units):
                label = f"{lost} lost: {pool.name} {moment.label}"
                placed = counted(accelerators_of(sizes), "accelerator")
                text = f"{label}: {placed} do not fit into {counted(units, 'unit')}"
                yield Violation("region_loss", text)
        for region in problem.regions.values():
            drawn_kw = region_kw(check, region.name, q, here)
            if region.name != lost and region.power_kw is not None and exceeds(drawn_kw, region.power_kw[q]):
                label = f"{lost} lost: {region.name} {moment.label}"
                text = above(f"{label}: the power", drawn_kw, region.power_kw[q], "kW")
                yield Violation("region_loss", text)
