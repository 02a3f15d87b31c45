"""Cost of capacity in a quarter: write-off, rent, energy, hosting and maintenance.

Pure functions of figures with units; none of them knows a plan.

    write-off   = (capex - residual) / life        while the host is in service and not written off;
                  or the annuity of capex and residual at the quarterly interest; where values are given by
                  age, the same from each age to the next
    book value  = capex with interest - write-off so far; the residual after the write-off
    rent        = price * 2190 h * accelerators    whether used or not
    energy      = IT power * PUE * price * 2190 h * utilisation
    hosting     = installed IT power * price * 3 months
    maintenance = capex * yearly ratio / 4         while the host is in service
    property tax = book value * yearly ratio / 4   while the host is in service
    loan        = borrowed * r / (1 - (1 + r)^-n)  for n quarters at the quarterly interest r
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

from fleetplan.fleet.inventory import Loan, Offer, Owned
from fleetplan.fleet.inventory.periods import quarter_index
from fleetplan.fleet.units import HOURS_PER_QUARTER, MONTHS_PER_QUARTER, QUARTERS_PER_YEAR, W_PER_KW

ValueByAge: TypeAlias = Sequence[tuple[int, float]]
"""Values in the books over the purchase price, by rising age in quarters."""


def interest_per_quarter(rate_per_year: float) -> float:
    """Return the interest of a quarter that compounds to a yearly rate."""
    return float((1 + rate_per_year) ** (1 / QUARTERS_PER_YEAR) - 1)


def present_value_ratio(rate_per_year: float, quarters: int) -> float:
    """Return what a dollar paid so many quarters after the start of the horizon is worth at its start."""
    return float((1 + rate_per_year) ** (-quarters / QUARTERS_PER_YEAR))


def write_off_usd(
    capex_usd: float,
    life_quarters: int,
    age_quarters: int,
    residual_ratio: float = 0.0,
    interest: float = 0.0,
    value_by_age: ValueByAge = (),
) -> float:
    """Return what one quarter is charged for a purchase.

    Parameters
    ----------
    capex_usd : float
        Purchase price. [USD]
    life_quarters : int
        Quarters of write-off.
    age_quarters : int
        Whole quarters in service before this one; negative before the first.
    residual_ratio : float
        Value after the last quarter over the purchase price.
    interest : float
        By quarter, of an annuity paid at the end of each quarter; 0 is the straight line.
    value_by_age : ValueByAge
        Values between purchase and the end of the write-off.

    Returns
    -------
    float
        [USD]
    """
    if not 0 <= age_quarters < life_quarters:
        return 0.0
    start, end, value_ratio, later_ratio = _span(life_quarters, age_quarters, residual_ratio, value_by_age)
    value_usd, later_usd = capex_usd * value_ratio, capex_usd * later_ratio
    if interest == 0:
        return (value_usd - later_usd) / (end - start)
    worth_of_one = (1 + interest) ** (start - end)
    return (value_usd - later_usd * worth_of_one) * interest / (1 - worth_of_one)


def _span(
    life_quarters: int, age_quarters: int, residual_ratio: float, value_by_age: ValueByAge
) -> tuple[int, int, float, float]:
    """Return the ages around a quarter of the write-off, and the values at these over the purchase price."""
    knots = ((0, 1.0), *value_by_age, (life_quarters, residual_ratio))
    return next(
        (start, end, value, later)
        for (start, value), (end, later) in itertools.pairwise(knots)
        if start <= age_quarters < end
    )


def book_value_usd(
    capex_usd: float,
    life_quarters: int,
    age_quarters: int,
    residual_ratio: float = 0.0,
    interest: float = 0.0,
    value_by_age: ValueByAge = (),
) -> float:
    """Return what a purchase is still worth in the books at the start of a quarter. [USD].

    The price with its interest less the charges so far; the residual value from the end of the write-off
    on. Parameters are those of `write_off_usd`.
    """
    if age_quarters >= life_quarters:
        return capex_usd * residual_ratio
    age = max(age_quarters, 0)
    start, _, value_ratio, _ = _span(life_quarters, age, residual_ratio, value_by_age)
    charge_usd = write_off_usd(capex_usd, life_quarters, age, residual_ratio, interest, value_by_age)
    if interest == 0:
        return capex_usd * value_ratio - (age - start) * charge_usd
    growth = (1 + interest) ** (age - start)
    return capex_usd * value_ratio * growth - charge_usd * (growth - 1) / interest


def owned_write_off_usd(owned: Owned, periods: Sequence[str], interest: float = 0.0) -> tuple[float, ...]:
    """Return the write-off of one owned host by period. [USD].

    Where the start of service or the periods are no quarters, every period is charged. `interest` as in
    `write_off_usd`.
    """
    price, life, residual = owned.capex_usd_per_host, owned.life_quarters, owned.residual_ratio
    return tuple(
        write_off_usd(price, life, age, residual, interest, owned.value_by_age)
        for age in owned_ages_quarters(owned, periods)
    )


def owned_ages_quarters(owned: Owned, periods: Sequence[str]) -> tuple[int, ...]:
    """Return the whole quarters in service at the start of each period; 0 where they are not known."""
    start = None if owned.in_service is None else quarter_index(owned.in_service)
    indices = [quarter_index(period) for period in periods]
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
        Position of the period of the order; service starts `lead_time_quarters` later.
    n_periods : int
        Periods of the horizon.
    interest : float
        As in `write_off_usd`.
    """
    capex_usd = offer.capex_usd_per_host
    if capex_usd is None:
        raise ValueError(f"{offer.name} is not a purchase")
    start = order_period + offer.lead_time_quarters
    life, residual = offer.life_quarters, offer.residual_ratio
    return tuple(
        write_off_usd(capex_usd, life, period - start, residual, interest, offer.value_by_age)
        for period in range(n_periods)
    )


def maintenance_usd(capex_usd: float, maintenance_ratio_per_year: float) -> float:
    """Return the maintenance of one quarter in service. [USD]."""
    return capex_usd * maintenance_ratio_per_year / QUARTERS_PER_YEAR


def property_tax_usd(book_value_usd: float, ratio_per_year: float) -> float:
    """Return the property tax of one quarter on what the books hold at its start. [USD]."""
    return book_value_usd * ratio_per_year / QUARTERS_PER_YEAR


def loan_payment_usd(price_usd: float, loan: Loan) -> float:
    """Return what is paid back in each quarter of a loan on a purchase, interest included. [USD]."""
    interest = interest_per_quarter(loan.interest_rate_per_year)
    borrowed_usd = price_usd * (1 - loan.down_payment_ratio)
    if interest == 0:
        return borrowed_usd / loan.quarters
    return float(borrowed_usd * interest / (1 - (1 + interest) ** -loan.quarters))


def loan_interest_usd(price_usd: float, loan: Loan, quarter: int) -> float:
    """Return the interest in the payment of a quarter, counted from 0 at the arrival. [USD].

    It is what the payments that are left would grow by in the quarter; 0 outside the loan.
    """
    if not 0 <= quarter < loan.quarters:
        return 0.0
    interest = interest_per_quarter(loan.interest_rate_per_year)
    left = loan.quarters - quarter
    return float(loan_payment_usd(price_usd, loan) * (1 - (1 + interest) ** -left))


def rent_usd(usd_per_accelerator_hour: float, accelerators: int) -> float:
    """Return the rent of one quarter, every hour paid. [USD]."""
    return usd_per_accelerator_hour * HOURS_PER_QUARTER * accelerators


def energy_usd(it_power_kw: float, pue: float, usd_per_kwh: float, utilisation: float) -> float:
    """Return the energy cost of one quarter. [USD].

    Parameters
    ----------
    it_power_kw : float
        Power at full load, before PUE. [kW]
    pue : float
        Facility power over IT power.
    usd_per_kwh : float
        Energy price. [USD/kWh]
    utilisation : float
        Served load over capacity, 0 to 1.
    """
    return it_power_kw * pue * usd_per_kwh * HOURS_PER_QUARTER * utilisation


def hosting_usd(it_power_kw: float, usd_per_kw_month: float) -> float:
    """Return the hosting of one quarter for installed IT power, used or not. [USD]."""
    return it_power_kw * usd_per_kw_month * MONTHS_PER_QUARTER


def it_power_kw(power_w_per_accelerator: float, accelerators: int) -> float:
    """Return the IT power of so many accelerators, their hosts' share included. [kW]."""
    return power_w_per_accelerator * accelerators / W_PER_KW
