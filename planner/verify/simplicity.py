"""What a simpler plan may cost, and how simple it is."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.planner.verify.costs import cost_kinds, model_rounding_usd
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation


def check_simplicity(check: PlanCheck) -> Iterator[Violation]:
    """The price of simplicity is within the policy and leaves the bound; kinds and configurations count."""
    stated = check.plan.simplification
    if stated is None:
        return
    rounding = model_rounding_usd(check, cost_kinds(check))
    cheapest = check.plan.objective_usd - stated.usd
    # Sales may earn more than all else costs: such a plan has no per cent to spend.
    most = check.problem.fleet.policy.simpler_percent / 100 * max(cheapest, 0.0)
    if not -rounding <= stated.usd <= most + rounding:
        text = f"a simpler plan costs {stated.usd} USD more, {most} USD are allowed"
        yield Violation("simplicity", text)
    if not check.plan.bound_usd <= cheapest + rounding:
        yield Violation("simplicity", f"the cheapest plan costs {cheapest} USD, less than the bound")
    rows = check.plan.placements
    kinds = {(row.service, row.region, row.hardware) for row in rows}
    configurations = {(row.key, row.region) for row in rows}
    for name, count, found in (
        ("kinds of hardware", stated.hardware_kinds, len(kinds)),
        ("configurations", stated.configurations, len(configurations)),
    ):
        if count != found:
            yield Violation("simplicity", f"{count} {name} stated, {found} found")
