"""Verify family 12: the quality of the variants that serve each region."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.planner.problem import Phase
from fleetplan.planner.problem.load_units import units_requests_per_s
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.rounding import exceeds
from fleetplan.planner.verify.violations import Violation


def check_quality(check: PlanCheck) -> Iterator[Violation]:
    """Check the minimum quality of each request, and the average of each region and moment.

    The tolerance of the average is one load unit per load.
    """
    for cell in check.problem.cells:
        service = check.problem.services[cell.service]
        if not service.variants:
            continue
        quality = {variant.name: variant.quality for variant in service.variants}
        total, weighted, rounding = 0.0, 0.0, 0.0
        average = service.average_quality_floor
        for row, candidate in check.of_cell(cell.service, cell.region, cell.moment):
            rate = sum(check.rates(row, cell.region).values())
            if candidate.phase is Phase.DECODE or not rate:
                continue
            total += rate
            weighted += rate * quality[candidate.variant]
            largest = max(abs(score - (average or 0.0)) for score in quality.values())
            rounding += largest * sum(units_requests_per_s(check.problem, candidate))
            floor = service.quality_floor
            if floor is not None and quality[candidate.variant] < floor:
                score = quality[candidate.variant]
                text = f"{row.service} {row.config}: quality {score} is below the floor of {floor}"
                yield Violation("quality", text)
        if average is not None and total and exceeds(average * total, weighted + rounding):
            label = f"{cell.service} {cell.region} {check.problem.moments[cell.moment].label}"
            text = f"{label}: average quality {weighted / total} is below the floor of {average}"
            yield Violation("quality", text)
