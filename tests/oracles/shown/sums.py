"""Totals of plan.json against the rows that they are totals of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from tests.oracles.shown.amounts import other

RUNNING = ("energy", "transition", "tidal", "data")
"""Costs of a placement beside its share of the pool."""

MOMENT = ("period", "slice", "scenario")


def sum_faults(plan: dict[str, Any]) -> Iterator[str]:
    """Yield every total that its rows do not add up to."""
    for place, stated, found in (*_costs(plan), *_scopes(plan), *_pools(plan), *_orders(plan), *_rest(plan)):
        if stated is None or found is None:
            if stated is not found:
                yield f"{place}: {stated} is stated, its rows give {found}"
        elif other(stated, found):
            yield f"{place}: {stated} is stated, its rows add up to {found}"


Total = tuple[str, float | None, float | None]


def _costs(plan: dict[str, Any]) -> Iterator[Total]:
    total, lines = plan["objective_usd"], plan["inputs"]["cost_lines"]
    yield "the TCO by kinds", total, sum(plan["cost_breakdown"].values())
    yield "the TCO by the bill", total, sum(line["usd"] for line in lines)
    scopes: dict[str, float] = defaultdict(float)
    for row in plan["costs"]:
        scopes[row["scope"]] += row["usd"]
    apart = sum(line["usd"] for line in lines if not line["period"])
    yield "the TCO by periods", total, scopes["period"] + apart
    # Pools that hold nothing yet are no rows: what is paid for them is in the bill alone.
    standing = {row["name"] for row in plan["costs"] if row["scope"] == "pool"}
    elsewhere = sum(line["usd"] for line in lines if line["pool"] and line["pool"] not in standing)
    unpooled = sum(line["usd"] for line in lines if not line["pool"])
    yield "the TCO by pools", total, scopes["pool"] + elsewhere + unpooled
    kinds: dict[str, float] = defaultdict(float)
    for line in lines:
        kinds[line["kind"]] += line["usd"]
    for kind in {*kinds, *plan["cost_breakdown"]}:
        yield f"the kind {kind}", plan["cost_breakdown"].get(kind, 0.0), kinds[kind]


def _scopes(plan: dict[str, Any]) -> Iterator[Total]:
    lines = plan["inputs"]["cost_lines"]
    for row in plan["costs"]:
        scope, name = row["scope"], row["name"]
        placed = [each for each in plan["placements"] if each[scope] == name]
        yield f"{scope} {name} by kinds", row["usd"], sum(row["usd_by_kind"].values())
        for kind in RUNNING:
            running = sum(each[f"{kind}_usd"] for each in placed)
            yield f"{scope} {name}: {kind}", row["usd_by_kind"].get(kind, 0.0), running
        if scope == "service":
            yield f"service {name}", row["usd"], sum(each["usd"] for each in placed)
            continue
        uses = [use for use in plan["pools"] if use[scope] == name]
        billed = sum(line["usd"] for line in lines if line[scope] == name)
        yield f"{scope} {name} by the bill", row["usd"], billed
        yield f"{scope} {name}: idle", row["idle_usd"], sum(use["idle_usd"] for use in uses)
        yield f"{scope} {name}: leaving", row["retirement_usd"], sum(use["retirement_usd"] for use in uses)
        if scope == "pool":
            shares = sum(each["usd"] - sum(each[f"{k}_usd"] for k in RUNNING) for each in placed)
            held = sum(use["usd"] - use["idle_usd"] for use in uses)
            yield f"pool {name}: what its placements pay", held, shares


def _pools(plan: dict[str, Any]) -> Iterator[Total]:
    per_host = {each["name"]: each["accelerators_per_host"] for each in plan["inputs"]["hardware"]}
    single = {row["pool"] for row in plan["purchases"] if row["unit"] == "accelerator"}
    used: dict[Any, int] = defaultdict(int)
    for row in plan["placements"]:
        size = row["accelerators"] // row["replicas"]
        host = 1 if row["pool"] in single else per_host[row["hardware"]]
        # A replica of several hosts takes them whole.
        taken = size if size <= host else -(-size // host) * host
        used[row["pool"], *(row[part] for part in MOMENT)] += taken * row["replicas"]
    for use in plan["pools"]:
        key = use["pool"], *(use[part] for part in MOMENT)
        place = f"pool {' '.join(filter(None, key))}"
        yield f"{place}: used", use["used_accelerators"], used.pop(key, 0)
        room = use["accelerators"] - use["reserve_accelerators"] - use["maintenance_accelerators"]
        yield f"{place}: in use", use["utilisation"], use["used_accelerators"] / room if room else 0.0
    for key, count in used.items():
        yield f"pool {key} that is not there", 0.0, float(count)
    phases: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in plan["placements"]:
        phases[row["service"], row["region"], *(row[p] for p in MOMENT)][row["phase"]] += row["accelerators"]
    for row in plan["phase_ratios"]:
        own = phases[row["service"], row["region"], *(row[part] for part in MOMENT)]
        place = f"ratio of {row['service']} {row['region']} {row['period']}"
        yield f"{place}: prefill", row["prefill_accelerators"], own["prefill"]
        yield f"{place}: decode", row["decode_accelerators"], own["decode"]
        yield place, row["ratio"], own["prefill"] / own["decode"]


def _orders(plan: dict[str, Any]) -> Iterator[Total]:
    lines = plan["inputs"]["cost_lines"]
    for row in plan["purchases"]:
        item = f"{row['offer']} {row['period']}"
        billed = [each["usd"] for each in lines if (each["pool"], each["item"]) == (row["pool"], item)]
        yield f"order {item} of {row['pool']} by the bill", row["usd"], sum(billed)
    for option in plan["supply_options"]:
        if option["option"] in ("keep", "retire"):
            continue
        rows = [
            row
            for row in plan["purchases"]
            if (row["pool"], row["offer"]) == (option["pool"], option["offer"]) and not row["assumed"]
        ]
        by_period: dict[str, int] = defaultdict(int)
        for row in rows:
            by_period[row["period"]] += row["units"]
        most = max(by_period.values(), default=0) if option["option"] != "buy" else sum(by_period.values())
        if option["option"] != "reserve":
            yield f"option {option['offer']} of {option['pool']}: units", option["units"], most


def _rest(plan: dict[str, Any]) -> Iterator[Total]:
    cost = plan["objective_usd"]
    if cost:
        yield "gap", plan["gap"], max((cost - plan["bound_usd"]) / cost, 0.0)
    if plan["carbon_kg"] is not None:
        by_scope: dict[str, list[float | None]] = defaultdict(list)
        for row in plan["costs"]:
            by_scope[row["scope"]].append(row["carbon_kg"])
        yield "carbon by periods", plan["carbon_kg"], _known(by_scope["period"])
        yield "carbon by pools", plan["carbon_kg"], _known(by_scope["pool"])
    if plan["demand_scenarios"]:
        expected = sum(row["probability"] * row["usd"] for row in plan["demand_scenarios"])
        yield "the TCO by scenarios", cost, expected
        for row in plan["demand_scenarios"]:
            if row["best_usd"] is not None and row["regret_usd"] is not None:
                regret = row["usd"] - row["best_usd"]
                yield f"regret of {row['name']}", row["regret_usd"], regret
    if plan["income_tax"] is not None:
        tax = plan["income_tax"]
        yield "TCO after tax", tax["usd"], (1 - tax["rate"]) * cost
    if plan["usd_per_million_tokens"] is not None:
        tokens = sum(row["million_tokens"] or 0.0 for row in plan["costs"] if row["scope"] == "period")
        yield "USD a million tokens", plan["usd_per_million_tokens"], cost / tokens
    spent = sum(row["usd"] for row in plan["placements"])
    for kind, share in plan["provenance"]["spend_share"].items():
        own = sum(row["usd"] * row["provenance"].get(kind, 0.0) for row in plan["placements"])
        yield f"spend that is {kind}", share, own / spent if spent else 0.0
    yield from _unmet(plan)


def _unmet(plan: dict[str, Any]) -> Iterator[Total]:
    """Demand is served or unmet; replicas after the first phase serve the same requests again."""
    key = ("service", "request_class", *MOMENT)
    asked: dict[Any, float] = defaultdict(float)
    for row in plan["inputs"]["demand"]:
        asked[tuple(row[part] for part in key)] += row["requests_per_s"]
    for row in plan["unmet"]:
        asked[tuple(row[part] for part in key)] -= row["requests_per_s"]
    served: dict[Any, float] = defaultdict(float)
    for row in plan["placements"]:
        for name, rate in row["requests_per_s_by_class"].items():
            if row["phase"] != "decode":
                served[row["service"], name, *(row[part] for part in MOMENT)] += rate
        yield (
            f"requests/s of {row['service']} {row['config']}",
            row["requests_per_s"],
            sum(row["requests_per_s_by_class"].values()),
        )
    offline = {row["service"] for row in plan["offline_work"]}
    for where, rate in asked.items():
        if where[0] not in offline:
            yield f"served of {' '.join(filter(None, where))}", rate, served[where]


def _known(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)
