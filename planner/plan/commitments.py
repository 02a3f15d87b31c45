"""Rows of a plan on obligations after its horizon, and on supply options."""

from __future__ import annotations

from fleetplan.planner.plan.record import Record


class Commitment(Record):
    """Amount owed for a quarter after the horizon, independent of later decisions."""

    quarter: str
    pool: str
    item: str
    """Installed hosts, or the offer with the period of its order, as in the bill."""
    kind: str
    """lease (of a pool), term (of an offer) or loan (on a purchase)"""
    usd: float
    """Not discounted. [USD]"""


class RemainingValue(Record):
    """Book value of owned hosts at the end of the horizon."""

    pool: str
    item: str
    """Installed hosts, or the offer with the period of its order, as in the bill."""
    hosts: int
    age_quarters: int | None
    """Quarters in service by then; None if the fleet file does not state the start."""
    book_usd: float | None
    """Not discounted; None if the age is unknown. [USD]"""


class SupplyOption(Record):
    """One way to acquire, keep or give up the capacity of a pool, in its cheapest period."""

    pool: str
    region: str
    hardware: str
    option: str
    """keep, retire, buy, rent, reserve (rent for a term) or spot"""
    offer: str
    """Empty for installed hosts."""
    period: str
    """Period of the decision with the lowest cost per accelerator-hour; for `retire`, with the largest
    saving.
    """
    units: int
    """Units in this plan: kept, retired or bought, or the maximum rented at the same time."""
    usd_per_accelerator_hour: float
    """Cost within the horizon per accelerator-hour supplied, without energy above idle. For `retire`, the
    saving: other capacity must cost less to replace the host. [USD]
    """
    against: str = ""
    """For `buy`: the cheapest rent of the same hardware in the region when the host arrives; empty if none.
    """
    break_even_quarters: int | None = None
    """For `buy`: quarters of use after which that rent would have cost more, at no residual value; None if it
    never does, or without a rent.
    """
    break_even_resale_usd: float | None = None
    """For `retire`: the resale price of a host at which retiring costs as much as keeping. [USD]"""
