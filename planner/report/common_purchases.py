"""Purchases common to the best plans of all demand scenarios, and those specific to some."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fleetplan.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class PurchaseByScenario:
    """One purchase or rental in the plan, and in the best plan for each scenario alone.

    Attributes
    ----------
    period, offer, pool : str
        Period, offer and pool of the purchase.
    unit : str
        host or accelerator; empty if the plan itself does not buy from this offer.
    planned : int
        Units in the plan.
    alone : tuple[int, ...]
        Units in the best plan for each scenario, in the order of `Plan.demand_scenarios`.
    """

    period: str
    offer: str
    pool: str
    unit: str
    planned: int
    alone: tuple[int, ...]

    @property
    def sure(self) -> int:
        """Return the units common to the plan and the best plan of every scenario."""
        return min(self.planned, *self.alone)


def purchases_by_scenario(plan: Plan) -> tuple[PurchaseByScenario, ...]:
    """Return every purchase of the plan and of the scenarios' best plans; empty if these are unknown."""
    if not plan.scenario_purchases:
        return ()
    units: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    of = {(row.period, row.offer, row.pool): row for row in plan.purchases}
    for each in plan.scenario_purchases:
        units[each.period, each.offer, each.pool][each.scenario] = each.units
    return tuple(
        PurchaseByScenario(
            *key,
            of[key].unit if key in of else "",
            of[key].units if key in of else 0,
            tuple(units[key].get(scenario.name, 0) for scenario in plan.demand_scenarios),
        )
        for key in sorted({*of, *units}, key=lambda key: (plan.periods.index(key[0]), key))
    )
