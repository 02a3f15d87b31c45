"""List all requirements of a fleet file that can be dropped, with names for users."""

from __future__ import annotations

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.questions.conflict.policy_requirements import policy_requirements
from fleetplan.planner.questions.conflict.requirement import Requirement
from fleetplan.planner.questions.conflict.service_requirements import (
    demand_requirements,
    latency_requirements,
    service_rules,
)
from fleetplan.planner.questions.conflict.supply_requirements import (
    budget_requirements,
    power_requirements,
    supply_requirements,
)


def requirements_of(fleet: Fleet) -> tuple[Requirement, ...]:
    """Return all requirements of a fleet that can be dropped; those that money can lift come first."""
    return (
        *supply_requirements(fleet),
        *power_requirements(fleet),
        *budget_requirements(fleet),
        *(each for service in fleet.services for each in latency_requirements(service)),
        *policy_requirements(fleet),
        *service_rules(fleet),
        *demand_requirements(fleet),
    )
