"""Cost of capacity by kind and period, from the fleet file alone.

These formulas are independent of those of the model and the plan, so that all three must agree. The book
value V of a host at age a, and the charge in the period that begins at age a, are::

    V(a)   = v + (w - v) (g^(a-s) - 1) / (g^(e-s) - 1)      between ages s and e, of values v and w
    charge = g V(a) - V(a+1)                                in the period that begins at age a

with g = 1 for a straight line from v to w, or g = the growth per period at the yearly rate for an annuity,
which charges interest on the book value plus its loss. Payments during a period are due at its end. Property
tax applies to V(a). Loans are followed payment by payment: interest on the balance, and the rest as
repayment. Income tax depends on when a purchase is deducted; its cost is that of the rent with the same cost
after tax.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fleetplan.fleet.inventory import Finance, Fleet, Offer, Owned
from fleetplan.planner.verify.supply_rules import FleetPool, is_bought, is_in_service

HOURS_PER_YEAR: Final = 8760.0
MONTHS_PER_YEAR: Final = 12.0
MONTHS_PER_QUARTER: Final = 3

CAPITAL_KINDS: Final = ("depreciation", "resale", "interest", "tax_deferral")
"""Kinds of cost that follow from the price of hosts; all others are operating cost."""

FLOAT_RATIO: Final = 1e-12
"""Floating-point noise as a share of a sum."""

UsdByKind = Mapping[str, Sequence[float]]
"""Present value at the start of the horizon, by kind of cost and period. [USD]"""


def years(finance: Finance) -> float:
    """Return the length of a period. [years]"""
    return finance.calendar.months / MONTHS_PER_YEAR


def period_hours(finance: Finance) -> float:
    """Return the length of a period. [h]"""
    return HOURS_PER_YEAR * years(finance)


def worth(finance: Finance, periods: int) -> float:
    """Return the present value of one dollar paid after a number of periods."""
    return float(_growth(finance) ** -periods)


def _growth(finance: Finance) -> float:
    """Return the growth factor of a dollar in a period."""
    return float((1.0 + finance.discount_rate_per_year) ** years(finance))


def _books_growth(finance: Finance) -> float:
    """Return the logarithm of the growth of book capital in a period; 0 without annuities.

    Growth less 1 loses the digits of a rate near 0.
    """
    if finance.method != "annuity":
        return 0.0
    return math.log1p(finance.discount_rate_per_year) * years(finance)


def _value_ratio(
    life: int, residual: float, by_age: Sequence[tuple[int, float]], age: int, g: float
) -> float:
    """Return the book value at an age as a share of the price; 1 before service."""
    if age >= life:
        return residual
    knots = [(0, 1.0), *by_age, (life, residual)]
    age = max(age, 0)
    after = next(index for index, (when, _) in enumerate(knots) if when > age)
    (s, v), (e, w) = knots[after - 1], knots[after]
    passed = math.expm1((age - s) * g) / math.expm1((e - s) * g) if g else (age - s) / (e - s)
    return v + (w - v) * passed


def book_value_usd(finance: Finance, thing: Owned | Offer, age: int) -> float:
    """Return the undiscounted book value of a host at an age. [USD]"""
    life, residual, by_age = thing.life_periods, thing.residual_ratio, thing.value_by_age
    return (thing.capex_usd_per_host or 0.0) * _value_ratio(
        life, residual, by_age, age, _books_growth(finance)
    )


def _charge_ratio(thing: Owned | Offer, age: int, g: float) -> float:
    """Return the share of the price charged in the period that begins at an age."""
    if not 0 <= age < thing.life_periods:
        return 0.0
    now, then = (
        _value_ratio(thing.life_periods, thing.residual_ratio, thing.value_by_age, when, g)
        for when in (age, age + 1)
    )
    return math.expm1(g) * now + (now - then)


def _tax_ratio(finance: Finance, thing: Owned | Offer, age: int) -> float:
    """Return the property tax as a share of the price in the period that begins at an age."""
    life, residual, by_age = thing.life_periods, thing.residual_ratio, thing.value_by_age
    books = _value_ratio(life, residual, by_age, age, _books_growth(finance))
    return books * finance.property_tax_ratio_per_year * years(finance)


def _ages(owned: Owned, fleet: Fleet) -> list[int]:
    """Return the periods in service at the start of each period; 0 if unknown."""
    start = None if owned.in_service is None else fleet.calendar.index(owned.in_service)
    now = [fleet.calendar.index(period) for period in fleet.periods]
    return [0 if start is None or index is None else index - start for index in now]


def _running(fleet: Fleet, pool: FleetPool, accelerators: float, included: bool) -> dict[str, float]:
    """Return the running cost of accelerators per period by kind, without price and energy. [USD]"""
    finance, hosts = fleet.finance, accelerators / pool.hardware.accelerators_per_host
    kw = accelerators * installed_w(pool) / 1000
    months = finance.calendar.months
    quarters = months / MONTHS_PER_QUARTER
    kinds = {
        "software": quarters * hosts * finance.software_usd_per_host_quarter,
        "staff": quarters * hosts * finance.staff_usd_per_host_quarter,
    }
    if not included:
        kinds["hosting"] = kw * months * pool.region.hosting_usd_per_kw_month
        kinds["network"] = quarters * hosts * finance.network_usd_per_host_quarter
    return kinds


def _idle_energy(
    fleet: Fleet, pool: FleetPool, accelerators: float, included: bool
) -> dict[str, list[float]]:
    """Return the idle energy cost of accelerators at the tariff of each period. [USD]"""
    tariff = pool.region.energy_usd_per_kwh
    if included or tariff is None:
        return {}
    kwh = idle_kw(pool, accelerators) * pool.region.pue * period_hours(fleet.finance)
    return {"idle_energy": [kwh * price for price in tariff]}


def installed_w(pool: FleetPool) -> float:
    """Return the power per accelerator charged for hosting and energy, as if uncapped. [W]"""
    capped, full = pool.hardware.power_w_per_accelerator, pool.hardware.uncapped_w_per_accelerator
    return max(capped or 0.0, full or 0.0)


def idle_kw(pool: FleetPool, accelerators: float) -> float:
    """Return the power draw of idle accelerators of a pool, before PUE. [kW]"""
    return pool.hardware.idle_w_per_accelerator * accelerators / 1000


def _rent_usd(fleet: Fleet, per_hour: float, accelerators: float) -> float:
    return per_hour * accelerators * period_hours(fleet.finance)


def existing_usd(fleet: Fleet, pool: FleetPool) -> UsdByKind:
    """Return the cost of a pool's installed hosts, used or not, if none of them leaves."""
    existing = pool.existing
    if existing is None:
        return {}
    every = range(len(fleet.periods))
    cards = existing.hosts * existing.accelerators_per_host
    rented, owned = existing.rented, existing.owned
    included = rented is not None and rented.energy_included
    kinds = {kind: [usd for _ in every] for kind, usd in _running(fleet, pool, cards, included).items()}
    kinds |= _idle_energy(fleet, pool, cards, included)
    if rented is not None:
        kinds["rent"] = [_rent_usd(fleet, rented.usd_per_accelerator_hour[q], cards) for q in every]
    if owned is not None:
        price, g = existing.hosts * owned.capex_usd_per_host, _books_growth(fleet.finance)
        ages = _ages(owned, fleet)
        kinds["depreciation"] = [price * _charge_ratio(owned, age, g) for age in ages]
        yearly = price * owned.maintenance_ratio_per_year
        kinds["maintenance"] = [yearly * years(fleet.finance) for _ in every]
        kinds["property_tax"] = [price * _tax_ratio(fleet.finance, owned, age) for age in ages]
    return _present(fleet, kinds)


def unit_usd(fleet: Fleet, pool: FleetPool, offer: Offer, ordered: int) -> UsdByKind:
    """Return the cost of one unit of an offer in a pool, by the period of its order or use."""
    every, cards = range(len(fleet.periods)), offer.accelerators_per_unit
    kinds = {
        kind: [usd for _ in every]
        for kind, usd in _running(fleet, pool, cards, offer.energy_included).items()
    }
    kinds |= _idle_energy(fleet, pool, cards, offer.energy_included)
    price, rent = offer.capex_usd_per_host, offer.rent_usd_per_accelerator_hour
    if price is not None:
        g, start = _books_growth(fleet.finance), ordered + offer.lead_time_periods
        kinds["depreciation"] = [price * _charge_ratio(offer, q - start, g) for q in every]
        yearly = price * offer.maintenance_ratio_per_year
        kinds["maintenance"] = [yearly * years(fleet.finance) for _ in every]
        kinds["property_tax"] = [price * _tax_ratio(fleet.finance, offer, q - start) for q in every]
        paid = [0.0 for _ in range(start)] + [
            each.interest for each in loan_payments_usd(fleet.finance, price)
        ]
        kinds["interest"] = [paid[q] if q < len(paid) else 0.0 for q in every]
        ratio = _tax_deferral(fleet.finance, offer)
        kinds["tax_deferral"] = [usd * ratio for usd in kinds["depreciation"]]
    elif rent is not None:
        kinds["rent"] = [_rent_usd(fleet, rent[ordered], cards) for _ in every]
    held = {
        kind: [usd if is_in_service(offer, ordered, q) else 0.0 for q, usd in enumerate(values)]
        for kind, values in kinds.items()
    }
    return _present(fleet, held)


class LoanPayment(NamedTuple):
    """A payment at the end of a period, and the interest in it. [USD]"""

    usd: float
    interest: float


def loan_payments_usd(finance: Finance, price: float) -> list[LoanPayment]:
    """Return the loan payments for a purchase, from the first period in service on."""
    loan = finance.loan
    if loan is None:
        return []
    growth = (1.0 + loan.interest_rate_per_year) ** years(finance)
    owed = price - price * loan.down_payment_ratio
    each = owed / sum(growth**-n for n in range(1, loan.periods + 1))
    payments = []
    for _ in range(loan.periods):
        interest = owed * growth - owed
        payments.append(LoanPayment(each, interest))
        owed += interest - each
    return payments


def _tax_deferral(finance: Finance, offer: Offer) -> float:
    """Return the extra cost before tax per dollar of write-off that is due to the timing of deductions.

    A purchase costs its charges less the tax that its deductions save. A rent of this amount divided by 1 -
    rate has the same cost after tax. The excess over the charges is spread in proportion to them.
    """
    tax, life = finance.income_tax, offer.life_periods
    if tax is None:
        return 0.0
    charges = [_charge_ratio(offer, age, _books_growth(finance)) for age in range(life)]
    losses = [_charge_ratio(offer, age, 0.0) for age in range(life)]
    if tax.write_off:
        losses = [share * sum(losses) for share in tax.write_off]
    cost, saved = (
        sum(usd * worth(finance, age + 1) for age, usd in enumerate(each)) for each in (charges, losses)
    )
    if cost <= 0 or abs(cost - saved) <= FLOAT_RATIO * cost:
        return 0.0
    before_tax = (cost - tax.rate * saved) / (1.0 - tax.rate)
    return max(before_tax / cost, 0.0) - 1.0


def capex_usd(offer: Offer) -> float:
    """Return the cash payment for one unit at its order. [USD]"""
    return offer.capex_usd_per_host or 0.0 if is_bought(offer) else 0.0


def saved_usd(fleet: Fleet, pool: FleetPool, left: int) -> UsdByKind:
    """Return the charges saved after a host leaves at the start of a period, as negative amounts."""
    hosts = pool.existing_units
    return {
        kind: [-usd / hosts if q >= left else 0.0 for q, usd in enumerate(values)]
        for kind, values in existing_usd(fleet, pool).items()
    }


def leaving_usd(fleet: Fleet, pool: FleetPool, left: int) -> dict[str, float]:
    """Return the one-off cost of a host that leaves at the start of a period: book value less the sale."""
    owned = None if pool.existing is None else pool.existing.owned
    if owned is None:
        return {}
    books = book_value_usd(fleet.finance, owned, _ages(owned, fleet)[left])
    sale = 0.0 if owned.resale_usd_per_host is None else owned.resale_usd_per_host[left]
    now = worth(fleet.finance, left)
    return {"depreciation": books * now, "resale": -sale * now}


def energy_usd_per_kwh(fleet: Fleet, pool: FleetPool, period: int) -> float:
    """Return the price of metered energy in a period. [USD/kWh]"""
    tariff = pool.region.energy_usd_per_kwh
    if pool.energy_included or tariff is None:
        return 0.0
    return tariff[period] * worth(fleet.finance, period + 1)


def _present(fleet: Fleet, kinds: Mapping[str, Sequence[float]]) -> UsdByKind:
    """Return the nonzero kinds of cost at their present value at the start of the horizon."""
    return {
        kind: [usd * worth(fleet.finance, q + 1) for q, usd in enumerate(values)]
        for kind, values in kinds.items()
        if any(values)
    }
