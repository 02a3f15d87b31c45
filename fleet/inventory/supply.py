"""Supply: hardware, regions, pools, offers, networks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fleetplan.fleet.inventory.accelerator import Accelerator


@dataclass(frozen=True, slots=True)
class Hardware:
    """A kind of hardware that pools, offers and engine tables name.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    accelerators_per_host : int
        Cards that are bought, rented and placed together.
    accelerator : Accelerator or None
        The figures; None for a kind that only engine tables use.
    power_w_per_accelerator : float or None
        Power of a card with its share of host, network and fans, before PUE; None if neither the catalogue
        nor the fleet file gives a figure to derive it from. A power cap lowers it. [W]
    idle_w_per_accelerator : float
        Idle power of a card, with the same share; 0 if unknown. [W]
    uncapped_w_per_accelerator : float or None
        `power_w_per_accelerator` without the power cap; None without a cap. [W]
    part : str or None
        Its part of the catalogue, in hosts of any size; None for hardware with figures of its own.
    """

    name: str
    accelerators_per_host: int
    accelerator: Accelerator | None
    power_w_per_accelerator: float | None
    idle_w_per_accelerator: float = 0.0
    uncapped_w_per_accelerator: float | None = None
    part: str | None = None

    @property
    def power_cap_w(self) -> float | None:
        """Power cap of a card, which is then its board power; None without a cap. [W]"""
        capped = self.accelerator is not None and self.accelerator.installed_w is not None
        return self.accelerator.tdp_w if self.accelerator is not None and capped else None

    @property
    def installed_w_per_accelerator(self) -> float | None:
        """Power for hosting and energy costs, which ignores a cap; None if unknown.

        See `fleetplan.fleet.inventory.power.power_capped` for why a cap does not lower it.
        """
        uncapped = self.uncapped_w_per_accelerator
        return self.power_w_per_accelerator if uncapped is None else uncapped


@dataclass(frozen=True, slots=True)
class Region:
    """A region with its power and energy prices.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    power_kw : tuple[float, ...] or None
        Facility power by period, PUE included; None is unlimited. [kW]
    pue : float
        Facility power divided by IT power.
    energy_usd_per_kwh : tuple[float, ...] or None
        Energy price by period; None if energy has no cost. [USD/kWh]
    hosting_usd_per_kw_month : float
        Space and cooling per kW of installed IT power. [USD/kW/month]
    grid_kg_co2_per_kwh : tuple[float, ...] or None
        Carbon intensity of the grid by period; None if not given. [kg CO2/kWh]
    round_trip_ms : Mapping[str, float]
        Known round-trip times to other regions, by region. [ms]
    network_usd_per_gb : Mapping[str, float]
        Network price of data of requests that another region serves, by region; free if absent. [USD/GB]
    """

    name: str
    power_kw: tuple[float, ...] | None
    pue: float
    energy_usd_per_kwh: tuple[float, ...] | None
    hosting_usd_per_kw_month: float
    grid_kg_co2_per_kwh: tuple[float, ...] | None = None
    round_trip_ms: Mapping[str, float] = field(default_factory=dict)
    network_usd_per_gb: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Owned:
    """Price and write-off of owned hosts.

    Attributes
    ----------
    capex_usd_per_host : float
        Purchase price. [USD]
    in_service : str or None
        First period in service; None charges the write-off in every period of the horizon.
    life_periods : int
        Periods of write-off.
    maintenance_ratio_per_year : float
        Yearly maintenance over the purchase price.
    residual_ratio : float
        Value at the end of the write-off as a share of the purchase price.
    value_by_age : tuple[tuple[int, float], ...]
        Values at earlier ages, in periods, as shares of the purchase price; empty for a linear write-off.
    price_as_of : str or None
        Year, month or day of the price; None if the file does not say.
    resale_usd_per_host : tuple[float, ...] or None
        Resale price of a host retired at the start of a period; None if no host may be sold. [USD]
    end_of_life : str or None
        First period without the hosts; None is after the horizon.
    """

    capex_usd_per_host: float
    in_service: str | None
    life_periods: int
    maintenance_ratio_per_year: float
    residual_ratio: float = 0.0
    price_as_of: str | None = None
    resale_usd_per_host: tuple[float, ...] | None = None
    end_of_life: str | None = None
    value_by_age: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Rented:
    """Price of rented accelerators.

    Attributes
    ----------
    usd_per_accelerator_hour : tuple[float, ...]
        Rent by period, for every hour. [USD/h]
    energy_included : bool
        Whether the rent pays for energy and hosting too.
    price_source : str
        Source of the price.
    price_as_of : str or None
        Year, month or day of the price; None if the file does not say.
    lease_end : str or None
        First period in which the accelerators are gone; None if they stay.
    """

    usd_per_accelerator_hour: tuple[float, ...]
    energy_included: bool
    price_source: str
    price_as_of: str | None = None
    lease_end: str | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Installed hosts of one kind in one region. Exactly one of `owned` and `rented` is set.

    Attributes
    ----------
    name, region, hardware : str
        Names in the fleet file.
    hosts : int
        Number of hosts.
    accelerators_per_host : int
        Cards of a host; 1 for a pool that is counted in accelerators.
    owned : Owned or None
        Cost of bought hosts.
    rented : Rented or None
        Rent of rented hosts.
    maintenance_hosts : tuple[int, ...]
        Hosts out of service by period; empty for none.
    reserve_hosts : int or None
        Hosts kept free while anything runs.
    reserve_percent : float or None
        The same in per cent of the hosts in use. If both are None, the policy applies. [%]
    """

    name: str
    region: str
    hardware: str
    hosts: int
    accelerators_per_host: int
    owned: Owned | None
    rented: Rented | None
    maintenance_hosts: tuple[int, ...] = ()
    reserve_hosts: int | None = None
    reserve_percent: float | None = None

    @property
    def accelerators(self) -> int:
        """Cards of the whole pool."""
        return self.hosts * self.accelerators_per_host

    @property
    def end(self) -> str | None:
        """First period without the pool (end of life or lease); None if it stays."""
        if self.rented is not None:
            return self.rented.lease_end
        return None if self.owned is None else self.owned.end_of_life


@dataclass(frozen=True, slots=True)
class Offer:
    """Hardware that the plan can buy or rent. Exactly one of the two prices is set.

    Attributes
    ----------
    name, hardware : str
        Names in the fleet file.
    regions : tuple[str, ...]
        Regions of the offer.
    unit : str
        Unit of orders and of `max_units`: `host` or `accelerator`.
    accelerators_per_unit : int
        Cards of a unit.
    capex_usd_per_host : float or None
        Purchase price of a host. [USD]
    rent_usd_per_accelerator_hour : tuple[float, ...] or None
        Rent by period, for every hour. [USD/h]
    energy_included : bool
        Whether the rent pays for energy and hosting too; False for a purchase.
    lead_time_periods : int
        Periods between the order and the first period in service.
    max_units : tuple[int or None, ...]
        Largest number of units ordered (bought) or held (rented) in a period, over all regions; None is
        unlimited.
    life_periods : int
        Periods of write-off of a purchase.
    maintenance_ratio_per_year : float
        Yearly maintenance over the purchase price.
    price_source : str
        Source of the price.
    residual_ratio : float
        Value of a purchase at the end of the write-off as a share of its price.
    value_by_age : tuple[tuple[int, float], ...]
        Values at earlier ages, in periods, as shares of its price; empty for a linear write-off.
    price_as_of : str or None
        Year, month or day of the price; None if the file does not say.
    term_periods : int
        Term of a rental, at the price of its first period. [periods]
    lot_units : int
        Lot size. [units]
    spot_max_share : float or None
        Largest share of a service on spot capacity; None for other offers.
    """

    name: str
    hardware: str
    regions: tuple[str, ...]
    unit: str
    accelerators_per_unit: int
    capex_usd_per_host: float | None
    rent_usd_per_accelerator_hour: tuple[float, ...] | None
    energy_included: bool
    lead_time_periods: int
    max_units: tuple[int | None, ...]
    life_periods: int
    maintenance_ratio_per_year: float
    price_source: str
    residual_ratio: float = 0.0
    price_as_of: str | None = None
    term_periods: int = 1
    lot_units: int = 1
    spot_max_share: float | None = None
    value_by_age: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class KvLink:
    """A network that transfers KV caches from prefill to decode.

    Attributes
    ----------
    prefill, decode : str
        Region or pool of the sender, and of the receiver.
    gb_per_s : float
        Bandwidth in this direction. [GB/s]
    added_ms : float
        Extra time of a transfer compared with one within a region; counts against TTFT. [ms]
    """

    prefill: str
    decode: str
    gb_per_s: float
    added_ms: float = 0.0

    @property
    def name(self) -> str:
        """Name in reports and in the solver's model."""
        return f"{self.prefill}>{self.decode}"

    def joins(self, sender: Collection[str], receiver: Collection[str]) -> bool:
        """Whether the link connects two places, each given by the names of its pool and region."""
        return self.prefill in sender and self.decode in receiver
