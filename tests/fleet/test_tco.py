"""TCO against calculations written out by hand."""

import pytest

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Loan, Offer, Owned
from fleetplan.fleet.inventory.periods import QUARTERS, Calendar
from fleetplan.fleet.units import HOURS_PER_QUARTER


def test_a_quarter_has_2190_hours() -> None:
    assert HOURS_PER_QUARTER * 4 == 8760


def test_rent_is_paid_for_every_hour() -> None:
    # 64 cards at 1.99 $/h: 64 * 1.99 = 127.36 $/h, times 2,190 h.
    assert tco.rent_usd(1.99, 64, QUARTERS) == pytest.approx(278_918.4)


def test_energy_at_the_served_utilisation() -> None:
    # 8 cards of 1,370 W: 10.96 kW; with PUE 1.15 12.604 kW; at 60 % for 2,190 h 16,561.656 kWh; at 7 ct.
    power_kw = tco.it_power_kw(1370, 8)
    assert power_kw == pytest.approx(10.96)
    assert tco.energy_usd(power_kw, 1.15, 0.07, 0.6, QUARTERS) == pytest.approx(1159.31592)
    assert tco.energy_usd(power_kw, 1.15, 0.07, 0.0, QUARTERS) == 0


def test_hosting_is_paid_for_installed_power() -> None:
    # 10.96 kW at 120 $/kW/month for 3 months.
    assert tco.hosting_usd(10.96, 120, QUARTERS) == pytest.approx(3945.6)


def test_maintenance_is_a_share_of_the_price() -> None:
    # 4 % of 300,000 $ a year, a quarter of it.
    assert tco.maintenance_usd(300_000, 0.04, QUARTERS) == pytest.approx(3000)


def test_write_off_is_even_and_ends() -> None:
    assert tco.write_off_usd(320_000, 16, 0) == 20_000
    assert tco.write_off_usd(320_000, 16, 15) == 20_000
    assert tco.write_off_usd(320_000, 16, 16) == 0
    assert tco.write_off_usd(320_000, 16, -1) == 0
    assert sum(tco.write_off_usd(320_000, 16, age) for age in range(-3, 30)) == pytest.approx(320_000)


@pytest.mark.parametrize("yearly", [1e-6, 1e-9, 1e-12])
def test_an_annuity_of_hardly_any_interest_is_a_straight_line(yearly: float) -> None:
    """Without cancellation: growth less 1 has few digits left."""
    interest = tco.interest_per_period(yearly, QUARTERS)
    assert interest == pytest.approx(yearly / 4, rel=2 * yearly)
    usd = tco.write_off_usd(320_000, 16, 3, 0.1, interest)
    # The interest on 9.5 sixteenths of the loss, and on the residual value.
    assert usd - 18_000 == pytest.approx((18_000 * 8.5 + 32_000) * interest, rel=1e-4, abs=1e-10)
    book = tco.book_value_usd(320_000, 16, 4, 0.1, interest)
    assert book == pytest.approx(320_000 - 4 * 18_000, rel=2 * yearly)
    loan = Loan(12, yearly, 0.0)
    assert tco.loan_payment_usd(120_000, loan, QUARTERS) == pytest.approx(10_000, rel=2 * yearly)
    assert tco.loan_interest_usd(120_000, loan, 0, QUARTERS) == pytest.approx(120_000 * interest, rel=1e-5)


def test_an_owned_host_is_written_off_from_its_start() -> None:
    periods = ("2027Q1", "2027Q2", "2027Q3", "2027Q4")
    # In service since 2023Q3: 2027Q1 is its 15th quarter, so two of sixteen are left.
    old = Owned(320_000.0, "2023Q3", 16, 0.0)
    assert tco.owned_write_off_usd(old, periods, QUARTERS) == (20_000, 20_000, 0, 0)
    new = Owned(320_000.0, "2025Q3", 16, 0.0)
    assert tco.owned_write_off_usd(new, periods, QUARTERS) == (20_000,) * 4
    undated = Owned(320_000.0, None, 2, 0.0)
    assert tco.owned_write_off_usd(undated, periods, QUARTERS) == (160_000,) * 4
    assert tco.owned_write_off_usd(old, ("now",), QUARTERS) == (20_000,)


def offer(capex_usd_per_host: float | None, lead_time_periods: int, life_periods: int) -> Offer:
    return Offer(
        name="buy",
        hardware="B200-SXM",
        regions=("eu",),
        unit="host",
        accelerators_per_unit=8,
        capex_usd_per_host=capex_usd_per_host,
        rent_usd_per_accelerator_hour=None if capex_usd_per_host is not None else (2.0,),
        energy_included=False,
        lead_time_periods=lead_time_periods,
        max_units=(None,) * 6,
        life_periods=life_periods,
        maintenance_ratio_per_year=0.0,
        price_source="test",
    )


def test_a_purchase_is_written_off_from_its_delivery() -> None:
    # Ordered in the second period, delivered one later, written off over three.
    assert tco.purchase_write_off_usd(offer(420_000.0, 1, 3), 1, 6) == (0, 0, 140_000, 140_000, 140_000, 0)
    with pytest.raises(ValueError, match="not a purchase"):
        tco.purchase_write_off_usd(offer(None, 0, 16), 0, 1)


def test_eight_quarters_of_a_bought_and_a_rented_host() -> None:
    # Bought: 420,000 over 16 quarters, 8 of them in the horizon: 210,000. Maintenance 3 % a year: 8 * 3,150.
    # Energy of 13.68 kW, PUE 1.2, 80 % used, 6 ct: 13.68 * 1.2 * 0.8 * 2,190 * 0.06 = 1,725.650... a quarter.
    bought = sum(tco.purchase_write_off_usd(offer(420_000.0, 0, 16), 0, 8))
    bought += 8 * tco.maintenance_usd(420_000, 0.03, QUARTERS)
    bought += 8 * tco.energy_usd(tco.it_power_kw(1710, 8), 1.2, 0.06, 0.8, QUARTERS)
    assert bought == pytest.approx(210_000 + 25_200 + 8 * 1725.650_304)
    # Rented: 8 cards at 2.60 $/h: 45,552 $ a quarter.
    assert 8 * tco.rent_usd(2.60, 8, QUARTERS) == pytest.approx(8 * 45_552)


def test_a_quarter_of_months_costs_what_the_quarter_costs() -> None:
    months = Calendar(months=1)
    assert (months.hours, months.per_year, months.quarters) == (730.0, 12.0, 1 / 3)
    assert 3 * tco.rent_usd(1.99, 64, months) == pytest.approx(tco.rent_usd(1.99, 64, QUARTERS))
    assert 3 * tco.energy_usd(10, 1.2, 0.07, 0.6, months) == pytest.approx(
        tco.energy_usd(10, 1.2, 0.07, 0.6, QUARTERS)
    )
    assert 3 * tco.hosting_usd(10.96, 120, months) == pytest.approx(3945.6)
    assert 3 * tco.maintenance_usd(300_000, 0.04, months) == pytest.approx(3000)
    assert 3 * tco.property_tax_usd(300_000, 0.04, months) == pytest.approx(3000)
    # A year of either discounts alike, and a month's interest compounds to the year's.
    assert tco.present_value_ratio(0.08, 12, months) == pytest.approx(1 / 1.08)
    assert (1 + tco.interest_per_period(0.08, months)) ** 12 == pytest.approx(1.08)
