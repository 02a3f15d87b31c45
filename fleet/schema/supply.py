"""The file's blocks on supply: regions, hardware, pools and offers."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from fleetplan.fleet.schema.values import (
    TAG_MARK,
    AsOf,
    Count,
    CountByPeriod,
    HardwareName,
    HostCount,
    Name,
    NotNegative,
    NumberByPeriod,
    Positive,
    PositiveCount,
    Quarter,
    ReservePercent,
    Spec,
    Text,
    UsdPerHost,
    UsdPerHostByPeriod,
    UsdPerHour,
    UsdPerHourByPeriod,
)

# Four years, the usual write-off of servers; InferenceX's TCO table (2026-08) writes off over four as well.
DEFAULT_LIFE_QUARTERS: Final = 16

Ratio: TypeAlias = Annotated[float, Field(ge=0, le=1)]


def _residual_form(value: object) -> str:
    return f"{TAG_MARK}by_age" if isinstance(value, dict) else f"{TAG_MARK}once"


# Keys of a YAML mapping are text; that these are ages is checked where they are read.
RatioByAge: TypeAlias = Annotated[
    Annotated[Ratio, Tag(f"{TAG_MARK}once")] | Annotated[dict[str, Ratio], Tag(f"{TAG_MARK}by_age")],
    Discriminator(_residual_form),
]


class RegionSpec(Spec):
    """A place with its power and its energy price."""

    power_kw: NumberByPeriod | None = None
    """Facility power, PUE included, once or by period, of all replicas that run at full load and of all other
    accelerators that stand there at idle. Default: unlimited. [kW]"""
    pue: Annotated[float, Field(ge=1, le=3)] | None = None
    """Facility power over IT power. Required if power is limited or energy counted; else without effect."""
    energy_usd_per_kwh: UsdPerHourByPeriod | None = None
    """Energy price, once or by period. Default: energy has no cost. [USD/kWh]"""
    hosting_usd_per_kw_month: UsdPerHour = 0.0
    """Space and cooling per kW of installed IT power; 0 if the energy price or the rent includes it.
    [USD/kW/month]"""
    grid_kg_co2_per_kwh: NumberByPeriod | None = None
    """Carbon intensity of the grid, once or by period. Default: carbon is not reported. [kg CO2/kWh]"""
    utc_offset_hours: Annotated[float, Field(ge=-12, le=14, multiple_of=0.25)] | None = None
    """Local time less UTC, for shapes of the day by local hour: a multiple of 0.25. [h]"""
    round_trip_ms: dict[Name, NotNegative] = Field(default_factory=dict)
    """Round-trip time to other regions, by region; a figure applies in both directions. [ms]"""
    network_usd_per_gb: dict[Name, NotNegative] = Field(default_factory=dict)
    """Network price of data for requests that another region serves, by that region, in both directions.
    Default: free. [USD/GB]"""


class HardwareSpec(Spec):
    """Your own hardware, or changes to hardware of the catalogue."""

    like: HardwareName | None = None
    """The catalogue part whose figures hold where this block gives none."""
    power_cap_w: Positive | None = None
    """Power cap of a card: the clock follows its cube root, memory and links stay as they are. The power of a
    region counts it; energy and hosting are charged as without it. [W]"""
    vendor: Text | None = None
    """Who makes it."""
    accelerators_per_host: PositiveCount | None = None
    """Cards that are bought, rented and placed together; 1 for a new part that does not say."""
    bf16_tflops: Positive | None = None
    """Dense BF16 peak. [TFLOPS]"""
    fp8_tflops: Positive | None = None
    """Dense FP8 peak. [TFLOPS]"""
    fp4_tflops: Positive | None = None
    """Dense FP4 peak. [TFLOPS]"""
    int8_tops: Positive | None = None
    """Dense INT8 peak. [TOPS]"""
    hbm_gib: Positive | None = None
    """Memory that can be used. [GiB]"""
    hbm_gb_per_s: Positive | None = None
    """Memory bandwidth. [GB/s]"""
    scale_up_gb_per_s: Positive | None = None
    """Link bandwidth a card and direction within the scale-up domain. [GB/s]"""
    scale_up_accelerators: PositiveCount | None = None
    """Cards in one scale-up domain. Where it is not stated: the host of a new part, and the smaller host of a
    part whose links reach no further than a host."""
    scale_out_gb_per_s: Positive | None = None
    """Network bandwidth a card and direction between scale-up domains. [GB/s]"""
    tdp_w: Positive | None = None
    """Board power. [W]"""
    all_in_w: Positive | None = None
    """Power of a card with its share of host, network and fans, before PUE. [W]"""
    idle_w: NotNegative | None = None
    """The same of a card that runs nothing: all that is held draws it, serving or not. 0: what serves nothing
    is off. Default: the catalogue's figure; 15 % of full load where there is none. [W]"""
    profile: Text | None = None
    """Roofline constants: the name of a profile of the catalogue."""
    optables: Text | None = None
    """Your own measured operators: a CSV or Parquet file, relative to this file."""
    price_usd_per_accelerator_hour: dict[Name, UsdPerHour] = Field(default_factory=dict)
    """Your own prices, by column, in addition to the price book. [USD/h]"""


class OwnedSpec(Spec):
    """What the hosts of a pool cost."""

    capex_usd_per_host: UsdPerHost
    """Purchase price of a host. [USD]"""
    in_service: Quarter | None = None
    """First quarter or month in service; required where hosts can be retired. Default: every period of the
    horizon is charged a write-off."""
    life_quarters: PositiveCount = DEFAULT_LIFE_QUARTERS
    """Quarters of write-off."""
    maintenance_ratio_per_year: Ratio = 0.0
    """Yearly maintenance as a share of the purchase price; 0 if the price includes it."""
    residual_ratio: RatioByAge = 0.0
    """Value at the end of the write-off as a share of the purchase price; only the rest is written off. Or
    shares by age in quarters, such as {4: 0.6, 8: 0.3}: the value falls evenly from each age to the next, and
    nothing is left at life_quarters unless that age is given."""
    price_as_of: AsOf | None = None
    """Year, month or day of the price, such as 2026-08 or 2026-08-14."""
    resale_usd_per_host: UsdPerHostByPeriod | None = None
    """Resale price of a host that is retired at the start of a period, once or by period; 0 is scrap. Without
    it, no host is retired before its end of life. [USD]"""
    end_of_life: Quarter | None = None
    """First quarter or month in which the hosts are gone; without a resale price they are scrapped."""


class RentedSpec(Spec):
    """What the accelerators of a pool cost by the hour."""

    usd_per_accelerator_hour: UsdPerHourByPeriod | None = None
    """Rent for every hour, once or by period. [USD/h]"""
    price_book: Text | None = None
    """Column of the price book to take the rent from."""
    energy_included: bool | None = None
    """Whether the rent pays for energy and hosting too. Left out: yes for a figure of the price book, all of
    which do; no for a rent given here, so that energy is charged at the region's price."""
    price_as_of: AsOf | None = None
    """Year, month or day of the price, such as 2026-08 or 2026-08-14."""
    lease_end: Quarter | None = None
    """First quarter or month after the lease: the accelerators are gone then. Rent is owed until then,
    beyond the horizon at the rent of its last period. Default: they stay, and nothing is owed beyond the
    horizon."""


class PoolSpec(Spec):
    """Hosts of one kind in one region that exist."""

    name: Name
    """Its name in plans and reports."""
    region: Name | None = None
    """Region of the pool; optional if there is one region."""
    hardware: HardwareName
    """A part of the catalogue or of the block `hardware`."""
    hosts: HostCount | None = None
    """How many hosts."""
    accelerators: HostCount | None = None
    """How many accelerators, where they are rented one by one."""
    owned: OwnedSpec | None = None
    """Set where the hosts were bought."""
    rented: RentedSpec | None = None
    """Set where they are rented."""
    reserve_hosts: HostCount | None = None
    """Hosts it keeps free for failures while anything runs in it, those that offers bring included; as the
    policy says (`reserve_hosts_per_pool`, `reserve_percent_per_pool`) where no reserve is given."""
    reserve_percent: ReservePercent | None = None
    """The same in per cent of the hosts that are in use, rounded up to whole hosts: 10 keeps two free for 11
    to 20. Counts to six decimals. Instead of `reserve_hosts`. [%]"""
    maintenance_hosts: dict[Name, Count] = Field(default_factory=dict)
    """Hosts (accelerators, where those are counted) that are out of service, by period; they cost as ever."""


class OfferSpec(Spec):
    """Hardware that can be bought or rented."""

    name: Name
    """Its name in plans and reports."""
    hardware: HardwareName
    """A part of the catalogue or of the block `hardware`."""
    regions: Annotated[list[Name], Field(min_length=1)] | None = None
    """Regions of the offer; optional if there is one region."""
    per: Literal["host", "accelerator"] = "host"
    """What comes in whole numbers."""
    capex_usd_per_host: UsdPerHost | None = None
    """Purchase price of a host. [USD]"""
    rent_usd_per_accelerator_hour: UsdPerHourByPeriod | None = None
    """Rent for every hour, once or by period. [USD/h]"""
    price_book: Text | None = None
    """Column of the price book to take the rent from."""
    energy_included: bool | None = None
    """Whether the rent pays for energy and hosting too. Left out: yes for a figure of the price book, all of
    which do; no for a rent given here, so that energy is charged at the region's price."""
    lead_time_quarters: Count = 0
    """Quarters between the start of the period of the order and the first period in service."""
    lead_time_months: Count | None = None
    """The same in months, instead; service begins with a period."""
    max_hosts: CountByPeriod | None = None
    """Most hosts ordered (bought) or held (rented) in a period, over all regions. A table names the periods
    with supply. Default: unlimited."""
    max_accelerators: CountByPeriod | None = None
    """The same for `per: accelerator`."""
    life_quarters: PositiveCount = DEFAULT_LIFE_QUARTERS
    """Quarters of write-off of a purchase."""
    maintenance_ratio_per_year: Ratio = 0.0
    """Yearly maintenance as a share of the purchase price."""
    residual_ratio: RatioByAge = 0.0
    """Value of a purchase after the write-off as a share of its price; only the rest is written off. Or
    shares by age in quarters, such as {4: 0.6, 8: 0.3, 16: 0.1}, as for owned hosts."""
    price_as_of: AsOf | None = None
    """Year, month or day of the price, such as 2026-08 or 2026-08-14."""
    term_quarters: PositiveCount | None = None
    """Rental for so many quarters at the price of the first period; without it rent ends with each period.
    What lies beyond the horizon is not charged."""
    term_months: PositiveCount | None = None
    """The same in months, instead: whole periods."""
    lot_hosts: PositiveCount | None = None
    """Hosts that come together: orders and rentals are whole multiples."""
    lot_accelerators: PositiveCount | None = None
    """The same for `per: accelerator`."""
    spot: bool = False
    """Capacity that the provider may reclaim: it forms a separate pool and requires max_share."""
    max_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Most of a service's demand of all regions that this spot capacity may serve from one region."""
