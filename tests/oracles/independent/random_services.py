"""Services of random fleets: engine tables, demand, and where requests may go."""

from __future__ import annotations

import csv
import io
from typing import Any

from tests.oracles.independent.random_file import RandomFleet

CLASSES = ("ca", "cb", "cc")
SIZES = (1, 1, 2, 2, 3, 4, 4, 8, 16)
"""Accelerators a replica; three do not divide a host, sixteen take several."""


def random_service(made: RandomFleet, n: int) -> dict[str, Any]:
    dice = made.dice
    classes = CLASSES[: dice.choice((0, 0, 2, 2, 3))]
    node: dict[str, Any] = {"name": f"s{n}", "engines": f"e{n}.csv"}
    latencies = made.chance(0.3)
    made.tables[f"e{n}.csv"] = _engine_table(made, classes, latencies=latencies)
    node["demand"] = _demand(made, classes)
    if latencies:
        node["slo"] = {"ttft_ms": made.figure(250, 400, 0)} | ({"tpot_ms": 60} if made.chance(0.5) else {})
    if made.chance(0.5):
        node["headroom"] = made.figure(0.05, 0.3)
    if made.chance(0.4):
        node["priority"] = dice.choice((1, 2, 3))
    if made.chance(0.2):
        node["served_weight"] = made.figure(0.5, 3, 1)
    if made.chance(0.2):
        node["runtimes"] = [dice.choice(("aggregated", "disaggregated"))]
    if made.chance(0.15):
        node["hardware"] = [part for part in made.parts if made.chance(0.7)] or [made.parts[0]]
    if made.chance(0.15):
        node["network_latency_ms"] = made.figure(5, 60, 0)
    if len(made.regions) > 1:
        _elsewhere(made, node)
    return node


def _elsewhere(made: RandomFleet, node: dict[str, Any]) -> None:
    """Let a service be served from other regions."""
    kind = made.dice.choice(("home", "any", "list", "map"))
    if kind == "any":
        node["serve_from"] = "any"
    elif kind == "list":
        node["serve_from"] = [made.dice.choice(made.regions)]
    elif kind == "map":
        here, there = made.dice.sample(made.regions, 2)
        node["serve_from"] = {here: [there]}
    if kind != "home" and made.chance(0.5):
        node["mb_per_request"] = made.figure(0.1, 20, 1)
    if kind == "any" and made.chance(0.3):
        node["regions"] = sorted(made.dice.sample(made.regions, len(made.regions) - 1))


def _demand(made: RandomFleet, classes: tuple[str, ...]) -> Any:
    """A number, or a mapping by region, period, class and slice."""
    levels = [
        made.regions if len(made.regions) > 1 else (),
        made.periods if len(made.periods) > 1 else (),
        classes,
        made.slices,
    ]
    return _level(made, [names for names in levels if names], len(classes) or 1)


def _level(made: RandomFleet, levels: list[tuple[str, ...]], n_classes: int) -> Any:
    if levels:
        return {name: _level(made, levels[1:], n_classes) for name in levels[0]}
    if made.chance(0.05):
        return 0
    rate = made.figure(0.5, 25 / n_classes / len(made.regions))
    if made.scenarios and made.chance(0.1):
        return {"low": round(rate / 2, 2), "mid": rate, "high": round(rate * 1.5, 2)}
    return rate


def _engine_table(made: RandomFleet, classes: tuple[str, ...], *, latencies: bool) -> str:
    powers = made.chance(0.6)
    columns = ["phase", "hardware", "accelerators_per_replica", "config", *(["class"] if classes else [])]
    columns += [
        "requests_per_s",
        *(["power_kw"] if powers else []),
        *(["ttft_ms", "tpot_ms"] if latencies else []),
    ]
    text = io.StringIO()
    table = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    apart = made.chance(0.6)
    for part in made.parts:
        for phase in ("aggregated", "prefill", "decode"):
            wanted = apart if phase != "aggregated" else made.chance(0.8) or not apart
            for n in range(made.dice.choice((1, 1, 2)) if wanted else 0):
                _configuration(made, table, {"phase": phase, "hardware": part, "config": f"c{n}"}, classes)
    return text.getvalue()


def _configuration(
    made: RandomFleet, table: csv.DictWriter[str], row: dict[str, Any], classes: tuple[str, ...]
) -> None:
    """Write the rows of one configuration: one a class."""
    size = made.dice.choice(SIZES)
    watts = made.dice.randint(150, 1200)
    good = made.figure(0.4, 4)
    ttft = made.figure(80, 320, 1)
    for name in classes or ("",):
        none = bool(classes) and made.chance(0.05)
        table.writerow(
            row
            | {
                "accelerators_per_replica": size,
                "class": name,
                "requests_per_s": 0 if none else round(size * good * made.dice.uniform(0.4, 1.6) + 0.01, 2),
                # Whole watts an accelerator: the planner's power has this resolution.
                "power_kw": round(size * watts / 1000, 3),
                "ttft_ms": round(ttft * made.dice.uniform(0.8, 1.2), 1),
                "tpot_ms": made.figure(20, 65, 1),
            }
        )
