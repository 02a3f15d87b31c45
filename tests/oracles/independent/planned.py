"""Run the planner on a fleet file; no other module here imports fleetplan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracles.independent.formulation import LOAD_UNITS_PER_REPLICA

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import NoPlanFoundError, plan_fleet
from fleetplan.planner.plan import Infeasible, Placement, Plan
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

GAP_RATIO = 1e-6
"""`plan --gap 0.0001%`."""

PLAN, INFEASIBLE, NO_PLAN = "plan", "infeasible", "no plan"


@dataclass(frozen=True)
class Planned:
    """Outcome of the planner, and the figures of its plan.

    Attributes
    ----------
    kind : str
        A plan, a proof that there is none, or nothing before the time ended.
    usd, bound_usd, energy_usd : float
        Cost, its bound, and the part of it that is energy. [USD]
    data_unit_usd : float
        Cost of the data of one load unit of each placement that serves another region. [USD]
    unmet, unmet_gaps : Mapping[int, float]
        By priority: what is unmet, headroom included, by hours and probability [requests/s], and the share of
        it that another plan might serve.
    goal, goal_bound : float or None
        Of an objective that comes before cost; less is better.
    """

    kind: str
    usd: float = 0.0
    bound_usd: float = 0.0
    energy_usd: float = 0.0
    data_unit_usd: float = 0.0
    unmet: Mapping[int, float] = field(default_factory=dict)
    unmet_gaps: Mapping[int, float] = field(default_factory=dict)
    goal: float | None = None
    goal_bound: float | None = None


def planned(path: Path, time_limit_s: float, workers: int) -> Planned:
    """Plan a fleet file; exceptions are the planner's own."""
    fleet = load_fleet(path)
    try:
        found = plan_fleet(fleet, SearchLimits(time_limit_s, GAP_RATIO, workers=workers)).outcome
    except NoPlanFoundError:
        return Planned(NO_PLAN)
    if isinstance(found, Infeasible):
        return Planned(INFEASIBLE)
    goal = found.goal
    # Served demand is best where it is large; everything here is minimised.
    sign = -1.0 if goal is not None and goal.objective == "served" else 1.0
    return Planned(
        kind=PLAN,
        usd=found.objective_usd,
        bound_usd=found.bound_usd,
        energy_usd=found.cost_breakdown.get("energy", 0.0),
        data_unit_usd=sum(map(data_unit_usd, found.placements)),
        unmet=unmet_by_priority(found, fleet),
        unmet_gaps={each.priority: each.gap for each in found.unmet_gaps},
        goal=None if goal is None else sign * goal.value,
        goal_bound=None if goal is None else sign * goal.bound,
    )


def data_unit_usd(row: Placement) -> float:
    """Return what data cost for the smallest load that a placement may take from another region. [USD]"""
    moved = sum(sum(each.values()) for each in row.requests_per_s_by_origin.values())
    if not row.data_usd or not moved or not row.utilisation:
        return 0.0
    unit = row.requests_per_s / row.utilisation / row.replicas / LOAD_UNITS_PER_REPLICA
    return row.data_usd / moved * unit


def unmet_by_priority(plan: Plan, fleet: Fleet) -> dict[int, float]:
    """Return the unmet demand by priority as the search weighs it. [requests/s]"""
    services = {service.name: service for service in fleet.services}
    shares = {piece.name: piece.hours / 24 * float(piece.days_share) for piece in fleet.slices}
    chances = {scenario.name: scenario.probability for scenario in fleet.demand_scenarios}
    total: dict[int, float] = defaultdict(float)
    for row in plan.unmet:
        service = services[row.service]
        weight = shares.get(row.slice or "", 1.0) * chances.get(row.scenario or "", 1.0)
        total[service.priority] += row.requests_per_s * (1 + service.headroom) * weight
    return dict(total)
