"""Rows of a plan on cost: by scope, by demand scenario, and after a wrong forecast."""

from __future__ import annotations

from fleetplan.planner.plan.record import Record


class Cost(Record):
    """Cost and carbon of one period, service or pool."""

    scope: str
    """period, service or pool"""
    name: str
    usd: float
    """Cost over the horizon, or over the period; a service pays for the accelerators it occupies. [USD]"""
    usd_by_kind: dict[str, float]
    """For a service: capacity and energy."""
    idle_usd: float
    """Cost of capacity that no service pays for. [USD]"""
    retirement_usd: float = 0.0
    """One-off cost of departing hosts, less their sale. [USD]"""
    million_tokens: float | None
    """Input tokens of prefill and output tokens of decode at the peak rate; None without lengths."""
    usd_per_million_tokens: float | None
    carbon_kg: float | None
    """Carbon of the energy at the served utilisation, and of idle hardware, which belongs to no service; None
    if a grid intensity is missing. [kg CO2]
    """


class IncomeTaxCost(Record):
    """Cost of the plan after income tax: every cost is deductible, purchases on the schedule of the law."""

    rate: float
    """Tax rate on income."""
    usd: float
    """TCO after tax: 1 - rate times the TCO. The cost kind `tax_deferral` is the cost before tax of deducting
    purchases on another schedule than their write-off. [USD]
    """
    usd_by_period: dict[str, float]
    """Cost after tax by period. [USD]"""


class DemandScenarioCost(Record):
    """Cost of a plan for uncertain demand if one scenario occurs."""

    name: str
    probability: float
    usd: float
    """TCO of the plan in this scenario. [USD]"""
    unmet_requests_per_s: float
    """Unserved demand of the plan in this scenario, averaged over the horizon. [requests/s]"""
    best_usd: float | None = None
    """TCO of the best plan found for this scenario alone; None if not computed. [USD]"""
    best_bound_usd: float | None = None
    """Lower bound on the cost of plans for this scenario alone. [USD]"""
    best_unmet_requests_per_s: float | None = None
    """Unserved demand of that plan. [requests/s]"""
    best_unmet_gap: float | None = None
    """Share of it that another plan might serve. Unless it is 0, no least regret is proven."""
    regret_usd: float | None = None
    """Extra cost over the best plan found for the scenario alone. [USD]"""
    regret_at_most_usd: float | None = None
    """Extra cost over the lower bound: no plan for the scenario alone saves more. [USD]"""


class ScenarioPurchase(Record):
    """Units that the best plan for one demand scenario alone buys or rents."""

    scenario: str
    period: str
    """Period of the order of a purchase, or of the use of rented units."""
    offer: str
    pool: str
    units: int


class WrongForecast(Record):
    """Cost of the best purchases for one demand scenario if another one occurs."""

    planned_for: str
    turns_out: str
    usd: float | None = None
    """TCO with new placements; None if no plan was found. [USD]"""
    bound_usd: float | None = None
    """Lower bound on the cost of any placements. [USD]"""
    unmet_requests_per_s: float | None = None
    """Unserved demand in this case, averaged over the horizon. [requests/s]"""
    unmet_gap: float | None = None
    """Share of it that other placements might serve: unless it is 0, the unserved demand is an upper bound.
    """
    extra_usd: float | None = None
    """Extra cost over the best plan found for the scenario that occurs. [USD]"""
