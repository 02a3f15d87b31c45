"""The finance block, residual values and the dates of prices."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from fleetplan.fleet import tco
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Currency, Fleet, IncomeTax, Loan
from fleetplan.fleet.inventory.periods import QUARTERS
from fleetplan.fleet.resolve import stale_prices
from fleetplan.scenarios.load import load_fleet

BASE = """\
version: 1
horizon: {periods: [2027Q1, 2027Q2]}
regions:
  eu: {pue: 1.2, energy_usd_per_kwh: 0.1}
pools:
  - name: old
    hardware: H100-SXM
    hosts: 2
    owned: {capex_usd_per_host: 300000, in_service: 2025Q1}
offers:
  - {name: rent, hardware: H100-SXM, price_book: rental_3y}
  - {name: own-rent, hardware: H100-SXM, rent_usd_per_accelerator_hour: 2.0}
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 100, output_tokens: 10}
    demand: 1
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(*changes: tuple[str, str], more: str = "") -> Fleet:
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    Path("fleet.yaml").write_text(text + more, encoding="utf-8")
    return load_fleet(Path("fleet.yaml"))


def refused(*changes: tuple[str, str], more: str = "") -> str:
    with pytest.raises(InputError) as caught:
        loaded(*changes, more=more)
    return str(caught.value)


def test_the_block_is_resolved() -> None:
    finance = loaded(
        more="finance: {method: annuity, discount_rate: 0.08, max_price_age_days: 90, "
        "per_host_usd_per_quarter: {network: 1, software: 2, staff: 3}}\n"
    ).finance
    assert (finance.method, finance.discount_rate_per_year, finance.max_price_age_days) == (
        "annuity",
        0.08,
        90,
    )
    assert finance.network_usd_per_host_quarter == 1
    assert finance.software_usd_per_host_quarter == 2
    assert finance.staff_usd_per_host_quarter == 3


def test_an_annuity_needs_interest() -> None:
    assert "is the interest rate of the annuity" in refused(more="finance: {method: annuity}\n")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("in_service: 2025Q1}", "resale_usd_per_host: 1}"), "is required for the book value"),
        (("horizon: {periods: [2027Q1, 2027Q2]}\n", ""), "needs quarters or months as periods"),
        (("price_book: rental_3y}", "price_book: rental_3y, residual_ratio: 0.1}"), "not to rent"),
        (("price_book: rental_3y}", "price_book: rental_3y, price_as_of: 2026-08}"), "dates its own"),
        (("hour: 2.0}", "hour: 2.0, price_as_of: 2026-02-30}"), "no such day"),
        (("hour: 2.0}", "hour: 2.0, spot: true}"), "max_share: is required"),
        (("hour: 2.0}", "hour: 2.0, max_share: 0.3}"), "add spot: true"),
        (
            ("hour: 2.0}", "hour: 2.0, spot: true, max_share: 0.3, term_quarters: 2}"),
            "cannot be combined with spot",
        ),
        (("hour: 2.0}", "hour: 2.0, lot_accelerators: 2}"), "use lot_hosts"),
        (
            ("rent_usd_per_accelerator_hour: 2.0}", "capex_usd_per_host: 9, term_quarters: 2}"),
            "applies to rent, not to a purchase",
        ),
        (("hour: 2.0}", "hour: 2.0, price_as_of: yesterday}"), "price_as_of"),
    ],
)
def test_mistakes_are_explained(change: tuple[str, str], expected: str) -> None:
    changes = [change]
    if "quarters" in expected:
        changes.append(("in_service: 2025Q1}", "in_service: 2025Q1, end_of_life: 2028Q1}"))
    assert expected in refused(*changes)


def test_retirement_is_resolved_by_period() -> None:
    owned = (
        loaded(("2025Q1}", "2025Q1, end_of_life: 2027Q2, resale_usd_per_host: {2027Q1: 9, 2027Q2: 8}}"))
        .pools[0]
        .owned
    )
    assert owned is not None
    assert (owned.end_of_life, owned.resale_usd_per_host) == ("2027Q2", (9.0, 8.0))


def test_terms_lots_and_spot_are_resolved() -> None:
    fleet = loaded(("hour: 2.0}", "hour: 2.0, term_quarters: 4, lot_hosts: 3}"))
    assert (fleet.offers[0].term_periods, fleet.offers[0].lot_units) == (1, 1)
    assert (fleet.offers[1].term_periods, fleet.offers[1].lot_units) == (4, 3)
    spot = loaded(
        ("hour: 2.0}", "hour: 2.0, per: accelerator, lot_accelerators: 8, spot: true, max_share: 0.3}")
    )
    assert (spot.offers[1].spot_max_share, spot.offers[1].lot_units) == (0.3, 8)


def test_an_end_of_life_after_the_horizon_is_said() -> None:
    fleet = loaded(("2025Q1}", "2025Q1, end_of_life: 2028Q1}"))
    assert "pools.old.owned.end_of_life: 2028Q1 is after the horizon" in fleet.warnings


def test_old_and_undated_prices_are_listed() -> None:
    fleet = loaded(more="finance: {max_price_age_days: 90}\n")
    # The price book says 2026-08, which counts from its first day.
    fresh = stale_prices(fleet, datetime.date(2026, 10, 30))
    assert fresh == ("prices without a date (price_as_of): pool old, offer own-rent",)
    assert stale_prices(fleet, datetime.date(2026, 10, 31))[0] == (
        "prices older than 90 days: offer rent (2026-08)"
    )


def test_no_warning_is_asked_for_by_default() -> None:
    assert stale_prices(loaded(), datetime.date(2099, 1, 1)) == ()


def test_an_annuity_pays_the_price_back() -> None:
    interest = tco.interest_per_period(0.08, QUARTERS)
    # 20,000 in four years are worth 14,700.60 now; the rest over 13.63959 quarters at 1.94265 %.
    charge = tco.write_off_usd(100_000, 16, 0, 0.2, interest)
    assert charge == pytest.approx(6_253.8096, rel=1e-6)
    worth = sum(charge / (1 + interest) ** (quarter + 1) for quarter in range(16))
    assert worth + 20_000 / (1 + interest) ** 16 == pytest.approx(100_000)
    assert tco.book_value_usd(100_000, 16, 0, 0.2, interest) == pytest.approx(100_000)
    assert tco.book_value_usd(100_000, 16, 16, 0.2, interest) == pytest.approx(20_000)
    assert tco.book_value_usd(100_000, 16, 30, 0.2, interest) == pytest.approx(20_000)


def test_the_residual_is_not_written_off() -> None:
    assert tco.write_off_usd(100_000, 16, 3, 0.2) == pytest.approx(5_000)
    assert tco.book_value_usd(100_000, 16, 4, 0.2) == pytest.approx(80_000)


def test_a_year_of_discounting() -> None:
    assert tco.present_value_ratio(0.08, 4, QUARTERS) == pytest.approx(1 / 1.08)
    assert tco.present_value_ratio(0.0, 7, QUARTERS) == 1


def test_values_by_age_are_written_off_between_the_ages() -> None:
    # 60 % are left after four quarters, 30 % after eight, 10 % after sixteen.
    by_age = ((4, 0.6), (8, 0.3))
    charges = [tco.write_off_usd(100_000, 16, age, 0.1, 0.0, by_age) for age in range(-1, 18)]
    assert charges == pytest.approx([0] + [10_000] * 4 + [7_500] * 4 + [2_500] * 8 + [0, 0])
    values = [
        tco.book_value_usd(100_000, 16, age, 0.1, 0.0, by_age) for age in (-1, 0, 3, 4, 6, 8, 15, 16, 20)
    ]
    assert values == pytest.approx([100_000, 100_000, 70_000, 60_000, 45_000, 30_000, 12_500, 10_000, 10_000])


def test_an_annuity_between_the_ages_pays_the_price_back() -> None:
    interest, by_age = tco.interest_per_period(0.08, QUARTERS), ((4, 0.6), (8, 0.3))
    book = 100_000.0
    for age in range(16):
        assert tco.book_value_usd(100_000, 16, age, 0.1, interest, by_age) == pytest.approx(book)
        book = book * (1 + interest) - tco.write_off_usd(100_000, 16, age, 0.1, interest, by_age)
        if age + 1 in dict(by_age):
            assert book == pytest.approx(100_000 * dict(by_age)[age + 1])
    assert book == pytest.approx(10_000)
    # Four quarters that bring 100,000 $ with interest down to 60,000 $.
    first = (100_000 * 1.08 - 60_000) * interest / 0.08
    assert tco.write_off_usd(100_000, 16, 0, 0.1, interest, by_age) == pytest.approx(first)


def test_values_by_age_are_resolved() -> None:
    owned = loaded(("2025Q1}", "2025Q1, residual_ratio: {8: 0.3, 4: 0.6, 16: 0.1}}")).pools[0].owned
    assert owned is not None
    assert (owned.residual_ratio, owned.value_by_age) == (0.1, ((4, 0.6), (8, 0.3)))
    bought = loaded(
        ("rent_usd_per_accelerator_hour: 2.0}", "capex_usd_per_host: 9, residual_ratio: {4: 0.5}}")
    )
    assert (bought.offers[1].residual_ratio, bought.offers[1].value_by_age) == (0.0, ((4, 0.5),))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("2025Q1}", "2025Q1, residual_ratio: {0: 0.6}}"), "'0' is not an age within the write-off"),
        (("2025Q1}", "2025Q1, residual_ratio: {17: 0.6}}"), "quarters from 1 to 16"),
        (("2025Q1}", "2025Q1, residual_ratio: {2027Q1: 0.6}}"), "'2027Q1' is not an age"),
        (("2025Q1}", "2025Q1, residual_ratio: {4: 0.3, 8: 0.6}}"), "0.6 at the age of 8 is more than 0.3"),
        (("2025Q1}", "2025Q1, residual_ratio: {4: 1.6}}"), "must be at most 1"),
        (("in_service: 2025Q1}", "residual_ratio: {4: 0.6}}"), "is required for values by age"),
    ],
)
def test_values_by_age_that_make_no_sense_are_refused(change: tuple[str, str], expected: str) -> None:
    assert expected in refused(change)


LEASED = "rented: {usd_per_accelerator_hour: 2.0, lease_end: 2028Q1}"


def test_a_lease_a_loan_and_property_tax_are_resolved() -> None:
    fleet = loaded(
        ("owned: {capex_usd_per_host: 300000, in_service: 2025Q1}", LEASED),
        more="finance: {property_tax_ratio_per_year: 0.01, loan: {quarters: 12, interest_rate: 0.07}}\n",
    )
    assert fleet.pools[0].end == "2028Q1"
    assert fleet.finance.property_tax_ratio_per_year == 0.01
    assert fleet.finance.loan == Loan(12, 0.07, 0.0)


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        ((("2028Q1", "2027Q1"),), "", "lease_end: 2027Q1 is not after the first period 2027Q1"),
        ((("[2027Q1, 2027Q2]", "[spring]"),), "", "lease_end: needs quarters or months as periods"),
        (
            ((LEASED, f"{LEASED}\n    maintenance_hosts: {{2027Q1: 1}}"),),
            "",
            "maintenance_hosts: cannot be combined with hosts that may retire",
        ),
        (
            (),
            "finance: {method: annuity, discount_rate: 0.1, loan: {quarters: 4, interest_rate: 0.1}}\n",
            "loan: cannot be combined with an annuity",
        ),
        ((), "finance: {loan: {quarters: 0, interest_rate: 0.1}}\n", "loan.quarters"),
    ],
)
def test_leases_and_loans_that_cannot_be_are_refused(
    changes: tuple[tuple[str, str], ...], more: str, message: str
) -> None:
    owned = "owned: {capex_usd_per_host: 300000, in_service: 2025Q1}"
    with pytest.raises(InputError, match=re.escape(message)):
        loaded((owned, LEASED), *changes, more=more)


def test_a_loan_is_paid_back_with_its_interest() -> None:
    loan = Loan(8, 1.03**4 - 1, 0.5)
    payment = tco.loan_payment_usd(200_000.0, loan, QUARTERS)
    interest = [tco.loan_interest_usd(200_000.0, loan, quarter, QUARTERS) for quarter in range(8)]
    assert interest[0] == pytest.approx(3_000.0)
    # What the payments hold besides interest is what was borrowed.
    assert 8 * payment - sum(interest) == pytest.approx(100_000.0)
    assert (
        tco.loan_interest_usd(200_000.0, loan, 8, QUARTERS)
        == tco.loan_interest_usd(200_000.0, loan, -1, QUARTERS)
        == 0.0
    )


def test_income_tax_is_resolved_by_period() -> None:
    quarters = loaded(more="finance: {discount_rate: 0.1, income_tax: {rate: 0.25, write_off_quarters: 8}}\n")
    assert quarters.finance.income_tax == IncomeTax(0.25, (1 / 8,) * 8)
    assert not [text for text in quarters.warnings if "income_tax" in text]
    by_year = "finance: {discount_rate: 0.1, income_tax: {rate: 0.21, write_off_by_year: [0.6, 0.401]}}\n"
    tax = loaded(more=by_year).finance.income_tax
    assert tax is not None
    # Published tables are rounded: the shares add up to 1 nonetheless.
    assert tax.write_off == pytest.approx((0.15 / 1.001,) * 4 + (0.10025 / 1.001,) * 4)
    months = loaded(("[2027Q1, 2027Q2]", "[2027-01, 2027-02]"), more=by_year).finance.income_tax
    assert months is not None
    assert (len(months.write_off), sum(months.write_off)) == (24, pytest.approx(1))
    assert loaded(more="finance: {income_tax: {rate: 0.21}}\n").finance.income_tax == IncomeTax(0.21)
    assert loaded().finance.income_tax is None


def test_a_write_off_for_tax_without_interest_is_warned_of() -> None:
    fleet = loaded(more="finance: {income_tax: {rate: 0.21, write_off_quarters: 4}}\n")
    assert "finance.income_tax: the write-off has no effect without discount_rate" in "".join(fleet.warnings)


@pytest.mark.parametrize(
    ("tax", "expected"),
    [
        ("write_off_quarters: 4", "finance.income_tax.rate"),
        ("rate: 0", "fleet.yaml:18:30: finance.income_tax.rate"),
        ("rate: 0.95", "fleet.yaml:18:30: finance.income_tax.rate"),
        ("rate: 0.2, write_off_quarters: 0", "fleet.yaml:18:55: finance.income_tax.write_off_quarters"),
        ("rate: 0.2, write_off_by_year: []", "fleet.yaml:18:54: finance.income_tax.write_off_by_year"),
        (
            "rate: 0.2, write_off_by_year: [0, 0]",
            "fleet.yaml:18:54: finance.income_tax.write_off_by_year: the shares add up to 0, not 1",
        ),
        (
            "rate: 0.2, write_off_by_year: [0.5, 0.4]",
            "fleet.yaml:18:54: finance.income_tax.write_off_by_year: the",
        ),
        (
            "rate: 0.2, write_off_quarters: 4, write_off_by_year: [1]",
            "fleet.yaml:18:77: finance.income_tax.write_off_by_year: cannot be combined with",
        ),
    ],
)
def test_income_tax_that_makes_no_sense_is_refused(tax: str, expected: str) -> None:
    assert expected in refused(more=f"finance: {{income_tax: {{{tax}}}}}\n")


CURRENCY = "{code: EUR, usd_per_unit: 1.08, as_of: 2026-11-01, source: ECB}"


def test_a_currency_is_resolved_and_its_rate_can_be_old() -> None:
    fleet = loaded(more=f"finance: {{max_price_age_days: 30, currency: {CURRENCY}}}\n")
    assert fleet.finance.currency == Currency("EUR", 1.08, "2026-11-01", "ECB")
    stale, *_ = stale_prices(fleet, datetime.date(2027, 1, 1))
    assert "rate of EUR (2026-11-01)" in stale
    of_a_year = loaded(more=f"finance: {{currency: {CURRENCY.replace('2026-11-01', '2026')}}}\n")
    assert of_a_year.finance.currency == Currency("EUR", 1.08, "2026", "ECB")
    assert loaded().finance.currency is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("EUR", "USD", "fleet.yaml:18:28: finance.currency.code: is the currency without this block"),
        ("EUR", "euro", "fleet.yaml:18:28: finance.currency.code"),
        ("1.08", "0", "fleet.yaml:18:47: finance.currency.usd_per_unit"),
        ("2026-11-01", "2026-11-31", "there is no such day"),
        (", source: ECB", "", "finance.currency.source"),
    ],
)
def test_a_currency_without_a_dated_rate_is_refused(old: str, new: str, expected: str) -> None:
    assert expected in refused(more=f"finance: {{currency: {CURRENCY.replace(old, new)}}}\n")
