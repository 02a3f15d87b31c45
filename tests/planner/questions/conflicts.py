"""Infeasible fleets, and questions about their conflicts."""

from __future__ import annotations

from tests.planner.builders import fleet, hardware, owned_pool, region, rent_offer, service
from tests.planner.questions.tiny import EXACT, engine_table

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import Planned, plan_fleet
from fleetplan.planner.plan import Infeasible
from fleetplan.planner.questions.conflict.core import Core
from fleetplan.planner.questions.conflict.explain import ExplainedConflict, explain_conflict
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search import Deadline, SearchLimits


def explained(question: Fleet) -> ExplainedConflict:
    found = explain_conflict(question, (), Resolver(EXACT), Deadline.after(120.0))
    assert found is not None
    assert found.complete
    return found


def core_of(found: ExplainedConflict) -> Core:
    assert found.core is not None
    return found.core


def one_kind(demand: float = 100.0, **changes: object) -> Fleet:
    """Return a fleet of two hosts of 8 cards; a replica of two cards serves 10 requests/s."""
    rates = engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0)
    fields: dict[str, object] = {
        "services": [service("chat", demand, engines=rates)],
        "hardware": [hardware("A", 8, 1000.0)],
        "pools": [owned_pool("own", 2, 160_000.0, hardware="A")],
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]


def ways(found: ExplainedConflict) -> list[str]:
    return ["; ".join(give.text for give in way.gives) for way, _ in found.ways]


def core(found: ExplainedConflict) -> list[str]:
    return [each.name for each in core_of(found).requirements]


def two_rooms(**changes: object) -> Fleet:
    """Power is short in both regions, by 4 kW and 16 kW; neither may serve the other."""
    rates = engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0)
    demand = {("east", "now", "all"): 100.0, ("west", "now", "all"): 160.0}
    fields: dict[str, object] = {
        "services": [service("chat", demand, regions=("east", "west"), engines=rates)],
        "hardware": [hardware("A", 8, 1000.0)],
        "pools": [],
        "offers": [rent_offer("A", 1.0, hardware="A", regions=("east", "west"))],
        "regions": [region("east", power_kw=(16.0,)), region("west", power_kw=(16.0,), pue=1.0)],
    }
    return one_kind(**{**fields, **changes})


def infeasible(question: Fleet, limits: SearchLimits = EXACT) -> Planned:
    found = plan_fleet(question, limits)
    assert isinstance(found.outcome, Infeasible)
    return found
