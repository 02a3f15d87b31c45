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
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import yaml


class Variant(StrEnum):
    """What is special about a fleet."""

    PLAIN = "plain"
    HEAD = "head"
    SHARED = "shared"
    SCARCE_SUPPLY = "scarce-supply"
    SCARCE_BUDGET = "scarce-budget"
    SCARCE_POWER = "scarce-power"


SCARCE: Final = (Variant.SCARCE_SUPPLY, Variant.SCARCE_BUDGET, Variant.SCARCE_POWER)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a fleet is: in every region a pool of every hardware, and one of single cards on demand."""

    services: int
    regions: int
    hardware: int
    quarters: int


SIZES: Final[Mapping[str, Size]] = {
    "small": Size(services=5, regions=1, hardware=2, quarters=1),
    "medium": Size(services=30, regions=3, hardware=3, quarters=4),
    "large": Size(services=100, regions=8, hardware=4, quarters=4),
    "xl": Size(services=300, regions=20, hardware=4, quarters=8),
}


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of accelerator: speeds relative to the first, and what it costs.

    Prices of purchases and rent: scenarios/quarterly.yaml and the price book; speeds: ratios of dense FP8
    peaks (prefill) and of memory bandwidths (decode) of the catalogue, rounded.
    """

    name: str
    prefill_speed: float
    decode_speed: float
    kw: float
    capex_usd_per_host: int
    rent_usd_per_accelerator_hour: float


PARTS: Final = (
    Part("H100-SXM", 1.0, 1.0, 1.37, 297_000, 1.78),
    Part("H200-SXM", 1.0, 1.4, 1.37, 311_000, 2.05),
    Part("B200-SXM", 2.2, 2.3, 1.71, 446_000, 2.60),
    Part("MI300X", 1.3, 1.5, 1.47, 250_000, 1.30),
    Part("A100-SXM-80GB", 0.35, 0.6, 0.85, 199_000, 1.10),
)
ACCELERATORS_PER_HOST: Final = 8

ON_DEMAND: Final = PARTS[0]
"""The part that is rented by the accelerator, dearer than by the host, in every region."""

MEDIAN_ACCELERATORS: Final = 24.0
"""What the median service of a region needs of the first part. [accelerators]"""

HEAD_FACTOR: Final = 40.0
"""So many times the demand in the variant whose services count hundreds of replicas."""

STOCK_SHARE: Final = 0.35
"""Part of the first quarter's need that stands already."""

SCARCE_SHARE: Final = 0.8
"""Part of the need that scarce supply, money or power is enough for."""

LANDSCAPE_MODELS: Final = ("llama3-8b", "qwen3-14b", "llama3.3-70b", "qwen3-vl-32b")
"""Models of the catalogue that services without an engine table name, in turn."""

LANDSCAPE_EVERY: Final = 10
"""One service in so many names a model."""


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
        "regions": _regions(rng, need, regions, periods, variant),
        "pools": _pools(rng, need, regions, periods, parts),
        "offers": _offers(rng, need, regions, periods, parts, variant),
        "services": [service.spec for service in services],
        "policy": {
            "reserve_hosts_per_pool": 1,
            "max_configs_per_service_region": 4,
            "transition_usd_per_accelerator": 40,
            "unmet": "penalise" if variant in SCARCE else "forbid",
        },
        "budget": {"capex_usd": _capital(need, regions, periods, parts, variant)},
        "finance": {"discount_rate": 0.08},
    }
    if variant is Variant.SHARED:
        _share(random.Random(f"shared {size_name} {seed}"), document)
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
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
    parts: tuple[Part, ...],
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
    rng: random.Random, path: Path, parts: tuple[Part, ...], classes: tuple[str, ...], pace: float
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
    parts: tuple[Part, ...],
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


def _hosts(accelerators: float) -> int:
    return max(1, math.ceil(accelerators / ACCELERATORS_PER_HOST))


def _regions(
    rng: random.Random,
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    variant: Variant,
) -> dict[str, object]:
    """Sites whose power is enough for the need on the first part with some room, or too little."""
    share = SCARCE_SHARE * 0.75 if variant is Variant.SCARCE_POWER else 1.25
    found: dict[str, object] = {}
    for region in regions:
        pue = rng.choice((1.1, 1.15, 1.2, 1.3))
        found[region] = {
            "pue": pue,
            "energy_usd_per_kwh": round(rng.uniform(0.05, 0.14), 3),
            "power_kw": {
                period: round(max(need[region, period], 16.0) * PARTS[0].kw * pue * share, 1)
                for period in periods
            },
        }
    return found


def _pools(
    rng: random.Random,
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    parts: tuple[Part, ...],
) -> list[dict[str, object]]:
    pools: list[dict[str, object]] = []
    for region in regions:
        weights = [rng.uniform(0.2, 1.0) for _ in parts]
        for part, weight in zip(parts, weights, strict=True):
            accelerators = STOCK_SHARE * need[region, periods[0]] * weight / sum(weights) / part.decode_speed
            owned: dict[str, object] = {
                "capex_usd_per_host": part.capex_usd_per_host,
                "in_service": rng.choice(("2024Q4", "2025Q3", "2026Q2")),
                "maintenance_ratio_per_year": 0.05,
            }
            if rng.random() < 0.3:
                owned["resale_usd_per_host"] = round(part.capex_usd_per_host * 0.3)
            pools.append(
                {
                    "name": f"{region}-{part.name.lower()}",
                    "region": region,
                    "hardware": part.name,
                    "hosts": _hosts(accelerators) + 1,
                    "owned": owned,
                }
            )
    return pools


def _offers(
    rng: random.Random,
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    parts: tuple[Part, ...],
    variant: Variant,
) -> list[dict[str, object]]:
    """Of every part a purchase, a rental by the quarter and a year's reservation; single cards of one."""
    largest = _hosts(sum(max(need[region, period] for period in periods) for region in regions))
    # What stands, and what each of these offers brings at most, add up to a share of the need.
    scarce = variant is Variant.SCARCE_SUPPLY
    most = max(1, round(largest * (0.12 if scarce else 2.0) / len(parts)))
    offers: list[dict[str, object]] = []
    for part in parts:
        rent = part.rent_usd_per_accelerator_hour
        common = {"hardware": part.name, "regions": list(regions)}
        offers.append(
            {
                "name": f"buy-{part.name.lower()}",
                **common,
                "capex_usd_per_host": part.capex_usd_per_host,
                "lead_time_quarters": 1 if len(periods) > 1 else 0,
                "maintenance_ratio_per_year": 0.03,
                "max_hosts": max(1, most // 4),
            }
        )
        offers.append(
            {
                "name": f"rent-{part.name.lower()}",
                **common,
                "rent_usd_per_accelerator_hour": round(rent * rng.uniform(1.0, 1.2), 3),
                "max_hosts": most,
            }
        )
        if len(periods) > 1:
            offers.append(
                {
                    "name": f"reserve-{part.name.lower()}",
                    **common,
                    "rent_usd_per_accelerator_hour": round(rent * rng.uniform(0.82, 0.95), 3),
                    "term_quarters": 4,
                    "lot_hosts": 2,
                    "max_hosts": max(2, most // 4),
                }
            )
    offers.append(
        {
            "name": "on-demand",
            "hardware": ON_DEMAND.name,
            "regions": list(regions),
            "per": "accelerator",
            "rent_usd_per_accelerator_hour": round(
                ON_DEMAND.rent_usd_per_accelerator_hour * rng.uniform(1.3, 1.6), 3
            ),
            "max_accelerators": most * ACCELERATORS_PER_HOST,
        }
    )
    return offers


def _capital(
    need: Mapping[tuple[str, str], float],
    regions: list[str],
    periods: list[str],
    parts: tuple[Part, ...],
    variant: Variant,
) -> dict[str, int]:
    """Money for a fifth of the first quarter's need in every quarter, or next to none where it is scarce."""
    share = 0.01 if variant is Variant.SCARCE_BUDGET else 0.2
    hosts = _hosts(sum(need[region, periods[0]] for region in regions))
    dearest = max(part.capex_usd_per_host for part in parts)
    return {period: round(hosts * share * dearest) for period in periods}


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
