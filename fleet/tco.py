"""Cost of capacity in a period: write-off, rent, energy, hosting and maintenance.

Pure functions of figures with units, independent of plans. A period is a quarter (h = 2190 hours, m = 3
months) or a month (h = 730, m = 1), by its `Calendar`; a year has 12 / m of them.

    write-off   = (capex - residual) / life        while the host is in service and not written off;
                  or the annuity of capex and residual at the interest of a period; where values are given by
                  age, the same from each age to the next
    book value  = capex with interest - write-off so far; the residual after the write-off
    rent        = price * h * accelerators         whether used or not
    energy      = IT power * PUE * price * h * utilisation
    hosting     = installed IT power * price * m
    maintenance = capex * yearly ratio * m / 12    while the host is in service
    property tax = book value * yearly ratio * m / 12  while the host is in service
    loan        = borrowed * r / (1 - (1 + r)^-n)  for n periods at the interest r of a period
    tax deferral = write-off * t / (1 - t) * (1 - A / B)  at the income tax t, with the present values at the
                  arrival of all that is deducted for tax, A, and of all that the plan writes off, B
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final, TypeAlias

from fleetplan.fleet.inventory import IncomeTax, Loan, Offer, Owned
from fleetplan.fleet.inventory.periods import Calendar
from fleetplan.fleet.units import W_PER_KW

ValueByAge: TypeAlias = Sequence[tuple[int, float]]
"""Book values as shares of the purchase price, by increasing age in periods."""


SAME_RATIO: Final = 1e-12
"""Relative error of a sum that depends on the order of its parts."""


def interest_per_period(rate_per_year: float, calendar: Calendar) -> float:
    """Return the interest per period that compounds to a yearly rate."""
    return math.expm1(math.log1p(rate_per_year) / calendar.per_year)


def _discounted(interest: float, periods: int) -> float:
    """Return what a dollar loses in present value over some periods; exact for the smallest interest too."""
    return -math.expm1(-periods * math.log1p(interest))


def present_value_ratio(rate_per_year: float, periods: int, calendar: Calendar) -> float:
    """Return the present value, at the start of the horizon, of a dollar paid some periods later."""
    return float((1 + rate_per_year) ** (-periods / calendar.per_year))


def write_off_usd(
    capex_usd: float,
    life_periods: int,
    age_periods: int,
    residual_ratio: float = 0.0,
    interest: float = 0.0,
    value_by_age: ValueByAge = (),
) -> float:
    """Return the write-off of a purchase in one period.

    Parameters
    ----------
    capex_usd : float
        Purchase price. [USD]
    life_periods : int
        Periods of write-off.
    age_periods : int
        Whole periods in service before this one; negative before the first.
    residual_ratio : float
        Value after the last quarter as a share of the purchase price.
    interest : float
        Interest per period of an annuity paid at the end of each period; 0 for the straight line.
    value_by_age : ValueByAge
        Values between purchase and the end of the write-off.

    Returns
    -------
    float
        [USD]
    """
    if not 0 <= age_periods < life_periods:
        return 0.0
    start, end, value_ratio, later_ratio = _span(life_periods, age_periods, residual_ratio, value_by_age)
    value_usd, later_usd = capex_usd * value_ratio, capex_usd * later_ratio
    if interest == 0:
        return (value_usd - later_usd) / (end - start)
    return (value_usd - later_usd) * interest / _discounted(interest, end - start) + later_usd * interest


def _span(
    life_periods: int, age_periods: int, residual_ratio: float, value_by_age: ValueByAge
) -> tuple[int, int, float, float]:
    """Return the ages around a period of the write-off, and their values as shares of the purchase price."""
    knots = ((0, 1.0), *value_by_age, (life_periods, residual_ratio))
    return next(
        (start, end, value, later)
        for (start, value), (end, later) in itertools.pairwise(knots)
        if start <= age_periods < end
    )


def book_value_usd(
    capex_usd: float,
    life_periods: int,
    age_periods: int,
    residual_ratio: float = 0.0,
    interest: float = 0.0,
    value_by_age: ValueByAge = (),
) -> float:
    """Return the book value of a purchase at the start of a period. [USD].

    The price with its interest less the write-off so far; after the write-off, the residual value. Parameters
    are those of `write_off_usd`.
    """
    if age_periods >= life_periods:
        return capex_usd * residual_ratio
    age = max(age_periods, 0)
    start, _, value_ratio, _ = _span(life_periods, age, residual_ratio, value_by_age)
    charge_usd = write_off_usd(capex_usd, life_periods, age, residual_ratio, interest, value_by_age)
    if interest == 0:
        return capex_usd * value_ratio - (age - start) * charge_usd
    grown = math.expm1((age - start) * math.log1p(interest))
    return capex_usd * value_ratio * (1 + grown) - charge_usd * grown / interest


def owned_write_off_usd(
    owned: Owned, periods: Sequence[str], calendar: Calendar, interest: float = 0.0
) -> tuple[float, ...]:
    """Return the write-off of one owned host by period. [USD].

    If the start of service or the periods have no dates, every period is charged. `interest` is that of
    `write_off_usd`.
    """
    price, life, residual = owned.capex_usd_per_host, owned.life_periods, owned.residual_ratio
    return tuple(
        write_off_usd(price, life, age, residual, interest, owned.value_by_age)
        for age in owned_ages(owned, periods, calendar)
    )


def owned_ages(owned: Owned, periods: Sequence[str], calendar: Calendar) -> tuple[int, ...]:
    """Return the whole periods in service at the start of each period; 0 if unknown."""
    start = None if owned.in_service is None else calendar.index(owned.in_service)
    indices = [calendar.index(period) for period in periods]
    return tuple(0 if start is None or now is None else now - start for now in indices)


def purchase_write_off_usd(
    offer: Offer, order_period: int, n_periods: int, interest: float = 0.0
) -> tuple[float, ...]:
    """Return the write-off by period of one host bought from an offer. [USD].

    Parameters
    ----------
    offer : Offer
        With `capex_usd_per_host`.
    order_period : int
        Position of the period of the order; service starts `lead_time_periods` later.
    n_periods : int
        Periods of the horizon.
    interest : float
        As in `write_off_usd`.
    """
    capex_usd = offer.capex_usd_per_host
    if capex_usd is None:
        raise ValueError(f"{offer.name} is not a purchase")
    start = order_period + offer.lead_time_periods
    life, residual = offer.life_periods, offer.residual_ratio
    return tuple(
        write_off_usd(capex_usd, life, period - start, residual, interest, offer.value_by_age)
        for period in range(n_periods)
    )


def maintenance_usd(capex_usd: float, maintenance_ratio_per_year: float, calendar: Calendar) -> float:
    """Return the maintenance of one period in service. [USD]."""
    return capex_usd * maintenance_ratio_per_year / calendar.per_year


def property_tax_usd(book_value_usd: float, ratio_per_year: float, calendar: Calendar) -> float:
    """Return the property tax of one period on the book value at its start. [USD]."""
    return book_value_usd * ratio_per_year / calendar.per_year


def loan_payment_usd(price_usd: float, loan: Loan, calendar: Calendar) -> float:
    """Return the payment per period of a loan on a purchase, interest included. [USD]."""
    interest = interest_per_period(loan.interest_rate_per_year, calendar)
    borrowed_usd = price_usd * (1 - loan.down_payment_ratio)
    if interest == 0:
        return borrowed_usd / loan.periods
    return borrowed_usd * interest / _discounted(interest, loan.periods)


def loan_interest_usd(price_usd: float, loan: Loan, period: int, calendar: Calendar) -> float:
    """Return the interest in the payment of a period, counted from 0 at the arrival. [USD].

    The growth of the present value of the remaining payments in the period; 0 outside the loan.
    """
    if not 0 <= period < loan.periods:
        return 0.0
    interest = interest_per_period(loan.interest_rate_per_year, calendar)
    left = loan.periods - period
    return loan_payment_usd(price_usd, loan, calendar) * _discounted(interest, left)


def tax_deferral_ratio(
    offer: Offer, tax: IncomeTax, discount_rate_per_year: float, calendar: Calendar, interest: float = 0.0
) -> float:
    """Return the cost of deducting a purchase at other times than its write-off, over its write-off.

    Before tax: the after-tax cost of the write-off is 1 - tax rate times the sum of the write-off and this.
    Negative if tax law is faster; never below -1.

    Parameters
    ----------
    offer : Offer
        A purchase.
    tax : IncomeTax
        Its rate and write-off. The residual value is never deducted.
    discount_rate_per_year : float
        Discount rate after tax.
    calendar : Calendar
        The periods.
    interest : float
        Interest per period of an annuity, as in `write_off_usd`.
    """
    life, residual, by_age = offer.life_periods, offer.residual_ratio, offer.value_by_age
    ages = range(life)
    charged = [write_off_usd(1.0, life, age, residual, interest, by_age) for age in ages]
    plain = [write_off_usd(1.0, life, age, residual, 0.0, by_age) for age in ages]
    deducted = [(1 - residual) * share for share in tax.write_off] or plain
    of_plan, of_tax = (
        sum(
            usd * present_value_ratio(discount_rate_per_year, age + 1, calendar)
            for age, usd in enumerate(values)
        )
        for values in (charged, deducted)
    )
    if of_plan <= 0 or abs(of_tax - of_plan) <= SAME_RATIO * of_plan:
        return 0.0
    return max(tax.rate / (1 - tax.rate) * (1 - of_tax / of_plan), -1.0)


def rent_usd(usd_per_accelerator_hour: float, accelerators: int, calendar: Calendar) -> float:
    """Return the rent of one period, every hour paid. [USD]."""
    return usd_per_accelerator_hour * calendar.hours * accelerators


def energy_usd(
    it_power_kw: float, pue: float, usd_per_kwh: float, utilisation: float, calendar: Calendar
) -> float:
    """Return the energy cost of one period. [USD].

    Parameters
    ----------
    it_power_kw : float
        Power at full load, before PUE. [kW]
    pue : float
        Facility power divided by IT power.
    usd_per_kwh : float
        Energy price. [USD/kWh]
    utilisation : float
        Served load divided by capacity, 0 to 1.
    calendar : Calendar
        Hours of the period.
    """
    return it_power_kw * pue * usd_per_kwh * calendar.hours * utilisation


def hosting_usd(it_power_kw: float, usd_per_kw_month: float, calendar: Calendar) -> float:
    """Return the hosting of one period for installed IT power, used or not. [USD]."""
    return it_power_kw * usd_per_kw_month * calendar.months


def it_power_kw(power_w_per_accelerator: float, accelerators: int) -> float:
    """Return the IT power of accelerators with their hosts' share. [kW]."""
    return power_w_per_accelerator * accelerators / W_PER_KW
