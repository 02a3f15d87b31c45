"""Offers of a fleet file made of the prices that clouds ask for machines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from fleetplan.planner.importing.fragments import SupplyFragment, plain_name

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d(?=T|$)")


@dataclass(frozen=True, slots=True)
class OfferOptions:
    """What is wanted of a catalogue of prices.

    Attributes
    ----------
    as_of : str
        Day of the file.
    is_stated : bool
        Whether the user says so: the day in a file counts otherwise.
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
    is_stated: bool = False

    def published(self, moment: object) -> OfferOptions:
        """Return the options with the day that a file says of itself, such as 2026-11-18T20:12:11Z.

        They stay as they are where the user says another, or the file says none.
        """
        day = _DAY.match(str(moment))
        return self if day is None or self.is_stated else replace(self, as_of=day[0])

    def region(self, fragment: SupplyFragment, name: str, rows: int = 1) -> str | None:
        """Return the fleet's name of a region; None where it is not wanted, which the fragment tells."""
        if not self.regions or name in self.regions:
            return self.regions.get(name, name)
        fragment.leave("--region", name, rows)
        return None

    def wants(self, fragment: SupplyFragment, hardware: str, rows: int = 1) -> bool:
        """Return whether a part is wanted; the fragment tells where it is not."""
        if not self.hardware or hardware in self.hardware:
            return True
        fragment.leave("--hardware", hardware, rows)
        return False


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
    rows : tuple[int, ...]
        Where it stands in the file.
    """

    machine: str
    hardware: str
    accelerators: int
    region: str
    usd_per_hour: float
    spot: bool = False
    term_quarters: int | None = None
    rows: tuple[int, ...] = ()


def take_prices(fragment: SupplyFragment, prices: Iterable[MachinePrice], options: OfferOptions) -> None:
    """Add an offer for each machine and price, with the regions that have it.

    Where a region has several prices of a machine, as its zones may, the least counts.
    """
    cheapest: dict[tuple[str, str, int, str, bool, int | None], float] = {}
    rows: dict[tuple[str, str, int, str, bool, int | None], set[int]] = {}
    for each in prices:
        if each.usd_per_hour <= 0:
            fragment.reject(f"line {each.rows[0]}" if each.rows else each.machine, "has no price")
            continue
        place = (each.machine, each.hardware, each.accelerators, each.region, each.spot, each.term_quarters)
        cheapest[place] = min(each.usd_per_hour, cheapest.get(place, each.usd_per_hour))
        rows.setdefault(place, set()).update(each.rows)
    alike: dict[tuple[str, str, int, bool, int | None, float], list[str]] = {}
    rows_of: dict[tuple[str, str, int, bool, int | None, float], set[int]] = {}
    for place, usd in cheapest.items():
        machine, hardware, number_each, region, spot, term = place
        key = (machine, hardware, number_each, spot, term, usd)
        alike.setdefault(key, []).append(region)
        rows_of.setdefault(key, set()).update(rows[place])
    price_counts = Counter((machine, spot, term) for machine, _, _, spot, term, _ in alike)
    for key, regions in alike.items():
        machine, hardware, number_each, spot, term, usd = key
        # One machine may have several prices, told apart by their first region.
        several = price_counts[machine, spot, term] > 1
        words = (machine, "spot" if spot else "", f"{term}q" if term else "", regions[0] if several else "")
        kind, by_each = (hardware, number_each), usd / number_each
        read = partial(offer, fragment, kind, regions, by_each, options, spot=spot, term_quarters=term)
        fragment.take("offers", machine, partial(named, plain_name(*words), read), rows_of[key] or 1)


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
    found: dict[str, object] = {
        # A machine with one accelerator is a host of one: nothing joins it to those of other machines.
        "hardware": fragment.host_kind(*kind),
        "regions": sorted(dict.fromkeys(regions)),
        "per": "host",
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
