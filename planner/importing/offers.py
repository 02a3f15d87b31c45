"""Offers of a fleet file made of the prices that clouds ask for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from fleetplan.planner.importing.fragments import SupplyFragment, plain_name


@dataclass(frozen=True, slots=True)
class OfferOptions:
    """What is wanted of a catalogue of prices.

    Attributes
    ----------
    as_of : str
        Day of the file.
    regions : Mapping[str, str]
        The fleet's names of the cloud's regions that are wanted; empty for all, by their own names.
    hardware : frozenset[str]
        Wanted parts by the catalogue's names; empty for all.
    spot_max_share : float or None
        Most of a service's demand that spot capacity may serve; None leaves spot prices out.
    terms : bool
        Whether prices that commit to a term are wanted.
    """

    as_of: str
    regions: Mapping[str, str] = field(default_factory=dict)
    hardware: frozenset[str] = frozenset()
    spot_max_share: float | None = None
    terms: bool = False

    def region(self, name: str) -> str | None:
        """Return the fleet's name of a region; None where it is not wanted."""
        return self.regions.get(name) if self.regions else name


@dataclass(frozen=True, slots=True)
class MachinePrice:
    """What a cloud asks for a machine in a region.

    Attributes
    ----------
    machine : str
        The cloud's name of it.
    hardware : str
        By the catalogue's name.
    accelerators : int
        In one machine.
    region : str
        The fleet's name.
    usd_per_hour : float
        Of the whole machine. [USD/h]
    spot : bool
        Whether it may be taken away.
    term_quarters : int or None
        Quarters that the price commits to; None for none.
    row : int
        Where it stands in the file.
    """

    machine: str
    hardware: str
    accelerators: int
    region: str
    usd_per_hour: float
    spot: bool = False
    term_quarters: int | None = None
    row: int = 0


def take_prices(fragment: SupplyFragment, prices: Iterable[MachinePrice], options: OfferOptions) -> None:
    """Add an offer for each machine and price, with the regions that have it.

    Where a region has several prices of a machine, as its zones may, the least counts.
    """
    cheapest: dict[tuple[str, str, int, str, bool, int | None], float] = {}
    for each in prices:
        if each.usd_per_hour <= 0:
            fragment.reject(f"line {each.row}" if each.row else each.machine, "has no price")
            continue
        place = (each.machine, each.hardware, each.accelerators, each.region, each.spot, each.term_quarters)
        cheapest[place] = min(each.usd_per_hour, cheapest.get(place, each.usd_per_hour))
    alike: dict[tuple[str, str, int, bool, int | None, float], list[str]] = {}
    for (machine, hardware, number_each, region, spot, term), usd in cheapest.items():
        alike.setdefault((machine, hardware, number_each, spot, term, usd), []).append(region)
    price_counts = Counter((machine, spot, term) for machine, _, _, spot, term, _ in alike)
    for (machine, hardware, number_each, spot, term, usd), regions in alike.items():
        # One machine may have several prices, told apart by their first region.
        several = price_counts[machine, spot, term] > 1
        words = (machine, "spot" if spot else "", f"{term}q" if term else "", regions[0] if several else "")
        kind, by_each = (hardware, number_each), usd / number_each
        read = partial(offer, fragment, kind, regions, by_each, options, spot=spot, term_quarters=term)
        fragment.take("offers", machine, partial(named, plain_name(*words), read))


def offer(
    fragment: SupplyFragment,
    kind: tuple[str, int],
    regions: list[str],
    usd_per_accelerator_hour: float,
    options: OfferOptions,
    *,
    spot: bool,
    term_quarters: int | None = None,
) -> dict[str, object]:
    """Return an offer without its name.

    Parameters
    ----------
    fragment : SupplyFragment
        Learns of hosts that the catalogue does not have.
    kind : tuple[str, int]
        Hardware, and accelerators of a machine.
    regions : list[str]
        By the fleet's names.
    usd_per_accelerator_hour : float
        Rent. [USD/h]
    options : OfferOptions
        Day of the price; share of spot capacity.
    spot : bool
        Whether it may be taken away.
    term_quarters : int or None
        Quarters that the price commits to.
    """
    hardware, accelerators_each = kind
    single = accelerators_each == 1
    found: dict[str, object] = {
        "hardware": hardware if single else fragment.host_kind(hardware, accelerators_each),
        "regions": sorted(dict.fromkeys(regions)),
        "per": "accelerator" if single else "host",
        "rent_usd_per_accelerator_hour": round(usd_per_accelerator_hour, 6),
        "energy_included": True,
        "price_as_of": options.as_of,
    }
    if term_quarters is not None:
        found["term_quarters"] = term_quarters
    return found | ({"spot": True, "max_share": options.spot_max_share} if spot else {})


def named(name: str, read: Callable[[], dict[str, object]]) -> dict[str, object]:
    """Return an offer with its name first."""
    return {"name": name, **read()}
