"""Laws: changes of a fleet file with a known effect on the cost.

Each law takes a fleet file (the mapping and the tables beside it) and its plan, and returns the changed one
with what must hold between the two, or None where it says nothing of that fleet.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fleetplan.planner.plan import Plan
from tests.fuzz.fleets.made import ONE_PERIOD
from tests.fuzz.law import Law, LawMaker, Tables

NEXT_PERIOD = {"2027Q1": "2027Q2", "2027-01": "2027-02", "FY27-Q4": "FY28-Q1"}
"""What follows the one period of a fleet."""


def laws_of(file: Mapping[str, Any], tables: Tables, plan: Plan, dice: random.Random) -> Iterator[Law]:
    """Yield every law that says something of a fleet, in a random order."""
    makers = list(LAWS)
    dice.shuffle(makers)
    for make in makers:
        found = make(copy.deepcopy(dict(file)), dict(tables), plan, dice)
        if found is not None:
            yield replace(found, law=make.__name__.replace("_", " "))


def _regrets(file: Mapping[str, Any]) -> bool:
    """Return whether the fleet minimises regret, a difference of costs."""
    return bool(file.get("uncertainty", {}).get("objective") == "least-regret")


def _uncertain(file: Mapping[str, Any]) -> bool:
    return "uncertainty" in file or "'low'" in str([each.get("demand", each) for each in file["services"]])


def dropped_limit(
    file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random
) -> Law | None:
    """Without a limit nothing costs more."""
    if _regrets(file):
        return None
    capex_by_period = isinstance(file.get("budget", {}).get("capex_usd"), dict)
    spots: list[tuple[dict[str, Any], str]] = []
    spots += [(file.get("budget", {}), key) for key in ("capex_usd", "opex_usd", "tco_usd")]
    policy = file.get("policy", {})
    spots += [(policy, key) for key in (
        "reserve_hosts_per_pool", "reserve_percent_per_pool", "max_configs_per_service_region",
        "max_share_per_pool",
        "survive_region_loss", "transition_usd_per_accelerator", "tidal",
    )]  # fmt: skip
    spots += [(region, "power_kw") for region in file.get("regions", {}).values()]
    for offer in file.get("offers", ()):
        spots += [(offer, key) for key in ("max_hosts", "max_accelerators", "lot_hosts", "lot_accelerators")]
        spots += [] if capex_by_period else [(offer, "lead_time_quarters")]
    spots += [(pool, "maintenance_hosts") for pool in file.get("pools", ())]
    # In place of what a service states its default would hold, not nothing.
    free = {"runtimes", "hardware", "quality_floor"} - set(file.get("service_defaults", {}))
    for service in file["services"]:
        # Hardware that nobody sells has tables too: without it a version may be that of no part at all.
        spots += [
            (service, key) for key in sorted(free - {"hardware"} if "framework_version" in service else free)
        ]
        spots += [(service, "slo")] if not _shares_limits(file) and "traffic" not in service else []
    there = [(node, key) for node, key in spots if key in node]
    if not there:
        return None
    node, key = dice.choice(there)
    del node[key]
    name = f"{node['name']}.{key}" if "name" in node else key
    return Law(f"without {name}", file, tables)


def _shares_limits(file: Mapping[str, Any]) -> bool:
    return any("ttft_share" in leader for each in file["services"] for leader in _leaders(each))


def only_what_is_used(
    file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random
) -> Law | None:
    """A fleet with nothing but the offers, or the hardware of services, that a plan uses costs the same."""
    if _regrets(file) or "survive_region_loss" in file.get("policy", {}):
        return None
    # The terms of all offers say how far such a horizon goes.
    if file.get("horizon", {}).get("extend_quarters") == "terms":
        return None
    used = {row.offer for row in plan.purchases}
    kept = [offer for offer in file.get("offers", ()) if offer["name"] in used]
    if len(kept) < len(file.get("offers", ())) and (kept or file.get("pools")):
        if kept:
            file["offers"] = kept
        else:
            del file["offers"]
        return Law("only the offers that are used", file, tables, at_least=True)
    for service in file["services"]:
        parts = sorted({row.hardware for row in plan.placements if row.service == service["name"]})
        whole = not any(row.service == service["name"] for row in plan.unmet)
        # A version of the framework that none of the parts was measured under is refused.
        if parts and whole and "framework_version" not in service:
            service["hardware"] = parts
    return Law("only the hardware that is used", file, tables, at_least=True)


def scaled_prices(
    file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random
) -> Law | None:
    """With every price and budget times a factor, so is the cost."""
    factor = dice.choice((0.5, 3.0))
    return Law(f"prices x {factor:g}", _scaled(file, factor), tables, factor, at_least=True, only_usd=True)


def _is_money(key: str) -> bool:
    """Return whether the figures of a key are amounts or prices; exchange rates are not."""
    return "usd" in key and key != "usd_per_unit"


def _scaled(node: Any, factor: float, *, inside: bool = False) -> Any:
    if isinstance(node, dict):
        return {key: _scaled(each, factor, inside=inside or _is_money(key)) for key, each in node.items()}
    if isinstance(node, list):
        return [_scaled(each, factor, inside=inside) for each in node]
    if not inside or isinstance(node, bool):
        return node
    if isinstance(node, str):
        number, _, unit = node.partition(" ")
        return f"{float(number) * factor!r} {unit}"
    return node * factor if isinstance(node, int | float) else node


def doubled(file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random) -> Law | None:
    """Twice the demand with twice of every supply and limit costs twice as much at most."""
    if _regrets(file):
        return None
    for pool in file.get("pools", ()):
        for key in ("hosts", "accelerators", "maintenance_hosts"):
            _double(pool, key)
    for offer in file.get("offers", ()):
        for key in ("max_hosts", "max_accelerators"):
            _double(offer, key)
    for region in file.get("regions", {}).values():
        _double(region, "power_kw")
    for key in ("capex_usd", "opex_usd", "tco_usd"):
        _double(file.get("budget", {}), key)
    for link in file.get("kv_links", ()):
        _double(link, "gb_per_s")
    for service in file["services"]:
        _double(service, "demand")
        _double(service.get("offline", {}), "requests_per_day")
    return Law("twice of everything", file, tables, 2.0)


def _double(node: dict[str, Any], key: str) -> None:
    if key in node:
        node[key] = _scaled(node[key], 2, inside=True)


def renamed(file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random) -> Law | None:
    """Names and order change no cost."""
    names = [f"s{n}" for n in range(9)] + [f"p{n}" for n in range(9)] + [f"r{n}" for n in range(9)]
    names += [f"o{n}" for n in range(9)] + ["ca", "cb", "cc", "gpu-a", "gpu-b", "gpu-c"]
    new = dict(zip(names, dice.sample([f"x{n}" for n in range(len(names))], len(names)), strict=True))
    changed = _with_names(file, new)
    for block in ("services", "pools", "offers", "kv_links"):
        if block in changed:
            dice.shuffle(changed[block])
    for block in ("regions", "hardware"):
        if block in changed:
            changed[block] = dict(dice.sample(list(changed[block].items()), len(changed[block])))
    texts = {name: _table_with_names(text, new) for name, text in tables.items()}
    return Law("other names and another order", changed, texts, at_least=True)


def _with_names(node: Any, new: Mapping[str, str]) -> Any:
    if isinstance(node, dict):
        return {new.get(key, key): _with_names(each, new) for key, each in node.items()}
    if isinstance(node, list):
        return [_with_names(each, new) for each in node]
    return new.get(node, node) if isinstance(node, str) else node


def _table_with_names(text: str, new: Mapping[str, str]) -> str:
    if text.startswith("version"):
        return "\n".join(
            line if not line.startswith("- hardware: ") else f"- hardware: {new.get(line[12:], line[12:])}"
            for line in text.split("\n")
        )
    if not text.startswith("phase,"):
        return text
    return "\n".join(",".join(new.get(cell, cell) for cell in line.split(",")) for line in text.split("\n"))


def joined_services(
    file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random
) -> Law | None:
    """Two services with half of the demand of one cost as much at least: they share no replica."""
    followed = {leader["service"] for each in file["services"] for leader in _leaders(each)}
    several = [each for each in file["services"] if "demand" in each and each["name"] not in followed]
    if _regrets(file) or not several or "max_configs_per_service_region" in file.get("policy", {}):
        return None
    if _ratios_by_service(file):
        return None
    one = dice.choice(several)
    one["demand"] = _scaled(one["demand"], 0.5, inside=True)
    twin = copy.deepcopy(one) | {"name": "twin"}
    file["services"].append(twin)
    kept = file.get("policy", {}).get("survive_region_loss", [])
    if one["name"] in kept:
        kept.append("twin")
    return Law(f"{one['name']} as two services", file, tables, at_most=False, at_least=True)


def _ratios_by_service(file: Mapping[str, Any]) -> bool:
    scenarios = file.get("uncertainty", {}).get("scenarios", ())
    return any(isinstance(each.get("demand_ratio"), dict) for each in scenarios)


def two_classes(file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random) -> Law | None:
    """A class as two equal classes of half the demand costs the same."""
    able = [
        each
        for each in file["services"]
        if "engines" in each and "demand" in each and "workload" not in each
        and "ca" in tables[each["engines"]] and not _followed(file, each["name"])
    ]  # fmt: skip
    if _regrets(file) or not able:
        return None
    service = dice.choice(able)
    service["demand"] = _split_class(service["demand"])
    header, *rows = tables[service["engines"]].splitlines()
    twins = [",".join("cz" if cell == "ca" else cell for cell in row.split(",")) for row in rows]
    added = [twin for twin, row in zip(twins, rows, strict=True) if twin != row]
    tables[service["engines"]] = "\n".join((header, *rows, *added)) + "\n"
    return Law(f"a class of {service['name']} as two", file, tables, at_least=True)


def _followed(file: Mapping[str, Any], name: str) -> bool:
    return any(leader["service"] == name for each in file["services"] for leader in _leaders(each))


def _leaders(service: Mapping[str, Any]) -> list[Any]:
    """Return the services that a service follows."""
    follows = service.get("follows", [])
    return follows if isinstance(follows, list) else [follows]


def _split_class(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if "ca" in node:
        half = _scaled(node["ca"], 0.5, inside=True)
        return node | {"ca": half, "cz": half}
    return {key: _split_class(each) for key, each in node.items()}


def repeated_period(
    file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random
) -> Law | None:
    """A quarter planned twice, with rent alone, costs twice as much at most."""
    periods = file.get("horizon", {}).get("periods", [ONE_PERIOD])
    owns = any("owned" in pool or "maintenance_hosts" in pool for pool in file.get("pools", ()))
    buys = any("capex_usd_per_host" in offer for offer in file.get("offers", ()))
    coupled = _regrets(file) or "discount_rate" in file.get("finance", {})
    coupled |= any("growth" in each for each in (*file["services"], file.get("service_defaults", {})))
    if len(periods) != 1 or periods == [ONE_PERIOD] or owns or buys or coupled:
        return None
    # What arrives later serves in the second quarter alone.
    late = any(
        any(offer.get(f"lead_time_{unit}") or f"term_{unit}" in offer for unit in ("quarters", "months"))
        for offer in file.get("offers", ())
    )
    by_name = str(periods[0]) in str({key: block for key, block in file.items() if key != "horizon"})
    if by_name or plan.extension_periods:
        return None
    file["horizon"]["periods"] = [periods[0], NEXT_PERIOD[periods[0]]]
    for key in ("opex_usd", "tco_usd"):
        _double(file.get("budget", {}), key)
    starts = "transition_usd_per_accelerator" in file.get("policy", {})
    same = not late and not starts
    return Law("the quarter twice", file, tables, 2.0, at_least=same, means_stay=True)


def in_force(file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random) -> Law | None:
    """With the plan itself in force nothing starts, and nothing costs more."""
    # Of uncertain demand one scenario is in force, and what others run starts.
    if _uncertain(file):
        return None
    return Law("the plan itself in force", file, tables, baseline=plan)


def own_budget(file: dict[str, Any], tables: dict[str, str], plan: Plan, dice: random.Random) -> Law | None:
    """A budget of what the plan costs leaves it a plan."""
    # An extended horizon has budgets by period alone.
    if plan.demand_scenarios or plan.objective_usd < 0 or plan.extension_periods:
        return None
    file["budget"] = file.get("budget", {}) | {"tco_usd": plan.objective_usd}
    return Law("its own cost as budget", file, tables)


LAWS: tuple[LawMaker, ...] = (
    dropped_limit,
    only_what_is_used,
    scaled_prices,
    doubled,
    renamed,
    joined_services,
    two_classes,
    repeated_period,
    in_force,
    own_budget,
)
"""Every law."""
