"""Schema of the block on finance: write-off, interest, taxes and currency."""

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
    """Network; not charged if a rent includes energy and hosting. [USD/quarter]"""
    software: NotNegative = 0.0
    """Licences and support. [USD/quarter]"""
    staff: NotNegative = 0.0
    """Staff. [USD/quarter]"""


class LoanSpec(Spec):
    """A loan for purchases of the plan, paid back in equal amounts at the end of each period in service."""

    quarters: PositiveCount
    """Time in service over which the loan is paid back, with one payment per period. [quarters]"""
    interest_rate: Annotated[float, Field(ge=0, le=1)]
    """Yearly, compounded by period."""
    down_payment_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the price that is paid at the order."""


class IncomeTaxSpec(Spec):
    """Income tax, from which every cost is deducted; one of `write_off_quarters` and `write_off_by_year`."""

    rate: Annotated[float, Field(gt=0, le=0.9)]
    """Tax as a share of income."""
    write_off_quarters: Annotated[int, Field(ge=1, le=MOST_TAX_QUARTERS)] | None = None
    """Time over which a purchase is deducted, in equal parts. Default: the write-off of the plan, without
    interest. [quarters]"""
    write_off_by_year: (
        Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1, max_length=MOST_TAX_YEARS)]
        | None
    ) = None
    """Shares of the price by year in service, which add up to 1, such as [0.2, 0.32, 0.192, 0.1152, 0.1152,
    0.0576] (MACRS of computers)."""


class CurrencySpec(Spec):
    """The currency of reports. Prices of the file, computations and plan.json stay in USD."""

    code: Annotated[str, Field(pattern=CURRENCY_PATTERN)]
    """ISO 4217 code, such as EUR."""
    usd_per_unit: Annotated[float, Field(ge=1e-6, le=1e6)]
    """USD per unit of the currency: 1.08 if a euro costs 1.08 USD. [USD]"""
    as_of: AsOf
    """Year, month or day of the rate, such as 2026-11-01."""
    source: Text
    """Source of the rate."""


class FinanceSpec(Spec):
    """Write-off, discount rate, taxes and currency."""

    method: Literal["straight-line", "annuity"] = "straight-line"
    """Write-off of a purchase over its life: in equal parts, or as an annuity with interest."""
    discount_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Yearly discount rate. Costs, and the budgets opex_usd and tco_usd, count at their present value at the
    start of the horizon; a period is paid at its end. An annuity uses it as its interest rate."""
    per_host_usd_per_quarter: PerHostSpec = PerHostSpec()
    """Fixed cost of each installed host; single accelerators pay their share of a host."""
    property_tax_ratio_per_year: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Property tax and insurance per year, as a share of the book value of owned hosts at the start of each
    period. Hosts without `in_service` count as new."""
    loan: LoanSpec | None = None
    """Loan for purchases of the plan. Its interest is a cost; payments after the horizon are stated as owed.
    Default: purchases are paid in full at the order."""
    income_tax: IncomeTaxSpec | None = None
    """Income tax, to state the TCO after tax. If tax law writes purchases off faster than the plan, they
    become cheaper: the value before tax is the cost `tax_deferral`. Needs a `discount_rate` after tax.
    Default: no tax."""
    max_price_age_days: PositiveCount | None = None
    """Age above which a warning lists prices and the exchange rate, counted on the day of the plan. The
    warning also lists prices without a date. [days]"""
    currency: CurrencySpec | None = None
    """Currency of the console, the report, the workbook, the CSV files and purchases.json, at one exchange
    rate. Default: USD."""
