"""Verify family 14: the plan contains every item that a question forces into it."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation


def check_must_use(check: PlanCheck) -> Iterator[Violation]:
    """Check that a matching configuration serves traffic, or that a unit of the offer is taken."""
    for required in check.problem.fleet.policy.must_use:
        used = any(
            row.requests_per_s > 0
            and required.service in (None, row.service)
            and required.hardware in (None, row.hardware)
            and required.config in (None, row.config)
            and required.region in (None, row.region)
            and (required.phases is None or row.phase in required.phases)
            for row, _ in check.rows
        )
        if required.offer is not None:
            used = any(purchase.offer == required.offer for purchase in check.plan.purchases)
        if not used:
            yield Violation("must_use", f"no placement and no purchase uses {required.name}")
