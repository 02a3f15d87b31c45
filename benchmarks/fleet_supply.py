"""Regions, pools, offers and budgets of the seeded fleets."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from benchmarks.fleet_sizes import (
    ACCELERATORS_PER_HOST,
    ON_DEMAND,
    PARTS,
    SCARCE_SHARE,
    STOCK_SHARE,
    FleetPart,
    Variant,
)


def hosts_of(accelerators: float) -> int:
    return max(1, math.ceil(accelerators / ACCELERATORS_PER_HOST))


def regions_of(
    rng: random.Random,
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    variant: Variant,
) -> dict[str, object]:
    """Sites whose power is enough for the need on the first part with some room, or too little."""
    share = SCARCE_SHARE * 0.75 if variant is Variant.SCARCE_POWER else 1.25
    found: dict[str, object] = {}
    for region in regions:
        pue = rng.choice((1.1, 1.15, 1.2, 1.3))
        found[region] = {
            "pue": pue,
            "energy_usd_per_kwh": round(rng.uniform(0.05, 0.14), 3),
            "power_kw": {
                period: round(max(need[region, period], 16.0) * PARTS[0].kw * pue * share, 1)
                for period in periods
            },
        }
    return found


def pools_of(
    rng: random.Random,
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    parts: tuple[FleetPart, ...],
) -> list[dict[str, object]]:
    pools: list[dict[str, object]] = []
    for region in regions:
        weights = [rng.uniform(0.2, 1.0) for _ in parts]
        for part, weight in zip(parts, weights, strict=True):
            accelerators = STOCK_SHARE * need[region, periods[0]] * weight / sum(weights) / part.decode_speed
            owned: dict[str, object] = {
                "capex_usd_per_host": part.capex_usd_per_host,
                "in_service": rng.choice(("2024Q4", "2025Q3", "2026Q2")),
                "maintenance_ratio_per_year": 0.05,
            }
            if rng.random() < 0.3:
                owned["resale_usd_per_host"] = round(part.capex_usd_per_host * 0.3)
            pools.append(
                {
                    "name": f"{region}-{part.name.lower()}",
                    "region": region,
                    "hardware": part.name,
                    "hosts": hosts_of(accelerators) + 1,
                    "owned": owned,
                }
            )
    return pools


def offers_of(
    rng: random.Random,
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    parts: tuple[FleetPart, ...],
    variant: Variant,
) -> list[dict[str, object]]:
    """Of every part a purchase, a rental by the quarter and a year's reservation; single cards of one."""
    largest = hosts_of(sum(max(need[region, period] for period in periods) for region in regions))
    # What stands, and what each of these offers brings at most, add up to a share of the need.
    scarce = variant is Variant.SCARCE_SUPPLY
    most = max(1, round(largest * (0.12 if scarce else 2.0) / len(parts)))
    offers: list[dict[str, object]] = []
    for part in parts:
        rent = part.rent_usd_per_accelerator_hour
        common = {"hardware": part.name, "regions": list(regions)}
        offers.append(
            {
                "name": f"buy-{part.name.lower()}",
                **common,
                "capex_usd_per_host": part.capex_usd_per_host,
                "lead_time_quarters": 1 if len(periods) > 1 else 0,
                "maintenance_ratio_per_year": 0.03,
                "max_hosts": max(1, most // 4),
            }
        )
        offers.append(
            {
                "name": f"rent-{part.name.lower()}",
                **common,
                "rent_usd_per_accelerator_hour": round(rent * rng.uniform(1.0, 1.2), 3),
                "max_hosts": most,
            }
        )
        if len(periods) > 1:
            offers.append(
                {
                    "name": f"reserve-{part.name.lower()}",
                    **common,
                    "rent_usd_per_accelerator_hour": round(rent * rng.uniform(0.82, 0.95), 3),
                    "term_quarters": 4,
                    "lot_hosts": 2,
                    "max_hosts": max(2, most // 4),
                }
            )
    offers.append(
        {
            "name": "on-demand",
            "hardware": ON_DEMAND.name,
            "regions": list(regions),
            "per": "accelerator",
            "rent_usd_per_accelerator_hour": round(
                ON_DEMAND.rent_usd_per_accelerator_hour * rng.uniform(1.3, 1.6), 3
            ),
            "max_accelerators": most * ACCELERATORS_PER_HOST,
        }
    )
    return offers


def capital_limit(
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    parts: tuple[FleetPart, ...],
    variant: Variant,
) -> dict[str, int]:
    """Money for a fifth of the first quarter's need in every quarter, or next to none where it is scarce."""
    share = 0.01 if variant is Variant.SCARCE_BUDGET else 0.2
    hosts = hosts_of(sum(need[region, periods[0]] for region in regions))
    dearest = max(part.capex_usd_per_host for part in parts)
    return {period: round(hosts * share * dearest) for period in periods}
