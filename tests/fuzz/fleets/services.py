"""Services of random fleets: what brings their requests, where these may go, and how fast they must be."""

from __future__ import annotations

import random
from typing import Any

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.optables.source import measured_versions
from tests.fuzz.fleets.engine_tables import CLASSES, engine_table, full_workload
from tests.fuzz.fleets.made import Made
from tests.fuzz.fleets.models import fill_model
from tests.fuzz.fleets.supply import MEASURED

SECONDS_PER_DAY = 86_400

WITH_MEASURED_RATES = 0.25
"""Share of the services whose replicas were measured to be slower or faster."""

MOST_MODELS = 2
"""Services with a model: each takes a landscape for every part."""

OUTSIDE_MS = 15.0
"""Most that one part of a request spends outside inference; four of them leave room in every limit. [ms]"""


def random_services(made: Made) -> list[dict[str, Any]]:
    """Return the services; some have a model, some follow another one."""
    found: list[dict[str, Any]] = []
    few = made.dice.choice((1, 2, 2, 3))
    for n in range(made.n_services or few):
        made.begin_block()
        models = sum("model" in each for each in found)
        modelled = bool(made.figured) and models < MOST_MODELS and made.wants("services.model", 0.7)
        found.append(_service(made, n, found, modelled=modelled))
    return found


def _service(made: Made, n: int, before: list[dict[str, Any]], *, modelled: bool) -> dict[str, Any]:
    dice = made.dice
    classes = CLASSES[: dice.choice((0, 0, 2, 2, 3))]
    node: dict[str, Any] = {"name": f"s{n}"}
    leader = _leader(made, before)
    offline = leader is None and made.wants("services.offline", made.density / 2)
    if modelled:
        fill_model(made, node, classes)
    else:
        _measured(made, node, classes, n)
    by_class = _names_classes(made, node, classes, must_share=leader is not None)
    if leader is not None:
        node["follows"] = _follows(made, node, leader)
    elif offline:
        scale = SECONDS_PER_DAY / 4
        node["offline"] = {"requests_per_day": _demand(made, node, by_class, scale)}
        if made.wants("services.offline.deadline_hours", 0.6):
            node["offline"]["deadline_hours"] = dice.choice((1.0, 6.0, 12.0, 36.0))
    else:
        node["demand"] = _demand(made, node, by_class, 1.0)
    _outside(made, node)
    _share_limit(made, node, leader)
    _rules(made, node, modelled=modelled)
    if len(made.regions) > 1:
        _elsewhere(made, node)
    return node


def _measured(made: Made, node: dict[str, Any], classes: tuple[str, ...], n: int) -> None:
    node["engines"] = f"e{n}.csv"
    latencies = made.chance(0.4)
    made.tables[node["engines"]] = engine_table(made, classes, latencies=latencies)
    if latencies:
        if made.wants("services.slo.ttft_ms", 0.7):
            node.setdefault("slo", {})["ttft_ms"] = made.figure(250, 800, 0)
        if made.wants("services.slo.tpot_ms", 0.5):
            node.setdefault("slo", {})["tpot_ms"] = made.figure(55, 90, 0)
    if made.wants("services.workload"):
        node["workload"] = full_workload(made, classes)
    for key, values in (("framework", ("trtllm", "sglang", "vllm")), ("precision", ({"weights": "fp8"},))):
        if made.wants(f"services.{key}", made.density / 2):
            node[key] = made.dice.choice(values)


def _names_classes(
    made: Made, node: dict[str, Any], classes: tuple[str, ...], *, must_share: bool
) -> tuple[str, ...]:
    """Return the classes that the demand names; the others' shares go into the workload."""
    if not classes:
        return ()
    stated = node.get("workload", {}).get("classes")
    if stated is None:
        if not must_share:
            return classes
        node["workload"] = full_workload(made, classes)
        stated = node["workload"]["classes"]
    if not must_share and made.chance(0.5):
        return classes
    left = 1.0
    for name in classes[:-1]:
        stated[name]["share"] = made.figure(0.1, 0.4)
        left -= stated[name]["share"]
    stated[classes[-1]]["share"] = round(left, 2)
    return ()


def _leader(made: Made, before: list[dict[str, Any]]) -> dict[str, Any] | None:
    leaders = [each for each in before if "offline" not in each]
    if leaders and made.wants("services.follows", max(made.density, 0.15)):
        return made.dice.choice(leaders)
    return None


def _follows(made: Made, node: dict[str, Any], leader: dict[str, Any]) -> dict[str, Any]:
    ratio: Any = made.figure(0.2, 1.5)
    names = _class_names(made, leader)
    if names and made.chance(0.4):
        ratio = {name: made.figure(0.1, 1.5) for name in names if made.chance(0.7)} or {names[0]: 0.5}
    return {"service": leader["name"], "ratio": ratio}


def _class_names(made: Made, service: dict[str, Any]) -> list[str]:
    stated = service.get("workload", {}).get("classes")
    if stated is not None:
        return list(stated)
    header, *rows = made.tables.get(service.get("engines", ""), "").splitlines() or [""]
    if "class" not in header.split(","):
        return []
    at = header.split(",").index("class")
    return list(dict.fromkeys(row.split(",")[at] for row in rows))


def _share_limit(made: Made, node: dict[str, Any], leader: dict[str, Any] | None) -> None:
    """Let a follower share the TTFT limit of its leader, if that limits a mean and leaves room for both."""
    if leader is None or not made.wants("services.follows.ttft_share", 0.5):
        return
    limit = leader.get("slo", {}).get("ttft_ms")
    if limit is None or under_load(leader, "ttft") or "ttft_share" in leader.get("follows", {}):
        return
    share = made.figure(0.3, 0.45)
    taken = leader.setdefault("_shared", 0.0)
    most = 5 * OUTSIDE_MS
    if taken + share > 0.5 or share * limit < most or (1 - taken - share) * limit < most:
        return
    leader["_shared"] = taken + share
    node["follows"]["ttft_share"] = share
    slo = node.get("slo", {})
    for key in [key for key in slo if key.startswith("ttft") or key == "goodput_ratio"]:
        del slo[key]
    if not slo:
        node.pop("slo", None)


def under_load(node: dict[str, Any], figure: str) -> bool:
    """Return whether a service limits a latency under load."""
    slo = node.get("slo", {})
    single = any(key.startswith(f"{figure}_p") for key in slo)
    loaded = "traffic" in node or "goodput_ratio" in slo
    return single or (loaded and f"{figure}_ms" in slo)


def _demand(made: Made, node: dict[str, Any], classes: tuple[str, ...], scale: float) -> Any:
    """A number, or a mapping by region, period, class and slice in some order."""
    by_slice = made.slices and made.chance(0.4)
    if made.slices and not by_slice and made.wants("services.demand_by_slice", 0.8):
        named = [name for name in made.slices if made.chance(0.8)] or [made.slices[0]]
        node["demand_by_slice"] = {name: made.figure(0.2, 1.5) for name in named}
    levels = [
        made.regions if len(made.regions) > 1 or made.chance(0.1) else (),
        made.periods if len(made.periods) > 1 else (),
        classes,
        made.slices if by_slice else (),
    ]
    levels = [names for names in levels if names]
    made.dice.shuffle(levels)
    return _level(made, levels, 25 / (len(classes) or 1) / len(made.regions), scale)


def _level(made: Made, levels: list[tuple[str, ...]], most: float, scale: float) -> Any:
    if levels:
        return {name: _level(made, levels[1:], most, scale) for name in levels[0]}
    if made.chance(0.05):
        return 0
    rate = made.demand(made.figure(0.5, most) * scale)
    if made.scenarios and made.chance(0.15):
        return {"low": round(rate / 2, 4), "mid": rate, "high": round(rate * 1.5, 4)}
    return rate


def _outside(made: Made, node: dict[str, Any]) -> None:
    outside = {
        key: made.figure(1, OUTSIDE_MS, 0)
        for key in ("network", "load_balancing", "media_download", "safety", "front_end")
        if made.wants(f"services.outside_ms.{key}", made.density / 2)
    }
    if outside:
        node["outside_ms"] = outside
    if "network" not in outside and made.wants("services.network_latency_ms"):
        node["network_latency_ms"] = made.figure(1, OUTSIDE_MS, 0)


def _rules(made: Made, node: dict[str, Any], *, modelled: bool) -> None:
    dice = made.dice
    if made.wants("services.headroom"):
        node["headroom"] = made.figure(0.05, 0.3)
    if made.wants("services.priority"):
        node["priority"] = dice.choice((1, 2, 3))
    if made.wants("services.served_weight"):
        node["served_weight"] = made.figure(0.5, 3, 1)
    # Dice of its own, so that all else of a seed's fleet stays as it was.
    own = random.Random(f"rates {made.seed} {node['name']}")
    if made.allows("services.rate_ratio") and own.random() < WITH_MEASURED_RATES:
        parts = list(made.file.get("hardware", {}))
        node["rate_ratio"] = {own.choice(parts): 1.1} if parts and own.random() < 0.5 else 0.9
    if made.wants("services.runtimes"):
        node["runtimes"] = dice.choice((["aggregated"], ["disaggregated"], ["disaggregated", "aggregated"]))
        transfer = node.get("techniques", {}).get("kv_transfer")
        if transfer and "disaggregated" not in node["runtimes"]:
            node["runtimes"].append("disaggregated")
    if made.wants("services.hardware"):
        parts = made.figured if modelled else made.parts
        node["hardware"] = [part for part in parts if made.chance(0.7)] or [parts[0]]
    if under_load(node, "ttft") or under_load(node, "tpot"):
        _few_ways(made, node)
    if modelled:
        _version(made, node)
    if len(made.regions) == 1 and made.wants("services.regions", made.density / 2):
        node["regions"] = list(made.regions)
    if made.wants("services.mb_per_request", made.density / 2):
        node["mb_per_request"] = made.figure(0.1, 20, 1)
    if len(made.regions) == 1 and made.wants("services.serve_from", made.density / 2):
        node["serve_from"] = "any"


def _few_ways(made: Made, node: dict[str, Any]) -> None:
    """Keep limits under load to one part, and mostly apart: engines of both phases are simulated."""
    if made.allows("services.hardware"):
        node["hardware"] = node.get("hardware", list(made.figured))[:1]
    if made.allows("services.runtimes"):
        together = made.chance(0.1) and not node.get("techniques", {}).get("kv_transfer")
        node["runtimes"] = ["aggregated" if together else "disaggregated"]


def _version(made: Made, node: dict[str, Any]) -> None:
    """Name a version of the framework, and the part that was measured under it."""
    parts = [
        name
        for name in node.get("hardware", made.figured)
        if made.file["hardware"][name].get("like") == MEASURED
    ]
    if parts and made.wants("services.framework_version", 0.5):
        versions = measured_versions(accelerators()[MEASURED], node.get("framework", "vllm"))
        # The tables' package is not there for every platform.
        if versions:
            node["framework_version"] = made.dice.choice(versions)
            # A part that is neither named nor in a pool or an offer is none of the fleet's.
            node.setdefault("hardware", list(parts))


def _elsewhere(made: Made, node: dict[str, Any]) -> None:
    """Let a service be served from other regions."""
    kind = made.dice.choice(("home", "any", "list", "map"))
    if not made.allows("services.serve_from"):
        kind = "home"
    if kind == "any":
        node["serve_from"] = "any"
    elif kind == "list":
        node["serve_from"] = [made.dice.choice(made.regions)]
    elif kind == "map":
        here, there = made.dice.sample(made.regions, 2)
        node["serve_from"] = {here: [there]}
    if kind != "home" and made.wants("services.mb_per_request", 0.5):
        node["mb_per_request"] = made.figure(0.1, 20, 1)
    if made.wants("services.regions", 0.3):
        # Demand of a region that is left out needs another one that serves it.
        fewer = kind == "any"
        node["regions"] = sorted(made.dice.sample(made.regions, len(made.regions) - fewer))
