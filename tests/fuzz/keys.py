"""Coverage of documented keys: the keys of a fleet file, and their pairs within a block.

A key is its path in the file, such as `services.slo.ttft_ms`. Two keys of one block with items (two of
`services`) make a pair where one item has both; two others make one where one file has both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fleetplan.fleet.schema import FleetSpec

ITEMS = (
    "regions",
    "hardware",
    "pools",
    "offers",
    "services",
    "kv_links",
    "uncertainty.scenarios",
    "day_shapes",
)
"""Blocks with items: a pair of their keys counts within one of these."""

BY_NAME = ("regions", "hardware", "services.workload.classes", "day_shapes")
"""Blocks that are mappings from names."""

Pair = frozenset[str]

APART: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("pools.owned",), ("pools.rented", "pools.accelerators")),
    (("pools.hosts", "pools.reserve_hosts", "pools.reserve_percent"), ("pools.accelerators",)),
    (("pools.reserve_hosts",), ("pools.reserve_percent",)),
    (("policy.reserve_hosts_per_pool",), ("policy.reserve_percent_per_pool",)),
    (
        ("pools.maintenance_hosts",),
        ("pools.owned.resale_usd_per_host", "pools.owned.end_of_life", "pools.rented.lease_end"),
    ),
    (("pools.rented.price_book",), ("pools.rented.usd_per_accelerator_hour", "pools.rented.price_as_of")),
    (
        ("offers.capex_usd_per_host",),
        (
            "offers.rent_usd_per_accelerator_hour", "offers.price_book", "offers.energy_included",
            "offers.max_accelerators", "offers.lot_accelerators", "offers.term_quarters", "offers.spot",
            "offers.max_share",
        ),
    ),
    (
        ("offers.residual_ratio",),
        (
            "offers.rent_usd_per_accelerator_hour", "offers.price_book", "offers.energy_included",
            "offers.max_accelerators", "offers.lot_accelerators", "offers.term_quarters", "offers.spot",
            "offers.max_share",
        ),
    ),
    (("offers.price_book",), ("offers.rent_usd_per_accelerator_hour", "offers.price_as_of")),
    (("finance.income_tax.write_off_quarters",), ("finance.income_tax.write_off_by_year",)),
    (("offers.max_hosts", "offers.lot_hosts"), ("offers.max_accelerators", "offers.lot_accelerators")),
    (("offers.term_quarters",), ("offers.spot", "offers.max_share")),
    (
        ("services.engines",),
        (
            "services.model", "services.techniques", "services.variants", "services.quality_floor",
            "services.traffic", "services.framework_version", "services.search", "services.slo.goodput_ratio",
            "services.slo.ttft_p50_ms", "services.slo.ttft_p90_ms", "services.slo.ttft_p95_ms",
            "services.slo.ttft_p99_ms", "services.slo.tpot_p50_ms", "services.slo.tpot_p90_ms",
            "services.slo.tpot_p95_ms", "services.slo.tpot_p99_ms",
        ),
    ),
    (("services.demand",), ("services.offline", "services.follows")),
    (("services.offline",), ("services.follows",)),
    (("services.follows",), ("services.demand_by_slice", "services.growth")),
    (("day_shapes.by_slice",), ("day_shapes.by_region", "day_shapes.by_local_hour")),
    (("day_shapes.by_region",), ("day_shapes.by_local_hour",)),
    (
        ("services.workload.classes",),
        (
            "services.workload.input_tokens", "services.workload.output_tokens",
            "services.workload.context_tokens", "services.workload.lengths",
        ),
    ),
    (("services.network_latency_ms",), ("services.outside_ms.network",)),
    (
        ("services.follows.ttft_share",),
        (
            "services.slo.ttft_p50_ms", "services.slo.ttft_p90_ms", "services.slo.ttft_p95_ms",
            "services.slo.ttft_p99_ms",
        ),
    ),
    (("services.follows.ttft_share",), ("services.slo.ttft_ms",)),
)  # fmt: skip
"""Keys, with those below them, that the reader refuses in one item; a test holds it to each."""


@cache
def documented_keys() -> tuple[str, ...]:
    """Return every key of the reference, parents first."""
    schema = FleetSpec.model_json_schema()
    return tuple(dict.fromkeys(_keys(schema, schema, "")))


def _keys(schema: Mapping[str, Any], node: Mapping[str, Any], above: str) -> Iterator[str]:
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    alternatives = [each for key in ("anyOf", "oneOf", "allOf") for each in node.get(key, ())]
    below = [node[key] for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)]
    for each in (*alternatives, *below, *node.get("patternProperties", {}).values()):
        yield from _keys(schema, each, above)
    for key, value in node.get("properties", {}).items():
        yield f"{above}{key}"
        yield from _keys(schema, value, f"{above}{key}.")


def block_of(key: str) -> str | None:
    """Return the block with items that a key is one of, if it is."""
    return next((block for block in ITEMS if key.startswith(f"{block}.")), None)


@cache
def possible_pairs() -> frozenset[Pair]:
    """Return the pairs of keys that may go together."""
    apart = {
        frozenset(pair) for left, right in APART for pair in itertools.product(_below(left), _below(right))
    }
    return frozenset(map(frozenset, itertools.combinations(documented_keys(), 2))) - apart


def _below(roots: tuple[str, ...]) -> list[str]:
    """Return the documented keys that are one of these or below one."""
    return [key for key in documented_keys() if any(f"{key}.".startswith(f"{root}.") for root in roots)]


def keys_of(file: Mapping[str, Any]) -> set[str]:
    """Return the documented keys that a fleet file has."""
    return set(_used(file, ""))


def _used(node: object, above: str) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _used(each, above)
    elif isinstance(node, dict):
        for key, value in node.items():
            path = f"{above}.{key}" if above else str(key)
            if path in documented_keys():
                yield path
                for each in value.values() if path in BY_NAME else (value,):
                    yield from _used(each, path)


def pairs_of(file: Mapping[str, Any]) -> set[Pair]:
    """Return the pairs of documented keys that a fleet file has."""
    keys = sorted(keys_of(file))
    found = {
        frozenset((one, other))
        for one, other in itertools.combinations(keys, 2)
        if block_of(one) is None or block_of(one) != block_of(other)
    }
    for block in ITEMS:
        for item in _items(file, block):
            within = sorted(set(_used(item, block)))
            found |= {frozenset(pair) for pair in itertools.combinations(within, 2)}
    return found


def _items(file: Mapping[str, Any], block: str) -> list[Any]:
    node: Any = file
    for key in block.split("."):
        node = node.get(key, {}) if isinstance(node, dict) else {}
    return list(node.values()) if isinstance(node, dict) else node


@dataclass
class KeyCoverage:
    """Keys and pairs that were seen."""

    fleets: int = 0
    keys: set[str] = field(default_factory=set)
    pairs: set[Pair] = field(default_factory=set)

    def add(self, file: Mapping[str, Any]) -> None:
        """Count a fleet file."""
        self.fleets += 1
        self.keys |= keys_of(file)
        self.pairs |= pairs_of(file)

    @property
    def missing_keys(self) -> list[str]:
        """Documented keys that no fleet had."""
        return [key for key in documented_keys() if key not in self.keys]

    @property
    def missing_pairs(self) -> list[Pair]:
        """Pairs that may go together and that no fleet had."""
        return sorted(possible_pairs() - self.pairs, key=sorted)

    @property
    def pair_ratio(self) -> float:
        """Share of the possible pairs that were seen."""
        return len(possible_pairs() & self.pairs) / len(possible_pairs())

    def __str__(self) -> str:
        known = len(documented_keys())
        return (
            f"{known - len(self.missing_keys)} of {known} keys, "
            f"{100 * self.pair_ratio:.1f} % of {len(possible_pairs())} pairs that may go together"
        )
