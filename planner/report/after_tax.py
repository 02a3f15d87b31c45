"""Describe the cost after income tax in words."""

from __future__ import annotations

from fleetplan.fleet.figures import money, percent
from fleetplan.planner.plan import Plan


def after_tax(plan: Plan) -> str:
    """Return one sentence on the cost after income tax, or an empty string for a fleet without a tax rate."""
    if plan.income_tax is None:
        return ""
    parts = [f"TCO {money(plan.income_tax.usd)} after tax at {percent(plan.income_tax.rate)}"]
    deferral = plan.cost_breakdown.get("tax_deferral", 0.0)
    if deferral:
        how = "saves" if deferral < 0 else "costs"
        parts.append(f"when purchases are deducted {how} {money(abs(deferral))} before tax")
    return "; ".join(parts)
