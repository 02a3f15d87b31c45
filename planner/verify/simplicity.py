"""Verify the price and the simplicity of a simplified plan."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.planner.plan import Simplification
from fleetplan.planner.problem import Phase
from fleetplan.planner.verify.costs import cost_kinds, model_rounding_usd
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.rounding import RELATIVE_TOLERANCE, differs, exceeds
from fleetplan.planner.verify.violations import Violation, misstated


def check_simplicity(check: PlanCheck) -> Iterator[Violation]:
    """Check the price of simplicity against policy and bound, and the counts of a simplified plan."""
    stated = check.plan.simplification
    if stated is None:
        return
    rounding = model_rounding_usd(check, cost_kinds(check))
    cheapest = check.plan.objective_usd - stated.usd
    # If sales exceed all costs, a percentage of the cost is zero.
    homes = [service.home_percent for service in check.problem.fleet.services]
    percent = max([check.problem.fleet.policy.simpler_percent, *homes])
    most = percent / 100 * max(cheapest, 0.0)
    if not -rounding <= stated.usd <= most + rounding:
        text = f"the simpler plan costs {stated.usd} USD more; the policy allows 0 to {most} USD"
        yield Violation("simplicity", text)
    if not check.plan.bound_usd <= cheapest + rounding:
        text = f"the cheapest plan costs {cheapest} USD, below the lower bound of {check.plan.bound_usd} USD"
        yield Violation("simplicity", text)
    yield from _check_home(check, stated, max(homes, default=0.0) / 100 * max(cheapest, 0.0) + rounding)
    rows = check.plan.placements
    kinds = {(row.service, row.region, row.hardware) for row in rows}
    configurations = {(row.key, row.region) for row in rows}
    flows = {(row.service, origin, row.region) for row in rows for origin in row.requests_per_s_by_origin}
    if (stated.flows is None) != (stated.flows_before is None):
        yield Violation("simplicity", "flows between regions are stated for one of the two plans only")
    for name, count, found in (
        ("kinds of hardware", stated.hardware_kinds, len(kinds)),
        ("configurations", stated.configurations, len(configurations)),
        ("flows between regions", stated.flows, len(flows)),
    ):
        if count is not None and count != found:
            yield Violation("simplicity", misstated(name, count, found))


def _check_home(check: PlanCheck, stated: Simplification, most_usd: float) -> Iterator[Violation]:
    """Check the price of serving requests at home against the services' limits, and the rates away."""
    home = stated.home
    if home is None:
        return
    if not 0.0 <= home.usd <= min(most_usd, stated.usd):
        text = f"serving requests at home costs {home.usd} USD; the services allow 0 to {most_usd} USD"
        yield Violation("simplicity", text)
    services = {each.name for each in check.problem.fleet.services if each.home_percent > 0}
    away = 0.0
    for row, candidate in check.rows:
        if row.service in services:
            rates = sum(sum(by_class.values()) for by_class in row.requests_per_s_by_origin.values())
            share = 1.0 if candidate.phase is Phase.AGGREGATED else 0.5
            away += rates * share * check.weight(check.moment_of(row))
    away /= len(check.problem.periods)
    if differs(away, home.away_requests_per_s, RELATIVE_TOLERANCE):
        text = misstated("traffic served away from home", home.away_requests_per_s, away, "requests/s")
        yield Violation("simplicity", text)
    if exceeds(home.away_requests_per_s, home.away_requests_per_s_before):
        yield Violation("simplicity", "more requests are served away from home than in the cheapest plan")
