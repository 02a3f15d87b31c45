"""Obligations after the horizon (rents and loans), and the book value of owned hosts at its end.

The horizon is that of the fleet file: orders in its extension are assumptions and create no obligations.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Offer, Owned, Pool
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import Commitment, RemainingValue
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import interest_per_period

STANDING = "standing hosts"
"""Item of rows about installed hosts."""


def commitments(problem: Problem, solution: Solution) -> tuple[Commitment, ...]:
    """Return the amounts owed for each period after the horizon: leases, terms and loans."""
    rows = [*_leases(problem), *_orders(problem, solution)]
    calendar, stated = problem.fleet.calendar, problem.periods[: problem.fleet.n_stated]
    return tuple(
        Commitment(quarter=calendar.after(stated, after), pool=pool, item=item, kind=kind, usd=usd)
        for after, pool, item, kind, usd in sorted(rows)
        if usd
    )


def _leases(problem: Problem) -> Iterator[tuple[int, str, str, str, float]]:
    """Yield the rent of leases that continue, at the price of the last period."""
    calendar, count = problem.fleet.calendar, problem.fleet.n_stated
    last = calendar.index(problem.periods[count - 1])
    for pool in problem.fleet.pools:
        end = None if pool.rented is None or pool.end is None else calendar.index(pool.end)
        if pool.rented is None or end is None or last is None:
            continue
        usd = tco.rent_usd(pool.rented.usd_per_accelerator_hour[count - 1], pool.accelerators, calendar)
        for after in range(1, end - last):
            yield after, pool.name, STANDING, "lease", usd


def _orders(problem: Problem, solution: Solution) -> Iterator[tuple[int, str, str, str, float]]:
    """Yield the rent of terms that continue, and payments of loans."""
    count, loan, calendar = problem.fleet.n_stated, problem.fleet.finance.loan, problem.fleet.calendar
    for (p, a, q), units in solution.acquired.items():
        if q >= count:
            continue
        pool, offer = problem.pools[p], problem.pools[p].acquisitions[a].offer
        item = f"{offer.name} {problem.periods[q]}"
        if offer.rent_usd_per_accelerator_hour is not None:
            per_hour, cards = offer.rent_usd_per_accelerator_hour[q], offer.accelerators_per_unit
            usd = units * tco.rent_usd(per_hour, cards, calendar)
            for after in range(1, q + offer.term_periods - count + 1):
                yield after, pool.name, item, "term", usd
        elif offer.capex_usd_per_host is not None and loan is not None:
            usd = units * tco.loan_payment_usd(offer.capex_usd_per_host, loan, calendar)
            # The first payment is due at the end of the first period in service.
            before = q + offer.lead_time_periods - count
            for after in range(max(1, before + 1), before + loan.periods + 1):
                yield after, pool.name, item, "loan", usd


def remaining_values(problem: Problem, solution: Solution) -> tuple[RemainingValue, ...]:
    """Return the book value of owned hosts at the end of the horizon, without retired hosts."""
    count = problem.fleet.n_stated
    stated = {pool.name: pool for pool in problem.fleet.pools}
    rows = []
    for p, pool in enumerate(problem.pools):
        existing = stated.get(pool.name)
        gone = sum(units for (place, q), units in solution.retired.items() if place == p and q < count)
        if existing is not None and existing.owned is not None and existing.hosts > gone:
            age = _age_at_end(existing, problem)
            rows.append(_value(problem, pool.name, STANDING, existing.hosts - gone, (existing.owned, age)))
        for (place, a, q), units in sorted(solution.acquired.items()):
            offer = pool.acquisitions[a].offer if place == p and q < count else None
            if offer is not None and offer.capex_usd_per_host is not None:
                age = count - q - offer.lead_time_periods
                item = f"{offer.name} {problem.periods[q]}"
                rows.append(_value(problem, pool.name, item, units, (offer, age)))
    return tuple(rows)


def _age_at_end(pool: Pool, problem: Problem) -> int | None:
    """Return the periods in service by the end of the last period; None if unknown."""
    start = None if pool.owned is None or pool.owned.in_service is None else pool.owned.in_service
    calendar = problem.fleet.calendar
    since = None if start is None else calendar.index(start)
    last = calendar.index(problem.periods[problem.fleet.n_stated - 1])
    return None if since is None or last is None else last + 1 - since


def _value(
    problem: Problem, pool: str, item: str, hosts: int, bought: tuple[Owned | Offer, int | None]
) -> RemainingValue:
    thing, age = bought
    price, interest = thing.capex_usd_per_host or 0.0, interest_per_period(problem.fleet.finance)
    book = (
        None
        if age is None
        else hosts
        * tco.book_value_usd(
            price, thing.life_periods, age, thing.residual_ratio, interest, thing.value_by_age
        )
    )
    quarters = None if age is None else age // problem.fleet.calendar.per_quarter
    return RemainingValue(pool=pool, item=item, hosts=hosts, age_quarters=quarters, book_usd=book)
