"""Find the binding limits of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetplan.planner.assemble.budgets import spent_usd
from fleetplan.planner.plan import Binding, MomentKey, Placement, PoolUse, Purchase
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import CAPITAL_KINDS
from fleetplan.planner.problem.power_draw import carried_kw
from fleetplan.planner.problem.supply import Acquisition


def binding_limits(
    problem: Problem,
    placements: Sequence[Placement],
    purchases: Sequence[Purchase],
    pools: Sequence[PoolUse],
    costs: dict[str, float],
) -> tuple[Binding, ...]:
    """Return the limits without room for one more replica, unit or lot.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    placements, purchases, pools, costs
        Parts of the plan; costs by kind. [USD]

    Returns
    -------
    tuple[Binding, ...]
        Limits by constraint family: capacity, purchases, power, configurations, budgets.
    """
    found = _capacity(problem, placements, purchases, pools)
    found += _purchases(problem, purchases)
    found += _power(problem, placements, pools)
    found += _configurations(problem, placements)
    found += _budgets(problem, purchases, costs)
    return tuple(found)


def _named(moment: MomentKey) -> str:
    """Return period, slice and scenario as text."""
    return " ".join(part for part in moment if part is not None)


def _growing_pools(problem: Problem, purchases: Sequence[Purchase]) -> set[tuple[str, str]]:
    """Return the pools and periods to which some offer can still add a unit."""
    taken = _taken(problem, purchases)
    found = set()
    for pool in problem.pools:
        for acquisition in pool.acquisitions:
            for q in range(len(problem.periods)):
                if _can_grow(problem, acquisition, q, taken):
                    found |= {
                        (pool.name, later)
                        for r, later in enumerate(problem.periods)
                        if acquisition.serves(q, r)
                    }
    return found


def _can_grow(
    problem: Problem, acquisition: Acquisition, q: int, taken: Mapping[tuple[str, str], int]
) -> bool:
    """Return whether an offer can supply one more lot in a period, within its limits and the horizon."""
    name, lot = acquisition.offer.name, acquisition.offer.lot_units
    limits = zip(problem.periods, acquisition.offer.max_units, strict=True)
    return acquisition.useful_in(q, len(problem.periods)) and all(
        limit is None or taken[name, later] + lot <= limit
        for r, (later, limit) in enumerate(limits)
        if acquisition.counts_in(q, r)
    )


def _taken(problem: Problem, purchases: Sequence[Purchase]) -> dict[tuple[str, str], int]:
    """Return the units ordered or in service, by offer and period."""
    taken: dict[tuple[str, str], int] = defaultdict(int)
    acquisitions = {a.offer.name: a for pool in problem.pools for a in pool.acquisitions}
    for purchase in purchases:
        ordered = problem.periods.index(purchase.period)
        for q, period in enumerate(problem.periods):
            if acquisitions[purchase.offer].counts_in(ordered, q):
                taken[purchase.offer, period] += purchase.units
    return taken


def _capacity(
    problem: Problem,
    placements: Sequence[Placement],
    purchases: Sequence[Purchase],
    pools: Sequence[PoolUse],
) -> list[Binding]:
    """Return pools that cannot grow and have no room for one more of their smallest replica."""
    smallest: dict[tuple[str, MomentKey], int] = {}
    for row in placements:
        key = (row.pool, row.moment_key)
        size = row.accelerators // row.replicas
        smallest[key] = min(smallest.get(key, size), size)
    growing = _growing_pools(problem, purchases)
    found = []
    for use in pools:
        if (use.pool, use.period) in growing:
            continue
        usable = use.accelerators - use.reserve_accelerators - use.maintenance_accelerators
        room = usable - use.used_accelerators
        if room < smallest.get((use.pool, use.moment_key), 0):
            name = f"{use.pool} {_named(use.moment_key)}"
            found.append(
                Binding(
                    family="capacity",
                    name=name,
                    used=use.used_accelerators,
                    limit=usable,
                    unit="accelerators",
                )
            )
    return found


def _purchases(problem: Problem, purchases: Sequence[Purchase]) -> list[Binding]:
    taken = _taken(problem, purchases)
    offers = {offer.name: offer for offer in problem.fleet.offers}
    found = []
    for (name, period), units in taken.items():
        limit = offers[name].max_units[problem.periods.index(period)]
        if limit is not None and units >= limit:
            found.append(
                Binding(
                    family="purchases",
                    name=f"{name} {period}",
                    used=units,
                    limit=limit,
                    unit=f"{offers[name].unit}s",
                )
            )
    return found


def _power(problem: Problem, placements: Sequence[Placement], pools: Sequence[PoolUse]) -> list[Binding]:
    """Return regions without power for one more of their smallest replica on idle accelerators."""
    more_kw = {candidate.key: carried_kw(problem, candidate) for candidate in problem.candidates}
    found = []
    for region in problem.regions.values():
        if region.power_kw is None:
            continue
        for moment in problem.moments:
            place = (region.name, problem.moment_key(moment))
            when = place[1]
            running = [row for row in placements if (row.region, row.moment_key) == place]
            drawn = sum(use.power_kw for use in pools if (use.region, use.moment_key) == place)
            smallest = (
                min((more_kw[row.key] for row in running if more_kw[row.key]), default=0.0) * region.pue
            )
            limit = region.power_kw[moment.period]
            if smallest and drawn + smallest > limit:
                name = f"{region.name} {_named(when)}"
                found.append(Binding(family="power", name=name, used=drawn, limit=limit, unit="kW"))
    return found


def _configurations(problem: Problem, placements: Sequence[Placement]) -> list[Binding]:
    limit = problem.fleet.policy.max_configs_per_service_region
    if limit is None:
        return []
    running: dict[tuple[str, str, MomentKey], set[tuple[str, str, str]]] = defaultdict(set)
    for row in placements:
        running[row.service, row.region, row.moment_key].add((row.phase, row.hardware, row.config))
    return [
        Binding(
            family="configurations",
            name=f"{service} {region} {_named(when)}",
            used=len(used),
            limit=limit,
            unit="configurations",
        )
        for (service, region, when), used in running.items()
        if len(used) >= limit
    ]


def _budgets(problem: Problem, purchases: Sequence[Purchase], costs: dict[str, float]) -> list[Binding]:
    """Return budgets with less left than the share of the cheapest lot that is still available."""
    budget, periods = problem.fleet.budget, problem.periods
    taken = _taken(problem, purchases)
    lots = [
        _Lot(periods[q], each.offer.lot_units, each, q)
        for pool in problem.pools
        for each in pool.acquisitions
        for q in range(len(periods))
        if _can_grow(problem, each, q, taken)
    ]
    capex = sum(purchase.capex_usd for purchase in purchases)
    cash = [(each.period, each.capex_usd) for each in lots if each.capex_usd]
    spent: list[tuple[str, float, float | None, list[float]]] = [
        ("capex", capex, budget.capex_usd, [usd for _, usd in cash])
    ]
    # A plan short of operating budget buys instead of renting, at almost no operating cost: test rentals.
    rents = [each.running_usd for each in lots if not each.capex_usd]
    for name, used, most in spent_usd(problem, costs):
        running = rents or [each.running_usd for each in lots]
        spent.append((name, used, most, running if name == "opex" else [each.usd for each in lots]))
    for period, limit in zip(periods, budget.capex_usd_by_period, strict=True):
        used = sum(purchase.capex_usd for purchase in purchases if purchase.period == period)
        spent.append((f"capex {period}", used, limit, [usd for when, usd in cash if when == period]))
    return [
        Binding(family="budgets", name=name, used=used, limit=limit, unit="USD")
        for name, used, limit, steps in spent
        if limit is not None and used + min(steps, default=0.0) > limit
    ]


@dataclass(frozen=True, slots=True)
class _Lot:
    """A lot of an offer in a period, and its share of each budget."""

    period: str
    units: int
    acquisition: Acquisition
    ordered: int

    @property
    def capex_usd(self) -> float:
        return self.units * self.acquisition.capex_usd_per_unit

    @property
    def usd(self) -> float:
        return self.units * self.acquisition.unit_usd[self.ordered]

    @property
    def running_usd(self) -> float:
        kinds = self.acquisition.unit_cost_kinds.items()
        return self.units * sum(usd[self.ordered] for kind, usd in kinds if kind not in CAPITAL_KINDS)
