"""Convert cloud prices of machines to offers of a fleet file."""

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
    """Selection from a price catalogue.

    Attributes
    ----------
    as_of : str
        Date of the file.
    is_stated : bool
        Whether the user states the date, which then overrides the one in a file.
    regions : Mapping[str, str]
        The fleet's names of selected cloud regions; empty for all regions under their own names.
    hardware : frozenset[str]
        Selected hardware by catalogue name; empty for all.
    spot_max_share : float or None
        Maximum share of a service's demand on spot capacity; None leaves spot prices out.
    terms : bool
        Whether to include prices with a term commitment.
    """

    as_of: str
    regions: Mapping[str, str] = field(default_factory=dict)
    hardware: frozenset[str] = frozenset()
    spot_max_share: float | None = None
    terms: bool = False
    is_stated: bool = False

    def published(self, moment: object) -> OfferOptions:
        """Return the options with the date stated in a file, such as 2026-11-18T20:12:11Z.

        The date stays if the user states one, or if the file has none.
        """
        day = _DAY.match(str(moment))
        return self if day is None or self.is_stated else replace(self, as_of=day[0])

    def region(self, fragment: SupplyFragment, name: str, rows: int = 1) -> str | None:
        """Return the fleet's name of a region; None if it is not selected, which the fragment records."""
        if not self.regions or name in self.regions:
            return self.regions.get(name, name)
        fragment.leave("--region", name, rows)
        return None

    def wants(self, fragment: SupplyFragment, hardware: str, rows: int = 1) -> bool:
        """Return whether hardware is selected; the fragment records exclusions."""
        if not self.hardware or hardware in self.hardware:
            return True
        fragment.leave("--hardware", hardware, rows)
        return False


@dataclass(frozen=True, slots=True)
class MachinePrice:
    """Price of a machine in a cloud region.

    Attributes
    ----------
    machine : str
        The cloud's name of the machine.
    hardware : str
        Name in the catalogue.
    accelerators : int
        Accelerators per machine.
    region : str
        The fleet's name of the region.
    usd_per_hour : float
        Price of the whole machine. [USD/h]
    spot : bool
        Whether it is spot capacity.
    term_quarters : int or None
        Term commitment of the price in quarters; None without one.
    rows : tuple[int, ...]
        Rows of the price in the file.
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

    If a region has several prices of a machine, as in its zones, the lowest counts.
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
        # A machine with several prices has an offer for each, distinguished by the first region.
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
        Receives host sizes that the catalogue lacks.
    kind : tuple[str, int]
        Hardware, and accelerators per machine.
    regions : list[str]
        The fleet's names of regions.
    usd_per_accelerator_hour : float
        Rent. [USD/h]
    options : OfferOptions
        Date of the price, and maximum share on spot capacity.
    spot : bool
        Whether it is spot capacity.
    term_quarters : int or None
        Term commitment of the price in quarters.
    """
    found: dict[str, object] = {
        # A machine with one accelerator is a single-accelerator host: no link joins it to other machines.
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
