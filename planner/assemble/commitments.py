"""What a plan leaves beyond its horizon: rents and loans that are owed, and what owned hosts are worth."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Offer, Owned, Pool
from fleetplan.fleet.inventory.periods import quarter_after, quarter_index
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import Commitment, RemainingValue
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import interest_per_quarter

STANDING = "standing hosts"
"""What rows call hosts that are there before anything is decided."""


def commitments(problem: Problem, solution: Solution) -> tuple[Commitment, ...]:
    """Return what is owed for each quarter after the horizon: leases, terms and loans."""
    rows = [*_leases(problem), *_orders(problem, solution)]
    return tuple(
        Commitment(quarter=quarter_after(problem.periods, after), pool=pool, item=item, kind=kind, usd=usd)
        for after, pool, item, kind, usd in sorted(rows)
        if usd
    )


def _leases(problem: Problem) -> Iterator[tuple[int, str, str, str, float]]:
    """Rent of leases that go on, at the price of the last period."""
    last = quarter_index(problem.periods[-1])
    for pool in problem.fleet.pools:
        end = None if pool.rented is None or pool.end is None else quarter_index(pool.end)
        if pool.rented is None or end is None or last is None:
            continue
        usd = tco.rent_usd(pool.rented.usd_per_accelerator_hour[-1], pool.accelerators)
        for after in range(1, end - last):
            yield after, pool.name, STANDING, "lease", usd


def _orders(problem: Problem, solution: Solution) -> Iterator[tuple[int, str, str, str, float]]:
    """Rent of terms that go on, and payments of loans."""
    count, loan = len(problem.periods), problem.fleet.finance.loan
    for (p, a, q), units in solution.acquired.items():
        pool, offer = problem.pools[p], problem.pools[p].acquisitions[a].offer
        item = f"{offer.name} {problem.periods[q]}"
        if offer.rent_usd_per_accelerator_hour is not None:
            usd = units * tco.rent_usd(offer.rent_usd_per_accelerator_hour[q], offer.accelerators_per_unit)
            for after in range(1, q + offer.term_quarters - count + 1):
                yield after, pool.name, item, "term", usd
        elif offer.capex_usd_per_host is not None and loan is not None:
            usd = units * tco.loan_payment_usd(offer.capex_usd_per_host, loan)
            for after in range(1, q + offer.lead_time_quarters + loan.quarters - count + 1):
                yield after, pool.name, item, "loan", usd


def remaining_values(problem: Problem, solution: Solution) -> tuple[RemainingValue, ...]:
    """Return what the books hold of owned hosts at the end of the horizon, those that left apart."""
    count = len(problem.periods)
    stated = {pool.name: pool for pool in problem.fleet.pools}
    rows = []
    for p, pool in enumerate(problem.pools):
        existing = stated.get(pool.name)
        gone = sum(units for (place, _), units in solution.retired.items() if place == p)
        if existing is not None and existing.owned is not None and existing.hosts > gone:
            age = _age_at_end(existing, problem.periods)
            rows.append(_value(problem, pool.name, STANDING, existing.hosts - gone, (existing.owned, age)))
        for (place, a, q), units in sorted(solution.acquired.items()):
            offer = pool.acquisitions[a].offer if place == p else None
            if offer is not None and offer.capex_usd_per_host is not None:
                age = count - q - offer.lead_time_quarters
                item = f"{offer.name} {problem.periods[q]}"
                rows.append(_value(problem, pool.name, item, units, (offer, age)))
    return tuple(rows)


def _age_at_end(pool: Pool, periods: tuple[str, ...]) -> int | None:
    """Quarters in service by the end of the last period; None where they are not known."""
    start = None if pool.owned is None or pool.owned.in_service is None else pool.owned.in_service
    since = None if start is None else quarter_index(start)
    last = quarter_index(periods[-1])
    return None if since is None or last is None else last + 1 - since


def _value(
    problem: Problem, pool: str, item: str, hosts: int, bought: tuple[Owned | Offer, int | None]
) -> RemainingValue:
    thing, age = bought
    price, interest = thing.capex_usd_per_host or 0.0, interest_per_quarter(problem.fleet.finance)
    book = (
        None
        if age is None
        else hosts
        * tco.book_value_usd(
            price, thing.life_quarters, age, thing.residual_ratio, interest, thing.value_by_age
        )
    )
    return RemainingValue(pool=pool, item=item, hosts=hosts, age_quarters=age, book_usd=book)
