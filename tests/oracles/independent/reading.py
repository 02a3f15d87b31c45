"""Read a fleet file into facts, by docs/fleet-yaml.md; refuse every key that the formulation leaves out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from tests.oracles.independent.facts import WHOLE_DAY_HOURS, Facts, Moment, Part, Place, Policy, Service
from tests.oracles.independent.nodes import Node, by_period, take
from tests.oracles.independent.reading_services import Frame, read_services
from tests.oracles.independent.reading_supply import Periods, read_offer, read_stock

FILE_KEYS = (
    "version", "name", "horizon", "regions", "hardware", "pools", "offers", "services", "policy", "budget",
    "finance", "uncertainty", "objective",
)  # fmt: skip
ONE_PERIOD = "now"
ONE_REGION = "default"
ONE_SCENARIO = ""


def read_facts(path: Path) -> Facts:
    """Read a fleet file.

    Raises
    ------
    NotCoveredError
        If the file uses a key that the formulation leaves out.
    """
    file = take(yaml.safe_load(path.read_text(encoding="utf-8")), *FILE_KEYS)
    horizon = take(
        file.get("horizon", {"periods": [ONE_PERIOD]}), "periods", "period", "fiscal_year", "slices"
    )
    periods = tuple(str(name) for name in horizon["periods"])
    fiscal = take(horizon.get("fiscal_year", {}), "first_month", "named_after")
    months = 1 if horizon.get("period") == "month" or _by_month(periods) else 3
    dated = Periods(periods, months, fiscal.get("first_month", 1))
    scenarios = _scenarios(file.get("uncertainty"))
    moments = _moments(horizon, scenarios, len(periods))
    regions = {name: node or {} for name, node in file.get("regions", {ONE_REGION: {}}).items()}
    places = {name: _place(name, node, periods) for name, node in regions.items()}
    parts = {name: _part(name, node) for name, node in file.get("hardware", {}).items()}
    ways = {key: _ways(regions, key) for key in ("round_trip_ms", "network_usd_per_gb")}
    finance = take(file.get("finance", {}), "method", "discount_rate", "per_host_usd_per_quarter")
    budget = take(file.get("budget", {}), "capex_usd", "opex_usd", "tco_usd")
    frame = Frame(periods, moments, list(places), parts, scenarios, ways["round_trip_ms"])
    services = read_services(file["services"], path.parent, frame)
    if not any("demand_ratio" in node for node in scenarios.values()) and _alike(services):
        # Scenarios of the same demand have no effect: a plan for each would be a lottery.
        name, node = next(iter(scenarios.items()))
        scenarios = {name: {**node, "probability": 1.0}}
        moments = _moments(horizon, scenarios, len(periods))
        frame = replace(frame, moments=moments, scenarios=scenarios)
        services = read_services(file["services"], path.parent, frame)
    return Facts(
        periods=periods,
        months=months,
        moments=moments,
        places=places,
        parts=parts,
        stocks=tuple(read_stock(node, dated, list(places), parts) for node in file.get("pools", [])),
        offers=tuple(read_offer(node, dated, list(places), parts) for node in file.get("offers", [])),
        services=services,
        policy=_policy(file.get("policy", {})),
        capex_limits=_capex_limits(budget.get("capex_usd"), periods),
        opex_limit=budget.get("opex_usd"),
        tco_limit=budget.get("tco_usd"),
        annuity=finance.get("method", "straight-line") == "annuity",
        discount_rate=finance.get("discount_rate", 0.0),
        host_usd=take(finance.get("per_host_usd_per_quarter", {}), "network", "software", "staff"),
        usd_per_gb=ways["network_usd_per_gb"],
        round_trip_ms=ways["round_trip_ms"],
        objective=file.get("objective", "tco"),
    )


def _by_month(periods: tuple[str, ...]) -> bool:
    return all("-" in name and not name.startswith("FY") for name in periods)


def _scenarios(node: Node | None) -> dict[str, Node]:
    """Scenarios by name; one without a name where demand is certain."""
    if node is None:
        return {ONE_SCENARIO: {"probability": 1.0}}
    take(node, "scenarios", "objective")
    if node.get("objective", "expected-cost") != "expected-cost":
        take(node, "scenarios")
    return {
        row["name"]: take(row, "name", "probability", "estimate", "demand_ratio") for row in node["scenarios"]
    }


def _alike(services: Sequence[Service]) -> bool:
    """Return whether every demand is the same in all scenarios."""
    seen: dict[tuple[str, str, int, str, str], set[float]] = {}
    for service in services:
        for (region, moment, name), rate in service.demand.items():
            seen.setdefault((service.name, region, moment.period, moment.slice, name), set()).add(rate)
    return all(len(rates) == 1 for rates in seen.values())


def _moments(horizon: Node, scenarios: Mapping[str, Node], n_periods: int) -> tuple[Moment, ...]:
    slices = [(row["name"], float(row["hours"])) for row in horizon.get("slices", [])]
    return tuple(
        Moment(q, name, scenario, hours, float(node["probability"]))
        for q, (scenario, node), (name, hours) in itertools.product(
            range(n_periods), scenarios.items(), slices or [("", WHOLE_DAY_HOURS)]
        )
    )


def _place(name: str, node: Node, periods: tuple[str, ...]) -> Place:
    take(
        node, "power_kw", "pue", "energy_usd_per_kwh", "hosting_usd_per_kw_month", "round_trip_ms",
        "network_usd_per_gb",
    )  # fmt: skip
    energy = by_period(node.get("energy_usd_per_kwh"), periods)
    return Place(
        name=name,
        power_kw=by_period(node.get("power_kw"), periods),
        pue=node.get("pue", 1.0),
        energy_usd=tuple(price or 0.0 for price in energy),
        hosting_usd=node.get("hosting_usd_per_kw_month", 0.0),
    )


def _part(name: str, node: Node) -> Part:
    take(node, "accelerators_per_host", "all_in_w", "idle_w")
    full = node.get("all_in_w", 0.0)
    # docs/finance.md: 15 % of full load where the file does not say.
    return Part(name, node.get("accelerators_per_host", 1), full, node.get("idle_w", round(0.15 * full, 3)))


def _ways(regions: Mapping[str, Node], key: str) -> dict[frozenset[str], float]:
    """Figures between two regions; one that is given holds in both directions."""
    return {
        frozenset((here, there)): float(value)
        for here, node in regions.items()
        for there, value in node.get(key, {}).items()
    }


def _policy(node: Node) -> Policy:
    take(
        node, "reserve_hosts_per_pool", "reserve_percent_per_pool", "max_configs_per_service_region",
        "max_share_per_pool",
        "transition_usd_per_accelerator", "tidal", "kv_transfer", "kv_pairs", "unmet",
    )  # fmt: skip
    tidal = take(node.get("tidal", {}), "usd_per_accelerator", "max_share_per_pool")
    pairs = node.get("kv_pairs", "same-vendor")
    reach = node.get("kv_transfer", "same-region")
    if reach not in ("same-pool", "same-region"):
        take(node, "kv_transfer over links")
    return Policy(
        reserve=node.get("reserve_hosts_per_pool", 0),
        reserve_percent=node.get("reserve_percent_per_pool", 0.0),
        max_configs=node.get("max_configs_per_service_region"),
        max_share=node.get("max_share_per_pool"),
        transition_usd=node.get("transition_usd_per_accelerator", 0.0),
        tidal_usd=tidal.get("usd_per_accelerator", 0.0),
        tidal_share=tidal.get("max_share_per_pool", 1.0),
        kv_same_pool=reach == "same-pool",
        # Parts without a vendor, which the others are refused with, go with each other.
        kv_pairs=None
        if isinstance(pairs, str)
        else frozenset((pair["prefill"], pair["decode"]) for pair in pairs),
        unmet=node.get("unmet", "forbid") == "penalise",
    )


def _capex_limits(node: Any, periods: tuple[str, ...]) -> tuple[tuple[tuple[int, ...], float], ...]:
    if node is None:
        return ()
    if isinstance(node, Mapping):
        return tuple(((periods.index(name),), float(usd)) for name, usd in node.items())
    return ((tuple(range(len(periods))), float(node)),)
