"""Rules of random fleets: policy, links, budget, finance and uncertainty."""

from __future__ import annotations

from typing import Any

from tests.fuzz.fleets.made import Made


def policy(made: Made) -> dict[str, Any]:
    """Rules for every service and pool."""
    made.begin_block()
    node: dict[str, Any] = {}
    if made.wants("policy.reserve_hosts_per_pool"):
        node["reserve_hosts_per_pool"] = made.dice.choice((1, 1, 2))
    if made.wants("policy.max_configs_per_service_region"):
        node["max_configs_per_service_region"] = made.dice.choice((1, 2, 3))
    if made.wants("policy.max_share_per_pool"):
        node["max_share_per_pool"] = made.figure(0.4, 0.95)
    if made.wants("policy.transition_usd_per_accelerator"):
        node["transition_usd_per_accelerator"] = made.figure(50, 3000, 0)
    if made.wants("policy.tidal", max(made.density, 0.3) if made.slices else made.density / 2):
        tidal: dict[str, Any] = {}
        if made.chance(0.7):
            tidal["usd_per_accelerator"] = made.figure(0.5, 20)
        if not tidal or made.wants("policy.tidal.max_share_per_pool", 0.5):
            tidal["max_share_per_pool"] = made.figure(0.0, 0.5)
        node["tidal"] = tidal
    _kv(made, node)
    names = [service["name"] for service in made.file["services"]]
    if len(made.regions) > 1 and made.wants("policy.survive_region_loss"):
        node["survive_region_loss"] = [name for name in names if made.chance(0.6)] or names[:1]
    if made.wants("policy.unmet", 0.4):
        node["unmet"] = made.dice.choice(("penalise", "penalise", "penalise", "forbid"))
    return node


def _kv(made: Made, node: dict[str, Any]) -> None:
    if any(_apart(made, link) for link in made.file.get("kv_links", ())):
        node["kv_transfer"] = "cross-region"
    elif made.wants("policy.kv_transfer"):
        node["kv_transfer"] = made.dice.choice(("same-pool", "same-region"))
    if made.wants("policy.kv_pairs"):
        pairs = [(one, other) for one in made.parts for other in made.parts if made.chance(0.5)]
        listed = [{"prefill": one, "decode": other} for one, other in pairs]
        node["kv_pairs"] = made.dice.choice((listed or "any", "any", "same-vendor"))


def kv_links(made: Made) -> list[dict[str, Any]]:
    """Links between regions, or within them, by region or by pool."""
    made.begin_block()
    dice = made.dice
    names = [*made.regions, *(pool["name"] for pool in made.file.get("pools", ()))]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(dice.choice((1, 1, 2))):
        one, other = dice.choice(names), dice.choice(names)
        link: dict[str, Any] = {"prefill": one, "decode": other, "gb_per_s": made.figure(0.1, 50)}
        if _apart(made, link) and made.wants("kv_links.added_ms", 0.8):
            link["added_ms"] = made.figure(1, 40, 1)
        found[one, other] = link
    return list(found.values())


def _apart(made: Made, link: dict[str, Any]) -> bool:
    places = {name: name for name in made.regions}
    places |= {pool["name"]: pool.get("region", made.regions[0]) for pool in made.file.get("pools", ())}
    return bool(places[link["prefill"]] != places[link["decode"]])


def budget(made: Made) -> dict[str, Any]:
    """Spending limits, tight and loose."""
    made.begin_block()
    node: dict[str, Any] = {}
    if made.wants("budget.capex_usd"):
        node["capex_usd"] = made.by_period(0, 1_500_000, -3)
    if made.wants("budget.opex_usd", made.density / 2):
        node["opex_usd"] = made.figure(100_000, 800_000, -3)
    if made.wants("budget.tco_usd", made.density / 2):
        node["tco_usd"] = made.figure(100_000, 1_000_000, -3)
    return node


def finance(made: Made) -> dict[str, Any]:
    """Return the block `finance`."""
    made.begin_block()
    node: dict[str, Any] = {}
    if made.wants("finance.discount_rate"):
        node["discount_rate"] = made.figure(0.02, 0.15, 3)
    if made.wants("finance.method"):
        node["method"] = "annuity" if "discount_rate" in node else "straight-line"
    costs = {
        kind: made.figure(50, 2000, 0)
        for kind in ("network", "software", "staff")
        if made.wants(f"finance.per_host_usd_per_quarter.{kind}")
    }
    if costs:
        node["per_host_usd_per_quarter"] = costs
    if made.wants("finance.max_price_age_days"):
        node["max_price_age_days"] = made.dice.choice((30, 365))
    return node


def uncertainty(made: Made) -> dict[str, Any]:
    """Scenarios of demand, those of estimates or of the file's own."""
    made.begin_block()
    dice = made.dice
    node: dict[str, Any] = {}
    if made.wants("uncertainty.objective", 0.7):
        node["objective"] = "expected-cost"
        if made.allows("uncertainty.least-regret"):
            node["objective"] = dice.choice(("expected-cost", "least-regret"))
    chances = {2: dice.choice(((0.25, 0.75), (0.5, 0.5), (0.7, 0.3))), 3: (0.3, 0.4, 0.3)}[
        len(made.scenarios)
    ]
    node["scenarios"] = []
    for name, chance in zip(made.scenarios, chances, strict=True):
        scenario: dict[str, Any] = {"name": name, "probability": chance}
        if made.wants("uncertainty.scenarios.estimate", 0.4):
            scenario["estimate"] = dice.choice(("low", "mid", "high"))
        if made.wants("uncertainty.scenarios.demand_ratio", 0.8):
            ratio = made.figure(0.5, 1.6)
            scenario["demand_ratio"] = ratio if made.chance(0.5) else {"s0": ratio}
        node["scenarios"].append(scenario)
    return node
