"""Assumed offers: supply hardware that a fleet cannot get, at a price from the price book."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fleetplan.fleet.catalog import accelerators, price_book
from fleetplan.fleet.inventory import Fleet, Offer
from fleetplan.fleet.inventory.power import hardware_kind
from fleetplan.planner.questions.why_not.subject import Subject, SubjectKind

MOST_ASSUMED_PRICE: Final = 16.0
"""Maximum factor on the assumed price in the search for the break-even."""

ASSUMED_OFFER: Final = "assumed offer"
"""Name of the assumed offer: rental by the host, in every region, without a maximum."""

UNKNOWN_PRICE_USD_PER_HOUR: Final = 1.0
"""Assumed rent of hardware without a known price; the break-even price does not depend on it. [USD/h]"""


def supplied(fleet: Fleet, subject: Subject) -> Fleet:
    """Return the fleet with an offer of hardware that it cannot get."""
    if subject.kind is not SubjectKind.HARDWARE or subject.supplied:
        return fleet
    part = accelerators()[subject.name]
    hardware = hardware_kind(subject.name, part)
    offer = Offer(
        name=ASSUMED_OFFER,
        hardware=subject.name,
        regions=tuple(region.name for region in fleet.regions),
        unit="host",
        accelerators_per_unit=part.accelerators_per_host,
        capex_usd_per_host=None,
        rent_usd_per_accelerator_hour=tuple(reference_price(subject.name)[0] for _ in fleet.periods),
        energy_included=False,
        lead_time_periods=0,
        max_units=tuple(None for _ in fleet.periods),
        life_periods=1,
        maintenance_ratio_per_year=0.0,
        price_source=reference_price(subject.name)[1],
    )
    return replace(fleet, hardware={**fleet.hardware, subject.name: hardware}, offers=(*fleet.offers, offer))


def reference_price(hardware: str) -> tuple[float, str]:
    """Return the lowest price of a part in the price book, and its source. [USD/h]"""
    found = [
        (price.usd_per_accelerator_hour, f"price book, {column}, {price.as_of}")
        for column, price in price_book().get(hardware, {}).items()
    ]
    return min(found) if found else (UNKNOWN_PRICE_USD_PER_HOUR, "no price is known")


def price_text(offer: Offer, ratio: float) -> str:
    """Return the price of an offer times a ratio, in the units of the fleet file."""
    if offer.rent_usd_per_accelerator_hour is not None:
        prices = dict.fromkeys(offer.rent_usd_per_accelerator_hour)
        return " / ".join(f"{ratio * usd:.4g}" for usd in prices) + " USD/h"
    return f"{ratio * (offer.capex_usd_per_host or 0.0):,.0f} USD a {offer.unit}"
