"""The rules of a fleet: placement, changes over the day, spending limits, how prices become cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from fleetplan.fleet.inventory.periods import QUARTERS, Calendar


@dataclass(frozen=True, slots=True)
class Tidal:
    """What it costs, and how far it goes, that replicas change from one slice of the day to the next.

    Attributes
    ----------
    usd_per_accelerator : float
        Cost of each accelerator of a replica that starts, every day anew. [USD]
    max_share_per_pool : float
        Most of a pool's accelerators whose replicas may start from one slice to the next, 0 to 1.
    """

    usd_per_accelerator: float = 0.0
    max_share_per_pool: float = 1.0

    @property
    def counts(self) -> bool:
        """Whether it matters which replicas start within a day."""
        return self.usd_per_accelerator > 0 or self.max_share_per_pool < 1


@dataclass(frozen=True, slots=True)
class MustUse:
    """What a plan must use: asked by questions about a plan, not by fleet files.

    All that is given must match. With an offer, a unit of it is taken and nothing else is looked at.

    Attributes
    ----------
    name : str
        What it is called in rows of the model.
    service, hardware, config, region : str or None
        Of the replicas; None is any.
    phases : tuple[str, ...] or None
        Of the replicas; None is any.
    offer : str or None
        An offer of which a unit is taken.
    share : float
        Least part of one class of one service in one region and moment that the replicas serve, 0 to 1.
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
        Hosts a pool keeps free for failures.
    reserve_percent_per_pool : float
        The same in per cent of the hosts in use, rounded up; one of the two is 0. [%]
    max_configs_per_service_region : int or None
        Most engine configurations of a service in a region; None is unlimited.
    kv_transfer : str
        How far the KV cache travels from prefill to decode: same-pool, same-region or cross-region.
    transition_usd_per_accelerator : float
        Cost of each accelerator of a replica that did not run in the period before. [USD]
    max_share_per_pool : float or None
        Most of a service's demand that one pool may serve, 0 to 1; None is unlimited.
    survive_region_loss : tuple[str, ...]
        Services that outlive the loss of any one region.
    tidal : Tidal
        Changes of replicas within a day.
    must_use : tuple[MustUse, ...]
        What a question forces into the plan.
    unmet : str
        `forbid`: all demand is served, or the fleet is infeasible. `penalise`: unmet demand is
        minimised first, by priority.
    kv_pairs : frozenset[tuple[str, str]] or None
        Hardware of prefill and of decode between which a KV cache may pass; None is any.
    simpler_percent : float
        Most that a simpler plan may cost more than the cheapest one found. [%]
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
        """Whether a KV cache may pass from one kind of hardware to another."""
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
        Share of the price that is paid at the order.
    """

    periods: int
    interest_rate_per_year: float
    down_payment_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class IncomeTax:
    """Income tax, and how purchases are deducted from income.

    Attributes
    ----------
    rate : float
        Tax over income.
    write_off : tuple[float, ...]
        Share of what is written off in all, by period in service; empty is as the plan writes off, without
        interest.
    """

    rate: float
    write_off: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Currency:
    """What reports show amounts in.

    Attributes
    ----------
    code : str
        ISO 4217.
    usd_per_unit : float
        What one unit of it costs. [USD]
    as_of, source : str
        Date of the rate, and who states it.
    """

    code: str
    usd_per_unit: float
    as_of: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Finance:
    """How prices become cost.

    Attributes
    ----------
    method : str
        straight-line or annuity.
    discount_rate_per_year : float
        Of present values, and the interest of an annuity.
    network_usd_per_host_quarter : float
        Network of a host, except where a rent pays for energy and hosting. [USD/quarter]
    software_usd_per_host_quarter, staff_usd_per_host_quarter : float
        Licences and people of every host. [USD/quarter]
    max_price_age_days : int or None
        Age from which a price is stale; None asks for no warning. [days]
    property_tax_ratio_per_year : float
        Property tax and insurance over the book value of owned hosts.
    loan : Loan or None
        How purchases are paid; None is in full at the order.
    calendar : Calendar
        The periods that are charged.
    currency : Currency or None
        What reports show amounts in; None is USD.
    income_tax : IncomeTax or None
        None where costs are told before tax alone.
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
