"""Cost against spreadsheet calculations written out here."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from tests.planner.builders import (
    buy_offer,
    candidate,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    service,
)
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import Finance, Fleet, Owned
from fleetplan.planner.plan import Plan
from fleetplan.planner.verify import verify

QUARTERS = tuple(f"{year}Q{quarter}" for year, quarter in product((2027, 2028), (1, 2, 3, 4)))
PER_HOST = {
    "network_usd_per_host_quarter": 1_000.0,
    "software_usd_per_host_quarter": 500.0,
    "staff_usd_per_host_quarter": 2_000.0,
}
RUNS = tuple(
    candidate(name, part, 1.0, accelerators=8, power_kw=10.0)
    for name, part in (("on-bought", "A"), ("on-rented", "B"), ("on-owned", "C"))
)


def question(finance: Finance) -> Fleet:
    """One host bought at once, one rented with its energy, and one of which there is need for a year."""
    here = region(
        pue=1.2,
        energy_usd_per_kwh=(0.05,) * 8,
        hosting_usd_per_kw_month=100.0,
        grid_kg_co2_per_kwh=(0.4,) * 8,
    )
    buy = buy_offer("buy", 320_000.0, hardware="A", maximum=1, periods=QUARTERS)
    rent = rent_offer("rent", 2.5, hardware="B", unit="host", per_unit=8, periods=QUARTERS)
    owned = Owned(160_000.0, "2025Q1", 16, 0.04, resale_usd_per_host=(30_000.0,) * 8)
    first_year = {("here", quarter, "all"): 0.5 for quarter in QUARTERS[:4]}
    return replace(
        fleet(
            services=[
                service("on-bought", 0.5, periods=QUARTERS),
                service("on-rented", 0.5, periods=QUARTERS),
                service("on-owned", first_year, periods=QUARTERS),
            ],
            hardware=[hardware(name, 8, 1500.0) for name in "ABC"],
            pools=[replace(owned_pool("old", 1, 160_000.0, hardware="C"), owned=owned)],
            offers=[
                replace(buy, residual_ratio=0.1, maintenance_ratio_per_year=0.04),
                replace(rent, energy_included=True),
            ],
            regions=[here],
            periods=QUARTERS,
        ),
        finance=finance,
    )


def planned(finance: Finance) -> tuple[Solved, Plan]:
    solved = solve(question(finance), RUNS)
    assert solved.plan is not None
    return solved, solved.plan


def test_a_bought_a_rented_and_a_retired_host_over_eight_quarters() -> None:
    _, plan = planned(Finance(**PER_HOST))  # type: ignore[arg-type]
    # A host draws 8 * 1.5 = 12 kW installed: 12 * 100 * 3 = 3,600 $ of hosting a quarter. Half a replica of
    # 10 kW is served: 5 * 1.2 * 2,190 = 13,140 kWh, 657 $ a quarter. The rent holds hosting, network, energy.
    #                       bought             rented             owned, sold after four quarters
    sheet = {
        "depreciation": 8 * 18_000 + 0 + (4 * 10_000 + 40_000),  # (320,000 - 32,000) / 16; 4 of 16 left
        "resale": 0 + 0 + -30_000,
        "rent": 0 + 8 * 43_800 + 0,  # 2.5 * 8 * 2,190
        "maintenance": 8 * 3_200 + 0 + 4 * 1_600,
        "hosting": 8 * 3_600 + 0 + 4 * 3_600,
        "network": 8 * 1_000 + 0 + 4 * 1_000,
        "software": 8 * 500 + 8 * 500 + 4 * 500,
        "staff": 8 * 2_000 + 8 * 2_000 + 4 * 2_000,
        "energy": 8 * 657 + 0 + 4 * 657,
    }
    assert plan.cost_breakdown == pytest.approx(sheet)
    assert plan.objective_usd == pytest.approx(231_656 + 370_400 + 87_428)
    assert [(row.period, row.pool, row.hosts) for row in plan.retirements] == [("2028Q1", "old", 1)]
    # The rented host emits as well: 20 host quarters of 13,140 kWh at 0.4 kg.
    assert plan.carbon_kg == pytest.approx(20 * 13_140 * 0.4)


def test_the_same_as_an_annuity_at_present_value() -> None:
    finance = Finance("annuity", 0.08, **PER_HOST)  # type: ignore[arg-type]
    _, plan = planned(finance)
    interest = 1.08**0.25 - 1
    # PMT(interest, 16, -320000, 32000) and PMT(interest, 16, -160000).
    bought = (320_000 - 32_000 / (1 + interest) ** 16) * interest / (1 - (1 + interest) ** -16)
    owned = 160_000 * interest / (1 - (1 + interest) ** -16)
    book = 160_000.0
    for _ in range(12):
        book = book * (1 + interest) - owned
    total = 0.0
    for quarter in range(8):
        worth = 1 / 1.08 ** ((quarter + 1) / 4)
        total += worth * (bought + 3_200 + 3_600 + 3_500 + 657)
        total += worth * (43_800 + 2_500)
        if quarter < 4:
            total += worth * (owned + 1_600 + 3_600 + 3_500 + 657)
    # Sold at the start of the fifth quarter, one year from now.
    total += (book - 30_000) / 1.08
    assert plan.objective_usd == pytest.approx(total)


def test_an_annuity_over_its_whole_life_is_worth_the_price() -> None:
    periods = tuple(f"{year}Q{quarter}" for year, quarter in product((2027, 2028), (1, 2, 3, 4)))
    offer = buy_offer("buy", 80_000.0, hardware="A", life=8, per_unit=1, periods=periods)
    one = fleet(
        services=[service("chat", 1.0, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[offer],
        periods=periods,
    )
    solved = solve(replace(one, finance=Finance("annuity", 0.1)), [candidate("chat", "A", 1.0)])
    assert solved.usd == pytest.approx(80_000.0)


def test_cost_is_stated_by_period_service_and_pool() -> None:
    _, plan = planned(Finance(**PER_HOST))  # type: ignore[arg-type]
    usd = {(row.scope, row.name): row.usd for row in plan.costs}
    first, second = 28_957 + 46_300 + 19_357, 28_957 + 46_300
    assert [usd["period", quarter] for quarter in QUARTERS] == pytest.approx(
        [first] * 4 + [second + 10_000] + [second] * 3
    )
    assert usd["pool", "old"] == pytest.approx(87_428)
    assert usd["service", "on-bought"] == pytest.approx(231_656)
    # The loss of the sale is of a quarter in which nobody uses the pool.
    assert usd["service", "on-owned"] == pytest.approx(77_428)
    kinds = next(row.usd_by_kind for row in plan.costs if row.name == "2028Q1")
    assert kinds["resale"] == pytest.approx(-30_000)


def test_a_purchase_states_the_date_of_its_price() -> None:
    asked = question(Finance())
    dated = tuple(replace(offer, price_as_of="2026-08") for offer in asked.offers)
    plan = solve(replace(asked, offers=dated), RUNS).plan
    assert plan is not None
    assert {row.price_as_of for row in plan.purchases} == {"2026-08"}


def test_cost_by_million_tokens() -> None:
    asked = question(Finance())
    classes = tuple(replace(kind, input_tokens=900, output_tokens=100) for kind in asked.services[0].classes)
    asked = replace(asked, services=tuple(replace(one, classes=classes) for one in asked.services))
    plan = solve(asked, RUNS).plan
    assert plan is not None
    row = next(row for row in plan.costs if row.name == "on-rented")
    # 0.5 requests/s of 1,000 tokens in eight quarters of 2,190 h.
    assert row.million_tokens == pytest.approx(0.5 * 1_000 * 8 * 2_190 * 3_600 / 1e6)
    assert row.usd_per_million_tokens == pytest.approx(8 * 43_800 / (0.5 * 8 * 2_190 * 3.6))


@pytest.mark.parametrize("scope", ["period", "service", "pool"])
def test_a_plan_that_states_another_split_is_rejected(scope: str) -> None:
    solved, plan = planned(Finance())
    for change in ({"usd": 1.0}, {"carbon_kg": 1.0}, {"usd_by_kind": {"energy": 5.0}}):
        position = next(i for i, row in enumerate(plan.costs) if row.scope == scope)
        rows = list(plan.costs)
        rows[position] = rows[position].model_copy(update=change)
        tampered = plan.model_copy(update={"costs": tuple(rows)})
        assert "cost" in {violation.family for violation in verify(solved.problem, tampered)}


def test_carbon_is_unknown_where_a_region_has_no_figure() -> None:
    asked = question(Finance())
    unknown = replace(asked.regions[0], grid_kg_co2_per_kwh=None)
    plan = solve(replace(asked, regions=(unknown,)), RUNS).plan
    assert plan is not None
    assert plan.carbon_kg is None
