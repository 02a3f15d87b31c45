"""Pools and offers of a fleet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracles.independent.facts import Offer, Owned, Part, Residual, Stock
from tests.oracles.independent.nodes import Node, NotCoveredError, by_period, month, take

QUARTERS_OF_LIFE = 16
"""Write-off where the file does not say."""


@dataclass(frozen=True)
class Periods:
    """The horizon: its names, the length of a period, and when a fiscal year begins."""

    names: tuple[str, ...]
    months: int
    fiscal_first_month: int = 1

    @property
    def per_quarter(self) -> int:
        """Periods of a quarter."""
        return 3 // self.months

    def position(self, name: str) -> int | None:
        """Return the periods from the first one to a date; None where nothing is dated."""
        first = month(self.names[0], self.fiscal_first_month)
        then = month(name, self.fiscal_first_month)
        return None if first is None or then is None else (then - first) // self.months


def _duration(node: Node, key: str, default: int, periods: Periods) -> int:
    """Return a duration in periods; months that begin one count as a whole one."""
    if f"{key}_months" in node:
        return -(-int(node[f"{key}_months"]) // periods.months)
    if f"{key}_quarters" in node:
        return int(node[f"{key}_quarters"]) * periods.per_quarter
    return default


def read_stock(node: Node, periods: Periods, regions: Sequence[str], parts: Mapping[str, Part]) -> Stock:
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
    out = by_period(node.get("maintenance_hosts", {}), periods.names)
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
        owned=None if owned is None else _owned(owned, periods),
        ages=_ages(owned or {}, periods),
        resale_usd=None if owned is None else _resale(owned, periods.names),
        gone_from=None if owned is None else _end(owned, periods),
        rent_usd=by_period(rented.get("usd_per_accelerator_hour", 0.0), periods.names),
        energy_included=rented.get("energy_included", False),
    )


def read_offer(node: Node, periods: Periods, regions: Sequence[str], parts: Mapping[str, Part]) -> Offer:
    """Read an offer."""
    take(
        node, "name", "hardware", "regions", "per", "capex_usd_per_host", "rent_usd_per_accelerator_hour",
        "energy_included", "lead_time_quarters", "lead_time_months", "max_hosts", "max_accelerators",
        "life_quarters", "term_months", "maintenance_ratio_per_year", "residual_ratio", "term_quarters",
        "lot_hosts", "lot_accelerators", "spot", "max_share",
    )  # fmt: skip
    singly = node.get("per", "host") == "accelerator"
    kind = "accelerators" if singly else "hosts"
    return Offer(
        name=node["name"],
        part=node["hardware"],
        regions=tuple(node.get("regions", regions[:1])),
        unit=1 if singly else _per_host(node["hardware"], parts),
        per_accelerator=singly,
        owned=_owned(node, periods, bought=False) if "capex_usd_per_host" in node else None,
        rent_usd=by_period(node.get("rent_usd_per_accelerator_hour", 0.0), periods.names),
        energy_included=node.get("energy_included", False),
        lead=_duration(node, "lead_time", 0, periods),
        most=_most(node.get(f"max_{kind}"), periods.names),
        term=_duration(node, "term", 1, periods),
        lot=node.get(f"lot_{kind}", 1),
        max_share=node["max_share"] if node.get("spot", False) else None,
    )


def _owned(node: Node, periods: Periods, *, bought: bool = True) -> Owned:
    if bought:
        take(
            node, "capex_usd_per_host", "in_service", "life_quarters", "maintenance_ratio_per_year",
            "residual_ratio", "resale_usd_per_host", "end_of_life",
        )  # fmt: skip
    life = node.get("life_quarters", QUARTERS_OF_LIFE)
    return Owned(
        capex_usd=node["capex_usd_per_host"],
        residual=_residual(node.get("residual_ratio", 0.0), life, periods.per_quarter),
        maintenance_ratio=node.get("maintenance_ratio_per_year", 0.0),
    )


def _residual(value: Any, life: int, per_quarter: int) -> Residual:
    if not isinstance(value, Mapping):
        return ((0, 1.0), (life * per_quarter, float(value)))
    ages = {int(age): float(share) for age, share in value.items()}
    by_quarter = {0: 1.0, life: 0.0, **ages}
    return tuple(sorted((age * per_quarter, share) for age, share in by_quarter.items()))


def _ages(node: Node, periods: Periods) -> tuple[int, ...]:
    """Periods in service at the start of each; each is the first where nothing is dated."""
    first = periods.position(node["in_service"]) if "in_service" in node else None
    if first is None:
        return (0,) * len(periods.names)
    return tuple(q - first for q in range(len(periods.names)))


def _resale(node: Node, periods: Sequence[str]) -> tuple[float, ...] | None:
    value = node.get("resale_usd_per_host")
    return None if value is None else by_period(value, periods)


def _end(node: Node, periods: Periods) -> int | None:
    """Position of the first period without the hosts, where that is within the horizon."""
    if "end_of_life" not in node:
        return None
    position = max(0, periods.position(node["end_of_life"]) or 0)
    return position if position < len(periods.names) else None


def _most(value: Any, periods: Sequence[str]) -> tuple[int | None, ...]:
    """Most units by period; a table without a period has no supply in it."""
    if isinstance(value, Mapping):
        return tuple(value.get(name, 0) for name in periods)
    return (value,) * len(periods)


def _per_host(name: str, parts: Mapping[str, Part]) -> int:
    if name not in parts:
        raise NotCoveredError(f"hardware of the catalogue: {name}")
    return parts[name].per_host
