"""Infeasible fleets: the core is one, ways out lead to plans and nothing smaller does, by brute force."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from tests.oracles import brute_force
from tests.oracles.brute_force import TooLargeError, brute_force_usd
from tests.parts import first_parts
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
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.random_fleets import large_case, tiny_case

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner import api
from fleetplan.planner.api import Planned, plan_fleet, solve_problem
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.formulation import PlanningModel, build_model
from fleetplan.planner.plan import Conflict, Infeasible
from fleetplan.planner.plan.infeasible import GivenWay, StatedWayOut
from fleetplan.planner.problem import build_problem
from fleetplan.planner.questions import resolving
from fleetplan.planner.questions.conflict import explain
from fleetplan.planner.questions.conflict.core import Core, CoreSearch
from fleetplan.planner.questions.conflict.explain import Explained, explain_conflict
from fleetplan.planner.questions.conflict.requirement import Requirement, RequirementKind, Steps, step_of
from fleetplan.planner.questions.conflict.requirements import requirements_of
from fleetplan.planner.questions.conflict.ways_out import Give, WayOut, least_steps
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.solve_outcome import stated_outcome
from fleetplan.planner.report.explain_console import print_conflict
from fleetplan.planner.search import (
    NEVER,
    Deadline,
    PowerLimit,
    SearchLimits,
    Shortages,
    feasible,
    least_power,
    more_power,
    work,
)
from fleetplan.planner.search.feasible import Verdict
from fleetplan.planner.search.solvers.request import ModelOutcome, ModelStatus

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


def explained(question: Fleet) -> Explained:
    found = explain_conflict(question, (), Resolver(EXACT), Deadline.after(120.0))
    assert found is not None
    assert found.complete
    return found


def core_of(found: Explained) -> Core:
    assert found.core is not None
    return found.core


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


def _is_least(question: Fleet, way: WayOut, give: Give) -> bool:
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


def one_kind(demand: float = 100.0, **changes: object) -> Fleet:
    """Replicas of two cards serve 10 requests/s; two hosts of 8 cards stand."""
    rates = engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0)
    fields: dict[str, object] = {
        "services": [service("chat", demand, engines=rates)],
        "hardware": [hardware("A", 8, 1000.0)],
        "pools": [owned_pool("own", 2, 160_000.0, hardware="A")],
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]


def ways(found: Explained) -> list[str]:
    return ["; ".join(give.text for give in way.gives) for way, _ in found.ways]


def core(found: Explained) -> list[str]:
    return [each.name for each in core_of(found).requirements]


def test_hosts_that_are_short_are_counted() -> None:
    # 10 replicas of 2 cards are 20 cards: a third host. Of 16 cards 80 requests/s are served.
    found = explained(one_kind())
    assert core(found) == ["pool own has 2 hosts of A", "chat in here is served, 100 requests/s"]
    assert ways(found) == ["1 A hosts more in own", "20.0% of chat in here unserved (20 of 100 requests/s)"]


def test_kilowatts_that_are_short_are_counted() -> None:
    # 10 replicas of 2 kW behind a PUE of 1.2.
    found = explained(
        one_kind(
            pools=[owned_pool("own", 3, 160_000.0, hardware="A")],
            regions=[region("here", power_kw=(20.0,), pue=1.2)],
        )
    )
    assert core(found) == ["power of here is 20 kW", "chat in here is served, 100 requests/s"]
    assert ways(found)[0] == "4 kW more in here"


def test_power_that_does_not_even_do_for_what_stands_idle_is_a_way_out() -> None:
    """No demand was short, so that nothing was said of power: 24 idle cards of 100 W and 10 kW of work."""
    question = one_kind(
        hardware=[hardware("A", 8, 1000.0, 100.0)],
        pools=[rented_pool("own", 3, 1.0, hardware="A")],
        regions=[region("here", power_kw=(2.0,), pue=1.0)],
    )
    stated = stated_outcome(question, EXACT, None, lambda _: None, infeasible(question))
    assert isinstance(stated, Infeasible)
    assert stated.shortages == ()
    assert stated.conflict is not None
    (give,) = stated.conflict.ways_out[0].gives
    assert give.change.endswith("kW more in here")
    assert give.least


def test_kilowatts_that_are_enough_are_said_where_the_fewest_are_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solved = []
    original = more_power.solve_planning

    def first_plan_alone(*arguments: Any) -> ModelOutcome:
        solved.append(original(*arguments))
        late = ModelOutcome(ModelStatus.UNKNOWN, None, None, None, "", 0.0)
        return solved[-1] if len(solved) % 2 else late

    monkeypatch.setattr(more_power, "solve_planning", first_plan_alone)
    problem = Resolver(EXACT).problem(two_rooms())[1]
    free = {name: replace(each, power_kw=None) for name, each in problem.regions.items()}
    asked = [PowerLimit(name, (16.0,), 1.0) for name in free]
    found = least_power(replace(problem, regions=free), asked, EXACT)
    assert found is not None
    assert not found.least
    # The first plan need not be the one that draws least.
    assert found.steps["west"] >= 16
    monkeypatch.undo()
    most = tuple(
        replace(each, power_kw=(16.0 + found.steps.get(each.name, 0),)) for each in two_rooms().regions
    )
    assert Resolver(EXACT).feasible(two_rooms(regions=most)) is Verdict.YES


def two_rooms(**changes: object) -> Fleet:
    """Power is short in both regions, by 4 kW and 16 kW; neither may serve the other."""
    rates = engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0)
    demand = {("east", "now", "all"): 100.0, ("west", "now", "all"): 160.0}
    fields: dict[str, object] = {
        "services": [service("chat", demand, regions=("east", "west"), engines=rates)],
        "hardware": [hardware("A", 8, 1000.0)],
        "pools": [],
        "offers": [rent_offer("A", 1.0, hardware="A", regions=("east", "west"))],
        "regions": [region("east", power_kw=(16.0,)), region("west", power_kw=(16.0,), pue=1.0)],
    }
    return one_kind(**{**fields, **changes})


def infeasible(question: Fleet, limits: SearchLimits = EXACT) -> Planned:
    found = plan_fleet(question, limits)
    assert isinstance(found.outcome, Infeasible)
    return found


def test_power_that_is_short_in_two_places_is_a_way_out_of_both() -> None:
    question = two_rooms()
    stated = stated_outcome(question, EXACT, None, lambda _: None, infeasible(question))
    assert isinstance(stated, Infeasible)
    assert stated.conflict is not None
    # No single requirement is enough, and the time for others would be spent before this is found.
    (way,) = [each for each in stated.conflict.ways_out if all("kW" in give.change for give in each.gives)]
    assert [give.change for give in way.gives] == ["4 kW more in east", "16 kW more in west"]
    assert all(give.least for give in way.gives)
    assert way.objective_usd == pytest.approx(26 * 2 * 2190.0)


def test_shares_of_spot_offers_may_give_way() -> None:
    # Two offers of 40 % each: a fifth of the demand has no place.
    table = pd.concat([engine_table([("aggregated", name, 1, 10.0)]) for name in ("A", "B")])
    spot = [replace(rent_offer(name, 1.0, hardware=name), spot_max_share=0.4) for name in ("A", "B")]
    question = fleet(
        services=[service("chat", {("here", "now", "all"): 100.0}, engines=table)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=spot,
    )
    found = explained(question)
    assert core(found) == [
        "spot offer A serves at most 40% of a service from a region",
        "spot offer B serves at most 40% of a service from a region",
        "chat in here is served, 100 requests/s",
    ]
    changes = {give.text for way, _ in found.ways for give in way.gives if way.serves_everything}
    assert changes == {f"spot offer {name} serves up to 60% of a service from a region" for name in "AB"}
    assert all(way.least for way, _ in found.ways)


def test_power_is_taken_where_the_fewest_kilowatts_are_enough() -> None:
    # What east asks for may run in the west, on cards that draw half.
    table = pd.concat(
        [engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0),
         engine_table([("aggregated", "B", 2, 10.0)], power_kw=1.0)]
    )  # fmt: skip
    demand = {("east", "now", "all"): 100.0, ("west", "now", "all"): 0.0}
    chat = service("chat", demand, regions=("east", "west"), engines=table, serve_from={"east": ("west",)})
    question = two_rooms(
        services=[chat],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("a", 1.0, hardware="A", regions=("east",)),
                rent_offer("b", 9.0, hardware="B", regions=("west",))],
        regions=[region("east", power_kw=(1.0,), round_trip_ms={"west": 1.0}),
                 region("west", power_kw=(1.0,))],
    )  # fmt: skip
    problem = Resolver(EXACT).problem(question)[1]
    free = {name: replace(each, power_kw=None) for name, each in problem.regions.items()}
    asked = [PowerLimit(name, (1.0,), 0.1) for name in free]
    found = least_power(replace(problem, regions=free), asked, EXACT)
    assert found is not None
    assert found.least
    assert found.steps == {"west": 90}


def test_an_infeasible_fleet_is_explained_until_the_deadline_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = with_engine_tables(large_case(1, 4, 2, 2))
    question = replace(question, regions=tuple(replace(each, power_kw=(1.0,)) for each in question.regions))
    monkeypatch.setattr(api, "EXPLANATION_S", 2.0)
    limits = SearchLimits(1.0, 0.01, workers=2)
    started = time.monotonic()
    found = infeasible(question, limits)
    stated = stated_outcome(question, limits, None, lambda _: None, found)
    # Room for a machine that does other things beside.
    assert time.monotonic() - started < 3.0 + 5.0
    assert isinstance(stated, Infeasible)
    assert stated.shortages
    assert {row.reason for row in stated.shortages} == {"power"}


@pytest.mark.parametrize(("candidates_s", "left_s"), [(0.0, 3.0), (0.6, 2.4), (5.0, 0.2)])
def test_what_candidates_took_is_no_longer_there_for_reasons(
    candidates_s: float, left_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole answer ends so much after its limit, whatever took the time.

    Candidates that take longer are given up; a last one that is not cut short leaves the least.
    """
    now = [0.0]
    found: list[float] = []

    def prepared(*_: object) -> tuple[CandidateSet, None]:
        now[0] += candidates_s
        return CandidateSet((), (), (), ()), None

    def solved(_: object, __: object, limits: SearchLimits, *___: object, **____: object) -> None:
        found.append(limits.latest.ends - now[0])

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(api, "prepare", prepared)
    monkeypatch.setattr(api, "solve_problem", solved)
    monkeypatch.setattr(api, "EXPLANATION_S", 2.0)
    monkeypatch.setattr(api, "LEAST_EXPLANATION_S", 0.2)
    api.plan_fleet(one_kind(), SearchLimits(1.0, 0.01, workers=2))
    assert found == [pytest.approx(left_s)]


def test_reasons_of_what_is_soon_proven_take_no_time_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where candidates took long, the reasons had all of the limit, too, after a proof of half a second."""
    left: list[float] = []

    def shortages(*arguments: object) -> Shortages:
        left.extend(each.left_s for each in arguments if isinstance(each, Deadline))
        return Shortages(())

    monkeypatch.setattr(api, "find_shortages", shortages)
    question = one_kind(services=[service("chat", 1e6, engines=engine_table([("aggregated", "A", 1, 1.0)]))])
    candidates, problem = Resolver(EXACT).problem(question)
    for explained, most_s in (
        (NEVER, 6.0 + api.EXPLANATION_S),
        (Deadline.after(0.0), api.LEAST_EXPLANATION_S),
    ):
        limits = SearchLimits(6.0, 0.01, workers=1, explained=explained)
        found = solve_problem(candidates, problem, limits, None, lambda _: None)
        assert isinstance(found.outcome, Infeasible)
        share = api.SHORTAGES_SHARE_OF_TIME
        assert 0.5 * share * most_s < left.pop() <= share * most_s


def test_no_question_begins_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a fleet to build, which nothing cuts short; the last one began just before the deadline."""
    now, asked = [0.0], []

    def answered(*_: object) -> Verdict:
        asked.append(now[0])
        now[0] += 1.5
        return Verdict.YES

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Resolver, "feasible", answered)
    clock = explain._Clock(Resolver(EXACT), Deadline.after(10.0))
    verdicts = [clock.feasible(one_kind()) for _ in range(9)]
    assert asked == [0.0, 1.5, 3.0, 4.5, 6.0, 7.5]
    assert verdicts[6:] == [Verdict.UNKNOWN] * 3
    assert clock.late


def test_what_is_built_counts_where_work_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that a solver decides at once took minutes of a processor to build, and counted for seconds."""
    built: list[int] = []

    def noted(*arguments: Any, **named: Any) -> PlanningModel:
        planning = build_model(*arguments, **named)
        built.append(len(planning.model.proto.variables))
        return planning

    monkeypatch.setattr(feasible, "build_model", noted)
    monkeypatch.setattr(work, "BUILDING_S_A_VARIABLE", 1.0)
    limits = SearchLimits(1.0, workers=1, reproducible=True)
    clock = explain._Clock(Resolver(limits), Deadline.after(10.0, counted=True))
    small = service("chat", 1.0, engines=engine_table([("aggregated", "A", 1, 1.0)]))
    verdicts = [clock.feasible(one_kind(services=[small])) for _ in range(20)]
    assert verdicts[-1] is Verdict.UNKNOWN
    # None begins that would end too late.
    assert sum(built) <= 10.0 <= sum(built) + max(built)


def test_no_service_is_evaluated_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardware that a question made available was evaluated for ten services, 13 s past the deadline."""
    now, evaluated = [0.0], []

    def built(fleet: Fleet, *_: object) -> CandidateSet:
        evaluated.append(fleet.services[0].name)
        now[0] += 3.0
        return CandidateSet((), (), (), ())

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(resolving, "kept_candidates", built)
    question = one_kind(services=[service(f"s{i}", 1.0) for i in range(9)])
    clock = explain._Clock(Resolver(EXACT), Deadline.after(10.0))
    assert clock.feasible(question) is Verdict.UNKNOWN
    assert clock.late
    assert evaluated == ["s0", "s1", "s2"]
    assert explain._more_power(question, requirements_of(question), clock) is None
    ways = explain._Ways(question, clock)
    ways.solve(WayOut(()))
    assert not ways.known
    assert len(evaluated) == 3


def test_a_service_that_is_evaluated_again_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of an infeasible fleet said `evaluating chat` 27 times."""

    def built(_: Fleet, announce: Callable[[str], None], *__: object) -> CandidateSet:
        announce("evaluating (1 of 1)")
        return CandidateSet((), (), (), ())

    monkeypatch.setattr(resolving, "kept_candidates", built)
    said: list[str] = []
    resolver = Resolver(EXACT, said.append)
    resolver.candidates(one_kind(services=[service("s1", 1.0)]))
    for rate in (1.0, 2.0, 3.0):
        limited = service("s0", 1.0, ttft_ms=100.0 * rate)
        resolver.candidates(one_kind(services=[limited, service("s1", 1.0)]))
        resolver.candidates(one_kind(services=[limited]))
    assert said == ["evaluating s1", "evaluating s0"]


def test_other_conflicts_are_said_where_no_requirement_is_enough() -> None:
    one, other = (GivenWay(requirement=name, change=f"without: {name}", least=False) for name in "ab")
    both = StatedWayOut(gives=(one, other), objective_usd=2.0, bound_usd=1.0)
    alone = StatedWayOut(gives=(one,), objective_usd=3.0, bound_usd=1.0)
    for ways, words in (((both,), True), ((both, alone), False), ((), False)):
        stated = Conflict(requirements=("a", "c"), minimal=True, ways_out=ways, complete=True)
        stream = StringIO()
        print_conflict(stated, Console(file=stream, width=160, color_system=None))
        text = stream.getvalue()
        assert "without any one of them the others can be met together:" in text
        assert ("Other requirements conflict as well" in text) == words


def test_without_time_nothing_is_asked() -> None:
    assert explain_conflict(one_kind(), (), Resolver(EXACT), Deadline.after(0.0), proven=True) is None


def test_demand_is_given_up_last_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RequirementKind] = []

    def first_of_core(*arguments: object) -> list[WayOut]:
        asked.extend(each.kind for each in arguments[2])  # type: ignore[attr-defined]
        return []

    monkeypatch.setattr(explain, "ways_out", first_of_core)
    rates = engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0)
    services = [service(f"s{i}", 100.0, engines=rates) for i in range(3)]
    explained(
        one_kind(
            services=services,
            pools=[owned_pool("own", 9, 160_000.0, hardware="A")],
            regions=[region("here", power_kw=(60.0,), pue=1.2)],
        )
    )
    assert asked == [
        RequirementKind.POWER,
        RequirementKind.DEMAND,
        RequirementKind.DEMAND,
        RequirementKind.DEMAND,
    ]


def test_budgets_that_are_short_are_counted() -> None:
    # The third host costs 160,000 USD, a sixteenth of it in the quarter.
    offers = [buy_offer("more", 160_000.0, hardware="A", maximum=1)]
    limits = {"capex_usd": 100_000.0}
    found = explained(one_kind(offers=offers, budget=limits))
    assert "60,000 USD more of capex budget" in ways(found)
    assert "1 A hosts more in own" not in ways(found)


def test_two_limits_that_are_short_give_way_together() -> None:
    # 20 cards are 40 kW and a third host; there are two hosts and 16 kW.
    found = explained(one_kind(regions=[region("here", power_kw=(16.0,), pue=1.0)]))
    assert "1 A hosts more in own; 4 kW more in here" in ways(found) or (
        "4 kW more in here; 1 A hosts more in own" in ways(found)
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
    assert ways(found)[0] == "1 A hosts more in own"


@pytest.mark.parametrize("percent", [33.3, 100.0 / 3])
def test_steps_of_a_reserve_in_per_cent_have_no_more_decimals_than_a_file(percent: float) -> None:
    """33.3 % less 2 was 31.299999999999997 %, whose exact ratio no row of whole numbers can hold."""
    per_pool = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 8)],
        pools=[replace(owned_pool("own", 2, 0.0, hardware="A"), reserve_percent=percent)],
    )
    per_policy = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 8)],
        offers=[rent_offer("A", 1.0, unit="host", per_unit=8)],
        policy={"reserve_percent_per_pool": percent},
    )
    runs = [candidate("chat", "A", 1.0, accelerators=8)]
    for asked in (per_pool, per_policy):
        [requirement] = [each for each in requirements_of(asked) if "of the hosts in use" in each.name]
        assert requirement.steps is not None
        for n in (1, 2, 7):
            eased = requirement.steps.relax(asked, n)
            [pool] = build_problem(eased, runs).pools
            assert pool.reserve_percent == pytest.approx(percent - n, abs=1e-6)
            assert pool.reserve_ratio.denominator <= 10**8
            assert feasible.feasibility(build_problem(eased, runs), SearchLimits(5.0)) is Verdict.YES


def test_a_reserve_gives_way() -> None:
    found = explained(one_kind(80.0, policy={"reserve_hosts_per_pool": 1}))
    assert "1 reserve host of each pool less" in ways(found)


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
    assert not found.ways[-1][0].serves_everything


def test_an_unknown_verdict_leaves_a_core_that_is_not_called_minimal() -> None:
    universe = [
        Requirement(name, RequirementKind.POLICY, lambda base: base, frozenset(), None) for name in "abcd"
    ]

    def oracle(kept: frozenset[str]) -> Verdict:
        if {"a", "b", "c"} <= kept:
            return Verdict.NO
        return Verdict.YES if "b" not in kept else Verdict.UNKNOWN

    found = CoreSearch(oracle).core(universe)
    assert found is not None
    assert [each.name for each in found.requirements] == ["a", "b", "c"]
    assert not found.minimal


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
