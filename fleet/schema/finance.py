"""The file's block on finance: how prices become cost."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from fleetplan.fleet.schema.values import AsOf, NotNegative, PositiveCount, Spec, Text

MOST_TAX_YEARS: Final = 40
"""Longest write-off for tax, that of buildings in most laws. [years]"""

MOST_TAX_QUARTERS: Final = 4 * MOST_TAX_YEARS

CURRENCY_PATTERN: Final = r"^[A-Z]{3}$"


class PerHostSpec(Spec):
    """Fixed cost of a host per quarter besides its price, energy, hosting and maintenance."""

    network: NotNegative = 0.0
    """Network; not charged where a rent pays for energy and hosting. [USD/quarter]"""
    software: NotNegative = 0.0
    """Licences and support. [USD/quarter]"""
    staff: NotNegative = 0.0
    """People. [USD/quarter]"""


class LoanSpec(Spec):
    """A loan on what the plan buys, paid back in equal amounts at the end of each period in service."""

    quarters: PositiveCount
    """Time in service over which it is paid back, a payment each period. [quarters]"""
    interest_rate: Annotated[float, Field(ge=0, le=1)]
    """Yearly, compounded by period."""
    down_payment_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the price that is paid at the order."""


class IncomeTaxSpec(Spec):
    """Income tax, from which every cost is deducted; one of `write_off_quarters` and `write_off_by_year`."""

    rate: Annotated[float, Field(gt=0, le=0.9)]
    """Tax over income."""
    write_off_quarters: Annotated[int, Field(ge=1, le=MOST_TAX_QUARTERS)] | None = None
    """Time over which a purchase is deducted, in equal parts. Default: as the plan writes it off, without
    interest. [quarters]"""
    write_off_by_year: (
        Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1, max_length=MOST_TAX_YEARS)]
        | None
    ) = None
    """Or shares by year in service that add up to 1, such as [0.2, 0.32, 0.192, 0.1152, 0.1152, 0.0576]
    (MACRS of computers)."""


class CurrencySpec(Spec):
    """The currency of reports. Prices of the file, computations and plan.json stay in USD."""

    code: Annotated[str, Field(pattern=CURRENCY_PATTERN)]
    """ISO 4217, such as EUR."""
    usd_per_unit: Annotated[float, Field(ge=1e-6, le=1e6)]
    """What one unit of the currency costs: 1.08 if a euro costs 1.08 USD. [USD]"""
    as_of: AsOf
    """Year, month or day of the rate, such as 2026-11-01."""
    source: Text
    """Who states the rate."""


class FinanceSpec(Spec):
    """How prices become cost."""

    method: Literal["straight-line", "annuity"] = "straight-line"
    """How a purchase is charged over its life: evenly, or as an annuity with interest."""
    discount_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Yearly. Every cost counts at its present value at the start of the horizon, as does what opex_usd and
    tco_usd limit; a period is paid at its end. An annuity takes its interest from here too."""
    per_host_usd_per_quarter: PerHostSpec = PerHostSpec()
    """Cost of each installed host; single accelerators pay their part of a host."""
    property_tax_ratio_per_year: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Property tax and insurance a year, as a share of the book value of owned hosts at the start of each
    period. Hosts without `in_service` count as new."""
    loan: LoanSpec | None = None
    """How purchases of the plan are paid. Interest is a cost; payments beyond the horizon are owed. Default:
    in full at the order."""
    income_tax: IncomeTaxSpec | None = None
    """States the TCO after tax. A faster write-off for tax than that of the plan makes purchases cheaper: its
    worth before tax is the cost `tax_deferral`. It needs a `discount_rate`, after tax. Default: no tax."""
    max_price_age_days: PositiveCount | None = None
    """A warning lists prices and the rate of the currency that are older on the day of the plan, and prices
    without a date."""
    currency: CurrencySpec | None = None
    """Currency of the console, the report, the workbook, the CSV files and purchases.json, at one rate.
    Default: USD."""
