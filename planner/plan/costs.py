"""Rows of a plan that say what it costs: by scope, by demand scenario, and after a wrong forecast."""

from __future__ import annotations

from fleetplan.planner.plan.record import Record


class Cost(Record):
    """Cost and carbon of one period, service or pool."""

    scope: str
    """period, service or pool"""
    name: str
    usd: float
    """Over the horizon, or over the period; a service pays for what it occupies. [USD]"""
    usd_by_kind: dict[str, float]
    """Of a service: capacity and energy."""
    idle_usd: float
    """The part of what stands that no service pays for. [USD]"""
    retirement_usd: float = 0.0
    """The part that is what hosts that leave cost at once, less their sale. [USD]"""
    million_tokens: float | None
    """Input tokens of prefill and output tokens of decode at the peak rate; None without lengths."""
    usd_per_million_tokens: float | None
    carbon_kg: float | None
    """Of the energy at the served utilisation and of what stands idle, which is no service's; None where a
    grid intensity is missing. [kg CO2]"""


class IncomeTaxCost(Record):
    """The plan after income tax: every cost is deducted, purchases when the law allows."""

    rate: float
    """Tax over income."""
    usd: float
    """TCO after tax: 1 - rate times the TCO. Its kind `tax_deferral` says what it costs before tax that
    purchases are deducted at other times than they are written off. [USD]"""
    usd_by_period: dict[str, float]
    """The same by period. [USD]"""


class DemandScenarioCost(Record):
    """Cost of a plan for uncertain demand if one scenario occurs."""

    name: str
    probability: float
    usd: float
    """TCO of the plan in this scenario. [USD]"""
    unmet_requests_per_s: float
    """What the plan leaves unserved in it, the mean over the horizon. [requests/s]"""
    best_usd: float | None = None
    """TCO of the best plan that was found for this scenario alone; None where it was not looked for. [USD]"""
    best_bound_usd: float | None = None
    """No plan for this scenario alone costs less. [USD]"""
    best_unmet_requests_per_s: float | None = None
    """What that plan leaves unserved. [requests/s]"""
    best_unmet_gap: float | None = None
    """Share of it that another plan might serve. Unless it is 0, no least regret is proven."""
    regret_usd: float | None = None
    """Extra cost over the best plan that was found for the scenario alone. [USD]"""
    regret_at_most_usd: float | None = None
    """Extra cost over the bound: no plan for the scenario alone saves more. [USD]"""


class ScenarioPurchase(Record):
    """Units that the best plan for one demand scenario alone buys or rents."""

    scenario: str
    period: str
    """Order of a purchase, use of rented units."""
    offer: str
    pool: str
    units: int


class WrongForecast(Record):
    """Cost of the best purchases for one demand scenario if another one occurs."""

    planned_for: str
    turns_out: str
    usd: float | None = None
    """TCO with placements decided anew; None where no plan was found. [USD]"""
    bound_usd: float | None = None
    """No placements cost less. [USD]"""
    unmet_requests_per_s: float | None = None
    """What then stays unserved, the mean over the horizon. [requests/s]"""
    unmet_gap: float | None = None
    """Share of it that other placements might serve: unless it is 0, at most so much stays unserved."""
    extra_usd: float | None = None
    """Over the best plan that was found for the scenario that turns out. [USD]"""
