"""A plan and its problem with the derived data that the checks share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fleetplan.planner.plan import MomentKey, Placement, Plan
from fleetplan.planner.problem import Candidate, ConfigurationKey, Problem
from fleetplan.planner.problem.moments import Moment
from fleetplan.planner.verify.prices import existing_usd, leaving_usd, saved_usd, unit_usd
from fleetplan.planner.verify.rounding import MONEY_FLOOR_RATIO
from fleetplan.planner.verify.supply_rules import FleetPool, fleet_pools, is_in_service

Run = tuple[Placement, Candidate]
"""A placement with its candidate."""

PoolPeriod = tuple[str, int]
"""Pool name and period index."""

DAY_HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class CapacityCost:
    """Cost of one item of capacity in a period.

    Attributes
    ----------
    pool : FleetPool
        Pool of the item.
    offer : str or None
        Offer that supplied it; None for installed hosts.
    item : str
        Name in the bill.
    kind : str
        Kind of cost: depreciation, rent, hosting and so on.
    period : int
        Index of the period of the charge.
    usd : float
        [USD]
    priced : int
        Index of the period that determines the price.
    at_once : bool
        Whether it is due at the start of the period because hosts leave.
    """

    pool: FleetPool
    offer: str | None
    item: str
    kind: str
    period: int
    usd: float
    priced: int
    at_once: bool = False


@dataclass(frozen=True, eq=False)
class PlanCheck:
    """A plan with the data to verify it.

    Attributes
    ----------
    problem : Problem
        Sets and data, without rounding; its prices are not read.
    plan : Plan
        Plan whose rows refer only to existing names.
    rows : tuple[tuple[Placement, Candidate], ...]
        Placements of the plan with their candidates.
    """

    problem: Problem
    plan: Plan
    rows: tuple[Run, ...]

    @cached_property
    def pools(self) -> dict[str, FleetPool]:
        """Pools by name, as in the fleet file."""
        return fleet_pools(self.problem)

    @cached_property
    def candidates(self) -> dict[ConfigurationKey, Candidate]:
        """Candidates by the key used in rows."""
        return {candidate.key: candidate for candidate in self.problem.candidates}

    @cached_property
    def moments(self) -> dict[MomentKey, int]:
        """Moment indices by their keys in rows."""
        return {self.problem.moment_key(moment): m for m, moment in enumerate(self.problem.moments)}

    @cached_property
    def period_index(self) -> dict[str, int]:
        """Period indices by name."""
        return {period: q for q, period in enumerate(self.problem.periods)}

    @cached_property
    def _rows_at(self) -> dict[MomentKey, list[Run]]:
        found: dict[MomentKey, list[Run]] = defaultdict(list)
        for run in self.rows:
            found[run[0].moment_key].append(run)
        return found

    @cached_property
    def _rows_of_service(self) -> dict[tuple[MomentKey, str], list[Run]]:
        found: dict[tuple[MomentKey, str], list[Run]] = defaultdict(list)
        for run in self.rows:
            found[run[0].moment_key, run[0].service].append(run)
        return found

    @cached_property
    def class_index(self) -> dict[str, dict[str, int]]:
        """Class indices by service and class name."""
        return {
            name: {request_class.name: k for k, request_class in enumerate(service.classes)}
            for name, service in self.problem.services.items()
        }

    def pool(self, name: str) -> FleetPool:
        """Return the pool with a name."""
        return self.pools[name]

    def key_of(self, moment: Moment) -> MomentKey:
        """Return the key of a moment in rows."""
        return self.problem.moment_key(moment)

    @cached_property
    def units(self) -> dict[PoolPeriod, int]:
        """Units by pool and period, including the reserve."""
        found = {
            (pool.name, q): pool.existing_units
            for pool in self.pools.values()
            for q in range(len(self.problem.periods))
        }
        for row in self.plan.retirements:
            for q in range(self.period_index[row.period], len(self.problem.periods)):
                found[row.pool, q] -= row.hosts
        for purchase in self.plan.purchases:
            offer = self.pool(purchase.pool).offers[purchase.offer]
            for q in range(len(self.problem.periods)):
                if is_in_service(offer, self.period_index[purchase.period], q):
                    found[purchase.pool, q] += purchase.units
        return found

    @cached_property
    def capacity_costs(self) -> tuple[CapacityCost, ...]:
        """Costs of installed, added and departing capacity."""
        return tuple(self._capacity_costs())

    def _capacity_costs(self) -> Iterator[CapacityCost]:
        fleet, every = self.problem.fleet, range(len(self.problem.periods))
        for pool in self.pools.values():
            for kind, values in existing_usd(fleet, pool).items():
                for q, usd in enumerate(values):
                    yield CapacityCost(pool, None, "standing hosts", kind, q, usd, priced=q)
        for row in self.plan.purchases:
            pool, ordered = self.pool(row.pool), self.period_index[row.period]
            item = f"{row.offer} {row.period}"
            for kind, values in unit_usd(fleet, pool, pool.offers[row.offer], ordered).items():
                for q in every:
                    yield CapacityCost(pool, row.offer, item, kind, q, row.units * values[q], priced=ordered)
        for gone in self.plan.retirements:
            pool, left = self.pool(gone.pool), self.period_index[gone.period]
            item = f"retired {gone.period}"
            for kind, values in saved_usd(fleet, pool, left).items():
                for q in every:
                    yield CapacityCost(pool, None, item, kind, q, gone.hosts * values[q], priced=left)
            for kind, usd in leaving_usd(fleet, pool, left).items():
                yield CapacityCost(pool, None, item, kind, left, gone.hosts * usd, priced=left, at_once=True)

    @cached_property
    def capacity_usd(self) -> dict[PoolPeriod, dict[str, float]]:
        """Cost of capacity by pool, period and kind, without departed units. [USD]"""
        return self._added_up(at_once=False)

    @cached_property
    def leaving_usd(self) -> dict[PoolPeriod, dict[str, float]]:
        """Write-off of hosts that leave at the start of a period, less their sale, by kind. [USD]"""
        return self._added_up(at_once=True)

    def _added_up(self, at_once: bool) -> dict[PoolPeriod, dict[str, float]]:
        found: dict[PoolPeriod, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for cost in self.capacity_costs:
            if cost.at_once == at_once:
                found[cost.pool.name, cost.period][cost.kind] += cost.usd
        return found

    @cached_property
    def _hours(self) -> dict[str | None, float]:
        return {part.name: part.hours for part in self.problem.fleet.slices} | {None: DAY_HOURS}

    @cached_property
    def _probabilities(self) -> dict[str | None, float]:
        scenarios = self.problem.fleet.demand_scenarios
        return {scenario.name: scenario.probability for scenario in scenarios} | {None: 1.0}

    def hours(self, moment: Moment) -> float:
        """Return the length of a moment's slice of the day. [h]"""
        return self._hours[moment.slice]

    @cached_property
    def _days(self) -> dict[str | None, float]:
        shares = {part.name: float(part.days_share) for part in self.problem.fleet.slices}
        return shares | {None: 1.0}

    def days(self, moment: Moment) -> float:
        """Return the share of days that contain a moment's slice."""
        return self._days[moment.slice]

    def mean_hours(self, moment: Moment) -> float:
        """Return the hours per day of a moment, averaged over all kinds of days. [h]"""
        return self.hours(moment) * self.days(moment)

    def probability(self, moment: Moment) -> float:
        """Return the probability of a moment's demand scenario."""
        return self._probabilities[moment.scenario]

    def weight(self, moment: Moment) -> float:
        """Return a moment's share of the expected hours of its period; the shares add up to 1."""
        return self.mean_hours(moment) / DAY_HOURS * self.probability(moment)

    def moment_of(self, row: Placement) -> Moment:
        """Return the moment of a placement."""
        return self.problem.moments[self.moments[row.moment_key]]

    def at(self, moment: int) -> list[Run]:
        """Return the placements of a moment."""
        return self._rows_at.get(self.key_of(self.problem.moments[moment]), [])

    def rates(self, row: Placement, origin: str) -> Mapping[str, float]:
        """Return the traffic of a placement from a region, by class. [requests/s]"""
        if origin != row.region:
            return row.requests_per_s_by_origin.get(origin, {})
        return {
            name: rate - sum(other.get(name, 0.0) for other in row.requests_per_s_by_origin.values())
            for name, rate in row.requests_per_s_by_class.items()
        }

    def of_cell(self, service: str, origin: str, moment: int) -> list[Run]:
        """Return the placements, in any region, that serve a region's requests to a service in a moment."""
        when = self.key_of(self.problem.moments[moment])
        return [
            (row, candidate)
            for row, candidate in self._rows_of_service.get((when, service), [])
            if row.region == origin or origin in row.requests_per_s_by_origin
        ]

    @cached_property
    def floor_usd(self) -> float:
        """Minimum tolerance of an amount of money. [USD]"""
        largest = max(abs(self.plan.objective_usd), sum(abs(row.usd) for row in self.plan.purchases), 1e-6)
        return MONEY_FLOOR_RATIO * largest
