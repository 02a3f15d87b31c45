"""Examples of constraint families on supply: existing hosts, purchases and retirements."""

from __future__ import annotations

from dataclasses import replace

from tests.planner.builders import (
    buy_offer,
    by_case,
    candidate,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.family_example import Example

from fleetplan.fleet.inventory import (
    Owned,
)


def capacity() -> Example:
    """A pod of 72 takes four replicas of 16 and one of 8, and one host more is kept in reserve."""
    question = fleet(
        services=[service("big", 4.0), service("small", 1.0)],
        hardware=[hardware("pod", 72)],
        offers=[
            rent_offer("rent", 1.0, hardware="pod", unit="host", per_unit=72, maximum=2),
        ],
        policy={"reserve_hosts_per_pool": 1},
    )
    configurations = (
        candidate("big", "pod", 1.0, accelerators=16),
        candidate("small", "pod", 1.0, accelerators=8),
    )
    too_much = replace(question, services=(service("big", 5.0), service("small", 1.0)))
    two_of_three = replace(
        question,
        services=(service("big", 9.0), service("small", 1.0)),
        offers=(),
        pools=(rented_pool("pod", 2, 1.0, per_host=72),),
        policy=replace(question.policy, reserve_hosts_per_pool=0),
    )
    return Example(question, configurations, 2 * 72 * 2190.0, too_much, two_of_three)


def power() -> Example:
    """The cheaper hardware draws more than the region has."""
    here = region(power_kw=(12.0,), pue=1.2)
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("hot", 1), hardware("cool", 1)],
        offers=[rent_offer("hot", 1.0), rent_offer("cool", 3.0)],
        regions=[here],
    )
    configurations = (
        candidate("chat", "hot", 1.0, power_kw=1.5),
        candidate("chat", "cool", 1.0, power_kw=0.75),
    )
    # 10 kW of IT power carry three hot replicas and seven cool ones (9.75 kW).
    too_little = replace(question, regions=(region(power_kw=(8.9,), pue=1.2),))
    return Example(question, configurations, (3 * 1.0 + 7 * 3.0) * 2190.0, too_little)


def budgets() -> Example:
    """Buying is cheaper over the horizon, and the capital is for two hosts of three."""
    question = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("A", 1)],
        offers=[
            buy_offer("buy", 16_000, hardware="A", per_unit=1),
            rent_offer("rent", 1.0, hardware="A"),
        ],
        budget={
            "capex_usd_by_period": (40_000.0,),
            "capex_usd": 50_000.0,
            "opex_usd": 2_500.0,
            "tco_usd": 4_500.0,
        },
    )
    no_rent = replace(question.budget, opex_usd=2_000.0)
    return Example(question, (candidate("chat", "A", 1.0),), 4_190.0, replace(question, budget=no_rent))


def purchases() -> Example:
    """An order of the first quarter arrives in the second; rent covers the first."""
    periods = ("2026Q1", "2026Q2", "2026Q3")
    demand = {("here", q, "all"): rate for q, rate in zip(periods, (1.0, 3.0, 3.0), strict=True)}
    question = fleet(
        services=[service("chat", demand, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[
            replace(
                buy_offer("buy", 16_000, hardware="A", per_unit=1, lead=1, maximum=2, periods=periods),
                lot_units=2,
            ),
            rent_offer("rent", 1.0, hardware="A", maximum=1, periods=periods),
        ],
        periods=periods,
    )
    # Two bought for two quarters at 1000 $ each, two more for the last; one rented for the first two.
    later = replace(question.services[0], demand=by_case({**demand, ("here", "2026Q1", "all"): 2.0}))
    places = (region("east"), region("west"))
    one_for_two = fleet(
        services=[service("chat", 1.0, regions=("east", "west"))],
        hardware=[hardware("A", 1)],
        offers=[buy_offer("buy", 16_000, hardware="A", per_unit=1, maximum=1, regions=("east", "west"))],
        regions=places,
    )
    return Example(
        question,
        (candidate("chat", "A", 1.0),),
        (2 * 2 + 2) * 1000.0 + 2 * 2190.0,
        replace(question, services=(later,)),
        one_for_two,
    )


def retirement() -> Example:
    """One of two hosts sells for more than the books hold; another pool has reached its end of life."""
    periods = ("2027Q1", "2027Q2", "2027Q3")
    # A year old: 1,000 $ of write-off a quarter, and 12,000 $ in the books at first.
    old = Owned(16_000.0, "2026Q1", 16, 0.25, resale_usd_per_host=(11_500.0,) * 3)
    oldest = Owned(16_000.0, "2026Q1", 16, 0.0, end_of_life="2027Q3")
    demand = {("here", q, "all"): rate for q, rate in zip(periods, (2.0, 1.0, 1.0), strict=True)}
    question = fleet(
        services=[service("chat", demand, periods=periods)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[
            replace(owned_pool("old", 2, 16_000.0, hardware="A", per_host=1), owned=old),
            replace(owned_pool("oldest", 1, 16_000.0, hardware="B", per_host=1), owned=oldest),
        ],
        periods=periods,
    )
    # Leaving in the second quarter: four times 1,000 $ saved, 11,000 $ in the books, 11,500 $ earned. At its
    # end of life the third host saves 1,000 $ and 10,000 $ are still in the books.
    usd = (6 * 2_000 - 4_000 + 11_000 - 11_500) + (3_000 - 1_000 + 10_000)
    gone = replace(question.pools[0], owned=replace(old, end_of_life="2027Q2"))
    return Example(
        question,
        (candidate("chat", "A", 1.0),),
        usd,
        replace(question, pools=(gone, question.pools[1])),
    )


def region_loss() -> Example:
    """Either region must be able to serve both."""
    places = ("east", "west")
    demand = {("east", "now", "all"): 4.0, ("west", "now", "all"): 2.0}
    question = fleet(
        services=[service("chat", demand, regions=places)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, regions=places, maximum=12)],
        regions=[region(place, power_kw=(6.0,)) for place in places],
        policy={"survive_region_loss": ("chat",)},
    )
    runs = tuple(candidate("chat", "A", 1.0, phase=phase, power_kw=1.0) for phase in ("aggregated",))
    # Six in each region.
    eleven = replace(question, offers=(rent_offer("A", 1.0, regions=places, maximum=11),))
    return Example(question, runs, 12 * 2190.0, eleven)
