"""Rows of a plan that look beyond its horizon, and that compare ways to have capacity."""

from __future__ import annotations

from fleetplan.planner.plan.record import Record


class Commitment(Record):
    """What is owed for a quarter after the horizon, whatever is decided then."""

    quarter: str
    pool: str
    item: str
    """Standing hosts, or the offer with the period of its order, as in the bill."""
    kind: str
    """lease (of a pool), term (of an offer) or loan (on a purchase)"""
    usd: float
    """Not discounted. [USD]"""


class RemainingValue(Record):
    """What owned hosts are worth in the books at the end of the horizon."""

    pool: str
    item: str
    """Standing hosts, or the offer with the period of its order, as in the bill."""
    hosts: int
    age_quarters: int | None
    """Quarters in service by then; None where the fleet file does not say since when."""
    book_usd: float | None
    """Not discounted; None where the age is not known. [USD]"""


class SupplyOption(Record):
    """One way to have, or to give up, the capacity of a pool, at its cheapest period."""

    pool: str
    region: str
    hardware: str
    option: str
    """keep, retire, buy, rent, reserve (rent for a term) or spot"""
    offer: str
    """Empty for hosts that stand there."""
    period: str
    """Period of the decision at which an accelerator-hour costs least; of `retire`, at which a host saves
    most."""
    units: int
    """What the plan does: units that stay or leave, that are bought, or the most that are rented."""
    usd_per_accelerator_hour: float
    """Cost within the horizon, energy above idle not included, over the accelerator-hours that it brings; of
    `retire`, what it saves: other capacity must cost less to replace the host. [USD]"""
    against: str = ""
    """Of `buy`: the cheapest rent of the same hardware in the region when the host arrives; empty without."""
    break_even_quarters: int | None = None
    """Of `buy`: quarters of use from which on that rent would have cost more, if nothing is left of the host;
    None where it never does, or without a rent."""
    break_even_resale_usd: float | None = None
    """Of `retire`: the resale price of a host at which retiring costs as much as keeping. [USD]"""
