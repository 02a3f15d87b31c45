"""Verify the cost after income tax."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.planner.plan import IncomeTaxCost
from fleetplan.planner.verify.costs import cost_kinds
from fleetplan.planner.verify.placement_figures import expected_placements
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.records import fields_compared
from fleetplan.planner.verify.violations import Violation, misstated


def check_income_tax(check: PlanCheck) -> Iterator[Violation]:
    """Check all costs less the income tax that they save, in total and by period."""
    tax, stated = check.problem.fleet.finance.income_tax, check.plan.income_tax
    if tax is None or stated is None:
        if (tax is None) != (stated is None):
            yield Violation("cost", misstated("income tax", stated, tax))
        return
    spent = dict.fromkeys(check.problem.periods, 0.0)
    for part in (check.capacity_usd, check.leaving_usd):
        for (_, q), kinds in part.items():
            spent[check.problem.periods[q]] += sum(kinds.values())
    for row in expected_placements(check):
        spent[row.period] += row.running_usd
    total = sum(cost_kinds(check).values())
    expected = IncomeTaxCost(
        rate=tax.rate,
        usd=total - tax.rate * total,
        usd_by_period={period: usd - tax.rate * usd for period, usd in spent.items()},
    )
    yield from fields_compared("cost", "income tax", stated, expected, check.floor_usd)
