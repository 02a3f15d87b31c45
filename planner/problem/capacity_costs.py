"""Cost of capacity and energy by period and kind, from the formulas in fleet/tco.py.

Kinds are depreciation, resale, interest, tax deferral, property tax, rent, hosting, maintenance, idle energy,
network, software and staff. Idle energy is the draw of capacity regardless of traffic; energy above it
follows the traffic and is priced separately. A rent that includes energy also includes hosting and network.
All figures are present values at the start of the horizon, with each period paid at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Finance, Hardware, Offer, Owned, Pool, Region

CostKinds = Mapping[str, tuple[float, ...]]
"""USD by kind of cost, one figure per period."""

CostTable = Mapping[str, tuple[tuple[float, ...], ...]]
"""USD by kind of cost, by period of the order (or use, for rent), and by period charged."""

CAPITAL_KINDS: Final = ("depreciation", "resale", "interest", "tax_deferral")
"""Kinds of cost that follow from the price of hosts; all others are operating cost."""


IDLE_ENERGY: Final = "idle_energy"
"""Kind of the energy that capacity draws regardless of traffic."""


def existing_pool_usd(
    pool: Pool, hardware: Hardware, region: Region, periods: Sequence[str], finance: Finance
) -> CostKinds:
    """Return the cost of a pool's existing hosts by kind and period, used or not. [USD]"""
    hosts = pool.accelerators / hardware.accelerators_per_host
    every, calendar = range(len(periods)), finance.calendar
    if pool.rented is not None:
        included = pool.rented.energy_included
        rent = tuple(
            tco.rent_usd(pool.rented.usd_per_accelerator_hour[q], pool.accelerators, calendar) for q in every
        )
        hosting = 0.0 if included else _hosting_usd(hardware, region, pool.accelerators, finance)
        running = {"hosting": hosting, **_per_host_usd(finance, hosts, included)}
        idle = {} if included else _idle_energy_usd(hardware, region, pool.accelerators, finance)
        return _present_values({"rent": rent, **_each_period(running, len(periods)), **idle}, finance)
    if pool.owned is None:
        raise ValueError(f"pool {pool.name!r} has no price")
    write_off = tco.owned_write_off_usd(pool.owned, periods, calendar, interest_per_period(finance))
    yearly = pool.owned.maintenance_ratio_per_year
    running = {
        "hosting": _hosting_usd(hardware, region, pool.accelerators, finance),
        "maintenance": pool.hosts * tco.maintenance_usd(pool.owned.capex_usd_per_host, yearly, calendar),
        **_per_host_usd(finance, hosts, included=False),
    }
    tax = _property_tax_usd(pool.owned, tco.owned_ages(pool.owned, periods, finance.calendar), finance)
    per_host = {"depreciation": write_off, **tax}
    owned = {kind: tuple(pool.hosts * usd for usd in values) for kind, values in per_host.items()}
    idle = _idle_energy_usd(hardware, region, pool.accelerators, finance)
    kinds = {**owned, **_each_period(running, len(periods)), **idle}
    return _present_values(kinds, finance)


def retirement_usd(
    pool: Pool, hardware: Hardware, region: Region, periods: Sequence[str], finance: Finance
) -> CostTable:
    """Return the cost change from retiring one host, by kind, period of retirement and period charged. [USD]

    Charges end with the retirement. At its start, the book value of an owned host is written off at once, and
    the sale is earned.
    """
    hosts = pool.hosts
    every = range(len(periods))
    if not hosts:
        return {"depreciation": tuple((0.0,) * len(periods) for _ in every)}
    fixed = existing_pool_usd(pool, hardware, region, periods, finance)
    table = {
        kind: [[-values[when] / hosts if when >= q else 0.0 for when in every] for q in every]
        for kind, values in fixed.items()
    }
    at_once = leaving_usd(pool, periods, finance)
    table["resale"] = [[0.0] * len(periods) for _ in every]
    for kind, values in at_once.items():
        for q, usd in enumerate(values):
            table[kind][q][q] += usd
    return {kind: tuple(tuple(row) for row in rows) for kind, rows in table.items()}


def leaving_usd(pool: Pool, periods: Sequence[str], finance: Finance) -> CostKinds:
    """Return the immediate cost of retiring a host, by kind and by period at whose start it leaves. [USD]

    The book value is written off, and the sale is earned; a rented host costs nothing more. The start of a
    period is the end of the one before.
    """
    if pool.owned is None:
        return {}
    owned, interest = pool.owned, interest_per_period(finance)
    sale = owned.resale_usd_per_host or (0.0,) * len(periods)
    worth = [
        tco.present_value_ratio(finance.discount_rate_per_year, q, finance.calendar)
        for q in range(len(periods))
    ]
    books = _books_usd(owned, tco.owned_ages(owned, periods, finance.calendar), interest)
    return {
        "depreciation": tuple(usd * now for usd, now in zip(books, worth, strict=True)),
        "resale": tuple(-usd * now for usd, now in zip(sale, worth, strict=True)),
    }


def _books_usd(bought: Owned | Offer, ages: Sequence[int], interest: float) -> list[float]:
    """Return the book value of a host at each age. [USD]"""
    price, life = bought.capex_usd_per_host or 0.0, bought.life_periods
    residual, by_age = bought.residual_ratio, bought.value_by_age
    return [tco.book_value_usd(price, life, age, residual, interest, by_age) for age in ages]


def _property_tax_usd(
    bought: Owned | Offer, ages: Sequence[int], finance: Finance
) -> dict[str, tuple[float, ...]]:
    """Return the property tax of a host in periods that begin at these ages; empty without tax. [USD]"""
    yearly = finance.property_tax_ratio_per_year
    if not yearly:
        return {}
    books = _books_usd(bought, ages, interest_per_period(finance))
    return {"property_tax": tuple(tco.property_tax_usd(usd, yearly, finance.calendar) for usd in books)}


def _loan_interest_usd(price_usd: float, finance: Finance, ages: Sequence[int]) -> CostKinds:
    """Return the loan interest of a purchase in periods at these ages; empty without a loan. [USD]"""
    loan = finance.loan
    if loan is None or not loan.interest_rate_per_year:
        return {}
    return {"interest": tuple(tco.loan_interest_usd(price_usd, loan, age, finance.calendar) for age in ages)}


def acquisition_usd(
    offer: Offer, hardware: Hardware, region: Region, periods: Sequence[str], finance: Finance
) -> CostTable:
    """Return the cost of one unit, by kind, by period of order or use, and by period charged. [USD]

    A purchase costs its write-off, hosting, maintenance, property tax and loan interest in every period from
    its arrival to the end of the horizon; rent costs the periods of its term.
    """
    every = range(len(periods))
    cards = offer.accelerators_per_unit
    running = {
        "hosting": 0.0 if offer.energy_included else _hosting_usd(hardware, region, cards, finance),
        **_per_host_usd(finance, cards / hardware.accelerators_per_host, offer.energy_included),
    }
    if offer.rent_usd_per_accelerator_hour is not None:
        rent = offer.rent_usd_per_accelerator_hour
        # The price of the first period applies to the whole term.
        served = [[q <= period < q + offer.term_periods for period in every] for q in every]
        priced: list[CostKinds] = [
            {"rent": (tco.rent_usd(rent[q], cards, finance.calendar),) * len(periods)} for q in every
        ]
    elif offer.capex_usd_per_host is not None:
        running["maintenance"] = tco.maintenance_usd(
            offer.capex_usd_per_host, offer.maintenance_ratio_per_year, finance.calendar
        )
        served = [[period >= q + offer.lead_time_periods for period in every] for q in every]
        priced = [_capital_usd(offer, q, len(periods), finance) for q in every]
    else:
        raise ValueError(f"offer {offer.name!r} has no price")
    others = _each_period(running, len(periods))
    if not offer.energy_included:
        others = {**others, **_idle_energy_usd(hardware, region, cards, finance)}
    rows = [{**own, **others} for own in priced]
    worth = _worth(finance, len(periods))
    return {
        kind: tuple(
            tuple(
                usd * worth[period] if served[q][period] else 0.0 for period, usd in enumerate(rows[q][kind])
            )
            for q in every
        )
        for kind in rows[0]
    }


def _capital_usd(offer: Offer, ordered: int, n_periods: int, finance: Finance) -> CostKinds:
    """Return write-off, property tax, interest and tax deferral of a purchase, by period. [USD]"""
    ages = [period - ordered - offer.lead_time_periods for period in range(n_periods)]
    write_off = tco.purchase_write_off_usd(offer, ordered, n_periods, interest_per_period(finance))
    interest = _loan_interest_usd(offer.capex_usd_per_host or 0.0, finance, ages)
    charged = {"depreciation": write_off, **_property_tax_usd(offer, ages, finance), **interest}
    return {**charged, **_tax_deferral_usd(offer, write_off, finance)}


def _tax_deferral_usd(offer: Offer, write_off: Sequence[float], finance: Finance) -> CostKinds:
    """Return the cost of deducting a purchase later than its write-off; empty without income tax. [USD]"""
    tax = finance.income_tax
    if tax is None:
        return {}
    rate, calendar = finance.discount_rate_per_year, finance.calendar
    ratio = tco.tax_deferral_ratio(offer, tax, rate, calendar, interest_per_period(finance))
    return {"tax_deferral": tuple(usd * ratio for usd in write_off)} if ratio else {}


def energy_usd_per_kw(region: Region, n_periods: int, included: bool, finance: Finance) -> tuple[float, ...]:
    """Return the cost of one kW of IT load per period; 0 if rent includes it or energy has no price. [USD]"""
    if included or region.energy_usd_per_kwh is None:
        return (0.0,) * n_periods
    prices = zip(region.energy_usd_per_kwh, _worth(finance, n_periods), strict=True)
    return tuple(
        tco.energy_usd(1.0, region.pue, price, 1.0, finance.calendar) * worth for price, worth in prices
    )


def interest_per_period(finance: Finance) -> float:
    """Return the interest per period of the write-off; 0 for straight-line depreciation."""
    if finance.method != "annuity":
        return 0.0
    return tco.interest_per_period(finance.discount_rate_per_year, finance.calendar)


def _worth(finance: Finance, n_periods: int) -> list[float]:
    """Return the present value of a dollar of each period's cost."""
    rate, calendar = finance.discount_rate_per_year, finance.calendar
    return [tco.present_value_ratio(rate, q + 1, calendar) for q in range(n_periods)]


def _present_values(kinds: CostKinds, finance: Finance) -> CostKinds:
    return {
        kind: tuple(usd * worth for usd, worth in zip(values, _worth(finance, len(values)), strict=True))
        for kind, values in kinds.items()
    }


def _each_period(kinds: Mapping[str, float], n_periods: int) -> CostKinds:
    return {kind: (usd,) * n_periods for kind, usd in kinds.items()}


def _per_host_usd(finance: Finance, hosts: float, included: bool) -> dict[str, float]:
    """Return network, software and staff cost of hosts per period, without kinds that cost nothing.

    `included` states whether a rent pays for energy and hosting, and thus for the network.
    """
    network = 0.0 if included else finance.network_usd_per_host_quarter
    host_quarters = hosts * finance.calendar.quarters
    kinds = {
        "network": host_quarters * network,
        "software": host_quarters * finance.software_usd_per_host_quarter,
        "staff": host_quarters * finance.staff_usd_per_host_quarter,
    }
    return {kind: usd for kind, usd in kinds.items() if usd}


def _idle_energy_usd(hardware: Hardware, region: Region, accelerators: int, finance: Finance) -> CostKinds:
    """Return the cost of the idle draw of installed accelerators; empty if it costs nothing. [USD]"""
    idle_kw = tco.it_power_kw(hardware.idle_w_per_accelerator, accelerators)
    prices = region.energy_usd_per_kwh
    if prices is None or not any(prices) or not idle_kw:
        return {}
    calendar = finance.calendar
    return {IDLE_ENERGY: tuple(tco.energy_usd(idle_kw, region.pue, price, 1.0, calendar) for price in prices)}


def _hosting_usd(hardware: Hardware, region: Region, accelerators: int, finance: Finance) -> float:
    """Return the hosting cost of installed accelerators for one period; 0 if their power is unknown. [USD]"""
    if hardware.installed_w_per_accelerator is None:
        return 0.0
    power_kw = tco.it_power_kw(hardware.installed_w_per_accelerator, accelerators)
    return tco.hosting_usd(power_kw, region.hosting_usd_per_kw_month, finance.calendar)
