"""Rows of a plan that change supply: purchases, rentals and retirements."""

from __future__ import annotations

from fleetplan.fleet.inventory import Offer
from fleetplan.planner.formulation import (
    Solution,
)
from fleetplan.planner.plan import (
    Purchase,
    Retired,
)
from fleetplan.planner.problem import Problem


def purchases(problem: Problem, solution: Solution) -> tuple[Purchase, ...]:
    """Return purchases and rentals in the order of periods and offers."""
    rows = []
    for (p, a, q), units in sorted(solution.acquired.items(), key=lambda item: (item[0][2], item[0])):
        pool = problem.pools[p]
        acquisition = pool.acquisitions[a]
        offer = acquisition.offer
        rows.append(
            Purchase(
                period=problem.periods[q],
                offer=offer.name,
                region=pool.region,
                pool=pool.name,
                hardware=pool.hardware,
                kind=kind_of_offer(offer),
                units=units,
                unit=offer.unit,
                accelerators=units * pool.accelerators_per_unit,
                capex_usd=units * acquisition.capex_usd_per_unit,
                usd=units * acquisition.unit_usd[q],
                price_source=offer.price_source,
                price_as_of=offer.price_as_of,
                assumed=q >= problem.fleet.n_stated,
            )
        )
    return tuple(rows)


def kind_of_offer(offer: Offer) -> str:
    """Return the kind of an offer: buy, rent, reserve (rent for a term) or spot."""
    if offer.capex_usd_per_host is not None:
        return "buy"
    if offer.spot_max_share is not None:
        return "spot"
    return "reserve" if offer.term_periods > 1 else "rent"


def unit_of_pool(accelerators_per_unit: int) -> str:
    """Return the name of a pool's units."""
    return "host" if accelerators_per_unit > 1 else "accelerator"


def retirements(problem: Problem, solution: Solution) -> tuple[Retired, ...]:
    """Return departing units in the order of periods and pools."""
    rows = []
    leased = {pool.name for pool in problem.fleet.pools if pool.rented is not None}
    for (p, q), units in sorted(solution.retired.items(), key=lambda item: (item[0][1], item[0])):
        pool = problem.pools[p]
        if pool.retirement is None:
            raise ValueError(f"nothing may leave {pool.name}")
        resale = -sum(pool.retirement.unit_cost_by_period["resale"][q])
        rows.append(
            Retired(
                kind="return" if pool.name in leased else "retire",
                period=problem.periods[q],
                pool=pool.name,
                region=pool.region,
                hardware=pool.hardware,
                hosts=units,
                unit=unit_of_pool(pool.accelerators_per_unit),
                usd=units * pool.retirement.unit_usd[q],
                resale_usd=units * resale,
                assumed=q >= problem.fleet.n_stated,
            )
        )
    return tuple(rows)
