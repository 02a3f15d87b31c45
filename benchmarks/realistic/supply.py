"""What stands in the halls of a realistic fleet, and what can be bought or rented."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class MarketPart:
    """A kind of accelerator.

    Prices of rent are those of the package's price book (fleet/catalog/prices.yaml: InferenceX-app@7fe6d62,
    AI cloud TCO table, and public on-demand listings, both 2026-08); of purchases those that
    scenarios/quarterly.yaml derives, or assumptions where it has none.

    Attributes
    ----------
    speed : float
        Requests of the family's services that it sustains over those of an H100, the median over the kinds
        that it runs; sizes supply. [accelerators]
    kw : float
        Power of an accelerator with its share of the host. [kW]
    capex_usd_per_host : int
        Purchase price. [USD]
    in_service : tuple[str, ...]
        Quarters in which hosts of it were bought.
    resale_ratio : float
        What a used host brings over its price at the start of the horizon; an assumption.
    """

    name: str
    speed: float
    kw: float
    capex_usd_per_host: int
    in_service: tuple[str, ...]
    resale_ratio: float
    accelerators_per_host: int = 8


PARTS: Final[Mapping[str, MarketPart]] = MappingProxyType(
    {
        "H100-SXM": MarketPart("H100-SXM", 1.0, 1.37, 297_000, ("2023Q4", "2024Q1", "2024Q3"), 0.32),
        "H200-SXM": MarketPart("H200-SXM", 1.12, 1.37, 311_000, ("2025Q1", "2025Q3"), 0.45),
        "B200-SXM": MarketPart("B200-SXM", 2.2, 1.71, 446_000, ("2026Q1", "2026Q3"), 0.6),
        "GB200-NVL72": MarketPart("GB200-NVL72", 2.4, 1.87, 240_000, ("2026Q2",), 0.6, 4),
        "MI300X": MarketPart("MI300X", 1.5, 1.39, 210_000, ("2024Q4", "2025Q2"), 0.4),
        "A100-SXM-80GB": MarketPart("A100-SXM-80GB", 0.3, 0.81, 199_000, ("2021Q4", "2022Q2"), 0.16),
        "L40S": MarketPart("L40S", 0.2, 0.52, 95_000, ("2023Q4", "2024Q2"), 0.26),
    }
)

L40S_ALL_IN_W: Final = 520
"""Board power of 350 W and half as much for its part of the host, as of an H100 about (assumption). [W]"""

LIFE_QUARTERS: Final = 20
"""Write-off. [quarters]"""


@dataclass(frozen=True, slots=True)
class MarketOffer:
    """A way to get hardware.

    Attributes
    ----------
    share : float
        Most of it, over the need of the last quarter; what all offers bring is about once that need.
    usd : float
        Rent by the hour from the price book or, where the comment says so, an assumption; 0 of a purchase.
    everywhere : bool
        Whether every region has it; otherwise some do.
    lot : int
        Hosts that come together at the size of a company.
    """

    name: str
    part: str
    share: float
    usd: float = 0.0
    everywhere: bool = False
    lot: int = 1
    keys: Mapping[str, Any] = field(default_factory=dict)


OFFERS: Final = (
    MarketOffer("b200-buy", "B200-SXM", 0.10, keys={"lead_time_quarters": 1}),
    # A year's reservation: between the price of three years, 2.05, and that on demand, 2.50 (assumption).
    MarketOffer("h200-1y", "H200-SXM", 0.30, 2.30, everywhere=True, keys={"term_quarters": 4}),
    MarketOffer("h100-od", "H100-SXM", 0.12, 2.60, everywhere=True, keys={"per": "accelerator"}),
    MarketOffer("b200-3y", "B200-SXM", 0.30, 2.60, lot=4, keys={"term_quarters": 12}),
    # Spot: assumption.
    MarketOffer("h100-spot", "H100-SXM", 0.08, 1.45, keys={"spot": True, "max_share": 0.4}),
    MarketOffer("mi300x-buy", "MI300X", 0.06, keys={"lead_time_quarters": 1}),
    MarketOffer("gb200-3y", "GB200-NVL72", 0.25, 2.60, lot=18, keys={"term_quarters": 12}),
    MarketOffer("l40s-od", "L40S", 0.02, 1.80, everywhere=True, keys={"per": "accelerator"}),
    MarketOffer("h200-buy", "H200-SXM", 0.06, keys={"lead_time_quarters": 2}),
    MarketOffer("h100-1y", "H100-SXM", 0.15, 1.90, lot=2, keys={"term_quarters": 4}),
    MarketOffer("mi300x-1y", "MI300X", 0.10, 1.45, keys={"term_quarters": 4}),
    MarketOffer("a100-od", "A100-SXM-80GB", 0.02, 1.10, everywhere=True, keys={"per": "accelerator"}),
)
"""The first of them are those of every fleet; larger ones have more."""

Need = Mapping[tuple[str, str], float]
"""Accelerators, as H100, that the services of a region need in a quarter."""


def pools(
    rng: random.Random, need: Need, periods: Sequence[str], count: tuple[int, int]
) -> list[dict[str, Any]]:
    """What stands: in each region some pools that together are about what the first quarter needs.

    Parameters
    ----------
    rng : random.Random
        Draws ages, sizes and prices.
    need : mapping
        What the services take.
    periods : Sequence[str]
        The quarters.
    count : tuple[int, int]
        Fewest and most pools of a region.
    """
    found = []
    for region in dict.fromkeys(region for region, _ in need):
        installed = need[region, periods[0]] * rng.uniform(0.8, 1.1)
        for name, share in _mix(rng, rng.randint(*count)).items():
            part = PARTS[name]
            hosts = max(1, round(installed * share / part.speed / part.accelerators_per_host))
            pool = {"name": f"{region}-{name.split('-')[0].lower()}", "region": region, "hardware": name}
            found.append({**pool, "hosts": hosts, **_ownership(rng, part, periods)})
    return found


def _mix(rng: random.Random, count: int) -> dict[str, float]:
    """Parts of a region with their shares of its capacity: mostly Hopper, and some of other ages."""
    first = rng.choice(("H100-SXM", "H100-SXM", "H200-SXM"))
    others = [name for name in PARTS if name not in (first, "GB200-NVL72")]
    weights = {first: 1.0}
    for name in rng.sample(others, count - 1):
        # Old and small parts are many hosts of little capacity.
        weights[name] = rng.uniform(0.04, 0.1) if PARTS[name].speed < 0.5 else rng.uniform(0.25, 0.8)
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _ownership(rng: random.Random, part: MarketPart, periods: Sequence[str]) -> dict[str, Any]:
    """Whether hosts are owned or rented, with their prices."""
    rent = {"H100-SXM": 1.78, "H200-SXM": 2.05, "MI300X": 1.30}.get(part.name)
    if rent is not None and rng.random() < 0.25:
        price = round(rent * rng.uniform(1.0, 1.12), 2)
        return {
            "rented": {"usd_per_accelerator_hour": price, "energy_included": True, "price_as_of": "2026-08"}
        }
    price_usd = round(part.capex_usd_per_host * rng.uniform(0.95, 1.08), -3)
    old = part.speed < 0.5
    owned: dict[str, Any] = {
        "capex_usd_per_host": int(price_usd),
        "in_service": rng.choice(part.in_service),
        "life_quarters": LIFE_QUARTERS,
        "maintenance_ratio_per_year": 0.06 if old else 0.03,
    }
    if old or rng.random() < 0.4:
        # A used host loses a twelfth of its value a quarter (assumption).
        first = part.resale_ratio * price_usd
        owned["resale_usd_per_host"] = {
            period: int(round(first * (11 / 12) ** q, -3)) for q, period in enumerate(periods)
        }
        if old and len(periods) > 1 and rng.random() < 0.4:
            owned["end_of_life"] = periods[-1]
    return {"owned": owned}


def offers(
    rng: random.Random, need: Need, periods: Sequence[str], count: tuple[int, int]
) -> list[dict[str, Any]]:
    """What can be added, as `pools` has its parameters; `count` is of offers."""
    regions = list(dict.fromkeys(region for region, _ in need))
    total = sum(need[region, periods[-1]] for region in regions)
    kept, further = OFFERS[:4], OFFERS[4:]
    drawn = {offer.name for offer in rng.sample(further, rng.randint(*count) - len(kept))}
    return [
        _offer(rng, offer, regions, total, len(periods))
        for offer in (*kept, *(offer for offer in further if offer.name in drawn))
        # A rack of 72 is no offer for a team whose whole need is less.
        if offer.lot * PARTS[offer.part].accelerators_per_host * PARTS[offer.part].speed < total / 2
    ]


def _offer(
    rng: random.Random, offer: MarketOffer, regions: Sequence[str], total: float, quarters: int
) -> dict[str, Any]:
    part = PARTS[offer.part]
    places = list(regions)
    if not offer.everywhere and len(places) > 1:
        kept = rng.sample(places, rng.randint((len(places) + 1) // 2, len(places)))
        places = [place for place in places if place in kept]
    accelerators = offer.share * total * rng.uniform(0.9, 1.2) / part.speed
    item: dict[str, Any] = {"name": offer.name, "hardware": offer.part, "regions": places, **offer.keys}
    if "lead_time_quarters" in item:
        item["lead_time_quarters"] = min(item["lead_time_quarters"], quarters - 1)
    if offer.usd:
        item["rent_usd_per_accelerator_hour"] = round(offer.usd * rng.uniform(0.95, 1.1), 2)
        item["energy_included"] = True
    else:
        item["capex_usd_per_host"] = int(round(part.capex_usd_per_host * rng.uniform(0.95, 1.05), -3))
        item["life_quarters"] = LIFE_QUARTERS
        item["maintenance_ratio_per_year"] = 0.03
    if item.get("per") == "accelerator":
        item["max_accelerators"] = max(16, 8 * round(accelerators / 8))
    else:
        hosts = max(1, math.ceil(accelerators / part.accelerators_per_host))
        item["max_hosts"] = offer.lot * math.ceil(hosts / offer.lot)
        if offer.lot > 1:
            item["lot_hosts"] = offer.lot
    return {**item, "price_as_of": "2026-08"}
