"""Random tiny fleets with slices of the day, demand scenarios and periods, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.planner.builders import (
    buy_offer,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.random_fleets import PlanningCase

from fleetplan.fleet.inventory import DemandScenario, Offline, Service, Slice
from fleetplan.planner.problem import Candidate

UNITS = {"A": 2, "B": 1}
CARD_KW = {"A": 0.7, "B": 1.4}
DAYS = (
    (),
    (Slice("day", 12.0), Slice("night", 12.0)),
    (Slice("day", 14.0), Slice("night", 10.0)),
    (Slice("day", 9.5), Slice("evening", 6.5), Slice("night", 8.0)),
)
SCENARIOS = (
    (),
    (),
    (DemandScenario("low", 0.5), DemandScenario("high", 0.5)),
    (DemandScenario("low", 0.3), DemandScenario("high", 0.7)),
)


def day_case(seed: int) -> PlanningCase:
    """One or two periods, small enough for every purchase and every number of replicas to be tried."""
    rng = random.Random(seed)
    slices, scenarios = rng.choice(DAYS), rng.choice(SCENARIOS)
    periods = ("2026Q1", "2026Q2")[: rng.choice((1, 1, 2))]
    kinds = [hardware(name, UNITS[name], CARD_KW[name] * 1000) for name in ("A", "B")]
    offline = rng.random() < 0.5
    services, candidates = [], []
    for index in range(rng.choice((1, 2))):
        works = offline and index == 0
        made, runs = _service(rng, f"s{index}", (slices, scenarios, periods), works)
        services.append(made)
        candidates += runs
    offers = [
        rent_offer(
            "rentA",
            rng.choice((1.0, 2.0)),
            hardware="A",
            unit="host",
            per_unit=UNITS["A"],
            maximum=3,
            periods=periods,
        ),
        buy_offer(
            "buyB",
            rng.choice((20_000, 60_000)),
            hardware="B",
            per_unit=UNITS["B"],
            maximum=2,
            lead=len(periods) - 1,
            periods=periods,
        ),
    ]
    pools = [rented_pool("B", rng.randint(0, 2), 1.5, per_host=UNITS["B"], periods=periods)]
    # Brute force counts the energy of online services alone.
    price = None if offline else tuple(rng.choice((0.1, 0.5)) for _ in periods)
    question = fleet(
        services=services,
        hardware=kinds,
        pools=[pool for pool in pools if pool.hosts],
        offers=offers[: rng.choice((1, 2, 2))],
        regions=[region(pue=1.2, energy_usd_per_kwh=price)],
        periods=periods,
        policy={"reserve_hosts_per_pool": rng.choice((0, 0, 1))},
        slices=slices,
    )
    return PlanningCase(replace(question, demand_scenarios=scenarios), tuple(candidates))


def _service(
    rng: random.Random,
    name: str,
    cases: tuple[tuple[Slice, ...], tuple[DemandScenario, ...], tuple[str, ...]],
    works: bool,
) -> tuple[Service, list[Candidate]]:
    """A service of one class that needs up to two replicas or three."""
    slices, scenarios, periods = cases
    demand = {("here", q, "all"): round(rng.uniform(0.5, 1.8), 2) for q in periods}
    ratios = {
        (part and part.name, scenario and scenario.name): {
            key: rng.choice((0.0, 0.3, 0.5, 0.9)) for key in demand if rng.random() < 0.7
        }
        for part in slices or (None,)
        for scenario in scenarios or (None,)
        if part is not None or scenario is not None
    }
    phases = ("aggregated",) if works else rng.choice((("aggregated",), ("prefill", "decode")))
    runs = []
    for phase in phases:
        for kind in rng.sample(("A", "B"), rng.choice((1, 1, 2))):
            size = rng.choice((1, 2)) if kind == "A" else 1
            rate = round(rng.uniform(0.8, 1.6), 2)
            runs.append(
                candidate(
                    name, kind, rate, phase=phase, accelerators=size, power_kw=round(CARD_KW[kind] * size, 2)
                )
            )
    made = service(
        name,
        demand,
        periods=periods,
        ratios=ratios,
        headroom=rng.choice((0.0, 0.1)),
        offline=Offline(rng.choice((5.0, 12.0, 14.5, 24.0))) if works else None,
    )
    return made, runs
