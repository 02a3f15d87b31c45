"""What a plan says of itself: names that exist, counts that can be, figures that follow from others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.plan import UNMET_GAP_RATIO, Placement, Plan, Purchase
from fleetplan.planner.problem import Problem, find_candidate
from fleetplan.planner.verify.violations import GAP_TOLERANCE, Violation, differs, exceeds


def placement_faults(problem: Problem, row: Placement) -> list[str]:
    """What makes a placement impossible to check or to be.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    row : Placement
        One row of the plan.

    Returns
    -------
    list[str]
        Empty for a placement whose names, counts and sums are sound.
    """
    candidate = find_candidate(problem, row)
    label = f"{row.service} {row.phase} {row.config}"
    if candidate is None:
        return [f"{label} is no candidate"]
    if row.pool not in {pool.name for pool in problem.pools}:
        return [f"{label}: there is no pool {row.pool!r}"]
    if row.period not in problem.periods:
        return [f"{label}: there is no period {row.period!r}"]
    if problem.moment_index(row) is None:
        return [f"{label}: {row.period} has no moment of slice {row.slice!r}, scenario {row.scenario!r}"]
    names = {request_class.name for request_class in problem.services[row.service].classes}
    unknown = sorted(row.requests_per_s_by_class.keys() - names)
    if unknown:
        return [f"{label}: {row.service} has no class {', '.join(unknown)}"]
    faults = []
    if row.replicas < 1:
        faults.append(f"{label}: {row.replicas} replicas")
    if row.accelerators != row.replicas * candidate.accelerators:
        faults.append(
            f"{label}: {row.accelerators} accelerators, {row.replicas} replicas of {candidate.accelerators}"
        )
    rates = row.requests_per_s_by_class.values()
    if any(rate < 0 for rate in rates) or differs(row.requests_per_s, sum(rates)):
        faults.append(f"{label}: {row.requests_per_s} requests/s of {row.requests_per_s_by_class}")
    return faults + _origin_faults(problem, row, label)


def _origin_faults(problem: Problem, row: Placement, label: str) -> list[str]:
    """What makes the traffic of other regions impossible."""
    total: dict[str, float] = defaultdict(float)
    for origin, by_class in row.requests_per_s_by_origin.items():
        if origin == row.region or origin not in problem.regions:
            return [f"{label}: there is no other region {origin!r}"]
        for name, rate in by_class.items():
            total[name] += rate
            if rate < 0 or name not in row.requests_per_s_by_class:
                return [f"{label}: {rate} requests/s of {name} from {origin}"]
    return [
        f"{label}: {rate} requests/s of {name} from elsewhere, {row.requests_per_s_by_class[name]} in all"
        for name, rate in total.items()
        if exceeds(rate, row.requests_per_s_by_class[name])
    ]


def purchase_faults(problem: Problem, purchase: Purchase) -> list[str]:
    """What makes a purchase impossible to check or to be; empty if it is sound."""
    label = f"{purchase.offer} {purchase.period}"
    pool = next((pool for pool in problem.pools if pool.name == purchase.pool), None)
    if pool is None:
        return [f"{label}: there is no pool {purchase.pool!r}"]
    if purchase.offer not in {acquisition.offer.name for acquisition in pool.acquisitions}:
        return [f"{label}: no such offer feeds {purchase.pool}"]
    if purchase.period not in problem.periods:
        return [f"{label}: there is no such period"]
    return [f"{label}: {purchase.units} units"] if purchase.units < 1 else []


def unmet_statements(problem: Problem, plan: Plan) -> Iterator[Violation]:
    """What a plan says of how much of its unmet demand must be.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    plan : Plan
        Its services exist.
    """
    lacking = {
        problem.services[row.service].priority for row in plan.unmet if row.service in problem.services
    }
    for each in plan.unmet_gaps:
        if each.priority not in lacking:
            yield Violation("coverage", f"priority {each.priority} lacks nothing, and has a gap stated")
        if not 0 <= each.gap <= 1:
            yield Violation("coverage", f"a gap of {each.gap} in unmet demand of priority {each.priority}")
        if each.gap > UNMET_GAP_RATIO and plan.status == "optimal":
            yield Violation("coverage", f"optimal, and priority {each.priority} might lack less")


def cost_statements(problem: Problem, plan: Plan, kinds: dict[str, float]) -> Iterator[Violation]:
    """Figures of cost that a plan states beside its total.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    plan : Plan
        Its purchases are known to be sound.
    kinds : dict[str, float]
        TCO by kind, computed from the fleet's prices. [USD]
    """
    for purchase in plan.purchases:
        pool = next(pool for pool in problem.pools if pool.name == purchase.pool)
        offered = next(a for a in pool.acquisitions if a.offer.name == purchase.offer)
        usd = purchase.units * offered.unit_usd[problem.periods.index(purchase.period)]
        if differs(purchase.usd, usd):
            yield Violation("cost", f"{purchase.offer}: {purchase.usd} USD stated, {usd} USD by its price")
        capex = purchase.units * offered.capex_usd_per_unit
        if differs(purchase.capex_usd, capex):
            yield Violation("cost", f"{purchase.offer}: capex of {purchase.capex_usd} USD, not {capex} USD")
    for kind in sorted(kinds.keys() | plan.cost_breakdown.keys()):
        stated, found = plan.cost_breakdown.get(kind, 0.0), kinds.get(kind, 0.0)
        if differs(stated, found):
            yield Violation("cost", f"{kind}: {stated} USD stated, {found} USD found")
    cost = plan.objective_usd
    gap = (cost - plan.bound_usd) / cost if cost > 0 else 0.0
    if abs(plan.gap - gap) > GAP_TOLERANCE:
        yield Violation("cost", f"a gap of {plan.gap} is stated, cost and bound give {gap}")
