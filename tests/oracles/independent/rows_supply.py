"""Rows of what is bought, rented and retired, of the units of pools, and of budgets."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.oracles.independent import money
from tests.oracles.independent.facts import Offer
from tests.oracles.independent.formulation import Formulation
from tests.oracles.independent.pools import Pool
from tests.oracles.independent.program import Terms


def add(model: Formulation) -> None:
    """Add supply to a formulation."""
    for p, pool in enumerate(model.pools):
        _orders(model, p, pool)
        _retirement(model, p, pool)
    _most_of_offers(model)


def usable_units(model: Formulation, p: int, period: int) -> tuple[int, Terms]:
    """Return the units of a pool in service in a period: a constant and columns."""
    constant, terms = installed_units(model, p, period)
    stock = model.pools[p].stock
    return constant - (stock.out_of_service[period] if stock else 0), terms


def installed_units(model: Formulation, p: int, period: int) -> tuple[int, Terms]:
    """Return the units of a pool in a period: a constant and columns."""
    pool = model.pools[p]
    terms: Terms = {}
    for offer, ordered, key in _order_keys(model, p, pool):
        if money.stands(offer, ordered, period):
            terms[key] = 1.0
    for q in range(period + 1):
        if ("retired", p, q) in model.program.index:
            terms["retired", p, q] = -1.0
    return (pool.stock.units if pool.stock else 0), terms


def _order_keys(model: Formulation, p: int, pool: Pool) -> Iterator[tuple[Offer, int, tuple[object, ...]]]:
    for offer in pool.offers:
        for q in range(len(model.facts.periods)):
            if ("order", offer.name, p, q) in model.program.index:
                yield offer, q, ("order", offer.name, p, q)


def _most_units(model: Formulation, p: int, pool: Pool) -> int:
    """Units beyond which nothing more would run in a pool."""
    spots = {
        (s, e, p, 0) for s, service in enumerate(model.facts.services) for e in range(len(service.engines))
    }
    sizes = [
        model.most_replicas(spot) * math.ceil(model.engine(spot).size / pool.unit)
        for spot in spots
        if model.engine(spot).part == pool.part
    ]
    kept = pool.reserve + math.ceil(sum(sizes) * pool.reserve_percent / 100)
    return sum(sizes) + kept + (max(pool.stock.out_of_service) if pool.stock else 0)


def _orders(model: Formulation, p: int, pool: Pool) -> None:
    program, periods = model.program, len(model.facts.periods)
    useful = _most_units(model, p, pool)
    for offer in pool.offers:
        lots = math.ceil(useful / offer.lot)
        for q in range(periods):
            arrives = q + offer.lead < periods if offer.owned else q >= offer.lead
            if not arrives or offer.most[q] == 0:
                continue
            key = ("order", offer.name, p, q)
            program.column(key, upper=lots * offer.lot, whole=True)
            model.usd[key] = money.offer_usd(model.facts, offer, pool.region, q)
            if offer.lot > 1:
                program.column(("lots", *key), upper=lots, whole=True)
                program.row(f"lots{key}", {key: 1.0, ("lots", *key): -offer.lot}, 0.0, 0.0)


def _most_of_offers(model: Formulation) -> None:
    """Limit the units ordered (bought) or held (rented) in a period, over all regions."""
    for offer in model.facts.offers:
        for q, most in enumerate(offer.most):
            if most is None:
                continue
            terms: Terms = {}
            for p, pool in enumerate(model.pools):
                for other, ordered, key in _order_keys(model, p, pool):
                    held = ordered == q if offer.owned else money.stands(offer, ordered, q)
                    if other.name == offer.name and held:
                        terms[key] = 1.0
            model.program.at_most(f"most[{offer.name},{q}]", terms, most)


def _retirement(model: Formulation, p: int, pool: Pool) -> None:
    stock, facts = pool.stock, model.facts
    if stock is None:
        return
    for q in range(len(facts.periods)):
        model.fixed += money.stock_usd(facts, stock, q).times(stock.units)
    if stock.owned is None or not stock.units:
        return
    end = stock.gone_from
    for q in range(len(facts.periods)):
        by_choice = stock.resale_usd is not None and (end is None or q < end)
        if by_choice or q == end:
            key = ("retired", p, q)
            model.program.column(key, upper=stock.units, whole=True)
            model.usd[key] = money.retired_usd(facts, stock, q)
    leaving: Terms = {
        ("retired", p, q): 1.0 for q in range(len(facts.periods)) if ("retired", p, q) in model.program.index
    }
    if leaving:
        least = stock.units if end is not None else 0
        model.program.row(f"retired[{pool.name}]", leaving, least, stock.units)


def add_budgets(model: Formulation) -> None:
    """Add the limits on spending; every cost must be known by now."""
    facts = model.facts
    for n, (periods, limit) in enumerate(facts.capex_limits):
        terms: Terms = {}
        for p, pool in enumerate(model.pools):
            for offer, ordered, key in _order_keys(model, p, pool):
                if offer.owned and ordered in periods:
                    terms[key] = offer.owned.capex_usd
        model.program.at_most(f"capex[{n}]", terms, limit)
    if facts.opex_limit is not None:
        _limit(model, "opex", {key: usd.operating for key, usd in model.usd.items()}, model.fixed.operating,
               facts.opex_limit)  # fmt: skip
    if facts.tco_limit is not None:
        _limit(
            model,
            "tco",
            {key: usd.total for key, usd in model.usd.items()},
            model.fixed.total,
            facts.tco_limit,
        )


def _limit(model: Formulation, name: str, terms: Terms, fixed: float, limit: float) -> None:
    model.program.at_most(name, terms, limit - fixed)
