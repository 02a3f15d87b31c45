"""A plan beside its problem, as every check reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Candidate, Problem
from fleetplan.planner.problem.supply import Acquisition, SupplyPool


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

    def at(self, moment: int) -> list[tuple[Placement, Candidate]]:
        """Placements of a moment."""
        key = self.problem.moment_key(self.problem.moments[moment])
        return [(row, candidate) for row, candidate in self.rows if row.moment_key == key]

    def rates(self, row: Placement, origin: str) -> Mapping[str, float]:
        """Traffic of a placement that comes from a region, by class. [requests/s]"""
        if origin != row.region:
            return row.requests_per_s_by_origin.get(origin, {})
        return {
            name: rate - sum(other.get(name, 0.0) for other in row.requests_per_s_by_origin.values())
            for name, rate in row.requests_per_s_by_class.items()
        }

    def of_cell(self, service: str, origin: str, moment: int) -> list[tuple[Placement, Candidate]]:
        """Placements of a service and moment that serve what comes from a region, wherever they run."""
        return [
            (row, candidate)
            for row, candidate in self.at(moment)
            if row.service == service and (row.region == origin or origin in row.requests_per_s_by_origin)
        ]
