"""Random fleets whose phases, variants and regions are apart."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service
from tests.planner.random_fleets import PlanningCase

from fleetplan.fleet.inventory import KvLink, ModelVariant
from fleetplan.planner.problem import Candidate

PLACES = ("east", "west")
PARTS = ("A", "B", "C")


def kv_pair_case(seed: int) -> PlanningCase:
    """Two regions, three kinds of hardware, variants; every rule about who serves whom is drawn."""
    rng = random.Random(seed)
    ways = {"east": {"west": 50.0}, "west": {"east": 50.0}}
    regions = [region(place, round_trip_ms=ways[place]) for place in PLACES]
    variants = rng.choice(((), ("good", "cheap")))
    floors = {"good": 0.9, "cheap": 0.6}
    asked = service(
        "chat",
        {(place, "now", k): rng.choice((0.0, 1.0, 2.5)) for place in PLACES for k in ("short", "long")}
        | {("east", "now", "short"): 2.0},
        classes={"short": 0.6, "long": 0.4},
        regions=PLACES,
        ttft_ms=300.0,
        headroom=rng.choice((0.0, 0.25)),
        serve_from=rng.choice(({}, {"east": ("west",)}, {"east": ("west",), "west": ("east",)})),
        variants=tuple(ModelVariant(name, "m", "bf16", "bf16", floors[name], 1.0) for name in variants),
        average_quality_floor=rng.choice((None, 0.7, 0.8)) if variants else None,
    )
    reach = rng.choice(("same-pool", "same-region", "cross-region"))
    links = [KvLink("east", "west", rng.choice((1.0, 3.0, 50.0)), rng.choice((0.0, 30.0)))]
    if rng.random() < 0.5:
        links.append(KvLink("east", "east", rng.choice((2.0, 20.0))))
    asked_fleet = fleet(
        services=[asked],
        hardware=[hardware(part, 1) for part in PARTS],
        offers=[
            rent_offer(
                f"{part}-{place}",
                rng.choice((1.0, 1.5, 2.0, 3.0)),
                hardware=part,
                regions=(place,),
                maximum=rng.choice((None, 2, 4)),
            )
            for part in PARTS
            for place in PLACES
            if rng.random() < 0.8
        ],
        regions=regions,
        policy={
            "kv_transfer": reach,
            "kv_pairs": rng.choice((None, frozenset({("A", "A"), ("B", "B"), ("C", "C"), ("A", "B")}))),
        },
    )
    links = links if reach == "cross-region" else links[1:]
    return PlanningCase(replace(asked_fleet, kv_links=tuple(links)), tuple(_candidates(rng, variants)))


def _candidates(rng: random.Random, variants: tuple[str, ...]) -> list[Candidate]:
    found = []
    for variant in variants or ("",):
        for part in PARTS:
            for phase in ("prefill", "decode", "aggregated"):
                if rng.random() < 0.75:
                    fast = rng.choice((1.0, 1.25, 2.0))
                    one = candidate(
                        "chat", part, (fast, rng.choice((0.0, fast / 2))), phase=phase, config=f"{variant}/x1"
                    )
                    ttft = rng.choice((220.0, 260.0, 290.0))
                    found.append(
                        replace(
                            one,
                            variant=variant,
                            ttft_ms=(None, None) if phase == "decode" else (ttft, ttft),
                            kv_gb=(0.5, 1.5) if phase == "prefill" else (),
                        )
                    )
    return found
