"""What capacity costs in a quarter: write-off, rent, energy, hosting and maintenance.

Pure functions of figures with units; none of them knows a plan.

    write-off   = capex / life                     while the host is in service and not written off
    rent        = price * 2190 h * accelerators    whether used or not
    energy      = IT power * PUE * price * 2190 h * utilisation
    hosting     = installed IT power * price * 3 months
    maintenance = capex * yearly ratio / 4         while the host is in service
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleetplan.fleet.inventory import Offer, Owned
from fleetplan.fleet.periods import quarter_index

# 8,760 hours of a year over four.
HOURS_PER_QUARTER: Final = 2190
MONTHS_PER_QUARTER: Final = 3
QUARTERS_PER_YEAR: Final = 4
W_PER_KW: Final = 1000.0


def write_off_usd(capex_usd: float, life_quarters: int, age_quarters: int) -> float:
    """Return the straight-line write-off of one quarter.

    Parameters
    ----------
    capex_usd : float
        Purchase price. [USD]
    life_quarters : int
        Quarters of write-off.
    age_quarters : int
        Whole quarters in service before this one; negative before the first.

    Returns
    -------
    float
        [USD]
    """
    return capex_usd / life_quarters if 0 <= age_quarters < life_quarters else 0.0


def owned_write_off_usd(owned: Owned, periods: Sequence[str]) -> tuple[float, ...]:
    """Return the write-off of one owned host by period. [USD].

    Where the start of service or the periods are no quarters, every period is charged.
    """
    start = None if owned.in_service is None else quarter_index(owned.in_service)
    by_period = []
    for period in periods:
        now = quarter_index(period)
        age_quarters = 0 if start is None or now is None else now - start
        by_period.append(write_off_usd(owned.capex_usd_per_host, owned.life_quarters, age_quarters))
    return tuple(by_period)


def purchase_write_off_usd(offer: Offer, order_period: int, n_periods: int) -> tuple[float, ...]:
    """Return the write-off by period of one host bought from an offer. [USD].

    Parameters
    ----------
    offer : Offer
        With `capex_usd_per_host`.
    order_period : int
        Position of the period of the order; service starts `lead_time_quarters` later.
    n_periods : int
        Periods of the horizon.
    """
    if offer.capex_usd_per_host is None:
        raise ValueError(f"{offer.name} is no purchase")
    start = order_period + offer.lead_time_quarters
    return tuple(
        write_off_usd(offer.capex_usd_per_host, offer.life_quarters, period - start)
        for period in range(n_periods)
    )


def maintenance_usd(capex_usd: float, maintenance_ratio_per_year: float) -> float:
    """Return the maintenance of one quarter in service. [USD]."""
    return capex_usd * maintenance_ratio_per_year / QUARTERS_PER_YEAR


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
