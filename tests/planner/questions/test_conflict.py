"""Minimal conflicts and resolutions of infeasible fleets, against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from tests.oracles import brute_force
from tests.oracles.brute_force import TooLargeError, brute_force_usd
from tests.parts import first_parts
from tests.planner.builders import buy_offer, region, rent_offer, service
from tests.planner.questions.conflicts import core, core_of, explained, one_kind, ways
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.random_fleets import tiny_case

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Conflict
from fleetplan.planner.plan.infeasible import ConcessionRow, StatedWayOut
from fleetplan.planner.questions.conflict.requirement import RequirementKind, Steps, step_of
from fleetplan.planner.questions.conflict.requirements import requirements_of
from fleetplan.planner.questions.conflict.ways_out import Concession, WayOut, least_steps
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.report.explain_console import print_conflict
from fleetplan.planner.search.feasible import Verdict

RANDOM_INFEASIBLE_FLEETS = 30


MOST_PLANS_TRIED = 200
"""Fleets with more plans than this are left out: the oracle would take most of the time of the suite."""


def infeasible_fleets(count: int) -> list[tuple[int, Fleet]]:
    found = []
    seed = 0
    while len(found) < count:
        question = with_engine_tables(tiny_case(seed))
        try:
            if brute_force_usd(Resolver(EXACT).problem(question)[1]) is None:
                found.append((seed, question))
        except TooLargeError:
            pass
        seed += 1
    return found


def keeping(question: Fleet, names: Sequence[str]) -> Fleet:
    """The fleet with these requirements alone."""
    for requirement in requirements_of(question):
        if requirement.name not in names:
            question = requirement.drop(question)
    return question


@pytest.mark.parametrize("count", first_parts((3, RANDOM_INFEASIBLE_FLEETS), 1))
def test_random_infeasible_fleets_against_brute_force(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The core has no plan and any part of it has; each way out has one, and none with one step less."""
    monkeypatch.setattr(brute_force, "MAX_COMBINATIONS", MOST_PLANS_TRIED)
    checked_steps = 0
    for seed, question in infeasible_fleets(count):
        found = explained(question)
        assert core_of(found).minimal, seed
        assert not exists(keeping(question, core(found))), seed
        for name in core(found):
            assert exists(keeping(question, [each for each in core(found) if each != name])), (seed, name)
        for way, answer in found.ways:
            assert exists(way.laid_on(question)), (seed, way)
            assert answer.plan is not None or not answer.problem.cells, seed
            assert way.least, seed
            checked_steps += sum(_is_least(question, way, give) for give in way.gives)
    assert checked_steps > count


def _is_least(question: Fleet, way: WayOut, give: Concession) -> bool:
    if give.steps == 0:
        return False
    less = replace(give, steps=give.steps - 1)
    smaller = WayOut(tuple(less if each is give else each for each in way.gives))
    if less.steps == 0:
        smaller = WayOut(tuple(each for each in way.gives if each is not give))
    assert not exists(smaller.laid_on(question)), give.text
    return True


def exists(question: Fleet) -> bool:
    """By brute force; by the planner, which is held to it elsewhere, where there are too many plans."""
    problem = Resolver(EXACT).problem(question)[1]
    try:
        return brute_force_usd(problem) is not None
    except TooLargeError:
        return Resolver(EXACT).feasible(question) is Verdict.YES


def test_hosts_that_are_short_are_counted() -> None:
    # 10 replicas of 2 cards are 20 cards: a third host. Of 16 cards 80 requests/s are served.
    found = explained(one_kind())
    assert core(found) == ["pool own has 2 hosts of A", "chat in here is served, 100 requests/s"]
    assert ways(found) == ["1 A host more in own", "20.0% of chat in here unserved (20 of 100 requests/s)"]


def test_other_conflicts_are_said_where_no_requirement_is_enough() -> None:
    one, other = (ConcessionRow(requirement=name, change=f"without: {name}", least=False) for name in "ab")
    both = StatedWayOut(gives=(one, other), objective_usd=2.0, bound_usd=1.0)
    alone = StatedWayOut(gives=(one,), objective_usd=3.0, bound_usd=1.0)
    for stated_ways, words in (((both,), True), ((both, alone), False), ((), False)):
        stated = Conflict(requirements=("a", "c"), minimal=True, ways_out=stated_ways, complete=True)
        stream = StringIO()
        print_conflict(stated, Console(file=stream, width=160, color_system=None))
        text = stream.getvalue()
        assert "without any one of them the others can be met together:" in text
        assert ("Other requirements conflict as well" in text) == words


def test_budgets_that_are_short_are_counted() -> None:
    # The third host costs 160,000 USD, a sixteenth of it in the quarter.
    offers = [buy_offer("more", 160_000.0, hardware="A", maximum=1)]
    limits = {"capex_usd": 100_000.0}
    found = explained(one_kind(offers=offers, budget=limits))
    assert "60,000 USD more of capex budget" in ways(found)
    assert "1 A host more in own" not in ways(found)


def test_two_limits_that_are_short_give_way_together() -> None:
    # 20 cards are 40 kW and a third host; there are two hosts and 16 kW.
    found = explained(one_kind(regions=[region("here", power_kw=(16.0,), pue=1.0)]))
    assert "1 A host more in own; 4 kW more in here" in ways(found) or (
        "4 kW more in here; 1 A host more in own" in ways(found)
    )


def test_a_latency_limit_gives_way_to_the_millisecond() -> None:
    rates = engine_table([("aggregated", "A", 2, 10.0), ("aggregated", "A", 1, 10.0)], power_kw=2.0)
    rates["ttft_ms"] = [300.0, 412.0]
    asked = service("chat", 100.0, engines=rates, ttft_ms=350.0)
    found = explained(one_kind(services=[asked]))
    assert "TTFT 350 -> 412 ms for chat" in ways(found)


def test_what_only_whole_numbers_forbid_is_a_conflict() -> None:
    # One replica of 5 cards fits a host of 8: the linear relaxation would put 1.6 there.
    rates = engine_table([("aggregated", "A", 5, 10.0)], power_kw=2.0)
    question = one_kind(services=[service("chat", 24.0, engines=rates)])
    found = explained(question)
    assert core(found) == ["pool own has 2 hosts of A", "chat in here is served, 24 requests/s"]
    assert ways(found)[0] == "1 A host more in own"


def test_lead_times_and_maxima_are_named() -> None:
    periods = ("2027Q1", "2027Q2")
    late = buy_offer("more", 160_000.0, hardware="A", lead=1, maximum=2, periods=periods)
    asked = service("chat", 100.0, engines=engine_table([("aggregated", "A", 2, 10.0)]), periods=periods)
    found = explained(one_kind(services=[asked], offers=[late], periods=periods))
    assert "offer more arrives after 0 quarters, not 1" in ways(found)


def test_the_cheapest_way_out_that_serves_everything_comes_first() -> None:
    offers = [
        rent_offer("cheap", 1.0, hardware="A", maximum=1),
        rent_offer("dear", 9.0, hardware="A", maximum=1),
    ]
    found = explained(one_kind(offers=offers))
    usd = [answer.most_usd for way, answer in found.ways if way.serves_everything]
    assert usd == sorted(usd)
    assert len(usd) == 3
    said = ["unserved" not in text for text in ways(found)]
    assert said == [True, True, True, False]
    assert [way.serves_everything for way, _ in found.ways] == said


@pytest.mark.parametrize("least", [1, 2, 3, 7, 64, 65])
def test_the_least_steps_are_found_and_proven(least: int) -> None:
    asked: list[int] = []

    def verdict(steps: int) -> Verdict:
        asked.append(steps)
        return Verdict.YES if steps >= least else Verdict.NO

    assert least_steps(verdict, None) == (least, True)
    assert len(asked) <= 2 * least.bit_length() + 1
    assert least_steps(verdict, least) == (least, True)
    assert least_steps(verdict, least - 1)[0] is None or least == 1


def test_steps_that_nobody_decided_are_not_called_least() -> None:
    assert least_steps(lambda steps: Verdict.YES if steps >= 5 else Verdict.UNKNOWN, None) == (5, False)


def test_a_step_is_the_last_digit_that_counts() -> None:
    assert [step_of(limit) for limit in (350.0, 40.0, 4000.0, 5e6)] == pytest.approx([1.0, 0.1, 10.0, 1e4])


def test_every_requirement_can_be_dropped_and_relaxed() -> None:
    question = one_kind(
        offers=[buy_offer("more", 160_000.0, hardware="A", maximum=2, lead=1)],
        regions=[region("here", power_kw=(20.0,))],
        policy={
            "reserve_hosts_per_pool": 1,
            "max_configs_per_service_region": 2,
            "max_share_per_pool": 0.5,
            "survive_region_loss": ("chat",),
        },
        budget={"capex_usd": 1e5, "opex_usd": 1e5, "tco_usd": 1e5, "capex_usd_by_period": (1e5,)},
        services=[
            service(
                "chat",
                50.0,
                engines=engine_table([("aggregated", "A", 2, 10.0)]),
                ttft_ms=100.0,
                tpot_ms=10.0,
                headroom=0.1,
                allowed_hardware=("A",),
                runtimes=("aggregated",),
                quality_floor=0.5,
            )
        ],
    )
    found = requirements_of(question)
    assert len(found) == len({each.name for each in found}) == 19
    assert {each.kind for each in found} == set(RequirementKind)
    for each in found:
        assert each.drop(question) != question, each.name
        if isinstance(each.steps, Steps):
            assert each.steps.relax(question, 1) != question, each.name
            assert each.steps.text(1)
