"""Weekdays and weekends: energy, starts, deferral and shares count a kind of day as often as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.oracles.independent.planned import unmet_by_priority
from tests.planner.builders import (
    HOURS_PER_QUARTER,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import Fleet, Offline, Slice, Tidal
from fleetplan.planner.formulation.rates import hours_of_day
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.problem.deferral import work_places
from fleetplan.planner.problem.moments import fleet_moments
from fleetplan.planner.verify import verify

WEEK = {"weekday": Fraction(5, 7), "weekend": Fraction(2, 7)}
PUE, TARIFF = 1.25, 0.1
KEY = ("here", "now", "all")
DAYS = HOURS_PER_QUARTER / 24


def slices_of(kinds: dict[str, Fraction] = WEEK) -> tuple[Slice, ...]:
    """Days of 14 hours and nights of 10, of each kind."""
    parts = (("day", 14.0), ("night", 10.0))
    return tuple(
        Slice(f"{kind}-{name}", hours, kind, share) for kind, share in kinds.items() for name, hours in parts
    )


def question(slices: Sequence[Slice], rates: dict[str, float], **changes: object) -> Fleet:
    """A service with a rate for each slice, on a pool that draws power only under load."""
    demand = {KEY: 1.0}
    chat = service("chat", demand, ratios={(name, None): {KEY: rate} for name, rate in rates.items()})
    return replace(
        fleet(
            services=[chat],
            hardware=[hardware("A", 1, 1000.0)],
            pools=[rented_pool("pool", 8, 0.5, hardware="A", per_host=1)],
            regions=[region(pue=PUE, energy_usd_per_kwh=(TARIFF,))],
            slices=tuple(slices),
        ),
        **changes,  # type: ignore[arg-type]
    )


RUNS = (candidate("chat", "A", 1.0, power_kw=1.0), candidate("batch", "A", 1.0, power_kw=1.0))
RATES = {"weekday-day": 4.0, "weekday-night": 1.0, "weekend-day": 2.0, "weekend-night": 0.5}


def planned(asked: Fleet, gap: float = 0.0) -> tuple[Solved, Plan]:
    solved = solve(asked, RUNS, gap=gap)
    assert solved.plan is not None
    assert not list(verify(solved.problem, solved.plan))
    return solved, solved.plan


def test_energy_counts_a_kind_of_day_as_often_as_it_is() -> None:
    _, plan = planned(question(slices_of(), RATES))
    busy = (4.0 * 14 + 1.0 * 10) * 5 / 7 + (2.0 * 14 + 0.5 * 10) * 2 / 7
    assert plan.cost_breakdown["energy"] == pytest.approx(busy / 24 * HOURS_PER_QUARTER * PUE * TARIFF)


def test_two_kinds_of_days_are_the_slices_that_people_wrote_by_hand() -> None:
    """Kinds that are as frequent as each other: slices of half the length say the same."""
    kinds = {"odd": Fraction(1, 2), "even": Fraction(1, 2)}
    rates = {"odd-day": 4.0, "odd-night": 1.0, "even-day": 2.0, "even-night": 0.5}
    by_hand = tuple(Slice(part.name, part.hours / 2) for part in slices_of(kinds))
    one, other = planned(question(slices_of(kinds), rates))[1], planned(question(by_hand, rates))[1]
    assert one.objective_usd == pytest.approx(other.objective_usd)
    assert {(row.slice, row.replicas) for row in one.placements} == {
        (row.slice, row.replicas) for row in other.placements
    }


def test_replicas_start_on_the_days_of_their_kind() -> None:
    """Five accelerators for two services: on weekdays three change hands twice a day, on weekends none."""
    one = {"weekday-day": 4.0, "weekday-night": 1.0, "weekend-day": 2.0, "weekend-night": 2.0}
    other = {"weekday-day": 1.0, "weekday-night": 4.0, "weekend-day": 2.0, "weekend-night": 2.0}
    asked = question(slices_of(), one, pools=(rented_pool("pool", 5, 0.5, hardware="A", per_host=1),))
    batch = service("batch", {KEY: 1.0}, ratios={(name, None): {KEY: rate} for name, rate in other.items()})
    policy = replace(asked.policy, tidal=Tidal(0.01))
    _, plan = planned(replace(asked, services=(*asked.services, batch), policy=policy))
    starts = {(row.slice, row.service): row.accelerators for row in plan.tides if row.accelerators > 0}
    assert starts == {("weekday-day", "chat"): 3, ("weekday-night", "batch"): 3}
    assert plan.cost_breakdown["tidal"] == pytest.approx(6 * 5 / 7 * DAYS * 0.01)


def test_work_waits_within_its_kind_of_day() -> None:
    moments = fleet_moments(question(slices_of(), RATES))
    assert [moment.slice_before for moment in moments] == [1, 0, 3, 2]
    assert work_places(moments, 24.0) == {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}
    assert sum(moment.exact_weight for moment in moments) == 1


def test_offline_work_of_a_weekday_is_done_on_a_weekday() -> None:
    """Work that arises on weekdays alone takes nothing of the weekend, however free that is."""
    asked = question(slices_of(), RATES)
    work = service(
        "batch",
        {KEY: 1.0},
        ratios={("weekend-day", None): {KEY: 0.0}, ("weekend-night", None): {KEY: 0.0}},
        offline=Offline(24.0),
    )
    rent = rent_offer("more", 2.0, hardware="A")
    # The days of the work are those of every plan, not of the best one alone.
    _, plan = planned(replace(asked, services=(*asked.services, work), offers=(rent,)), gap=0.01)
    done = [row for row in plan.offline_work if row.service == "batch"]
    assert {row.slice for row in done} <= {"weekday-day", "weekday-night"}
    assert sum(row.requests_per_day for row in done) == pytest.approx(24 * 3600.0)


def test_hours_of_a_rare_kind_of_day_are_not_rounded() -> None:
    """Hours keep their exact ratio within a day, also on a single holiday beside 200 days."""
    rare = {"x": Fraction(200, 201), "holiday": Fraction(1, 201)}
    asked = fleet(services=[service("chat", 1.0)], slices=slices_of(rare), hardware=[hardware("A", 1)])
    hours = hours_of_day(build_problem(asked, ()))
    assert [Fraction(day, night) for day, night in zip(hours[::2], hours[1::2], strict=True)] == [
        Fraction(14, 10)
    ] * 2
    odd = (Slice("day", 13.377), Slice("night", 10.623))
    asked = fleet(services=[service("chat", 1.0)], slices=odd, hardware=[hardware("A", 1)])
    day, night = hours_of_day(build_problem(asked, ()))
    assert Fraction(day, night) == Fraction(13377, 10623)


def test_a_share_of_a_pool_counts_the_hours_of_all_days() -> None:
    pools = tuple(rented_pool(name, 8, 0.5, hardware="A", per_host=1) for name in ("one", "other"))
    asked = question(slices_of(), RATES, pools=pools)
    work = service("batch", {KEY: 1.0}, ratios={("weekend-day", None): {KEY: 6.0}}, offline=Offline(24.0))
    policy = replace(asked.policy, max_share_per_pool=0.6)
    # Two pools that are alike: a proof without any gap takes a minute, and the share holds in every plan.
    _, plan = planned(replace(asked, services=(work,), policy=policy), gap=0.01)
    days = {part.name: part.hours * float(part.days_share) for part in asked.slices}
    served = {
        pool.name: sum(
            row.requests_per_s * days[row.slice or ""] for row in plan.placements if row.pool == pool.name
        )
        for pool in pools
    }
    assert sum(served.values()) == pytest.approx(24 + 5 * 14 * 2 / 7)
    assert max(served.values()) <= 0.6 * sum(served.values()) * (1 + 1e-4), (
        "beyond what a load unit is rounded by"
    )


def test_the_oracle_weighs_unmet_demand_by_the_days_of_a_kind() -> None:
    """The oracle weighs unmet demand by the number of days of a kind."""
    asked = question(slices_of(), RATES, pools=(rented_pool("pool", 3, 0.5, hardware="A", per_host=1),))
    _, plan = planned(replace(asked, policy=replace(asked.policy, unmet="penalise")))
    (left,) = plan.unmet_gaps
    assert unmet_by_priority(plan, asked) == {left.priority: pytest.approx(14 / 24 * 5 / 7)}
    assert left.model_requests_per_s == pytest.approx(14 / 24 * 5 / 7)
