"""Families 3, 5 and 7: what stands, what it draws, and what was bought and rented."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.verify.packing import fits
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation, exceeds


def check_capacity(check: PlanCheck) -> Iterator[Violation]:
    """Replicas can be packed into the units of their pool, less the reserve."""
    for pool in check.problem.pools:
        for m, moment in enumerate(check.problem.moments):
            sizes = []
            for row, candidate in check.at(m):
                if row.pool == pool.name:
                    if (row.region, candidate.hardware) != (pool.region, pool.hardware):
                        yield Violation("capacity", f"{row.config} cannot run in {pool.name}")
                    sizes += [candidate.accelerators] * row.replicas
            q = moment.period
            usable = check.units(pool, q) - pool.maintenance_in(q) - pool.reserve_units
            if sizes and not fits(sizes, pool.accelerators_per_unit, usable):
                yield Violation(
                    "capacity",
                    f"{pool.name} {moment.label}: replicas of {sum(sizes)} accelerators in "
                    f"{usable} units of {pool.accelerators_per_unit}",
                )


def check_power(check: PlanCheck) -> Iterator[Violation]:
    """What runs in a region stays within its power."""
    for region in check.problem.regions.values():
        if region.power_kw is None:
            continue
        for m, moment in enumerate(check.problem.moments):
            limit_kw = region.power_kw[moment.period]
            load_kw = sum(
                (candidate.power_kw or 0.0) * row.replicas
                for row, candidate in check.at(m)
                if row.region == region.name
            )
            if exceeds(load_kw * region.pue, limit_kw):
                yield Violation(
                    "power", f"{region.name} {moment.label}: {load_kw * region.pue} of {limit_kw} kW"
                )


def check_purchases(check: PlanCheck) -> Iterator[Violation]:
    """Offers bring what they may, and when they can."""
    taken: dict[tuple[str, int], int] = defaultdict(int)
    for purchase in check.plan.purchases:
        q = check.problem.periods.index(purchase.period)
        acquisition = check.acquisition(purchase.offer, purchase.pool)
        for held in range(len(check.problem.periods)):
            if acquisition.counts_in(q, held):
                taken[purchase.offer, held] += purchase.units
        if purchase.units % acquisition.offer.lot_units:
            lot = acquisition.offer.lot_units
            yield Violation("purchases", f"{purchase.offer}: {purchase.units} units in lots of {lot}")
        if not acquisition.useful_in(q, len(check.problem.periods)):
            yield Violation("purchases", f"{purchase.offer} cannot arrive from {purchase.period}")
    for offer in check.problem.fleet.offers:
        for q, (period, limit) in enumerate(zip(check.problem.periods, offer.max_units, strict=True)):
            if limit is not None and taken[offer.name, q] > limit:
                yield Violation("purchases", f"{offer.name} {period}: more than {limit}")
