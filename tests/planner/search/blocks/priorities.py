"""Fleets whose services come first and second where not all of them can be served."""

from __future__ import annotations

from dataclasses import replace

from tests.planner.random_fleets import PlanningCase
from tests.planner.solving import Solved


def with_priorities(case: PlanningCase, most_units: int | None) -> PlanningCase:
    """Return the case with alternating priorities, unmet demand, and a limit on the units of each offer."""
    offers = tuple(replace(offer, max_units=(most_units,)) for offer in case.fleet.offers)
    services = tuple(
        replace(service, priority=1 + index % 2) for index, service in enumerate(case.fleet.services)
    )
    policy = replace(case.fleet.policy, unmet="penalise")
    return replace(case, fleet=replace(case.fleet, offers=offers, services=services, policy=policy))


def unmet_share(solved: Solved, priority: int) -> float:
    """Share of the demand of a priority that a plan leaves unmet."""
    problem = solved.problem
    names = {each.name for each in problem.services.values() if each.priority == priority}
    asked = sum(sum(cell.requests_per_s) for cell in problem.cells if cell.service in names)
    rows = solved.plan.unmet if solved.plan is not None else ()
    return sum(row.requests_per_s for row in rows if row.service in names) / asked
