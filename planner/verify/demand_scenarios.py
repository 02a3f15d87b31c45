"""What a plan for uncertain demand costs in each scenario, and what is said of wrong forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fleetplan.planner.verify.changes import transition_usd
from fleetplan.planner.verify.day import tidal_usd
from fleetplan.planner.verify.money import cost_kinds, data_usd, energy_usd
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation, differs, exceeds

RUNNING_KINDS: Final = ("energy", "transition", "tidal", "data")
"""Costs that depend on the demand that turns out; all others are of what stands."""


def scenario_usd(check: PlanCheck) -> Mapping[str, float]:
    """TCO by demand scenario, from placements, purchases and prices. [USD]"""
    kinds = cost_kinds(check)
    standing = sum(usd for kind, usd in kinds.items() if kind not in RUNNING_KINDS)
    found = {}
    for scenario in check.problem.fleet.demand_scenarios:
        running = (
            energy_usd(check, scenario.name)
            + transition_usd(check, scenario.name)
            + tidal_usd(check, scenario.name)
            + data_usd(check, scenario.name)
        )
        found[scenario.name] = standing + running / scenario.probability
    return found


def largest_regret_usd(check: PlanCheck) -> float:
    """The largest extra cost over what is stated to be best for a scenario alone. [USD]"""
    found = scenario_usd(check)
    return max(found[row.name] - (row.best_usd or 0.0) for row in check.plan.demand_scenarios)


def check_demand_scenarios(check: PlanCheck) -> Iterator[Violation]:
    """Every scenario is stated at what it costs and leaves unserved, and no better than its bound allows."""
    found = scenario_usd(check)
    if {row.name for row in check.plan.demand_scenarios} != set(found):
        names = ", ".join(found) or "none"
        yield Violation("demand_scenarios", f"the fleet has the demand scenarios: {names}")
        return
    for row in check.plan.demand_scenarios:
        if differs(row.usd, found[row.name]):
            text = f"{row.name}: {row.usd} USD stated, {found[row.name]} USD found"
            yield Violation("demand_scenarios", text)
        unmet = sum(
            each.requests_per_s * check.problem.moment_of(each).hours / 24 / len(check.problem.periods)
            for each in check.plan.unmet
            if each.scenario == row.name
        )
        if differs(row.unmet_requests_per_s, unmet):
            text = f"{row.name}: {row.unmet_requests_per_s} requests/s unmet stated, {unmet} found"
            yield Violation("demand_scenarios", text)
        yield from _regret(check, row.name)
    best = {row.name: row.best_usd for row in check.plan.demand_scenarios}
    for wrong in check.plan.wrong_forecasts:
        usd, known = wrong.usd, best.get(wrong.turns_out)
        if wrong.planned_for not in best or wrong.turns_out not in best:
            text = f"no scenario {wrong.planned_for} or {wrong.turns_out}"
            yield Violation("demand_scenarios", text)
        elif usd is not None and (known is None or differs(wrong.extra_usd or 0.0, usd - known)):
            text = (
                f"{wrong.planned_for}, {wrong.turns_out} turns out: {wrong.extra_usd} USD more than {known}"
            )
            yield Violation("demand_scenarios", text)


def _regret(check: PlanCheck, name: str) -> Iterator[Violation]:
    row = next(row for row in check.plan.demand_scenarios if row.name == name)
    if row.best_usd is None or row.best_bound_usd is None:
        return
    if exceeds(row.best_bound_usd, row.best_usd):
        yield Violation(
            "demand_scenarios", f"{name}: a bound of {row.best_bound_usd} above {row.best_usd} USD"
        )
    serves_as_much = not exceeds(row.unmet_requests_per_s, row.best_unmet_requests_per_s or 0.0)
    if serves_as_much and exceeds(row.best_bound_usd, row.usd):
        text = f"{name}: the plan costs {row.usd} USD, none costs less than {row.best_bound_usd}"
        yield Violation("demand_scenarios", text)
    for stated, best in ((row.regret_usd, row.best_usd), (row.regret_at_most_usd, row.best_bound_usd)):
        if stated is None or differs(stated, row.usd - best):
            yield Violation("demand_scenarios", f"{name}: {stated} USD more than {best} is stated")
