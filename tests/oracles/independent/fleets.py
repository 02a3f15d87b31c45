"""Random small fleets with engine tables: documented keys switched on and off, the same for the same seed."""

from __future__ import annotations

import random
from typing import Any

from tests.oracles.independent.random_file import RandomFleet
from tests.oracles.independent.random_services import random_service

QUARTERS = ("2027Q1", "2027Q2", "2027Q3")
REGIONS = ("r0", "r1", "r2")
PARTS = ("gpu-a", "gpu-b", "gpu-c")
SLICES = (("day", 9.0), ("eve", 5.0), ("night", 10.0))
MOST_CELLS = 6
"""Regions, periods, slices and scenarios together: beyond, HiGHS needs minutes rather than seconds."""


def random_fleet(seed: int, most_cells: int = MOST_CELLS) -> RandomFleet:
    """Return the fleet of a seed, with so many regions, periods, slices and scenarios together at most."""
    made = RandomFleet(seed, random.Random(seed))
    _extent(made, most_cells)
    made.file = {"version": 1, "name": f"soak-{seed}", "horizon": {"periods": list(made.periods)}}
    if made.slices:
        made.file["horizon"]["slices"] = [
            {"name": name, "hours": hours} for name, hours in _whole_day(made.slices)
        ]
    made.file["regions"] = _regions(made)
    made.file["hardware"] = _hardware(made)
    made.file["pools"] = [_pool(made, n) for n in range(made.dice.choice((0, 1, 1, 2)))]
    made.file["offers"] = [_offer(made, n) for n in range(made.dice.choice((1, 2, 2, 3)))]
    made.file["services"] = [random_service(made, n) for n in range(made.dice.choice((1, 2, 2, 3)))]
    made.file["policy"] = _policy(made)
    made.file["budget"] = _budget(made)
    made.file["finance"] = _finance(made)
    if made.scenarios:
        made.file["uncertainty"] = _uncertainty(made)
    if made.chance(0.12):
        made.file["objective"] = made.dice.choice(("served", "energy", "accelerators"))
    return made


def _extent(made: RandomFleet, most_cells: int) -> None:
    """Draw how many regions, periods, slices and scenarios there are, few enough together."""
    dice = made.dice
    while True:
        counts = [dice.choice((1, 1, 1, 2, 3)), dice.choice((1, 1, 2, 3)), 0, 0]
        counts[2] = dice.choice((2, 3)) if made.chance(0.12) else 0
        counts[3] = 2 if made.chance(0.12) else 0
        if counts[0] * counts[1] * max(counts[2], 1) * max(counts[3], 1) <= most_cells:
            break
    made.regions, made.periods = REGIONS[: counts[0]], QUARTERS[: counts[1]]
    made.slices = tuple(name for name, _ in SLICES[: counts[2]])
    made.scenarios = ("slow", "boom")[: counts[3]]
    made.parts = PARTS[: dice.choice((1, 2, 2, 3))]


def _whole_day(names: tuple[str, ...]) -> list[tuple[str, float]]:
    hours = dict(SLICES[: len(names)])
    hours[names[-1]] += 24 - sum(hours.values())
    return list(hours.items())


def _regions(made: RandomFleet) -> dict[str, Any]:
    regions: dict[str, Any] = {}
    for n, name in enumerate(made.regions):
        node: dict[str, Any] = {"pue": made.figure(1.05, 1.5)}
        if made.chance(0.5):
            node["energy_usd_per_kwh"] = made.by_period(0.05, 0.3, 3)
        if made.chance(0.25):
            node["power_kw"] = made.by_period(20, 120, 1)
        if made.chance(0.25):
            node["hosting_usd_per_kw_month"] = made.figure(50, 200, 0)
        if n:
            node["round_trip_ms"] = {other: made.figure(20, 120, 1) for other in made.regions[:n]}
            if made.chance(0.5):
                node["network_usd_per_gb"] = {other: made.figure(0.01, 0.1, 3) for other in made.regions[:n]}
        regions[name] = node
    return regions


def _hardware(made: RandomFleet) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for name in made.parts:
        node: dict[str, Any] = {
            "accelerators_per_host": made.dice.choice((1, 2, 4, 8, 8)),
            "all_in_w": made.figure(200, 1500, 0),
        }
        if made.chance(0.5):
            node["idle_w"] = made.figure(0, node["all_in_w"] * made.dice.choice((0.0, 0.2, 0.6)), 0)
        parts[name] = node
    return parts


def _pool(made: RandomFleet, n: int) -> dict[str, Any]:
    dice = made.dice
    node: dict[str, Any] = {
        "name": f"p{n}",
        "region": dice.choice(made.regions),
        "hardware": dice.choice(made.parts),
    }
    if made.chance(0.5):
        node["hosts"] = dice.randint(1, 6)
        node["owned"] = _owned(made)
    elif made.chance(0.5):
        node["hosts"] = dice.randint(1, 6)
        node["rented"] = {"usd_per_accelerator_hour": made.by_period(0.5, 4)}
    else:
        node["accelerators"] = dice.randint(2, 24)
        node["rented"] = {"usd_per_accelerator_hour": made.by_period(0.5, 4)}
    if "rented" in node and made.chance(0.3):
        node["rented"]["energy_included"] = made.chance(0.7)
    may_retire = {"resale_usd_per_host", "end_of_life"} & set(node.get("owned", {}))
    if not may_retire and made.chance(0.2):
        node["maintenance_hosts"] = {dice.choice(made.periods): 1}
    return node


def _owned(made: RandomFleet) -> dict[str, Any]:
    owned: dict[str, Any] = {"capex_usd_per_host": made.figure(40_000, 300_000, -3)}
    _life(made, owned)
    if not isinstance(owned.get("residual_ratio"), dict) and made.chance(0.3):
        return owned
    owned["in_service"] = made.dice.choice(("2023Q2", "2025Q1", "2026Q4", "2027Q1"))
    if made.chance(0.3):
        owned["resale_usd_per_host"] = made.by_period(0, 60_000, -3)
    if made.chance(0.2):
        owned["end_of_life"] = made.dice.choice(("2027Q2", "2027Q3", "2028Q1"))
    return owned


def _life(made: RandomFleet, node: dict[str, Any]) -> None:
    """Write-off, residual value and maintenance of a purchase."""
    if made.chance(0.4):
        node["life_quarters"] = made.dice.choice((2, 8, 12, 20))
    if made.chance(0.3):
        node["residual_ratio"] = made.figure(0.05, 0.4)
    elif made.chance(0.25):
        life = node.get("life_quarters", 16)
        ages = {1: 0.8, life // 2: 0.45} if life > 2 else {1: 0.7}
        node["residual_ratio"] = ages | ({life: 0.1} if made.chance(0.5) else {})
    if made.chance(0.3):
        node["maintenance_ratio_per_year"] = made.figure(0.01, 0.1)


def _offer(made: RandomFleet, n: int) -> dict[str, Any]:
    dice = made.dice
    regions = [name for name in made.regions if made.chance(0.7)] or [dice.choice(made.regions)]
    node: dict[str, Any] = {"name": f"o{n}", "hardware": dice.choice(made.parts), "regions": regions}
    counted = "hosts"
    if made.chance(0.35):
        node["capex_usd_per_host"] = made.figure(40_000, 300_000, -3)
        _life(made, node)
    else:
        if made.chance(0.4):
            node["per"], counted = "accelerator", "accelerators"
        node["rent_usd_per_accelerator_hour"] = made.by_period(0.5, 5)
        if made.chance(0.3):
            node["energy_included"] = made.chance(0.7)
        if made.chance(0.15):
            node["spot"], node["max_share"] = True, made.figure(0.2, 0.9)
        elif made.chance(0.25):
            node["term_quarters"] = dice.choice((1, 2, 4))
    if made.chance(0.25):
        node["lead_time_quarters"] = 1
    if made.chance(0.3):
        node[f"max_{counted}"] = _most(made, dice.choice((2, 4, 8, 20)))
    if made.chance(0.25):
        node[f"lot_{counted}"] = dice.choice((2, 3, 4, 8))
    return node


def _most(made: RandomFleet, most: int) -> Any:
    if len(made.periods) > 1 and made.chance(0.4):
        named = [name for name in made.periods if made.chance(0.8)] or [made.periods[0]]
        return {name: most + n for n, name in enumerate(named)}
    return most


def _policy(made: RandomFleet) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    if made.chance(0.3):
        policy["reserve_hosts_per_pool"] = made.dice.choice((1, 1, 2))
    if made.chance(0.25):
        policy["max_configs_per_service_region"] = made.dice.choice((1, 2, 3))
    if made.chance(0.2):
        policy["max_share_per_pool"] = made.figure(0.4, 0.95)
    if len(made.periods) > 1 and made.chance(0.3):
        policy["transition_usd_per_accelerator"] = made.figure(50, 3000, 0)
    if made.slices and made.chance(0.4):
        policy["tidal"] = {"usd_per_accelerator": made.figure(0.5, 20)}
        if made.chance(0.4):
            policy["tidal"]["max_share_per_pool"] = made.figure(0.0, 0.5)
    if made.chance(0.2):
        policy["kv_transfer"] = "same-pool"
    if made.chance(0.2):
        pairs = [(one, other) for one in made.parts for other in made.parts if made.chance(0.5)]
        policy["kv_pairs"] = [{"prefill": one, "decode": other} for one, other in pairs] or "any"
    if made.chance(0.4):
        policy["unmet"] = "penalise"
    return policy


def _budget(made: RandomFleet) -> dict[str, Any]:
    budget: dict[str, Any] = {}
    if made.chance(0.2):
        budget["capex_usd"] = made.by_period(0, 1_500_000, -3)
    if made.chance(0.08):
        budget["opex_usd"] = made.figure(100_000, 800_000, -3)
    if made.chance(0.08):
        budget["tco_usd"] = made.figure(100_000, 1_000_000, -3)
    return budget


def _finance(made: RandomFleet) -> dict[str, Any]:
    finance: dict[str, Any] = {}
    if made.chance(0.3):
        finance["discount_rate"] = made.figure(0.02, 0.15, 3)
        if made.chance(0.5):
            finance["method"] = "annuity"
    if made.chance(0.2):
        kinds = ("network", "software", "staff")
        finance["per_host_usd_per_quarter"] = {
            kind: made.figure(50, 2000, 0) for kind in kinds if made.chance(0.8)
        }
    return finance


def _uncertainty(made: RandomFleet) -> dict[str, Any]:
    first = made.dice.choice((0.25, 0.5, 0.7))
    slow: dict[str, Any] = {"name": "slow", "probability": first}
    boom: dict[str, Any] = {"name": "boom", "probability": round(1 - first, 2)}
    slow["demand_ratio"] = made.figure(0.5, 0.9)
    if made.chance(0.5):
        boom["estimate"] = "high"
    if made.chance(0.7):
        boom["demand_ratio"] = {"s0": made.figure(1.1, 1.6)}
    return {"objective": "expected-cost", "scenarios": [slow, boom]}
