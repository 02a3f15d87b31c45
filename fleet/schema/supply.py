"""Schema of supply: regions, hardware, pools and offers."""

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
    """A region with its power and energy prices."""

    power_kw: NumberByPeriod | None = None
    """Limit on facility power, PUE included, once or by period. It counts replicas at full load, and all
    other installed accelerators at idle. Default: unlimited. [kW]"""
    pue: Annotated[float, Field(ge=1, le=3)] | None = None
    """Facility power divided by IT power. Required if power is limited or energy is counted; otherwise
    without effect."""
    energy_usd_per_kwh: UsdPerHourByPeriod | None = None
    """Energy price, once or by period. Default: energy has no cost. [USD/kWh]"""
    hosting_usd_per_kw_month: UsdPerHour = 0.0
    """Space and cooling per kW of installed IT power; 0 if the energy price or the rent includes them.
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
    """Catalogue part that provides the figures that this block omits."""
    power_cap_w: Positive | None = None
    """Power cap of a card: the clock follows the cube root of the power, memory and links keep their speed.
    It lowers the card's share of a region's power limit, not energy and hosting costs. [W]"""
    vendor: Text | None = None
    """Manufacturer."""
    accelerators_per_host: PositiveCount | None = None
    """Cards that are bought, rented and placed together. Default for a new part: 1."""
    bf16_tflops: Positive | None = None
    """Dense BF16 peak. [TFLOPS]"""
    fp8_tflops: Positive | None = None
    """Dense FP8 peak. [TFLOPS]"""
    fp4_tflops: Positive | None = None
    """Dense FP4 peak. [TFLOPS]"""
    int8_tops: Positive | None = None
    """Dense INT8 peak. [TOPS]"""
    hbm_gib: Positive | None = None
    """Usable memory. [GiB]"""
    hbm_gb_per_s: Positive | None = None
    """Memory bandwidth. [GB/s]"""
    scale_up_gb_per_s: Positive | None = None
    """Link bandwidth per card and direction within the scale-up domain. [GB/s]"""
    scale_up_accelerators: PositiveCount | None = None
    """Cards in one scale-up domain. Default: the host of a new part, and the host of a part whose links reach
    no further than a host."""
    scale_out_gb_per_s: Positive | None = None
    """Network bandwidth per card and direction between scale-up domains. [GB/s]"""
    tdp_w: Positive | None = None
    """Board power. [W]"""
    all_in_w: Positive | None = None
    """Power of a card with its share of host, network and fans, before PUE. [W]"""
    idle_w: NotNegative | None = None
    """Idle power of a card, with the same share. All installed cards draw it, whether they serve or not; 0
    switches idle cards off. Default: the catalogue's figure, or 15 % of full load. [W]"""
    profile: Text | None = None
    """Profile of the catalogue with the roofline constants."""
    optables: Text | None = None
    """Your own measured operators: a CSV or Parquet file, relative to this file."""
    price_usd_per_accelerator_hour: dict[Name, UsdPerHour] = Field(default_factory=dict)
    """Your own rents by column, in addition to the price book. [USD/h]"""


class OwnedSpec(Spec):
    """Cost of the hosts of a pool that you bought."""

    capex_usd_per_host: UsdPerHost
    """Purchase price of a host. [USD]"""
    in_service: Quarter | None = None
    """First quarter or month in service; required if hosts can be retired. Default: every period of the
    horizon has a write-off."""
    life_quarters: PositiveCount = DEFAULT_LIFE_QUARTERS
    """Length of the write-off. [quarters]"""
    maintenance_ratio_per_year: Ratio = 0.0
    """Yearly maintenance as a share of the purchase price; 0 if the price includes it."""
    residual_ratio: RatioByAge = 0.0
    """Value at the end of the write-off as a share of the purchase price; only the rest is written off. Or
    shares by age in quarters, such as {4: 0.6, 8: 0.3}: the value falls linearly from each age to the next,
    and to zero at life_quarters unless that age is given."""
    price_as_of: AsOf | None = None
    """Year, month or day of the price, such as 2026-08 or 2026-08-14."""
    resale_usd_per_host: UsdPerHostByPeriod | None = None
    """Resale price of a host that is retired at the start of a period, once or by period; 0 is scrap. Without
    it, no host is retired before its end of life. [USD]"""
    end_of_life: Quarter | None = None
    """First quarter or month without the hosts; without a resale price they are scrapped."""


class RentedSpec(Spec):
    """Rent of the accelerators of a pool."""

    usd_per_accelerator_hour: UsdPerHourByPeriod | None = None
    """Rent for every hour, once or by period. [USD/h]"""
    price_book: Text | None = None
    """Column of the price book to take the rent from."""
    energy_included: bool | None = None
    """The rent includes energy and hosting. Default: true for rents of the price book, which all do; false
    for a rent stated here, so that energy is charged at the region's price."""
    price_as_of: AsOf | None = None
    """Year, month or day of the price, such as 2026-08 or 2026-08-14."""
    lease_end: Quarter | None = None
    """First quarter or month after the lease, from which the accelerators are gone. Rent is owed until then;
    after the horizon at the rent of its last period. Default: they stay, and nothing is owed after the
    horizon."""


class PoolSpec(Spec):
    """Installed hosts of one kind in one region."""

    name: Name
    """Name in plans and reports."""
    region: Name | None = None
    """Region of the pool; optional if there is one region."""
    hardware: HardwareName
    """A part of the catalogue or of the block `hardware`."""
    hosts: HostCount | None = None
    """Number of hosts."""
    accelerators: HostCount | None = None
    """Number of accelerators, if they are rented one by one."""
    owned: OwnedSpec | None = None
    """Cost of hosts that you bought."""
    rented: RentedSpec | None = None
    """Rent of hosts or accelerators that you rent."""
    reserve_hosts: HostCount | None = None
    """Hosts that the pool keeps free for failures while anything runs in it, hosts from offers included.
    Default: `reserve_hosts_per_pool` or `reserve_percent_per_pool` of the policy."""
    reserve_percent: ReservePercent | None = None
    """The same in per cent of the hosts in use, rounded up to whole hosts: 10 keeps two free for 11 to 20
    hosts. Up to six decimals. Excludes `reserve_hosts`. [%]"""
    maintenance_hosts: dict[Name, Count] = Field(default_factory=dict)
    """Hosts that are out of service, by period (accelerators, if the pool counts those); they still cost."""


class OfferSpec(Spec):
    """Hardware that you can buy or rent."""

    name: Name
    """Name in plans and reports."""
    hardware: HardwareName
    """A part of the catalogue or of the block `hardware`."""
    regions: Annotated[list[Name], Field(min_length=1)] | None = None
    """Regions of the offer; optional if there is one region."""
    per: Literal["host", "accelerator"] = "host"
    """Unit of orders and rentals."""
    capex_usd_per_host: UsdPerHost | None = None
    """Purchase price of a host. [USD]"""
    rent_usd_per_accelerator_hour: UsdPerHourByPeriod | None = None
    """Rent for every hour, once or by period. [USD/h]"""
    price_book: Text | None = None
    """Column of the price book to take the rent from."""
    energy_included: bool | None = None
    """The rent includes energy and hosting. Default: true for rents of the price book, which all do; false
    for a rent stated here, so that energy is charged at the region's price."""
    lead_time_quarters: Count = 0
    """Quarters from the start of the period of the order to the first period in service."""
    lead_time_months: Count | None = None
    """Lead time in months instead of quarters; service begins at the start of a period."""
    max_hosts: CountByPeriod | None = None
    """Largest number of hosts ordered (bought) or held (rented) in a period, over all regions. A table names
    the periods with supply. Default: unlimited."""
    max_accelerators: CountByPeriod | None = None
    """The same in accelerators, for `per: accelerator`."""
    life_quarters: PositiveCount = DEFAULT_LIFE_QUARTERS
    """Length of the write-off of a purchase. [quarters]"""
    maintenance_ratio_per_year: Ratio = 0.0
    """Yearly maintenance as a share of the purchase price."""
    residual_ratio: RatioByAge = 0.0
    """Value of a purchase after the write-off as a share of its price; only the rest is written off. Or
    shares by age in quarters, such as {4: 0.6, 8: 0.3, 16: 0.1}, as for owned hosts."""
    price_as_of: AsOf | None = None
    """Year, month or day of the price, such as 2026-08 or 2026-08-14."""
    term_quarters: PositiveCount | None = None
    """Term of a rental, at the price of its first period. Default: rent ends with each period. Rent after the
    horizon is not charged. [quarters]"""
    term_months: PositiveCount | None = None
    """Term in months instead of quarters, in whole periods."""
    lot_hosts: PositiveCount | None = None
    """Lot size: orders and rentals are whole multiples of it. [hosts]"""
    lot_accelerators: PositiveCount | None = None
    """Lot size for `per: accelerator`. [accelerators]"""
    spot: bool = False
    """Capacity that the provider may reclaim. It forms a separate pool and requires max_share."""
    max_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Largest share of a service's demand, over all regions, that this spot capacity may serve from one
    region."""
