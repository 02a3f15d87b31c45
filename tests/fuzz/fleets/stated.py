"""Demand in units, with growth and named shapes of the day; finance keys."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.fleets.made import ONE_REGION, Made

IN_UNITS = 0.4
"""Share of the demands that are quantities in another unit."""

GROWS = 0.5
"""Share of the services whose demand grows, among those that have one."""

SHAPED = 0.6
"""Share of the shapes of the day that have a name."""

UNITS: tuple[tuple[str, float], ...] = (("requests/s", 1), ("requests/min", 60), ("requests/h", 3600))
TOTALS: tuple[tuple[str, float], ...] = (
    ("requests/day", 1),
    ("requests/week", 7),
    ("requests/month", 365 / 12),
)

IN_COMMON = 0.5
"""Share of the keys of `service_defaults` that a fleet has, as far as they change nothing."""


FINANCED = 0.4
"""Share of the fleets that pay property tax, have a loan on purchases, or a lease that ends."""


def state_finance(made: Made) -> None:
    """Add property tax, a loan, the price of simplicity and ends of leases, with separate dice."""
    dice = made.dice_of("finance")
    added: dict[str, Any] = {}
    if made.allows("finance.property_tax_ratio_per_year") and dice.random() < FINANCED:
        added["property_tax_ratio_per_year"] = dice.choice((0.01, 0.025))
    annuity = made.file.get("finance", {}).get("method") == "annuity"
    if made.allows("finance.loan") and not annuity and dice.random() < FINANCED:
        loan = {"quarters": dice.choice((1, 4, 12)), "interest_rate": dice.choice((0, 0.05, 0.11))}
        added["loan"] = loan | ({"down_payment_ratio": 0.25} if dice.random() < FINANCED else {})
    rated = made.dice_of("currency")
    if made.allows("finance.currency") and rated.random() < FINANCED:
        rate = rated.choice((0.0067, 1.08))
        added["currency"] = {"code": "EUR", "usd_per_unit": rate, "as_of": "2026-11", "source": "a bank"}
    taxed = made.dice_of("income tax")
    if made.allows("finance.income_tax") and taxed.random() < FINANCED:
        tax = {"rate": taxed.choice((0.05, 0.25, 0.9))}
        tax |= taxed.choice(
            ({}, {"write_off_quarters": taxed.choice((1, 20))}, {"write_off_by_year": [0.5, 0, 0.5]})
        )
        added["income_tax"] = tax
    if added:
        made.file.setdefault("finance", {}).update(added)
    if made.allows("policy.simpler_percent") and dice.random() < FINANCED:
        made.file.setdefault("policy", {})["simpler_percent"] = dice.choice((0, 0.2, 3))
    state_home(made)
    for pool in made.file.get("pools", ()):
        able = made.quarters and "rented" in pool and "maintenance_hosts" not in pool
        if able and made.allows("pools.rented.lease_end") and dice.random() < FINANCED:
            pool["rented"]["lease_end"] = dice.choice(("2027Q3", "2027Q4", "2028Q3"))


def state_home(made: Made) -> None:
    """Let services pay to be served in their own region, with separate dice."""
    dice = made.dice_of("home")
    if made.allows("policy.home_percent") and dice.random() < FINANCED:
        made.file.setdefault("policy", {})["home_percent"] = dice.choice((0, 0.5, 5))
    for service in made.file["services"]:
        if made.allows("services.home_percent") and dice.random() < FINANCED:
            service["home_percent"] = dice.choice((0, 1, 8))


def state_leaders(made: Made) -> None:
    """Let some services follow a list of one or two, with separate dice."""
    dice = made.dice_of("leaders")
    for position, service in enumerate(made.file["services"]):
        follows = service.get("follows")
        if follows is None or "ttft_share" in follows or dice.random() > SHAPED:
            continue
        others = [
            each["name"]
            for each in made.file["services"][:position]
            if "offline" not in each and each["name"] != follows["service"]
        ]
        more = [{"service": dice.choice(others), "ratio": 0.5}] if others else []
        service["follows"] = [follows, *more]


def state_defaults(made: Made) -> None:
    """Move keys that all services share, or that have no effect, to `service_defaults`."""
    dice = made.dice_of("defaults")
    flat = dict.fromkeys(made.slices, 1.0)
    silent = {
        "precision": {"weights": "bf16", "kv": "bf16"},
        "demand_by_slice": flat,
        "growth": "0 %/quarter",
        "headroom": 0.0,
        "priority": 1,
        "runtimes": ["disaggregated", "aggregated"],
        "framework": "vllm",
        "hardware": list(made.parts),
        "serve_from": "any" if len(made.regions) == 1 else None,
    }
    defaults: dict[str, Any] = {}
    for key, harmless in silent.items():
        takers = [each for each in made.file["services"] if _takes(each, key)]
        said = [each[key] for each in takers if key in each]
        if not made.allows(f"service_defaults.{key}") or dice.random() > IN_COMMON or not takers:
            continue
        if len(said) == len(takers):
            defaults[key] = said[0]
            for each in takers:
                if each[key] == said[0] and dice.random() < IN_COMMON:
                    del each[key]
        elif not said and harmless and not any("_p" in str(each.get("slo", {})) for each in takers):
            defaults[key] = harmless
    if defaults and made.allows("service_defaults"):
        made.file["service_defaults"] = defaults


def _takes(service: dict[str, Any], key: str) -> bool:
    """Return whether a default of a key applies to a service without that key."""
    if key in ("demand_by_slice", "growth"):
        return "demand" in service
    return key != "precision" or "model" in service


def state_demand(made: Made) -> None:
    """State some of the demand in other ways, with separate dice."""
    dice = made.dice_of("stated")
    offset = made.allows("regions.utc_offset_hours") and made.regions != (ONE_REGION,)
    if offset and dice.random() < SHAPED:
        for region in made.file["regions"].values():
            region["utc_offset_hours"] = dice.choice((-8, -5.5, 0, 1, 9))
    else:
        offset = False
    if made.quarters and made.allows("horizon.first_slice_utc_hour") and dice.random() < SHAPED:
        made.file["horizon"]["first_slice_utc_hour"] = dice.choice((0, 6.5, 22))
    for service in made.file["services"]:
        if "follows" in service:
            continue
        _name_shape(made, service, dice, offset=offset)
        if made.allows("services.growth") and dice.random() < GROWS:
            _grow(made, service, dice)
        if dice.random() < IN_UNITS:
            unit, factor = dice.choice(UNITS)
            if "demand" in service:
                service["demand"] = _in_unit(service["demand"], unit, factor)
            else:
                unit, factor = dice.choice(TOTALS)
                offline = service["offline"]
                offline["requests_per_day"] = _in_unit(offline["requests_per_day"], unit, factor)


def _in_unit(node: Any, unit: str, factor: float) -> Any:
    if isinstance(node, dict):
        return {key: _in_unit(each, unit, factor) for key, each in node.items()}
    return f"{node * factor:.9g} {unit}"


def _grow(made: Made, service: dict[str, Any], dice: random.Random) -> None:
    """Let demand grow, from a figure of an earlier quarter where there are several."""
    text = dice.choice(("8 %/quarter", "-3 % per month", "25 %/year"))
    growth: Any = text if dice.random() < 0.6 else {made.regions[0]: text}
    service["growth"] = growth
    key, node = ("demand", service) if "demand" in service else ("requests_per_day", service["offline"])
    if len(made.periods) > 1 and dice.random() < 0.5:
        node[key] = _without_last(node[key], made.periods[-1])


def _without_last(node: Any, period: str) -> Any:
    if not isinstance(node, dict):
        return node
    return {key: _without_last(each, period) for key, each in node.items() if key != period}


def _name_shape(made: Made, service: dict[str, Any], dice: random.Random, *, offset: bool) -> None:
    """Give the service's shape of the day a name, or one by local hour where the day has no slices."""
    ratios = service.get("demand_by_slice")
    names = str(service.get("demand", service.get("offline")))
    by_slice = any(f"'{name}'" in names for name in made.slices)
    if dice.random() >= SHAPED or by_slice or not made.allows("services.demand_by_slice"):
        return
    forms = {"by_slice": ratios} if ratios else {}
    if ratios:
        forms["by_region"] = dict.fromkeys(made.regions, ratios)
    if offset:
        forms["by_local_hour"] = {"0": 0.4, "7.5": 1.0, str(dice.choice((18, 21.25))): 0.7}
    able = [form for form in forms if made.allows(f"day_shapes.{form}")]
    if able and made.allows("day_shapes"):
        form = dice.choice(able)
        shapes = made.file.setdefault("day_shapes", {})
        name = f"shape-{len(shapes)}"
        shapes[name] = {form: forms[form]}
        service["demand_by_slice"] = name
