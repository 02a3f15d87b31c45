"""Verify the binding limits from placements, purchases and spending."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fleetplan.fleet.inventory import Offer
from fleetplan.planner.plan import Binding, MomentKey
from fleetplan.planner.problem import Candidate
from fleetplan.planner.verify.costs import cost_kinds
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.prices import CAPITAL_KINDS, capex_usd, idle_kw, unit_usd
from fleetplan.planner.verify.quantities import links_of, planned
from fleetplan.planner.verify.records import compared
from fleetplan.planner.verify.rounding import RELATIVE_TOLERANCE
from fleetplan.planner.verify.supply import region_kw
from fleetplan.planner.verify.supply_rules import (
    FleetPool,
    counts_against_maximum,
    is_in_service,
    serves_in_horizon,
)
from fleetplan.planner.verify.violations import Violation

FULL_LINK_RATIO: Final = 0.999
"""Utilisation from which a link counts as binding."""

Found = tuple[Binding, float]
"""A limit, and its slack after one more step; negative slack means that it is binding."""


def check_binding(check: PlanCheck) -> Iterator[Violation]:
    """Check that exactly the limits without room for one more replica, unit or lot are listed."""
    found = [*_capacity(check), *_purchases(check), *_power(check), *_configurations(check)]
    found += [*_budgets(check), *_links(check)]
    stated = {(row.family, row.name) for row in check.plan.binding}
    # If rounding decides whether the next step fits, either answer is valid.
    expected = [
        row
        for row, room in found
        if room < -_rounding(row) or (room <= _rounding(row) and (row.family, row.name) in stated)
    ]
    yield from compared("binding", check.plan.binding, expected, ("family", "name"), check.floor_usd)


def _rounding(row: Binding) -> float:
    return (
        RELATIVE_TOLERANCE * max(abs(row.limit), abs(row.used)) if row.unit in ("USD", "kW", "GB/s") else 0.0
    )


def _named(when: MomentKey) -> str:
    return " ".join(part for part in when if part is not None)


def _taken(check: PlanCheck) -> dict[tuple[str, int], int]:
    """Return the units ordered or in service, by offer and period."""
    taken: dict[tuple[str, int], int] = defaultdict(int)
    for row in check.plan.purchases:
        offer, ordered = check.pool(row.pool).offers[row.offer], check.period_index[row.period]
        for q in range(len(check.problem.periods)):
            if counts_against_maximum(offer, ordered, q):
                taken[row.offer, q] += row.units
    return taken


def _left(check: PlanCheck) -> Iterator[tuple[FleetPool, Offer, int]]:
    """Yield offers that can supply one more lot, with the pool that it joins and the period of the order."""
    taken, every = _taken(check), range(len(check.problem.periods))
    for pool in check.pools.values():
        for offer in pool.offers.values():
            for q in (q for q in every if serves_in_horizon(offer, q, len(every))):
                limits = [
                    (offer.max_units[r], taken[offer.name, r])
                    for r in every
                    if counts_against_maximum(offer, q, r)
                ]
                if all(limit is None or held + offer.lot_units <= limit for limit, held in limits):
                    yield pool, offer, q


def _growing(check: PlanCheck) -> set[tuple[str, int]]:
    """Return the pools and periods to which some offer can still add a unit."""
    every = range(len(check.problem.periods))
    return {(pool.name, r) for pool, offer, q in _left(check) for r in every if is_in_service(offer, q, r)}


def _capacity(check: PlanCheck) -> Iterator[Found]:
    smallest: dict[tuple[str, MomentKey], int] = {}
    for row, candidate in check.rows:
        key = (row.pool, row.moment_key)
        smallest[key] = min(smallest.get(key, candidate.accelerators), candidate.accelerators)
    growing = _growing(check)
    for use in check.plan.pools:
        if (use.pool, check.period_index.get(use.period, -1)) in growing:
            continue
        usable = use.accelerators - use.reserve_accelerators - use.maintenance_accelerators
        next_one = smallest.get((use.pool, use.moment_key), 0)
        limited = Binding(
            family="capacity",
            name=f"{use.pool} {_named(use.moment_key)}",
            used=use.used_accelerators,
            limit=usable,
            unit="accelerators",
        )
        # Integer limits: one less than enough is not enough.
        yield limited, usable - use.used_accelerators - next_one + 0.5


def _purchases(check: PlanCheck) -> Iterator[Found]:
    offers = {offer.name: offer for offer in check.problem.fleet.offers}
    for (name, q), units in _taken(check).items():
        limit = offers[name].max_units[q]
        if limit is not None:
            period = check.problem.periods[q]
            row = Binding(
                family="purchases",
                name=f"{name} {period}",
                used=units,
                limit=limit,
                unit=f"{offers[name].unit}s",
            )
            yield row, limit - units - 0.5


def _power(check: PlanCheck) -> Iterator[Found]:
    for region in check.problem.regions.values():
        if region.power_kw is None:
            continue
        for m, moment in enumerate(check.problem.moments):
            here = [(row, candidate) for row, candidate in check.at(m) if row.region == region.name]
            steps = [_step_kw(check, row.pool, candidate) for row, candidate in here]
            if any(steps):
                used, limit = (
                    region_kw(check, region.name, moment.period, here),
                    region.power_kw[moment.period],
                )
                name = f"{region.name} {_named(check.key_of(moment))}"
                limited = Binding(family="power", name=name, used=used, limit=limit, unit="kW")
                yield limited, limit - used - min(filter(None, steps)) * region.pue


def _step_kw(check: PlanCheck, pool: str, candidate: Candidate) -> float:
    """Return the power that one more replica needs on idle accelerators, before PUE. [kW]"""
    return max((candidate.power_kw or 0.0) - idle_kw(check.pool(pool), candidate.accelerators), 0.0)


def _configurations(check: PlanCheck) -> Iterator[Found]:
    limit = check.problem.fleet.policy.max_configs_per_service_region
    if limit is None:
        return
    running: dict[tuple[str, str, MomentKey], set[tuple[str, str, str]]] = defaultdict(set)
    for row, _ in check.rows:
        running[row.service, row.region, row.moment_key].add((row.phase, row.hardware, row.config))
    for (service, region, when), used in running.items():
        limited = Binding(
            family="configurations",
            name=f"{service} {region} {_named(when)}",
            used=len(used),
            limit=limit,
            unit="configurations",
        )
        yield limited, limit - len(used) - 0.5


def _budgets(check: PlanCheck) -> Iterator[Found]:
    """Yield budgets, with their slack less the share of the cheapest lot that is still available."""
    budget, periods, fleet = check.problem.fleet.budget, check.problem.periods, check.problem.fleet
    steps: dict[str, list[float]] = defaultdict(list)
    for pool, offer, q in _left(check):
        kinds = {kind: sum(values) for kind, values in unit_usd(fleet, pool, offer, q).items()}
        whole = sum(kinds.values())
        steps["tco"].append(offer.lot_units * whole)
        running = offer.lot_units * (whole - sum(kinds.get(kind, 0.0) for kind in CAPITAL_KINDS))
        steps["opex of purchases" if capex_usd(offer) else "opex"].append(running)
        if cash := offer.lot_units * capex_usd(offer):
            steps["capex"].append(cash)
            steps[f"capex {periods[q]}"].append(cash)
    # The operating budget mainly pays rents; the running cost of hosts counts if nothing can be rented.
    steps["opex"] = steps["opex"] or steps["opex of purchases"]
    capex: dict[str, float] = defaultdict(float)
    for row in check.plan.purchases:
        capex[row.period] += row.units * capex_usd(check.pool(row.pool).offers[row.offer])
    kinds = cost_kinds(check)
    total = sum(kinds.values())
    spent = [
        ("capex", sum(capex.values()), budget.capex_usd),
        ("opex", total - sum(kinds.get(kind, 0.0) for kind in CAPITAL_KINDS), budget.opex_usd),
        ("tco", total, budget.tco_usd),
    ]
    spent += [
        (f"capex {period}", capex[period], limit)
        for period, limit in zip(periods, budget.capex_usd_by_period, strict=True)
    ]
    for name, used, limit in spent:
        if limit is not None:
            binding = Binding(family="budgets", name=name, used=used, limit=limit, unit="USD")
            yield binding, limit - used - min(steps[name], default=0.0)


def _links(check: PlanCheck) -> Iterator[Found]:
    loaded = [(flow, links_of(check, flow)) for flow in check.plan.kv_flows]
    for link in check.problem.fleet.kv_links:
        carried: dict[MomentKey, float] = defaultdict(float)
        for flow, links in loaded:
            if link in links:
                carried[flow.moment_key] += planned(check, flow.service, flow.kv_gb_per_s or 0.0)
        for when, used in carried.items():
            name = " ".join((link.name, _named(when)))
            row = Binding(family="kv_transfer", name=name, used=used, limit=link.gb_per_s, unit="GB/s")
            yield row, FULL_LINK_RATIO * link.gb_per_s - used
