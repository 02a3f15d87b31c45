"""Rules of a fleet: placement, changes over the day, spending limits, finance."""

from __future__ import annotations

from dataclasses import dataclass, field

from fleetplan.fleet.inventory.periods import QUARTERS, Calendar


@dataclass(frozen=True, slots=True)
class Tidal:
    """Cost and limit of replicas that change from one slice of the day to the next.

    Attributes
    ----------
    usd_per_accelerator : float
        Cost per accelerator of a replica that starts, on every day. [USD]
    max_share_per_pool : float
        Largest share of a pool's accelerators whose replicas may start from one slice to the next, 0 to 1.
    """

    usd_per_accelerator: float = 0.0
    max_share_per_pool: float = 1.0

    @property
    def counts(self) -> bool:
        """Whether starts within a day have a cost or a limit."""
        return self.usd_per_accelerator > 0 or self.max_share_per_pool < 1


@dataclass(frozen=True, slots=True)
class MustUse:
    """A requirement that a question about a plan forces into it; not part of fleet files.

    All given fields must match. With an offer, the plan must take a unit of it, and other fields are ignored.

    Attributes
    ----------
    name : str
        Name in rows of the model.
    service, hardware, config, region : str or None
        Of the replicas; None is any.
    phases : tuple[str, ...] or None
        Of the replicas; None is any.
    offer : str or None
        Offer of which the plan takes a unit.
    share : float
        Minimum share of one class of one service in one region and moment that the replicas serve, 0 to 1.
    """

    name: str
    service: str | None = None
    hardware: str | None = None
    config: str | None = None
    region: str | None = None
    phases: tuple[str, ...] | None = None
    offer: str | None = None
    share: float = 0.001


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules for every service and pool.

    Attributes
    ----------
    reserve_hosts_per_pool : int
        Hosts that a pool keeps free for failures.
    reserve_percent_per_pool : float
        The same in per cent of the hosts in use, rounded up; at most one of the two is above 0. [%]
    max_configs_per_service_region : int or None
        Largest number of configurations of a service in a region; None is unlimited.
    kv_transfer : str
        Range of KV cache transfers from prefill to decode: same-pool, same-region or cross-region.
    transition_usd_per_accelerator : float
        Cost per accelerator of a replica that did not run in the previous period. [USD]
    max_share_per_pool : float or None
        Largest share of a service's demand that one pool may serve, 0 to 1; None is unlimited.
    survive_region_loss : tuple[str, ...]
        Services that survive the loss of any one region.
    tidal : Tidal
        Changes of replicas within a day.
    must_use : tuple[MustUse, ...]
        Requirements that a question forces into the plan.
    unmet : str
        `forbid`: all demand is served, or the fleet is infeasible. `penalise`: unmet demand is
        minimised first, by priority.
    kv_pairs : frozenset[tuple[str, str]] or None
        Pairs of prefill and decode hardware between which a KV cache may travel; None is any.
    simpler_percent : float
        Largest extra cost of a simpler plan over the cheapest one found. [%]
    """

    reserve_hosts_per_pool: int
    max_configs_per_service_region: int | None
    kv_transfer: str
    transition_usd_per_accelerator: float
    unmet: str
    max_share_per_pool: float | None = None
    survive_region_loss: tuple[str, ...] = ()
    tidal: Tidal = field(default_factory=Tidal)
    must_use: tuple[MustUse, ...] = ()
    kv_pairs: frozenset[tuple[str, str]] | None = None
    reserve_percent_per_pool: float = 0.0
    simpler_percent: float = 0.5

    def may_pair(self, prefill: str, decode: str) -> bool:
        """Whether a KV cache may travel from one kind of hardware to another."""
        return self.kv_pairs is None or (prefill, decode) in self.kv_pairs


@dataclass(frozen=True, slots=True)
class Budget:
    """Spending limits; None is no limit.

    Attributes
    ----------
    capex_usd_by_period : tuple[float or None, ...]
        Purchases ordered in a period. [USD]
    capex_usd : float or None
        Purchases over the horizon. [USD]
    opex_usd : float or None
        Rent, energy, hosting, maintenance, network, software, staff, starts of replicas and data between
        regions over the horizon. [USD]
    tco_usd : float or None
        All cost over the horizon. [USD]
    """

    capex_usd_by_period: tuple[float | None, ...]
    capex_usd: float | None
    opex_usd: float | None
    tco_usd: float | None


@dataclass(frozen=True, slots=True)
class Loan:
    """A loan on purchases, paid back in equal amounts at the end of each period in service.

    Attributes
    ----------
    periods : int
        Payments.
    interest_rate_per_year : float
        Compounded by period.
    down_payment_ratio : float
        Share of the price paid at the order.
    """

    periods: int
    interest_rate_per_year: float
    down_payment_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class IncomeTax:
    """Income tax, and the deduction of purchases from income.

    Attributes
    ----------
    rate : float
        Tax as a share of income.
    write_off : tuple[float, ...]
        Share of the write-off by period in service; empty follows the write-off of the plan, without
        interest.
    """

    rate: float
    write_off: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Currency:
    """Currency of reports.

    Attributes
    ----------
    code : str
        ISO 4217 code.
    usd_per_unit : float
        USD per unit. [USD]
    as_of, source : str
        Date and source of the rate.
    """

    code: str
    usd_per_unit: float
    as_of: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Finance:
    """Write-off, discount rate, taxes and currency.

    Attributes
    ----------
    method : str
        straight-line or annuity.
    discount_rate_per_year : float
        Yearly rate of present values, and the interest of an annuity.
    network_usd_per_host_quarter : float
        Network of a host, unless a rent includes energy and hosting. [USD/quarter]
    software_usd_per_host_quarter, staff_usd_per_host_quarter : float
        Licences and staff of every host. [USD/quarter]
    max_price_age_days : int or None
        Age above which a price is stale; None disables the warning. [days]
    property_tax_ratio_per_year : float
        Property tax and insurance per year as a share of the book value of owned hosts.
    loan : Loan or None
        Loan for purchases; None pays in full at the order.
    calendar : Calendar
        Calendar of the periods.
    currency : Currency or None
        Currency of reports; None is USD.
    income_tax : IncomeTax or None
        Income tax; None states costs before tax only.
    """

    method: str = "straight-line"
    discount_rate_per_year: float = 0.0
    network_usd_per_host_quarter: float = 0.0
    software_usd_per_host_quarter: float = 0.0
    staff_usd_per_host_quarter: float = 0.0
    max_price_age_days: int | None = None
    property_tax_ratio_per_year: float = 0.0
    loan: Loan | None = None
    calendar: Calendar = QUARTERS
    currency: Currency | None = None
    income_tax: IncomeTax | None = None
