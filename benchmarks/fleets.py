"""Seeded fleets of every size, written as a fleet file with its engine tables.

    python -m benchmarks.fleets --size medium --seed 1 --out DIR [--variant head]

Everything that couples decisions is on: a limit on configurations, a spare host a pool, a cost of changes,
purchases with a lead time, rent in lots, hosts that may be sold, power and a capital budget. The prices are
those of the packaged scenarios (scenarios/quarterly.yaml, with their sources); demand, rates and stocks are
drawn at random, so nothing here is anybody's fleet. One service in ten names a model of the catalogue, whose
candidates come from the landscape; the others bring their rates.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.fleet_sizes import (
    HEAD_FACTOR,
    LANDSCAPE_EVERY,
    LANDSCAPE_MODELS,
    MEDIAN_ACCELERATORS,
    PARTS,
    SCARCE,
    SIZES,
    FleetPart,
    Variant,
)
from benchmarks.fleet_supply import capital_limit, offers_of, pools_of, regions_of

from fleetplan.fleet.document.plain import yaml_text


@dataclass(frozen=True, slots=True)
class _Service:
    """What a service asks for; its need is by region and quarter. [accelerators of the first part]"""

    name: str
    classes: tuple[str, ...]
    need: Mapping[tuple[str, str], float]
    spec: dict[str, object]


def write_fleet(folder: Path, size_name: str, seed: int, variant: Variant = Variant.PLAIN) -> Path:
    """Write a fleet into a folder.

    Parameters
    ----------
    folder : Path
        Is created; receives fleet.yaml and the folder `engines`.
    size_name : str
        A key of `SIZES`.
    seed : int
        The same seed writes the same files.
    variant : Variant
        What is special about it.

    Returns
    -------
    Path
        Of fleet.yaml.
    """
    size = SIZES[size_name]
    rng = random.Random(f"{size_name} {seed}")
    (folder / "engines").mkdir(parents=True, exist_ok=True)
    periods = [f"{2027 + q // 4}Q{q % 4 + 1}" for q in range(size.quarters)]
    regions = [f"region-{index:02}" for index in range(size.regions)]
    parts = PARTS[: size.hardware]
    factor = HEAD_FACTOR if variant is Variant.HEAD else 1.0
    services = [
        _service(rng, folder, index, regions, periods, parts, factor) for index in range(size.services)
    ]
    need = {
        (region, period): sum(service.need.get((region, period), 0.0) for service in services)
        for region in regions
        for period in periods
    }
    document: dict[str, Any] = {
        "version": 1,
        "name": f"{size_name}-{variant}-{seed}",
        "horizon": {"periods": periods},
        "regions": regions_of(rng, need, regions, periods, variant),
        "pools": pools_of(rng, need, regions, periods, parts),
        "offers": offers_of(rng, need, regions, periods, parts, variant),
        "services": [service.spec for service in services],
        "policy": {
            "reserve_hosts_per_pool": 1,
            "max_configs_per_service_region": 4,
            "transition_usd_per_accelerator": 40,
            "unmet": "penalise" if variant in SCARCE else "forbid",
        },
        "budget": {"capex_usd": capital_limit(need, regions, periods, parts, variant)},
        "finance": {"discount_rate": 0.08},
    }
    if variant is Variant.SHARED:
        _share(random.Random(f"shared {size_name} {seed}"), document)
    path = folder / "fleet.yaml"
    path.write_text(yaml_text(document), encoding="utf-8")
    return path


SHARED_EVERY: Final = 4
"""One service in so many may be served in any of its regions, in the variant that has such services."""


def _share(rng: random.Random, document: dict[str, Any]) -> None:
    """Let some services be served in any region that they are asked for in."""
    regions = document["regions"]
    for one, other in itertools.combinations(regions, 2):
        round_trip_ms = round(rng.uniform(10.0, 120.0), 1)
        regions[one].setdefault("round_trip_ms", {})[other] = round_trip_ms
        regions[one].setdefault("network_usd_per_gb", {})[other] = 0.02
        regions[other].setdefault("network_usd_per_gb", {})[one] = 0.02
    for service in document["services"][::SHARED_EVERY]:
        service |= {"serve_from": list(service["demand"]), "mb_per_request": 0.05}


def _service(
    rng: random.Random,
    folder: Path,
    index: int,
    regions: list[str],
    periods: list[str],
    parts: tuple[FleetPart, ...],
    factor: float,
) -> _Service:
    name = f"service-{index:03}"
    classes = ("short", "long") if rng.random() < 0.4 else ("all",)
    # Requests per second of one accelerator of the first part, for an aggregated replica.
    pace = 10 ** rng.uniform(-0.5, 1.2)
    places = rng.sample(regions, min(len(regions), rng.choice((1, 1, 2, 2, 3, 4))))
    growth = rng.uniform(1.0, 1.15)
    need: dict[tuple[str, str], float] = {}
    for place in sorted(places):
        accelerators = factor * MEDIAN_ACCELERATORS * math.exp(rng.gauss(0.0, 0.8))
        for q, period in enumerate(periods):
            need[place, period] = accelerators * growth**q * rng.uniform(0.97, 1.03)
    spec: dict[str, object] = {"name": name}
    if index % LANDSCAPE_EVERY == LANDSCAPE_EVERY // 2 - 1:
        classes = ("all",)
        model = LANDSCAPE_MODELS[index // LANDSCAPE_EVERY % len(LANDSCAPE_MODELS)]
        spec |= {
            "model": model,
            "precision": {"weights": "fp8", "kv": "fp8"},
            "workload": {"input_tokens": 2048, "output_tokens": 150},
            "slo": {"ttft_ms": 800, "tpot_ms": 40},
            "hardware": [part.name for part in parts if part.name != "A100-SXM-80GB"],
        }
        pace = MODEL_PACE[model]
    else:
        spec["engines"] = f"engines/{name}.csv"
        _write_engines(rng, folder / "engines" / f"{name}.csv", parts, classes, pace)
    shares = {"all": 1.0} if len(classes) == 1 else {"short": 0.7, "long": 0.3}
    rates: dict[str, dict[str, object]] = {}
    for (place, period), accelerators in need.items():
        by_class = {k: round(accelerators * pace * share / CLASS_WORK[k], 3) for k, share in shares.items()}
        rates.setdefault(place, {})[period] = by_class.get("all", by_class)
    spec |= {
        "demand": rates,
        "headroom": rng.choice((0.05, 0.1, 0.15)),
        "priority": rng.choice((1, 1, 2, 3)),
    }
    return _Service(name, classes, need, spec)


MODEL_PACE: Final[Mapping[str, float]] = {
    "llama3-8b": 6.0,
    "qwen3-14b": 3.5,
    "llama3.3-70b": 0.8,
    "qwen3-vl-32b": 1.6,
}
"""About what one accelerator of the first part serves of a catalogue model here, to size demand. [1/s]"""

CLASS_WORK: Final[Mapping[str, float]] = {"all": 1.0, "short": 0.8, "long": 2.0}
"""Accelerator time of a request over that of a mean one."""


def _write_engines(
    rng: random.Random, path: Path, parts: tuple[FleetPart, ...], classes: tuple[str, ...], pace: float
) -> None:
    """Rates of three sizes a part and phase, the smallest set by the size of the model."""
    smallest = rng.choice((1, 1, 2, 2, 4, 8))
    phases = rng.choice((("prefill", "decode", "aggregated"),) * 3 + (("aggregated",),))
    rows: list[tuple[object, ...]] = []
    # A model that suits no part at all is drawn again.
    while not rows:
        rows = _engine_rows(rng, parts, classes, pace, smallest, phases)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ("phase", "hardware", "accelerators_per_replica", "config", "class", "requests_per_s", "power_kw")
        )
        writer.writerows(rows)


def _engine_rows(
    rng: random.Random,
    parts: tuple[FleetPart, ...],
    classes: tuple[str, ...],
    pace: float,
    smallest: int,
    phases: tuple[str, ...],
) -> list[tuple[object, ...]]:
    """The rows of an engine table: about one part in ten does not run the model."""
    rows: list[tuple[object, ...]] = []
    for part in parts:
        # How well a model suits a part: kernels, precision, memory.
        suits = math.exp(rng.gauss(0.0, 0.12))
        if rng.random() < 0.1:
            continue
        for phase in phases:
            speed = {
                "prefill": 3.5 * part.prefill_speed,
                "decode": 1.6 * part.decode_speed,
                "aggregated": 0.5 * (part.prefill_speed + part.decode_speed),
            }[phase]
            for doubling in range(3):
                size = smallest * 2**doubling
                # Larger replicas have more room for requests and more to say to each other.
                efficiency = rng.uniform(0.9, 1.12) ** doubling
                for k in classes:
                    work = CLASS_WORK[k] * (rng.uniform(0.85, 1.15) if len(classes) > 1 else 1.0)
                    rate = pace * speed * suits * size * efficiency / work
                    rows.append((phase, part.name, size, f"tp{size}", k, round(rate, 4), part.kw * size))
    return rows


def main() -> None:
    """Write one fleet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="medium")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", choices=[each.value for each in Variant], default="plain")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    print(write_fleet(arguments.out, arguments.size, arguments.seed, Variant(arguments.variant)))


if __name__ == "__main__":
    main()
