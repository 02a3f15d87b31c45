"""Services of a fleet file with their engine tables and their demand."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracles.independent.facts import AGGREGATED, DECODE, PREFILL, Engine, Moment, Part, Service
from tests.oracles.independent.nodes import Node, NotCoveredError, take

ONE_CLASS = "all"
SERVICE_KEYS = (
    "name", "engines", "demand", "headroom", "priority", "served_weight", "rate_ratio", "runtimes",
    "hardware", "regions", "serve_from", "mb_per_request", "network_latency_ms", "slo",
)  # fmt: skip
ESTIMATES = ("low", "mid", "high")
SECONDS = {"requests/s": 1.0, "requests/min": 60.0, "requests/h": 3600.0}
WATTS_PER_KW = 1000.0


@dataclass(frozen=True)
class Frame:
    """Context of services: periods, regions and known round trips (`ways`)."""

    periods: Sequence[str]
    moments: Sequence[Moment]
    regions: Sequence[str]
    parts: Mapping[str, Part]
    scenarios: Mapping[str, Node]
    ways: Mapping[frozenset[str], float]


def read_services(nodes: Sequence[Node], folder: Path, frame: Frame) -> tuple[Service, ...]:
    """Read the services of a file in a folder."""
    services = []
    for node in nodes:
        take(node, *SERVICE_KEYS)
        slo = take(node.get("slo", {}), "ttft_ms", "tpot_ms")
        classes, engines = _engines(node, folder, frame.parts)
        runs_in = tuple(node.get("regions", frame.regions))
        demand = {
            (region, moment, name): _demand(node, (region, moment, name), frame)
            for region in frame.regions
            for moment in frame.moments
            for name in classes
        }
        services.append(
            Service(
                name=node["name"],
                demand=demand,
                headroom=node.get("headroom", 0.0),
                priority=node.get("priority", 1),
                served_weight=node.get("served_weight", 1 / node.get("priority", 1)),
                runs_in=runs_in,
                served_from=_served_from(node.get("serve_from", []), runs_in, frame),
                mb_per_request=node.get("mb_per_request", 0.0),
                outside_ms=node.get("network_latency_ms", 0.0),
                ttft_limit_ms=slo.get("ttft_ms"),
                engines=engines,
            )
        )
    return tuple(services)


def _demand(node: Node, cell: tuple[str, Moment, str], frame: Frame) -> float:
    region, moment, name = cell
    scenario = frame.scenarios[moment.scenario]
    labels = {region, frame.periods[moment.period], name, moment.slice}
    # A region that the demand leaves out has none.
    elsewhere = {key for key in frame.regions if key != region}
    ratio = scenario.get("demand_ratio", 1.0)
    if isinstance(ratio, Mapping):
        ratio = ratio.get(node["name"], 1.0)
    return _leaf(node["demand"], labels, elsewhere, scenario.get("estimate", "mid")) * float(ratio)


def _leaf(value: Any, labels: set[str], elsewhere: set[str], estimate: str) -> float:
    """Follow a mapping by region, period, class and slice, in any order, down to a number."""
    while isinstance(value, Mapping):
        if set(value) <= set(ESTIMATES):
            value = value[estimate]
            continue
        keys = [key for key in value if key in labels]
        if not keys and set(value) <= elsewhere:
            return 0.0
        if len(keys) != 1:
            raise NotCoveredError(f"demand by {sorted(value)} has none or several of {sorted(labels)}")
        value = value[keys[0]]
    if isinstance(value, str):
        number, counted = value.split(" ")
        return float(number) / SECONDS[counted]
    return float(value)


def _served_from(value: Any, runs_in: Sequence[str], frame: Frame) -> dict[str, tuple[str, ...]]:
    """Regions that may serve the demand of each region, its own first."""
    found = {}
    for here in frame.regions:
        named = value.get(here, []) if isinstance(value, Mapping) else value
        known = [there for there in frame.regions if frozenset((here, there)) in frame.ways and there != here]
        others = known if named == "any" else [there for there in named if there != here]
        found[here] = tuple(there for there in (here, *others) if there in runs_in)
    return found


def _engines(
    node: Node, folder: Path, parts: Mapping[str, Part]
) -> tuple[tuple[str, ...], tuple[Engine, ...]]:
    """Classes and configurations of an engine table that the service may run."""
    with (folder / node["engines"]).open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    classes = tuple(dict.fromkeys(row.get("class") or ONE_CLASS for row in rows))
    grouped: dict[tuple[str, str, int, str], list[dict[str, str]]] = {}
    for row in rows:
        key = (row["phase"], row["hardware"], int(row["accelerators_per_replica"]), row["config"])
        grouped.setdefault(key, []).append(row)
    engines = [_engine(key, members, parts, node) for key, members in grouped.items()]
    runtimes = node.get("runtimes", ["disaggregated", "aggregated"])
    return classes, tuple(
        engine
        for engine in engines
        if ("aggregated" if engine.phase == AGGREGATED else "disaggregated") in runtimes
        and engine.part in node.get("hardware", parts)
    )


def _engine(
    key: tuple[str, str, int, str], rows: Sequence[Mapping[str, str]], parts: Mapping[str, Part], node: Node
) -> Engine:
    phase, part, size, config = key
    rates, ttft, slo = {}, {}, node.get("slo", {})
    measured = node.get("rate_ratio", 1.0)
    ratio = measured.get(part, 1.0) if isinstance(measured, Mapping) else measured
    for row in rows:
        name = row.get("class") or ONE_CLASS
        rates[name] = float(row["requests_per_s"]) * ratio
        if row.get("ttft_ms") and phase in (PREFILL, AGGREGATED):
            ttft[name] = float(row["ttft_ms"])
        late = row.get("tpot_ms") and "tpot_ms" in slo and float(row["tpot_ms"]) > slo["tpot_ms"]
        if late and phase in (DECODE, AGGREGATED):
            rates[name] = 0.0
    stated = [float(row["power_kw"]) for row in rows if row.get("power_kw")]
    kw = max(stated) if stated else parts[part].all_in_w * size / WATTS_PER_KW
    return Engine(phase, part, size, config, rates, ttft, kw)
