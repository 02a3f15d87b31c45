"""The fleet of a seed: how large it is, then block by block."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

from tests.fuzz.fleets.made import ONE_REGION, Made
from tests.fuzz.fleets.periods import state_day_kinds, state_extension, state_periods
from tests.fuzz.fleets.rules import budget, finance, kv_links, policy, uncertainty
from tests.fuzz.fleets.services import random_services
from tests.fuzz.fleets.stated import state_defaults, state_demand, state_finance, state_leaders
from tests.fuzz.fleets.supply import hardware, offers, pools, regions

QUARTERS = ("2027Q1", "2027Q2", "2027Q3")
REGIONS = ("r0", "r1", "r2")
PARTS = ("gpu-a", "gpu-b", "gpu-c")
SLICES = (("day", 9.0), ("eve", 5.0), ("night", 10.0))
OBJECTIVES = ("served", "energy", "carbon", "accelerators")

IDLE_STATED = 0.6
"""Share of the parts that state their idle power."""

PERCENT_STATED = 0.5
"""Share of the reserves that are in per cent."""

MOST_CELLS = 6
"""Regions, periods, slices and scenarios together: beyond, a fleet takes seconds rather than tenths."""


def random_fleet(
    seed: int, most_cells: int = MOST_CELLS, keys: Collection[str] | None = None, services: int | None = None
) -> Made:
    """Return the fleet of a seed.

    Parameters
    ----------
    seed : int
        The same seed gives the same fleet.
    most_cells : int
        Regions, periods, slices and scenarios together at most.
    keys : Collection[str], optional
        The keys that the fleet may have, such as `services.slo.ttft_ms`; all of them if left out.
    services : int, optional
        How many services; a few if left out.
    """
    made = Made(seed, random.Random(seed), keys, most_cells)
    made.n_services = services
    _extent(made)
    made.begin_block()
    if made.wants("objective", 0.2):
        # Energy and carbon need the block of regions, with the PUE of each.
        known = OBJECTIVES if made.regions != (ONE_REGION,) else OBJECTIVES[::3]
        grid = made.allows("regions.grid_kg_co2_per_kwh")
        made.objective = made.dice.choice([each for each in known if each != "carbon" or grid])
    made.counts_kv = made.wants("kv_links", 0.25)
    made.file = {"version": 1}
    if made.wants("name", 0.7):
        made.file["name"] = f"fuzz-{seed}"
    if made.quarters:
        made.file["horizon"] = _horizon(made)
    _put(made, "regions", regions(made))
    _put(made, "hardware", hardware(made))
    _idle_power(made)
    _put(made, "pools", pools(made))
    _put(made, "offers", offers(made))
    made.file["services"] = random_services(made)
    for service in made.file["services"]:
        service.pop("_shared", None)
    state_demand(made)
    state_leaders(made)
    state_defaults(made)
    if made.allows("calibration") and made.figured and made.chance(0.15):
        made.file["calibration"] = "calibration.yaml"
        made.tables["calibration.yaml"] = _calibration(made)
    _put(made, "kv_links", kv_links(made) if made.counts_kv else [])
    _put(made, "policy", policy(made))
    _reserves_in_per_cent(made)
    _put(made, "budget", budget(made))
    _put(made, "finance", finance(made))
    state_finance(made)
    if made.scenarios:
        made.file["uncertainty"] = uncertainty(made)
    if made.objective != "tco":
        made.file["objective"] = made.objective
    _scenarios(made)
    state_day_kinds(made)
    state_extension(made)
    state_periods(made)
    return made


def _reserves_in_per_cent(made: Made) -> None:
    """State some reserves in per cent instead of hosts, with separate dice."""
    dice = made.dice_of("reserves")
    places = [(made.file.get("policy", {}), "policy.reserve_percent_per_pool", "reserve_hosts_per_pool")]
    places += [(pool, "pools.reserve_percent", "reserve_hosts") for pool in made.file.get("pools", [])]
    for node, key, in_hosts in places:
        if in_hosts in node and made.allows(key) and dice.random() < PERCENT_STATED:
            del node[in_hosts]
            node[key.partition(".")[2]] = dice.choice((5, 10, 33.3, 60))


def _idle_power(made: Made) -> None:
    """State the idle power of some parts, with separate dice."""
    dice = made.dice_of("idle power")
    for node in made.file.get("hardware", {}).values():
        if made.allows("hardware.idle_w") and "power_cap_w" not in node and dice.random() < IDLE_STATED:
            node["idle_w"] = round(dice.uniform(0, node["all_in_w"] / 2))


def _put(made: Made, key: str, block: Any) -> None:
    """Leave out what is empty, as people do."""
    if block:
        made.file[key] = block


def _extent(made: Made) -> None:
    """Draw how many regions, periods, slices and scenarios there are, few enough together."""
    dice = made.dice
    while True:
        counts = [dice.choice((1, 1, 1, 2, 3)), dice.choice((0, 1, 1, 2, 3)), 0, 0]
        counts[2] = dice.choice((2, 3)) if made.wants("horizon.slices", 0.25) else 0
        counts[3] = dice.choice((2, 2, 3)) if made.wants("uncertainty", 0.2) else 0
        # The day has slices only where there is a horizon to say so.
        counts[1] = max(counts[1], int(counts[2] > 0))
        if counts[0] * max(counts[1], 1) * max(counts[2], 1) * max(counts[3], 1) <= made.most_cells:
            break
    if counts[0] > 1 or made.chance(0.7):
        made.regions = REGIONS[: counts[0]]
    if counts[1]:
        made.periods = QUARTERS[: counts[1]]
    made.slices = tuple(name for name, _ in SLICES[: counts[2]])
    made.scenarios = ("slow", "boom", "calm")[: counts[3]]
    made.parts = PARTS[: dice.choice((1, 2, 2, 3))]


def _horizon(made: Made) -> dict[str, Any]:
    node: dict[str, Any] = {"periods": list(made.periods)}
    if made.slices:
        hours = dict(SLICES[: len(made.slices)])
        hours[made.slices[-1]] += 24 - sum(hours.values())
        node["slices"] = [{"name": name, "hours": each} for name, each in hours.items()]
    return node


def _calibration(made: Made) -> str:
    """A file as `plan calibrate` writes it."""
    part = made.dice.choice(made.figured)
    ratios = [made.figure(0.8, 1.4), made.figure(0.8, 1.4)]
    return f"""\
version: 1
created: '2026-11-01T00:00:00+00:00'
fleetplan_version: 0.1.0
method: by hand
measurements: {{path: rows.csv, sha256: '{"0" * 64}', rows: 8, rows_used: 8}}
scopes:
- hardware: {part}
  framework: vllm
  framework_version: ''
  model: dense.json
  weights: bf16
  kv: bf16
  prefill: {{ratio: {ratios[0]}, row_weight: 4.0}}
  decode: {{ratio: {ratios[1]}, row_weight: 4.0}}
  rows: 8
  error_before: 0.2
  error_after: 0.1
  residuals: []
"""


def _scenarios(made: Made) -> None:
    """Add scenarios and overrides to the file; none is selected."""
    if made.wants("overrides", 0.15):
        # A fleet has one reserve: in per cent where it states it so.
        percent = "reserve_percent_per_pool" in made.file.get("policy", {})
        careful = {"reserve_percent_per_pool": 20} if percent else {"reserve_hosts_per_pool": 1}
        made.file["overrides"] = {"careful": {"policy": careful}}
        if made.allows("scenarios"):
            made.file["scenarios"] = {"spare": ["careful"]}
    if made.wants("scenarios", 0.15):
        first = made.file["services"][0]["name"]
        change = {"services": [{"name": first, "priority": 2}]}
        made.file["scenarios"] = made.file.get("scenarios", {}) | {"later": change}
