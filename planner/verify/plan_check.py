"""A plan beside its problem, as every check reads them."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Candidate, Problem
from fleetplan.planner.supply import Acquisition, SupplyPool


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """A plan and what it is checked against.

    Attributes
    ----------
    problem : Problem
        Sets and data, without rounding.
    plan : Plan
        Its purchases are known to be sound.
    rows : tuple[tuple[Placement, Candidate], ...]
        Placements that are sound, with what they run.
    """

    problem: Problem
    plan: Plan
    rows: tuple[tuple[Placement, Candidate], ...]

    def pool(self, name: str) -> SupplyPool:
        """The supply pool of a name."""
        return next(pool for pool in self.problem.pools if pool.name == name)

    def units(self, pool: SupplyPool, period: int) -> int:
        """Units that stand in a pool in a period."""
        total = pool.existing_units
        for row in self.plan.retirements:
            if row.pool == pool.name and self.problem.periods.index(row.period) <= period:
                total -= row.hosts
        for purchase in self.plan.purchases:
            acquisition = self.acquisition(purchase.offer, purchase.pool)
            ordered = self.problem.periods.index(purchase.period)
            if purchase.pool == pool.name and acquisition.serves(ordered, period):
                total += purchase.units
        return total

    def acquisition(self, offer: str, pool: str) -> Acquisition:
        """The offer of a purchase."""
        return next(a for a in self.pool(pool).acquisitions if a.offer.name == offer)

    def in_cell(self, service: str, region: str, period: int) -> list[tuple[Placement, Candidate]]:
        """Placements of a service in a region and period."""
        name = self.problem.periods[period]
        return [
            (row, candidate)
            for row, candidate in self.rows
            if (row.service, row.region, row.period) == (service, region, name)
        ]
