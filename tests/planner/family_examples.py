"""The tiny fleets that show each constraint family, with their optima."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.planner.builders import (
    by_case,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.family_example import Example
from tests.planner.supply_examples import budgets, capacity, power, purchases, region_loss, retirement

from fleetplan.fleet.inventory import (
    DemandScenario,
    KvLink,
    ModelVariant,
    MustUse,
    Offline,
    Slice,
    Tidal,
)
from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.problem.scenarios import FixedSupply, ScenarioOptimum

HALVES = (Slice("day", 12.0), Slice("night", 12.0))


def coverage() -> Example:
    """Two classes; a request may be served by one replica or through both phases."""
    question = fleet(
        services=[service("chat", 10.0, classes={"short": 0.6, "long": 0.4})],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[rented_pool("A", 3, 1.0, per_host=1), rented_pool("B", 3, 1.0, per_host=1)],
        offers=[],
    )
    configurations = (
        candidate("chat", "A", (6.0, 3.0)),
        candidate("chat", "A", (8.0, 4.0), phase="prefill"),
        candidate("chat", "B", (5.0, 2.5), phase="decode"),
    )
    too_much = replace(
        question.services[0],
        demand=by_case({("here", "now", "short"): 60.0, ("here", "now", "long"): 4.0}),
    )
    return Example(question, configurations, 6 * 2190.0, replace(question, services=(too_much,)))


def replica_load() -> Example:
    """Two classes share one replica, half of it each; another service's pool loses part of it to waiting."""
    question = fleet(
        services=[service("chat", 3.0, classes={"short": 2 / 3, "long": 1 / 3}), service("voice", 2.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("rent", 1.0, hardware="A", maximum=4)],
    )
    too_much = replace(
        question.services[0],
        demand=by_case({("here", "now", "short"): 2.0, ("here", "now", "long"): 1.1}),
    )
    # Two replicas carry 1.2 by the second line, three 2.1.
    lines = (CapacityLine(0.5, 0.0), CapacityLine(0.9, 0.6, least=2))
    voice = replace(candidate("voice", "A", 1.0), pooling=lines)
    return Example(
        question,
        (candidate("chat", "A", (4.0, 2.0)), voice),
        4 * 2190.0,
        replace(question, services=(too_much, question.services[1])),
        replace(question, services=(question.services[1],)),
    )


def transitions() -> Example:
    """A replica that is not needed in the second quarter waits, because starting it anew costs more."""
    periods = ("2026Q1", "2026Q2", "2026Q3")
    demand = {("here", q, "all"): rate for q, rate in zip(periods, (2.0, 1.0, 2.0), strict=True)}
    question = fleet(
        services=[service("chat", demand, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, periods=periods)],
        periods=periods,
        policy={"transition_usd_per_accelerator": 3000.0},
    )
    # Two rented for three quarters; without the cost of starting, five quarters of one.
    too_dear = replace(question, budget=replace(question.budget, tco_usd=6 * 2190.0 - 1))
    return Example(question, (candidate("chat", "A", 1.0),), 6 * 2190.0, too_dear, reported="cost")


def configurations() -> Example:
    """One configuration alone is dearer than the best mix of two."""
    question = fleet(
        services=[service("chat", 5.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 4.0), rent_offer("B", 1.9, maximum=3)],
        policy={"max_configs_per_service_region": 1},
    )
    runs = (candidate("chat", "A", 4.0), candidate("chat", "B", 1.0))
    # Two of A; without the limit one of A and one of B.
    only_b = replace(question, offers=(question.offers[1],))
    return Example(question, runs, 2 * 4.0 * 2190.0, only_b)


def placement() -> Example:
    """The cheap pool serves at most 60 %: four of six replicas would fit."""
    question = fleet(
        services=[service("chat", 5.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 3.0)],
        policy={"max_share_per_pool": 0.6},
    )
    runs = (candidate("chat", "A", 1.0), candidate("chat", "B", 1.0))
    # 3 of 5 requests/s on A, 2 on B.
    one_pool = replace(question, offers=question.offers[:1])
    return Example(question, runs, (3 * 1.0 + 2 * 3.0) * 2190.0, one_pool)


def must_use() -> Example:
    """Four aggregated A would do at 1 USD each; a request in ten must be decoded by B at 3 USD."""
    forced = MustUse("B", hardware="B", share=0.1)
    question = fleet(
        services=[service("chat", 4.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 3.0)],
        policy={"must_use": (forced,)},
    )
    runs = (
        candidate("chat", "A", 1.0),
        candidate("chat", "A", 2.0, phase="prefill"),
        candidate("chat", "B", 2.0, phase="decode"),
    )
    # Up to 2 requests/s in two phases leave two aggregated replicas: 1 + 3 + 2 USD.
    nowhere = replace(question, offers=question.offers[:1])
    return Example(question, runs, 6.0 * 2190.0, nowhere)


def offline() -> Example:
    """Work of the day waits for the night, when the other service leaves room."""
    demand = {("here", "now", "all"): 4.0}
    chat = service("chat", demand, ratios={("night", None): {("here", "now", "all"): 0.25}})
    question = fleet(
        services=[chat, service("batch", 2.0, offline=Offline(13.0))],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, maximum=5)],
        slices=HALVES,
    )
    runs = (candidate("chat", "A", 1.0), candidate("batch", "A", 1.0))
    # 48 and 12 replica-hours a day of chat, 48 of batch: 108 of the 120 that five have.
    hasty = replace(question, services=(chat, service("batch", 2.0, offline=Offline(11.0))))
    return Example(question, runs, 5 * 2190.0, hasty)


def tidal() -> Example:
    """One service by day and one by night; half of the accelerators may change hands, at a cost."""
    day = service("day", 2.0, ratios={("night", None): {("here", "now", "all"): 0.0}})
    night = service("night", 2.0, ratios={("day", None): {("here", "now", "all"): 0.0}})
    question = fleet(
        services=[day, night],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        slices=HALVES,
        policy={"tidal": Tidal(10.0, 0.5)},
    )
    # One of three is shared: it starts twice on each of 91.25 days. A fourth would cost 2190.
    two = replace(question, offers=(rent_offer("A", 1.0, maximum=2),))
    runs = (candidate("day", "A", 1.0), candidate("night", "A", 1.0))
    return Example(question, runs, 3 * 2190.0 + 2 * 91.25 * 10.0, two)


def kv_transfer() -> Example:
    """Prefill is cheap in one region and decode in the other; the link takes two of three requests/s."""
    places = ("east", "west")
    question = fleet(
        services=[
            service(
                "chat",
                {("east", "now", "all"): 3.0},
                regions=places,
                runtimes=("disaggregated",),
                ttft_ms=300.0,
            )
        ],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[
            rent_offer("A", 1.0, regions=("east",)),
            rent_offer("near", 5.0, hardware="B", regions=("east",)),
            rent_offer("far", 1.0, hardware="B", regions=("west",)),
        ],
        regions=[region(place) for place in places],
        policy={"kv_transfer": "cross-region"},
    )
    question = replace(question, kv_links=(KvLink("east", "west", 5.0, 40.0),))
    prefill = candidate("chat", "A", 1.0, phase="prefill")
    runs = (
        replace(prefill, ttft_ms=(250.0,), kv_gb=(2.5,)),
        candidate("chat", "B", 1.0, phase="decode"),
    )
    # Three prefill, one decodes near and two far.
    usd = (3 * 1.0 + 5.0 + 2 * 1.0) * 2190.0
    narrow = replace(question, kv_links=(KvLink("east", "west", 5.0, 40.0),), offers=question.offers[::2])
    return Example(question, runs, usd, narrow)


def quality() -> Example:
    """The cheap variant scores 0.6, the good one 0.9; 0.7 on average needs a third of the good one."""
    variants = (
        ModelVariant("cheap", "m", "bf16", "bf16", 0.6, 1.0),
        ModelVariant("good", "m", "bf16", "bf16", 0.9, 1.0),
    )
    question = fleet(
        services=[service("chat", 6.0, variants=variants, average_quality_floor=0.7)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    runs = (
        replace(candidate("chat", "A", 2.0, config="cheap/x1"), variant="cheap"),
        replace(candidate("chat", "A", 1.0, config="good/x1"), variant="good"),
    )
    # Four requests/s on two replicas of the cheap one, two on two of the good one; three cheap ones would do.
    too_good = replace(question, budget=replace(question.budget, tco_usd=4 * 2190.0 - 1))
    return Example(question, runs, 4 * 2190.0, too_good)


def regret() -> Example:
    """Demand is 5 or, far more likely, 10; dear hardware runs for nothing, cheap hardware does not.

    A costs 2000 USD a quarter, B 1000 and 1200 more for energy if it runs. Five of A and five of B cost
    15,000 where 5 turn out (10,000 at best) and 21,000 where 10 do (20,000 at best).
    """
    hour = 1 / 2190
    scenarios = (DemandScenario("low", 0.1), DemandScenario("high", 0.9))
    chat = service("chat", 10.0, ratios={(None, "low"): {("here", "now", "all"): 0.5}})
    question = replace(
        fleet(
            services=[chat],
            hardware=[hardware("A", 1), hardware("B", 1)],
            offers=[rent_offer("A", 2000 * hour), rent_offer("B", 1000 * hour)],
            regions=[region(energy_usd_per_kwh=(1.0,))],
        ),
        demand_scenarios=scenarios,
        demand_objective="least-regret",
    )
    runs = (
        candidate("chat", "A", 1.0, power_kw=0.0),
        candidate("chat", "B", 1.0, power_kw=1200 * hour),
    )
    usd = 0.1 * 15_000 + 0.9 * 21_000
    few = replace(question, offers=(rent_offer("A", 2000 * hour, maximum=9),))
    best = {
        "low": ScenarioOptimum(10_000.0, 10_000.0, 0.0, FixedSupply({(0, 0, 0): 5}, {})),
        "high": ScenarioOptimum(20_000.0, 20_000.0, 0.0, FixedSupply({(0, 0, 0): 10}, {})),
    }
    return Example(question, runs, usd, few, scenario_optima=best, reported="goal")


EXAMPLES: dict[str, Callable[[], Example]] = {
    "coverage": coverage,
    "replica_load": replica_load,
    "capacity": capacity,
    "power": power,
    "budgets": budgets,
    "purchases": purchases,
    "transitions": transitions,
    "retirement": retirement,
    "configurations": configurations,
    "region_loss": region_loss,
    "placement": placement,
    "offline": offline,
    "tidal": tidal,
    "regret": regret,
    "must_use": must_use,
    "kv_transfer": kv_transfer,
    "quality": quality,
}
"""By the module name of the family."""
