"""Small plans that together contain every kind of row of a plan document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

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
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import solve

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import (
    DemandScenario,
    Finance,
    Fleet,
    KvLink,
    LengthBin,
    LengthHistogram,
    ModelVariant,
    Offline,
    Owned,
    Precision,
    RequestClass,
    Service,
    Slice,
    SpeculativeDecoding,
    Techniques,
    Tidal,
    Traffic,
)
from fleetplan.planner.api import solve_problem
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, Problem, build_problem
from fleetplan.planner.search.result import SearchLimits

Planned = tuple[Problem, Plan]

LAUNCHED_PARTS = ("H100-SXM", "H200-SXM")

QUARTERS = ("2027Q1", "2027Q2")
EAST_WEST = ("east", "west")


def _planned(asked: Fleet, runs: tuple[Candidate, ...]) -> Planned:
    solved = solve(asked, runs)
    assert solved.plan is not None
    return solved.problem, solved.plan


def _day_and_batch() -> list[Service]:
    """A service by day, of which the east serves the west, and offline work of the east."""
    demand = {(place, q, "all"): 4.0 if place == "east" else 2.0 for place in EAST_WEST for q in QUARTERS}
    both = {"regions": EAST_WEST, "periods": QUARTERS}
    chat = service(
        "chat",
        demand,
        serve_from={"west": ("east",)},
        mb_per_request=2.0,
        headroom=0.1,
        ratios={("night", None): dict.fromkeys(demand, 0.5)},
        **both,  # type: ignore[arg-type]
    )
    batch = service(
        "batch",
        {key: 0.6 if key[0] == "east" else 0.0 for key in demand},
        offline=Offline(24.0),
        ratios={("night", None): dict.fromkeys(demand, 0.0)},
        **both,  # type: ignore[arg-type]
    )
    return [chat, batch]


def day_of_two_regions() -> Planned:
    """Slices, offline work, changes within the day, traffic of another region, a link, a sale, annuities."""
    aged = Owned(60_000.0, "2025Q1", 16, 0.04, 0.1, "2026-05", (9_000.0, 30_000.0), None, ((4, 0.6),))
    tariff = {"energy_usd_per_kwh": (0.1, 0.12), "grid_kg_co2_per_kwh": (0.3, 0.2)}
    asked = fleet(
        services=_day_and_batch(),
        hardware=[hardware("A", 1, 900.0, 90.0), hardware("B", 1, 700.0)],
        pools=[replace(owned_pool("old", 4, 60_000.0, hardware="A", per_host=1, region="east"), owned=aged)],
        offers=[
            rent_offer("A", 1.5, regions=("east",), periods=QUARTERS),
            rent_offer("B", 1.4, regions=("east",), periods=QUARTERS),
        ],
        regions=[
            region("east", pue=1.2, hosting_usd_per_kw_month=90.0, **tariff),
            region(
                "west",
                pue=1.3,
                round_trip_ms={"east": 40.0},
                network_usd_per_gb={"east": 0.05},
                **tariff,
            ),
        ],
        periods=QUARTERS,
        policy={
            "kv_transfer": "same-region",
            "transition_usd_per_accelerator": 3.0,
            "tidal": Tidal(0.01),
        },
        slices=(Slice("day", 14.0), Slice("night", 10.0)),
    )
    asked = replace(
        asked,
        finance=Finance("annuity", 0.08, 120.0, 60.0, 30.0),
        kv_links=(KvLink("east", "east", 10.0),),
        # The second quarter is one that only judges terms.
        extended_by=1,
    )
    prompts = replace(candidate("chat", "B", 6.0, phase="prefill", power_kw=0.6), kv_gb=(0.25,))
    runs = (
        prompts,
        candidate("chat", "A", 2.0, phase="decode", power_kw=0.8),
        candidate("batch", "A", 1.0, power_kw=0.9),
    )
    return _planned(asked, runs)


def scarce() -> Planned:
    """Unmet demand by priority, spot and reserved capacity in lots, variants, budgets, power, a reserve."""
    better = ModelVariant("large", "m-1", "bf16", "bf16", 1.0, 1.0)
    small = ModelVariant("small", "m-2", "fp8", "bf16", 0.7, 1.0)
    first = service("first", 6.0, variants=(better, small), average_quality_floor=0.8, priority=1)
    last = service("last", {"short": 6.0, "long": 4.0}, classes={"short": 0.6, "long": 0.4}, priority=2)
    asked = fleet(
        services=[first, last],
        hardware=[hardware("A", 2, 800.0, 100.0), hardware("B", 1)],
        pools=[rented_pool("A", 2, 2.0, per_host=2)],
        offers=[
            replace(rent_offer("spot-B", 0.5, hardware="B", maximum=4), spot_max_share=0.5),
            replace(rent_offer("held-B", 1.5, hardware="B", maximum=4), lot_units=2),
            buy_offer("buy-A", 30_000.0, hardware="A", per_unit=2, maximum=2),
        ],
        regions=[region(power_kw=(9.0,), pue=1.25, energy_usd_per_kwh=(0.1,))],
        policy={"unmet": "penalise", "reserve_hosts_per_pool": 1, "max_configs_per_service_region": 2},
        budget={
            "capex_usd_by_period": (40_000.0,),
            "capex_usd": 40_000.0,
            "opex_usd": 90_000.0,
            "tco_usd": None,
        },
    )
    runs = (
        replace(candidate("first", "A", 2.0, config="large/x1", power_kw=0.7), variant="large"),
        replace(candidate("first", "B", 3.0, config="small/x1", power_kw=0.5), variant="small"),
        candidate("last", "B", (1.0, 0.5), power_kw=0.6),
    )
    return _planned(asked, runs)


def uncertain() -> Planned:
    """Demand scenarios with what is best for each alone, and the cost of having planned for another one."""
    example = EXAMPLES["regret"]()
    asked = replace(example.fleet, demand_objective="least-regret")
    candidates = CandidateSet(example.candidates, (), (), ())
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)
    problem = build_problem(asked, example.candidates)
    found = solve_problem(candidates, problem, limits, None, lambda _: None, forecasts=True)
    assert isinstance(found.outcome, Plan)
    # As `plan verify` has it: it searches for nothing.
    return problem, found.outcome


def least_energy() -> Planned:
    """An objective before the cost."""
    asked = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("hot", 1, 1500.0, 200.0), hardware("cool", 1, 700.0, 100.0)],
        offers=[rent_offer("hot", 1.0), rent_offer("cool", 3.0)],
        regions=[region(pue=1.2, energy_usd_per_kwh=(0.1,), grid_kg_co2_per_kwh=(0.4,))],
    )
    runs = (candidate("chat", "hot", 1.0, power_kw=1.5), candidate("chat", "cool", 1.0, power_kw=0.7))
    return _planned(replace(asked, objective="carbon"), runs)


def two_scenarios() -> Planned:
    """A day and demand scenarios at once, with a limit that is used up."""
    rates = {("here", q, "all"): 5.0 for q in QUARTERS}
    chat = service(
        "chat",
        rates,
        periods=QUARTERS,
        ratios={
            ("night", "low"): dict.fromkeys(rates, 0.4),
            ("day", "low"): dict.fromkeys(rates, 0.6),
        },
    )
    asked = fleet(
        services=[chat],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("rent", 1.0, hardware="A", maximum=5, periods=QUARTERS)],
        periods=QUARTERS,
        slices=(Slice("day", 10.0), Slice("night", 14.0)),
        policy={"transition_usd_per_accelerator": 2.0},
    )
    scenarios = (DemandScenario("low", 0.25), DemandScenario("high", 0.75))
    return _planned(replace(asked, demand_scenarios=scenarios), (candidate("chat", "A", 1.0),))


def launched_models() -> Planned:
    """Placements of models of the catalogue, whose launches are stated: variants, a draft, lengths."""
    lengths = LengthHistogram((LengthBin(500, 1500, 100, 300, 1.0),))
    draft = SpeculativeDecoding(3, 0.7, 0.1, 1.5, "eagle3", "drafts/llama3.1-8b")
    chat = replace(
        service("chat", 3.0, model="llama3.1-8b", engines=None, precision=Precision("fp8", "fp8")),
        techniques=Techniques(speculative=draft, chunk_tokens=4096),
        classes=(RequestClass("all", 1.0, 1000, 200, 3000),),
        traffic=Traffic(lengths=(("all", lengths),)),
    )
    better = ModelVariant("moe", "deepseek-v3", "fp8", "bf16", 1.0, 1.0)
    small = ModelVariant("small", "llama3.1-8b", "bf16", "bf16", 0.9, 1.0)
    other = service("other", 2.0, engines=None, variants=(better, small), average_quality_floor=0.95)
    parts = {name: replace(hardware(name), accelerator=accelerators()[name]) for name in LAUNCHED_PARTS}
    asked = fleet(
        services=[chat, other],
        hardware=list(parts.values()),
        offers=[rent_offer(name, 2.0) for name in LAUNCHED_PARTS],
    )
    decoding = candidate("chat", "H100-SXM", 3.0, phase="decode", config="TP1 b16")
    runs = (
        replace(candidate("chat", "H200-SXM", 3.0, phase="prefill", config="TP1"), kv_gb=(0.1,)),
        decoding,
        candidate("other", "H200-SXM", 1.0, accelerators=8, config="moe/TP8 b32"),
        candidate("other", "H100-SXM", 1.0, config="small/TP1 b8"),
    )
    return _planned(asked, tuple(replace(each, variant=each.config.rpartition("/")[0]) for each in runs))


def example(name: str) -> Planned:
    """The plan of a constraint family's example."""
    each = EXAMPLES[name]()
    solved = solve(each.fleet, each.candidates, scenario_optima=each.scenario_optima)
    assert solved.plan is not None
    return solved.problem, solved.plan


def simpler() -> Planned:
    """One kind of hardware, 0.1 % dearer than two."""
    asked = fleet(
        services=[service("chat", 19.0)],
        hardware=[hardware("cheap", 1), hardware("dear", 1)],
        offers=[rent_offer("cheap", 1.0, maximum=10), rent_offer("dear", 1.002)],
    )
    solved = solve(asked, (candidate("chat", "cheap", 1.0), candidate("chat", "dear", 1.0)), gap=0.005)
    assert solved.plan is not None
    return solved.problem, solved.plan


def at_home() -> Planned:
    """Requests that stay in their region, where that costs 2 % more."""
    ways = {"east": {"west": 10.0}, "west": {"east": 10.0}}
    asked = fleet(
        services=[service("chat", 5.0, regions=("east",), serve_from={"east": ("west",)}, home_percent=4.0)],
        hardware=[hardware("here", 1), hardware("there", 1)],
        offers=[
            rent_offer("here", 1.02, regions=("east",)),
            rent_offer("there", 1.0, regions=("west",)),
        ],
        regions=[region(place, round_trip_ms=ways[place]) for place in ways],
    )
    runs = (candidate("chat", "here", 1.0), candidate("chat", "there", 1.0))
    solved = solve(asked, runs, gap=0.2)
    assert solved.plan is not None
    return solved.problem, solved.plan


PLANS: Final[Mapping[str, Callable[[], Planned]]] = {
    "day of two regions": cache(day_of_two_regions),
    "scarce": cache(scarce),
    "uncertain": cache(uncertain),
    "least energy": cache(least_energy),
    "two scenarios": cache(two_scenarios),
    "launched models": cache(launched_models),
    "simpler": cache(simpler),
    "at home": cache(at_home),
}
"""Plans by what is in them."""
