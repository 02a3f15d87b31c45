"""Resolve the finance block, and find outdated prices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Currency, Finance, Fleet, IncomeTax, Loan
from fleetplan.fleet.resolve.calendar import periods_of_quarters
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.finance import FinanceSpec

TAX_SHARES_TOLERANCE: Final = 2e-3
"""Tolerance of the sum of the shares of a write-off for tax: published tables are rounded."""


def resolve_finance(context: Context, spec: FinanceSpec) -> Finance:
    """Return the finance settings; note an annuity without interest."""
    if spec.method == "annuity" and spec.discount_rate == 0:
        message = "is required: it is the interest rate of the annuity"
        context.error(("finance", "discount_rate"), message, "a yearly rate such as 0.08")
    loan = spec.loan
    if spec.method == "annuity" and loan is not None:
        message = "cannot be combined with an annuity, which charges interest on the whole price"
        context.error(("finance", "loan"), message, "method: straight-line")
    money = spec.currency
    if money is not None and money.code == "USD":
        message = "is the currency without this block"
        context.error(("finance", "currency", "code"), message, "another code, or no `currency`")
    return Finance(
        method=spec.method,
        discount_rate_per_year=spec.discount_rate,
        network_usd_per_host_quarter=spec.per_host_usd_per_quarter.network,
        software_usd_per_host_quarter=spec.per_host_usd_per_quarter.software,
        staff_usd_per_host_quarter=spec.per_host_usd_per_quarter.staff,
        max_price_age_days=spec.max_price_age_days,
        property_tax_ratio_per_year=spec.property_tax_ratio_per_year,
        loan=None
        if loan is None
        else Loan(periods_of_quarters(context, loan.quarters), loan.interest_rate, loan.down_payment_ratio),
        calendar=context.calendar,
        currency=None
        if money is None
        else Currency(money.code, money.usd_per_unit, money.as_of, money.source),
        income_tax=_income_tax(context, spec),
    )


def _income_tax(context: Context, spec: FinanceSpec) -> IncomeTax | None:
    """Return the income tax with its write-off by period."""
    tax, here = spec.income_tax, ("finance", "income_tax")
    if tax is None:
        return None
    per_year = round(context.calendar.per_year)
    shares: tuple[float, ...] = ()
    if tax.write_off_quarters is not None:
        count = periods_of_quarters(context, tax.write_off_quarters)
        shares = (1 / count,) * count
        if tax.write_off_by_year is not None:
            context.error(
                (*here, "write_off_by_year"),
                "cannot be combined with write_off_quarters",
                "give one of the two",
            )
    elif tax.write_off_by_year is not None:
        total = sum(tax.write_off_by_year)
        if abs(total - 1) > TAX_SHARES_TOLERANCE:
            context.error((*here, "write_off_by_year"), f"the shares add up to {total:g}, not 1")
            return None
        shares = tuple(share / total / per_year for share in tax.write_off_by_year for _ in range(per_year))
    if shares and spec.discount_rate == 0:
        message = "the write-off has no effect without discount_rate: the date of a payment then has no cost"
        context.warn(here, message)
    return IncomeTax(tax.rate, shares)


def resolve_residual(
    context: Context, key_path: KeyPath, value: float | Mapping[str, float], life_quarters: int
) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Return the value at the end of the write-off and the values by earlier age, as shares of the price.

    Values by age are counted in periods.

    Parameters
    ----------
    context : Context
        Receives issues.
    key_path : KeyPath
        The key `residual_ratio`.
    value : float or Mapping[str, float]
        A value at the end, or values by age in quarters.
    life_quarters : int
        Quarters of write-off.
    """
    if not isinstance(value, Mapping):
        return float(value), ()
    ages = {}
    for key, ratio in value.items():
        if not key.isdecimal() or not 1 <= int(key) <= life_quarters:
            message = f"{key!r} is not an age within the write-off"
            context.error((*key_path, key), message, f"quarters from 1 to {life_quarters}", at_key=True)
        else:
            ages[int(key)] = ratio
    by_age = tuple(sorted(ages.items()))
    for (before, higher), (age, ratio) in pairwise(((0, 1.0), *by_age)):
        if ratio > higher:
            message = f"{ratio:g} at the age of {age} is more than {higher:g} at the age of {before}"
            context.error(key_path, message, "values fall with age")
    return ages.get(life_quarters, 0.0), tuple(
        (periods_of_quarters(context, age), ratio) for age, ratio in by_age if age < life_quarters
    )


def stale_prices(fleet: Fleet, today: date) -> tuple[str, ...]:
    """Return one warning with prices older than `max_price_age_days`, and one with prices without a date.

    A month or a year counts from its first day, so prices are at most that old.
    """
    limit_days = fleet.finance.max_price_age_days
    if limit_days is None:
        return ()
    stale, undated = [], []
    for label, as_of in _dated_prices(fleet):
        if as_of is None:
            undated.append(label)
        elif (today - _first_day(as_of)).days > limit_days:
            stale.append(f"{label} ({as_of})")
    warnings = []
    if stale:
        warnings.append(f"prices older than {limit_days} days: {', '.join(stale)}")
    if undated:
        warnings.append(f"prices without a date (price_as_of): {', '.join(undated)}")
    return tuple(warnings)


def _dated_prices(fleet: Fleet) -> list[tuple[str, str | None]]:
    currency = fleet.finance.currency
    prices: list[tuple[str, str | None]] = (
        [] if currency is None else [(f"rate of {currency.code}", currency.as_of)]
    )
    for pool in fleet.pools:
        priced = pool.owned if pool.owned is not None else pool.rented
        if priced is not None:
            prices.append((f"pool {pool.name}", priced.price_as_of))
    return [*prices, *((f"offer {offer.name}", offer.price_as_of) for offer in fleet.offers)]


def _first_day(as_of: str) -> date:
    year, month, day = (*as_of.split("-"), "1", "1")[:3]
    return date(int(year), int(month), int(day))
