"""Pools and offers of a fleet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracles.independent.facts import Offer, Owned, Part, Residual, Stock
from tests.oracles.independent.nodes import Node, NotCoveredError, by_period, quarter, take

QUARTERS_OF_LIFE = 16
"""Write-off where the file does not say."""


def read_stock(
    node: Node, periods: Sequence[str], regions: Sequence[str], parts: Mapping[str, Part]
) -> Stock:
    """Read a pool."""
    take(
        node,
        "name",
        "region",
        "hardware",
        "hosts",
        "accelerators",
        "owned",
        "rented",
        "maintenance_hosts",
        "reserve_hosts",
        "reserve_percent",
    )
    singly = "accelerators" in node
    out = by_period(node.get("maintenance_hosts", {}), periods)
    owned, rented = node.get("owned"), node.get("rented", {})
    take(rented, "usd_per_accelerator_hour", "energy_included")
    return Stock(
        name=node["name"],
        region=node.get("region", regions[0]),
        part=node["hardware"],
        unit=1 if singly else _per_host(node["hardware"], parts),
        units=node["accelerators"] if singly else node["hosts"],
        reserve=0 if singly else node.get("reserve_hosts"),
        reserve_percent=None if singly else node.get("reserve_percent"),
        out_of_service=tuple(count or 0 for count in out),
        owned=None if owned is None else _owned(owned),
        ages=_ages(owned or {}, periods),
        resale_usd=None if owned is None else _resale(owned, periods),
        gone_from=None if owned is None else _end(owned, periods),
        rent_usd=by_period(rented.get("usd_per_accelerator_hour", 0.0), periods),
        energy_included=rented.get("energy_included", False),
    )


def read_offer(
    node: Node, periods: Sequence[str], regions: Sequence[str], parts: Mapping[str, Part]
) -> Offer:
    """Read an offer."""
    take(
        node, "name", "hardware", "regions", "per", "capex_usd_per_host", "rent_usd_per_accelerator_hour",
        "energy_included", "lead_time_quarters", "max_hosts", "max_accelerators", "life_quarters",
        "maintenance_ratio_per_year", "residual_ratio", "term_quarters", "lot_hosts", "lot_accelerators",
        "spot", "max_share",
    )  # fmt: skip
    singly = node.get("per", "host") == "accelerator"
    kind = "accelerators" if singly else "hosts"
    return Offer(
        name=node["name"],
        part=node["hardware"],
        regions=tuple(node.get("regions", regions[:1])),
        unit=1 if singly else _per_host(node["hardware"], parts),
        per_accelerator=singly,
        owned=_owned(node, bought=False) if "capex_usd_per_host" in node else None,
        rent_usd=by_period(node.get("rent_usd_per_accelerator_hour", 0.0), periods),
        energy_included=node.get("energy_included", False),
        lead=node.get("lead_time_quarters", 0),
        most=_most(node.get(f"max_{kind}"), periods),
        term=node.get("term_quarters", 1),
        lot=node.get(f"lot_{kind}", 1),
        max_share=node["max_share"] if node.get("spot", False) else None,
    )


def _owned(node: Node, *, bought: bool = True) -> Owned:
    if bought:
        take(
            node, "capex_usd_per_host", "in_service", "life_quarters", "maintenance_ratio_per_year",
            "residual_ratio", "resale_usd_per_host", "end_of_life",
        )  # fmt: skip
    life = node.get("life_quarters", QUARTERS_OF_LIFE)
    return Owned(
        capex_usd=node["capex_usd_per_host"],
        residual=_residual(node.get("residual_ratio", 0.0), life),
        maintenance_ratio=node.get("maintenance_ratio_per_year", 0.0),
    )


def _residual(value: Any, life: int) -> Residual:
    if not isinstance(value, Mapping):
        return ((0, 1.0), (life, float(value)))
    ages = {int(age): float(share) for age, share in value.items()}
    return tuple(sorted({0: 1.0, life: 0.0, **ages}.items()))


def _ages(node: Node, periods: Sequence[str]) -> tuple[int, ...]:
    """Quarters in service at the start of each period; each is the first where no quarters are said."""
    if "in_service" not in node or not all("Q" in name for name in periods):
        return (0,) * len(periods)
    return tuple(quarter(name) - quarter(node["in_service"]) for name in periods)


def _resale(node: Node, periods: Sequence[str]) -> tuple[float, ...] | None:
    value = node.get("resale_usd_per_host")
    return None if value is None else by_period(value, periods)


def _end(node: Node, periods: Sequence[str]) -> int | None:
    """Position of the first period without the hosts, where that is within the horizon."""
    if "end_of_life" not in node:
        return None
    position = max(0, quarter(node["end_of_life"]) - quarter(periods[0]))
    return position if position < len(periods) else None


def _most(value: Any, periods: Sequence[str]) -> tuple[int | None, ...]:
    """Most units by period; a table without a period has no supply in it."""
    if isinstance(value, Mapping):
        return tuple(value.get(name, 0) for name in periods)
    return (value,) * len(periods)


def _per_host(name: str, parts: Mapping[str, Part]) -> int:
    if name not in parts:
        raise NotCoveredError(f"hardware of the catalogue: {name}")
    return parts[name].per_host
