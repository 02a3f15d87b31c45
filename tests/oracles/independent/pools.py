"""Pools of supply: existing hardware with the offers that join it, and new pools of other offers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.oracles.independent.facts import Facts, Offer, Stock


@dataclass(frozen=True)
class Pool:
    """Accelerators of one kind and region with common packing, reserve and prices."""

    name: str
    region: str
    part: str
    unit: int
    stock: Stock | None
    offers: tuple[Offer, ...]
    reserve: int
    reserve_percent: float
    energy_included: bool
    max_share: float | None


def pools_of(facts: Facts) -> list[Pool]:
    """Return the pools; an offer may join every pool of its region that is packed and billed like it."""
    joined: set[tuple[str, str]] = set()
    pools = []
    for stock in facts.stocks:
        offers = [
            offer
            for offer in facts.offers
            if stock.region in offer.regions
            and offer.max_share is None
            and (offer.part, offer.unit, offer.energy_included)
            == (stock.part, stock.unit, stock.energy_included)
        ]
        joined |= {(offer.name, stock.region) for offer in offers}
        pools.append(
            Pool(
                stock.name, stock.region, stock.part, stock.unit, stock, tuple(offers),
                *_reserve(facts, stock), stock.energy_included, None,
            )
        )  # fmt: skip
    return pools + list(_new_pools(facts, joined))


def _of_policy(facts: Facts) -> tuple[int, float]:
    return facts.policy.reserve, facts.policy.reserve_percent


def _reserve(facts: Facts, stock: Stock) -> tuple[int, float]:
    """Return hosts that stay free, and per cent of those in use: the pool's own reserve, or the policy's."""
    if stock.reserve is None and stock.reserve_percent is None:
        return _of_policy(facts)
    return stock.reserve or 0, stock.reserve_percent or 0.0


def _new_pools(facts: Facts, joined: set[tuple[str, str]]) -> Iterator[Pool]:
    """Return the pools of offers that join none; equal offers form one pool in a region."""
    groups: dict[tuple[object, ...], list[Offer]] = {}
    for offer in facts.offers:
        for region in offer.regions:
            if (offer.name, region) not in joined:
                alike = (
                    region,
                    offer.part,
                    offer.unit,
                    offer.per_accelerator,
                    offer.energy_included,
                    offer.max_share,
                )
                groups.setdefault(alike, []).append(offer)
    for (place, *_), offers in groups.items():
        first = offers[0]
        yield Pool(
            f"{place}/{'+'.join(offer.name for offer in offers)}", str(place), first.part, first.unit, None,
            tuple(offers), *((0, 0.0) if first.per_accelerator else _of_policy(facts)), first.energy_included,
            first.max_share,
        )  # fmt: skip


@cache
def packings(unit: int, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return every way to fill a unit that no other one contains: how many replicas of each size."""
    ways = [way for way in _fillings(unit, sizes) if any(way)]
    return tuple(
        way
        for way in ways
        if not any(way != other and all(a <= b for a, b in zip(way, other, strict=True)) for other in ways)
    )


def _fillings(room: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not sizes:
        yield ()
        return
    for count in range(room // sizes[0] + 1):
        for rest in _fillings(room - count * sizes[0], sizes[1:]):
            yield (count, *rest)
