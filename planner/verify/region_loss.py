"""Family 10: after the loss of a region the plan's other regions serve the protected services."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from fleetplan.planner.plan import SurvivingPlacement
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.statements import Violation, exceeds
from fleetplan.planner.survival import joint_cells
from fleetplan.planner.verify.packing import fits
from fleetplan.planner.verify.plan_check import PlanCheck

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
            known = candidate is not None and pool is not None and row.period in check.problem.periods
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
        period = problem.periods[cell.period]
        for k, demand in enumerate(cell.requests_per_s):
            name = problem.services[cell.service].classes[k].name
            by_region: dict[str, dict[Phase, float]] = defaultdict(lambda: dict.fromkeys(Phase, 0.0))
            for row, candidate in rows:
                if (row.service, row.period) == (cell.service, period):
                    by_region[row.region][candidate.phase] += row.requests_per_s_by_class.get(name, 0.0)
            total = sum(
                served[Phase.AGGREGATED] + min(served[Phase.PREFILL], served[Phase.DECODE])
                for served in by_region.values()
            )
            total += sum(
                unmet.requests_per_s
                for unmet in check.plan.unmet
                if (unmet.service, unmet.period, unmet.request_class) == (cell.service, period, name)
            )
            if exceeds(demand, total):
                text = (
                    f"{lost} lost: {cell.service} {name} {period}: {total} of {demand} requests/s are served"
                )
                yield Violation("region_loss", text)


def _loads(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """Replicas carry their traffic with its headroom."""
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
        if not possible or exceeds(load, row.replicas):
            yield Violation(
                "region_loss", f"{lost} lost: {row.service} {row.config}: {load} on {row.replicas}"
            )


def _held(check: PlanCheck, lost: str, rows: Sequence[Runs]) -> Iterator[Violation]:
    """Replicas fit what stands, and the power of their region."""
    problem = check.problem
    for q, period in enumerate(problem.periods):
        here = [(row, candidate) for row, candidate in rows if row.period == period]
        for pool in problem.pools:
            sizes = [
                candidate.accelerators
                for row, candidate in here
                if row.pool == pool.name
                for _ in range(row.replicas)
            ]
            units = check.units(pool, q) - pool.maintenance_in(q)
            if sizes and not fits(sizes, pool.accelerators_per_unit, units):
                text = (
                    f"{lost} lost: {pool.name} {period}: {sum(sizes)} accelerators do not fit {units} units"
                )
                yield Violation("region_loss", text)
        for region in problem.regions.values():
            load_kw = sum(
                (candidate.power_kw or 0.0) * row.replicas
                for row, candidate in here
                if row.region == region.name
            )
            if region.power_kw is not None and exceeds(load_kw * region.pue, region.power_kw[q]):
                text = (
                    f"{lost} lost: {region.name} {period}: {load_kw * region.pue} of {region.power_kw[q]} kW"
                )
                yield Violation("region_loss", text)
