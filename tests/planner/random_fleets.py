"""Random fleets with their candidates, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.planner.builders import (
    buy_offer,
    candidate,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    rented_pool,
    service,
)

from fleetplan.fleet.inventory import Fleet, Hardware, Offer, Pool, Region, Service
from fleetplan.planner.problem import Candidate

CARD_KW = {"A": 0.7, "B": 1.4, "C": 0.4}
UNITS = {"A": 8, "B": 4, "C": 8}


@dataclass(frozen=True, slots=True)
class PlanningCase:
    """A fleet with the configurations that its services may run."""

    fleet: Fleet
    candidates: tuple[Candidate, ...]


def tiny_case(seed: int) -> PlanningCase:
    """One period, small enough for every number of replicas to be tried."""
    rng = random.Random(seed)
    names = ["A", "B", "C"][: rng.choice((2, 2, 3))]
    kinds = _kinds(seed, names)
    regions = [_region(rng, name) for name in ("east", "west")[: rng.choice((1, 1, 1, 2))]]
    services, candidates = [], []
    for index in range(rng.choice((1, 2, 2, 3))):
        made, configurations = _service(rng, f"s{index}", kinds, regions, max_replicas=2)
        services.append(made)
        candidates += configurations
    pools, offers = _supply(rng, kinds, regions)
    reserve = rng.choice((0, 0, 1))
    percent = random.Random(f"reserve {seed}").choice((0.0, 10.0, 60.0)) if not reserve else 0.0
    policy = {
        "reserve_hosts_per_pool": reserve,
        "reserve_percent_per_pool": percent,
        "max_configs_per_service_region": rng.choice((None, None, 1, 2, 3)),
    }
    return PlanningCase(
        fleet(
            services=services,
            hardware=kinds,
            pools=pools,
            offers=offers,
            regions=regions,
            policy=policy,
            budget=_budget(rng),
        ),
        tuple(candidates),
    )


def _kinds(seed: int, names: Sequence[str]) -> list[Hardware]:
    """Hardware that is off without work, or draws some of its power then."""
    idle = random.Random(f"idle {seed}").choice((0.0, 0.15, 0.5))
    watts = {name: CARD_KW[name] * 1000 for name in names}
    return [hardware(name, UNITS[name], watts[name], round(watts[name] * idle)) for name in names]


def several_periods_case(seed: int) -> PlanningCase:
    """Two or three quarters with growing demand, purchases with a lead time, and rent."""
    rng = random.Random(seed)
    periods = ("2026Q1", "2026Q2", "2026Q3")[: rng.choice((2, 3))]
    kinds = _kinds(seed, ["A", "B"])
    here = region("east", pue=1.2, energy_usd_per_kwh=tuple(0.1 for _ in periods))
    services, candidates = [], []
    for index in range(2):
        growth = [rng.uniform(0.5, 2.5) for _ in periods]
        made, configurations = _service(rng, f"s{index}", kinds, [here], max_replicas=3)
        demand = {
            ("east", q, k.name): round(made.demand.peak["east", "now", k.name] * factor, 2)
            for q, factor in zip(periods, growth, strict=True)
            for k in made.classes
        }
        classes = {k.name: k.share for k in made.classes}
        services.append(
            service(
                made.name, demand, classes=classes, regions=["east"], periods=periods, headroom=made.headroom
            )
        )
        candidates += configurations
    offers = [
        buy_offer(
            "buyA", 120_000, hardware="A", regions=["east"], lead=rng.choice((0, 1)), life=16, periods=periods
        ),
        rent_offer("rentB", rng.choice((3.0, 4.5)), hardware="B", regions=["east"], periods=periods),
    ]
    pools = [rented_pool("poolA", rng.randint(0, 2), 2.0, hardware="A", region="east", periods=periods)]
    pools = [pool for pool in pools if pool.hosts]
    return PlanningCase(
        fleet(
            services=services,
            hardware=kinds,
            pools=pools,
            offers=offers,
            regions=[here],
            periods=periods,
            policy={"reserve_hosts_per_pool": rng.choice((0, 1))},
            budget={
                "capex_usd_by_period": tuple(rng.choice((None, None, 250_000.0)) for _ in periods),
                "capex_usd": None,
                "opex_usd": None,
                "tco_usd": None,
            },
        ),
        tuple(candidates),
    )


def large_case(seed: int, n_services: int = 8, n_regions: int = 3, n_hardware: int = 5) -> PlanningCase:
    """A fleet of a real size: single cards to pods, several replicas of everything, one period."""
    rng = random.Random(seed)
    kinds = [hardware(f"H{i}", rng.choice((8, 8, 8, 4)), rng.uniform(400, 1800)) for i in range(n_hardware)]
    speed = {kind.name: rng.uniform(0.6, 4.0) for kind in kinds}
    places = [f"r{i}" for i in range(n_regions)]
    regions = [region(place, pue=1.2, energy_usd_per_kwh=(rng.uniform(0.05, 0.15),)) for place in places]
    services, candidates = [], []
    for index in range(n_services):
        weight = 10 ** rng.uniform(-0.5, 1.0)
        names = {"all": 1.0} if rng.random() < 0.6 else {"short": 0.7, "long": 0.3}
        demand = {
            (place, "now", k): round(weight * share * rng.uniform(5, 40), 2)
            for place in places
            for k, share in names.items()
        }
        services.append(
            service(f"s{index}", demand, classes=names, regions=places, headroom=rng.choice((0.0, 0.1)))
        )
        for kind in kinds:
            candidates += _large_candidates(rng, f"s{index}", kind, speed[kind.name], len(names))
    offers = _large_offers(rng, kinds, speed, places)
    pools = [
        rented_pool(
            f"{kind.name}-{place}",
            rng.randint(1, 12),
            speed[kind.name],
            hardware=kind.name,
            region=place,
            per_host=kind.accelerators_per_host,
        )
        for kind in kinds
        for place in places
        if rng.random() < 0.4
    ]
    policy = {"reserve_hosts_per_pool": 1, "max_configs_per_service_region": 4}
    return PlanningCase(
        fleet(services=services, hardware=kinds, pools=pools, offers=offers, regions=regions, policy=policy),
        tuple(candidates),
    )


def _large_offers(
    rng: random.Random, kinds: Sequence[Hardware], speed: Mapping[str, float], places: Sequence[str]
) -> list[Offer]:
    """Every kind for rent and for sale, the faster the dearer."""
    offers = []
    for kind in kinds:
        price = speed[kind.name] * rng.uniform(1.0, 1.8)
        per_host = kind.accelerators_per_host
        offers.append(
            rent_offer(
                f"rent-{kind.name}",
                round(price, 3),
                hardware=kind.name,
                regions=places,
                unit="host",
                per_unit=per_host,
            )
        )
        offers.append(
            buy_offer(
                f"buy-{kind.name}",
                round(price * 0.6 * 2190 * per_host * 16, -2),
                hardware=kind.name,
                regions=places,
                per_unit=per_host,
                maximum=rng.randint(5, 40),
            )
        )
    return offers


def _large_candidates(
    rng: random.Random, name: str, kind: Hardware, speed: float, n_classes: int
) -> list[Candidate]:
    smallest = rng.choice((1, 1, 2, 4))
    found = []
    for phase, factor in (("prefill", 1.0), ("decode", 0.8), ("aggregated", 0.4)):
        for size in (smallest, smallest * 2, smallest * 4):
            rates = [
                round(speed * size * factor * rng.uniform(0.6, 1.1) / (1 + k), 3) for k in range(n_classes)
            ]
            power_kw = (kind.power_w_per_accelerator or 0.0) * size / 1000
            found.append(
                candidate(name, kind.name, rates, phase=phase, accelerators=size, power_kw=round(power_kw, 4))
            )
    return found


def _region(rng: random.Random, name: str) -> Region:
    return region(
        name,
        power_kw=rng.choice((None, None, None, (rng.uniform(15, 60),))),
        pue=rng.choice((1.0, 1.15, 1.3)),
        energy_usd_per_kwh=rng.choice((None, (0.09,), (0.15,))),
        hosting_usd_per_kw_month=rng.choice((0.0, 50.0)),
    )


def _service(
    rng: random.Random, name: str, kinds: list[Hardware], regions: list[Region], max_replicas: int
) -> tuple[Service, list[Candidate]]:
    """A service that needs up to about `max_replicas` of most of its candidates."""
    classes = rng.choice(({"all": 1.0}, {"all": 1.0}, {"short": 0.6, "long": 0.4}))
    base = rng.choice((0.7, 6.0, 45.0))
    candidates: dict[tuple[str, str, int], Candidate] = {}
    for phase in rng.choice((("aggregated",), ("prefill", "decode"), ("prefill", "decode", "aggregated"))):
        for kind in rng.sample(kinds, rng.choice((1, 1, 2))):
            size = rng.choice((1, 2, 2, 3, 4, 5, 8, 16))
            rates = [round(base * rng.uniform(0.4, 1.6), 2) if rng.random() < 0.92 else 0.0 for _ in classes]
            if any(rates):
                power_kw = None if rng.random() < 0.1 else round(CARD_KW[kind.name] * size, 3)
                candidates[phase, kind.name, size] = candidate(
                    name, kind.name, rates, phase=phase, accelerators=size, power_kw=power_kw
                )
    demand = {
        (place.name, "now", k): round(base * share * rng.uniform(0.2, 0.8 * max_replicas), 2)
        for place in regions
        for k, share in classes.items()
    }
    made = service(
        name,
        demand,
        classes=classes,
        regions=[place.name for place in regions],
        headroom=rng.choice((0.0, 0.0, 0.1, 0.25)),
    )
    return made, list(candidates.values())


def _supply(
    rng: random.Random, kinds: list[Hardware], regions: list[Region]
) -> tuple[list[Pool], list[Offer]]:
    pools, offers = [], []
    places = [place.name for place in regions]
    for kind in kinds:
        per_host = kind.accelerators_per_host
        for place in places:
            if rng.random() < 0.4:
                pools.append(
                    rented_pool(
                        f"{kind.name}-{place}",
                        rng.randint(1, 3),
                        round(rng.uniform(0.5, 4.0), 2),
                        hardware=kind.name,
                        per_host=per_host,
                        region=place,
                    )
                )
            elif rng.random() < 0.3:
                pools.append(
                    owned_pool(
                        f"{kind.name}-{place}",
                        rng.randint(1, 3),
                        200_000.0,
                        hardware=kind.name,
                        per_host=per_host,
                        region=place,
                    )
                )
        if rng.random() < 0.8:
            offers.append(
                rent_offer(
                    f"rent-{kind.name}",
                    round(rng.uniform(1.0, 6.0), 2),
                    hardware=kind.name,
                    regions=places,
                    maximum=rng.choice((None, None, 12, 30)),
                )
            )
        if rng.random() < 0.6:
            offers.append(
                buy_offer(
                    f"buy-{kind.name}",
                    round(rng.uniform(60, 300)) * 1000.0,
                    hardware=kind.name,
                    regions=places,
                    per_unit=per_host,
                    maximum=rng.choice((None, 2, 4)),
                )
            )
    return pools, offers


def _budget(rng: random.Random) -> dict[str, object]:
    return {
        "capex_usd_by_period": (rng.choice((None, None, None, 600_000.0)),),
        "capex_usd": rng.choice((None, None, None, 500_000.0)),
        "opex_usd": rng.choice((None, None, None, 300_000.0)),
        "tco_usd": rng.choice((None, None, None, 250_000.0)),
    }
