"""Verify obligations after the horizon and supply options, from the fleet file alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from fleetplan.fleet.inventory import Offer
from fleetplan.planner.plan import Commitment, Purchase, RemainingValue, Retired, SupplyOption
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.prices import (
    MONTHS_PER_QUARTER,
    book_value_usd,
    existing_usd,
    leaving_usd,
    loan_payments_usd,
    period_hours,
    saved_usd,
    unit_usd,
    worth,
)
from fleetplan.planner.verify.records import FORMATS_WITHOUT_COMMITMENTS, compared
from fleetplan.planner.verify.supply_rules import (
    FleetPool,
    is_bought,
    is_in_service,
    kind_of,
    last_period,
    may_leave,
    serves_in_horizon,
)
from fleetplan.planner.verify.violations import Violation

_RowT = TypeVar("_RowT", Purchase, Retired)

STANDING: Final = "standing hosts"

EQUAL_RATIO: Final = 1e-9
"""Relative difference below which costs are equal; the earlier period or offer then comes first."""

NO_CASH: Final = ("depreciation", "interest", "tax_deferral")
"""Kinds of cost that spread the payment of a purchase price over time."""


def check_commitments(check: PlanCheck) -> Iterator[Violation]:
    """Check rents and loans after the horizon, book values at its end, and the options of every pool."""
    plan = check.plan
    if plan.format_version in FORMATS_WITHOUT_COMMITMENTS:
        return
    floor = check.floor_usd
    key = ("quarter", "pool", "item", "kind")
    yield from compared("commitments", plan.commitments, _owed(check), key, floor)
    values = _values(check)
    yield from compared("commitments", plan.remaining_values, values, ("pool", "item"), floor)
    options = [row for pool in check.pools.values() for row in _options(check, pool)]
    yield from compared("commitments", plan.supply_options, options, ("pool", "option", "offer"), floor)


def _owed(check: PlanCheck) -> list[Commitment]:
    fleet, count = check.problem.fleet, _stated(check)
    calendar, per_period = fleet.calendar, period_hours(fleet.finance)
    usd: dict[tuple[int, str, str, str], float] = {}
    for pool in check.pools.values():
        rented = None if pool.existing is None else pool.existing.rented
        end = None if rented is None or rented.lease_end is None else calendar.index(rented.lease_end)
        first = calendar.index(fleet.periods[0])
        if rented is None or end is None or first is None:
            continue
        hours = per_period * pool.existing_units * pool.accelerators_per_unit
        for q in range(count, end - first):
            usd[q, pool.name, STANDING, "lease"] = hours * rented.usd_per_accelerator_hour[count - 1]
    for row in _decided(check, check.plan.purchases):
        ordered, offer = check.period_index[row.period], check.pool(row.pool).offers[row.offer]
        item = f"{row.offer} {row.period}"
        if is_bought(offer):
            for n, paid in enumerate(loan_payments_usd(fleet.finance, offer.capex_usd_per_host or 0.0)):
                q = ordered + offer.lead_time_periods + n
                if q >= count:
                    usd[q, row.pool, item, "loan"] = row.units * paid.usd
            continue
        rate = (offer.rent_usd_per_accelerator_hour or ())[ordered]
        for q in range(count, ordered + offer.term_periods):
            usd[q, row.pool, item, "term"] = per_period * row.units * offer.accelerators_per_unit * rate
    return [
        Commitment(
            quarter=calendar.after(fleet.periods[:count], q - count + 1),
            pool=pool,
            item=item,
            kind=kind,
            usd=owed,
        )
        for (q, pool, item, kind), owed in usd.items()
        if owed
    ]


def _values(check: PlanCheck) -> list[RemainingValue]:
    fleet, count = check.problem.fleet, _stated(check)
    rows = []
    for pool in check.pools.values():
        owned = None if pool.existing is None else pool.existing.owned
        gone = sum(row.hosts for row in _decided(check, check.plan.retirements) if row.pool == pool.name)
        left = pool.existing_units - gone
        if owned is None or left <= 0:
            continue
        since = None if owned.in_service is None else fleet.calendar.index(owned.in_service)
        first = fleet.calendar.index(fleet.periods[0])
        age = None if since is None or first is None else first + count - since
        value = None if age is None else left * book_value_usd(fleet.finance, owned, age)
        rows.append(
            RemainingValue(
                pool=pool.name, item=STANDING, hosts=left, age_quarters=_quarters(check, age), book_usd=value
            )
        )
    for row in _decided(check, check.plan.purchases):
        offer = check.pool(row.pool).offers[row.offer]
        if is_bought(offer):
            age = count - check.period_index[row.period] - offer.lead_time_periods
            value = row.units * book_value_usd(fleet.finance, offer, age)
            item = f"{row.offer} {row.period}"
            rows.append(
                RemainingValue(
                    pool=row.pool,
                    item=item,
                    hosts=row.units,
                    age_quarters=_quarters(check, age),
                    book_usd=value,
                )
            )
    return rows


def _stated(check: PlanCheck) -> int:
    """Return the number of periods in the fleet file; orders in later ones are assumptions."""
    return len(check.problem.periods) - check.problem.fleet.extended_by


def _decided(check: PlanCheck, rows: Sequence[_RowT]) -> list[_RowT]:
    """Return the rows in stated periods."""
    return [row for row in rows if check.period_index[row.period] < _stated(check)]


def _quarters(check: PlanCheck, age: int | None) -> int | None:
    """Return an age in whole quarters; negative before the arrival."""
    return None if age is None else math.floor(age * check.problem.fleet.calendar.months / MONTHS_PER_QUARTER)


def _options(check: PlanCheck, pool: FleetPool) -> Iterator[SupplyOption]:
    count = len(check.problem.periods)
    leaves = last_period(check.problem.fleet, pool)
    stays = count if leaves is None else leaves
    if pool.existing_units and stays:
        yield from _standing(check, pool, stays)
    for offer in pool.offers.values():
        possible = [q for q in range(_stated(check)) if serves_in_horizon(offer, q, count)]
        if possible:
            yield _offered(check, pool, offer, possible)


def _standing(check: PlanCheck, pool: FleetPool, stays: int) -> Iterator[SupplyOption]:
    fleet = check.problem.fleet
    left = [
        (row.hosts, check.period_index[row.period])
        for row in _decided(check, check.plan.retirements)
        if row.pool == pool.name
    ]
    usd = sum(sum(values[:stays]) for values in existing_usd(fleet, pool).values())
    unit_hours = period_hours(fleet.finance) * pool.accelerators_per_unit
    kept = pool.existing_units - sum(hosts for hosts, q in left if q < stays)
    hours = unit_hours * pool.existing_units * stays
    yield _option(check, pool, "keep", (0, kept, usd / hours))
    possible = [q for q in range(min(stays, _stated(check))) if may_leave(fleet, pool, q)]
    if not possible:
        return
    count = len(check.problem.periods)
    at_end = [stays] if stays < count else []
    change = {
        q: _total(saved_usd(fleet, pool, q)) + sum(leaving_usd(fleet, pool, q).values())
        for q in (*possible, *at_end)
    }
    # At the end of its life within the horizon, a host leaves in any case.
    change = {q: usd - sum(change[end] for end in at_end) for q, usd in change.items()}
    best = possible[_earliest_least([change[q] for q in possible])]
    sale = -leaving_usd(fleet, pool, best)["resale"]
    row = _option(
        check,
        pool,
        "retire",
        (best, sum(hosts for hosts, _ in left), -change[best] / (unit_hours * (stays - best))),
    )
    even = (sale + change[best]) / worth(fleet.finance, best)
    yield row.model_copy(update={"break_even_resale_usd": even})


def _offered(check: PlanCheck, pool: FleetPool, offer: Offer, possible: Sequence[int]) -> SupplyOption:
    fleet, count = check.problem.fleet, len(check.problem.periods)
    costs = [
        _total(unit_usd(fleet, pool, offer, q))
        / (
            period_hours(fleet.finance)
            * offer.accelerators_per_unit
            * sum(is_in_service(offer, q, held) for held in range(count))
        )
        for q in possible
    ]
    best = _earliest_least(costs)
    taken = [
        (row.units, check.period_index[row.period])
        for row in _decided(check, check.plan.purchases)
        if (row.pool, row.offer) == (pool.name, offer.name)
    ]
    held = [sum(units for units, q in taken if is_in_service(offer, q, now)) for now in range(count)]
    units = sum(units for units, _ in taken) if is_bought(offer) else max(held)
    row = _option(check, pool, kind_of(offer), (possible[best], units, costs[best]))
    row = row.model_copy(update={"offer": offer.name})
    if not is_bought(offer):
        return row
    return row.model_copy(update=_against_rent(check, pool, offer, possible[best]))


def _against_rent(check: PlanCheck, pool: FleetPool, offer: Offer, ordered: int) -> dict[str, object]:
    """Return the quarters after which rent at the arrival would have cost as much as the host in total."""
    fleet, arrival = check.problem.fleet, ordered + offer.lead_time_periods
    rents = []
    for other in check.pools.values():
        if (other.region.name, other.hardware.name) == (pool.region.name, pool.hardware.name):
            rents += [
                (each.name, _cash_usd(check, other, each, (arrival, arrival)))
                for each in other.offers.values()
                if kind_of(each) in ("rent", "reserve")
                and serves_in_horizon(each, arrival, len(fleet.periods))
            ]
    if not rents:
        return {}
    name, rent = rents[_earliest_least([usd for _, usd in rents])]
    gained = (rent - _cash_usd(check, pool, offer, (ordered, arrival))) * offer.accelerators_per_unit
    price, loan = offer.capex_usd_per_host or 0.0, fleet.finance.loan
    if loan is not None:
        price = price * loan.down_payment_ratio + sum(
            paid.usd for paid in loan_payments_usd(fleet.finance, price)
        )
    if gained <= 0:
        return {"against": name}
    periods = price / gained * (1 - EQUAL_RATIO)
    quarters = periods * fleet.calendar.months / MONTHS_PER_QUARTER
    return {"against": name, "break_even_quarters": math.ceil(quarters)}


def _cash_usd(check: PlanCheck, pool: FleetPool, offer: Offer, when: tuple[int, int]) -> float:
    """Return the undiscounted cost of an accelerator in a period, without the purchase price. [USD]"""
    plain = replace(check.problem.fleet.finance, discount_rate_per_year=0.0, method="straight-line")
    fleet = replace(check.problem.fleet, finance=plain)
    kinds = unit_usd(fleet, pool, offer, when[0])
    return sum(v[when[1]] for kind, v in kinds.items() if kind not in NO_CASH) / offer.accelerators_per_unit


def _option(check: PlanCheck, pool: FleetPool, option: str, figures: tuple[int, int, float]) -> SupplyOption:
    q, units, usd = figures
    return SupplyOption(
        pool=pool.name,
        region=pool.region.name,
        hardware=pool.hardware.name,
        option=option,
        offer="",
        period=check.problem.periods[q],
        units=units,
        usd_per_accelerator_hour=usd,
    )


def _total(kinds: Mapping[str, Sequence[float]]) -> float:
    return sum(sum(values) for values in kinds.values())


def _earliest_least(values: Sequence[float]) -> int:
    least = min(values)
    return next(n for n, value in enumerate(values) if value - least <= EQUAL_RATIO * abs(least))
