"""Verify the cost of a plan in each demand scenario, and the statements on wrong forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import RUNNING_KINDS, DemandScenarioCost
from fleetplan.planner.verify.costs import cost_kinds, model_rounding_usd, running_usd
from fleetplan.planner.verify.plan_check import DAY_HOURS, PlanCheck
from fleetplan.planner.verify.records import compared
from fleetplan.planner.verify.rounding import UNMET_RATIO, differs, exceeds
from fleetplan.planner.verify.violations import Violation

FAMILY = "demand_scenarios"


def scenario_usd(check: PlanCheck) -> Mapping[str, float]:
    """Return the TCO by demand scenario, from placements, purchases and prices. [USD]"""
    standing = sum(usd for kind, usd in cost_kinds(check).items() if kind not in RUNNING_KINDS)
    return {
        scenario.name: standing + sum(running_usd(check, scenario.name).values()) / scenario.probability
        for scenario in check.problem.fleet.demand_scenarios
    }


def largest_regret_usd(check: PlanCheck) -> float:
    """Return the largest extra cost over the stated optimum for a scenario alone. [USD]"""
    found = scenario_usd(check)
    return max(found[row.name] - (row.best_usd or 0.0) for row in check.plan.demand_scenarios)


def unproven_regret_usd(check: PlanCheck) -> float:
    """Return the largest gap between the stated optimum for a scenario alone and its bound. [USD]"""
    rows = check.plan.demand_scenarios
    return max(((row.best_usd or 0.0) - (row.best_bound_usd or 0.0) for row in rows), default=0.0)


def best_serve_most(check: PlanCheck) -> bool:
    """Return whether the best plan for every scenario alone is proven to serve the most demand possible."""
    return all((row.best_unmet_gap or 0.0) <= UNMET_RATIO for row in check.plan.demand_scenarios)


def check_demand_scenarios(check: PlanCheck) -> Iterator[Violation]:
    """Check the cost and unserved demand of every scenario, and that none is better than its bound."""
    found = scenario_usd(check)
    stated = {row.name: row for row in check.plan.demand_scenarios}
    expected = [_expected(check, name, usd, stated.get(name)) for name, usd in found.items()]
    yield from compared(FAMILY, check.plan.demand_scenarios, expected, ("name",), check.floor_usd)
    for row in check.plan.demand_scenarios:
        if row.name in found:
            yield from _bounds(row)
            if check.problem.scenarios_are_bounds:
                yield from _passed_bound(row, model_rounding_usd(check, cost_kinds(check)))
    yield from _wrong_forecasts(check, stated)
    yield from _scenario_purchases(check)


def _expected(
    check: PlanCheck, name: str, usd: float, stated: DemandScenarioCost | None
) -> DemandScenarioCost:
    """Return the expected row of a scenario, with its optimum from the problem or else from the plan."""
    scenario = next(each for each in check.problem.fleet.demand_scenarios if each.name == name)
    known = None if check.problem.scenario_optima is None else check.problem.scenario_optima.get(name)
    best: float | None = None
    bound: float | None = None
    missing: float | None = None
    missing_gap: float | None = None
    if known is not None:
        best, bound, missing = known.usd, known.bound_usd, known.unmet_requests_per_s
        missing_gap = known.unmet_gap
    elif stated is not None:
        best, bound, missing = stated.best_usd, stated.best_bound_usd, stated.best_unmet_requests_per_s
        missing_gap = stated.best_unmet_gap
    unmet = sum(
        row.requests_per_s * check.mean_hours(check.problem.moments[check.moments[row.moment_key]])
        for row in check.plan.unmet
        if row.scenario == name
    )
    return DemandScenarioCost(
        name=name,
        probability=scenario.probability,
        usd=usd,
        unmet_requests_per_s=unmet / DAY_HOURS / len(check.problem.periods),
        best_usd=best,
        best_bound_usd=bound,
        best_unmet_requests_per_s=missing,
        best_unmet_gap=missing_gap,
        regret_usd=None if best is None else usd - best,
        regret_at_most_usd=None if bound is None else usd - bound,
    )


def _bounds(row: DemandScenarioCost) -> Iterator[Violation]:
    """Check that the optimum of a scenario is complete and no better than its bound."""
    if row.best_usd is None or row.best_bound_usd is None:
        if (row.best_usd, row.best_bound_usd, row.best_unmet_requests_per_s) != (None, None, None):
            yield Violation(FAMILY, f"{row.name}: the best plan lacks its cost or its lower bound")
        return
    if row.best_unmet_requests_per_s is None or exceeds(0.0, row.best_unmet_requests_per_s):
        text = f"{row.name}: the best plan leaves {row.best_unmet_requests_per_s} requests/s unmet"
        yield Violation(FAMILY, text)
        return
    if exceeds(row.best_bound_usd, row.best_usd):
        yield Violation(FAMILY, f"{row.name}: {_above_cost(row.best_bound_usd, row.best_usd)}")


def _above_cost(bound_usd: float, usd: float) -> str:
    return f"the lower bound of {bound_usd} USD exceeds the cost of {usd} USD"


def _passed_bound(row: DemandScenarioCost, rounding_usd: float) -> Iterator[Violation]:
    """Check that the plan is not cheaper than the bound of the integer model, except for its rounding."""
    if row.best_bound_usd is None or row.best_unmet_requests_per_s is None:
        return
    serves_as_much = not exceeds(row.unmet_requests_per_s, row.best_unmet_requests_per_s)
    if serves_as_much and exceeds(row.best_bound_usd, row.usd + rounding_usd):
        text = f"{row.name}: the plan costs {row.usd} USD, below the lower bound of {row.best_bound_usd} USD"
        yield Violation(FAMILY, text)


def _wrong_forecasts(check: PlanCheck, stated: Mapping[str, DemandScenarioCost]) -> Iterator[Violation]:
    """Check that the pairs of scenarios are in order without gaps, and that their figures are consistent."""
    names = [scenario.name for scenario in check.problem.fleet.demand_scenarios]
    pairs = [(one, other) for one in names for other in names if one != other]
    rows = check.plan.wrong_forecasts
    found = [(row.planned_for, row.turns_out) for row in rows]
    if found != pairs[: len(found)]:
        yield Violation(FAMILY, f"the wrong forecasts are {found}; their order is {pairs}")
        return
    for row in rows:
        label = f"planned for {row.planned_for}, {row.turns_out} turns out"
        best = stated[row.turns_out].best_usd if row.turns_out in stated else None
        if row.usd is None or row.bound_usd is None or row.unmet_requests_per_s is None:
            stated_figures = (row.usd, row.bound_usd, row.unmet_requests_per_s, row.unmet_gap, row.extra_usd)
            if any(each is not None for each in stated_figures):
                yield Violation(FAMILY, f"{label}: some figures are missing")
            continue
        if best is None or row.extra_usd is None or differs(row.extra_usd, row.usd - best, check.floor_usd):
            text = f"{label}: the extra cost of {row.extra_usd} USD is not {row.usd} USD less {best} USD"
            yield Violation(FAMILY, text)
        if exceeds(row.bound_usd, row.usd):
            yield Violation(FAMILY, f"{label}: {_above_cost(row.bound_usd, row.usd)}")
        if exceeds(0.0, row.unmet_requests_per_s):
            text = f"{label}: unmet demand is {row.unmet_requests_per_s} requests/s, below 0"
            yield Violation(FAMILY, text)
        if not 0.0 <= (row.unmet_gap or 0.0) <= 1.0:
            yield Violation(FAMILY, f"{label}: the gap of unmet demand is {row.unmet_gap}, outside 0 to 1")


def _scenario_purchases(check: PlanCheck) -> Iterator[Violation]:
    """Check that purchases for a scenario alone are on offer, unique, and refer to an existing scenario."""
    problem = check.problem
    names = {scenario.name for scenario in problem.fleet.demand_scenarios}
    offered = {(each.offer.name, pool.name) for pool in problem.pools for each in pool.acquisitions}
    seen = set()
    for row in check.plan.scenario_purchases:
        key = (row.scenario, row.period, row.offer, row.pool)
        label = " ".join(key)
        known = row.scenario in names and row.period in problem.periods and (row.offer, row.pool) in offered
        if not known or row.units < 1:
            text = f"{label}: no offer supplies {counted(row.units, 'unit')} for this scenario"
            yield Violation(FAMILY, text)
        if key in seen:
            yield Violation(FAMILY, f"{label}: the row appears twice")
        seen.add(key)
