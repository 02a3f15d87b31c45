"""Family 10: after the loss of a region the plan's other regions serve the protected services."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetplan.planner.plan import SurvivingPlacement
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.problem.region_loss import joint_cells
from fleetplan.planner.verify.handover import most_passed
from fleetplan.planner.verify.packing import fits
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation, exceeds

Runs = tuple[SurvivingPlacement, Candidate]


def check_region_loss(check: PlanCheck) -> Iterator[Violation]:
    """For every region, what the plan would run without it is possible and enough."""
    if not check.problem.fleet.policy.survive_region_loss:
        return
    candidates = {candidate.key: candidate for candidate in check.problem.candidates}
    pools = {pool.name: pool for pool in check.problem.pools}
    for lost in check.problem.regions:
        rows: list[Runs] = []
        for row in check.plan.region_losses:
            if row.lost_region != lost:
                continue
            candidate, pool = (
                candidates.get((row.service, row.phase, row.hardware, row.config)),
                pools.get(row.pool),
            )
            known = candidate is not None and pool is not None and check.problem.moment_index(row) is not None
            if not known or candidate is None or pool is None:
                yield Violation(
                    "region_loss", f"{lost} lost: {row.service} {row.config} in {row.pool} is unknown"
                )
            elif pool.region in (lost,) or (pool.region, pool.hardware) != (row.region, row.hardware):
                yield Violation("region_loss", f"{lost} lost: {row.config} cannot run in {row.pool}")
            elif not check.problem.services[row.service].may_run_in(row.region):
                yield Violation("region_loss", f"{lost} lost: {row.service} may not run in {row.region}")
            else:
                rows.append((row, candidate))
        yield from _served(check, lost, rows)
        yield from _loads(check, lost, rows)
        yield from _held(check, lost, rows)


def _served(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """The demand of all regions, less what is declared unmet, is served."""
    problem = check.problem
    for cell, _ in joint_cells(problem):
        moment = problem.moments[cell.moment]
        when = problem.moment_key(moment)
        for k, demand in enumerate(cell.requests_per_s):
            name = problem.services[cell.service].classes[k].name
            serving = [
                (row, candidate)
                for row, candidate in rows
                if (row.service, row.moment_key) == (cell.service, when)
                and row.requests_per_s_by_class.get(name, 0.0) > 0
            ]
            total = sum(
                row.requests_per_s_by_class[name]
                for row, candidate in serving
                if candidate.phase is Phase.AGGREGATED
            )
            total += _passed(check, serving, name)
            total += sum(
                unmet.requests_per_s
                for unmet in check.plan.unmet
                if (unmet.service, unmet.moment_key, unmet.request_class) == (cell.service, when, name)
            )
            if exceeds(demand, total):
                label = f"{lost} lost: {cell.service} {name} {moment.label}"
                yield Violation("region_loss", f"{label}: {total} of {demand} requests/s are served")


def _passed(check: PlanCheck, serving: Sequence[Runs], name: str) -> float:
    """Most of a class that separate phases can serve, each request handed over where that may be."""
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
        return any(
            link.prefill in (first.pool, first.region) and link.decode in (second.pool, second.region)
            for link in check.problem.fleet.kv_links
        )
    return first.region == second.region and (policy.kv_transfer != "same-pool" or first.pool == second.pool)


def _loads(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """Replicas carry their traffic with its headroom, also where latencies are limited under load."""
    for row, candidate in rows:
        service = check.problem.services[row.service]
        names = [request_class.name for request_class in service.classes]
        rates = [row.requests_per_s_by_class.get(name, 0.0) for name in names]
        possible = all(
            rate == 0 or most > 0 for rate, most in zip(rates, candidate.requests_per_s, strict=True)
        )
        load = sum(
            rate * (1 + service.headroom) / most
            for rate, most in zip(rates, candidate.requests_per_s, strict=True)
            if most > 0
        )
        carried = candidate.carried(row.replicas)
        if not possible or exceeds(load, carried):
            text = f"{lost} lost: {row.service} {row.config}: {load} on {row.replicas} that carry {carried}"
            yield Violation("region_loss", text)


def _held(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """Replicas fit what stands, and the power of their region."""
    problem = check.problem
    for moment in problem.moments:
        q, when = moment.period, problem.moment_key(moment)
        here = [(row, candidate) for row, candidate in rows if row.moment_key == when]
        for pool in problem.pools:
            sizes = [
                candidate.accelerators
                for row, candidate in here
                if row.pool == pool.name
                for _ in range(row.replicas)
            ]
            units = check.units(pool, q) - pool.maintenance_in(q)
            if sizes and not fits(sizes, pool.accelerators_per_unit, units):
                label = f"{lost} lost: {pool.name} {moment.label}"
                text = f"{label}: {sum(sizes)} accelerators do not fit {units} units"
                yield Violation("region_loss", text)
        for region in problem.regions.values():
            load_kw = sum(
                (candidate.power_kw or 0.0) * row.replicas
                for row, candidate in here
                if row.region == region.name
            )
            if region.power_kw is not None and exceeds(load_kw * region.pue, region.power_kw[q]):
                label = f"{lost} lost: {region.name} {moment.label}"
                text = f"{label}: {load_kw * region.pue} of {region.power_kw[q]} kW"
                yield Violation("region_loss", text)
