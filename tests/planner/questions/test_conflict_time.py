"""The analysis of a conflict stays within the time limit of the command."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.planner.builders import owned_pool, region, service
from tests.planner.questions.conflicts import explained, infeasible, one_kind
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.random_fleets import large_case

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner import api
from fleetplan.planner.api import solve_problem
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.formulation import PlanningModel, build_model
from fleetplan.planner.plan import Infeasible
from fleetplan.planner.questions import resolving
from fleetplan.planner.questions.conflict import explain
from fleetplan.planner.questions.conflict.core import CoreSearch
from fleetplan.planner.questions.conflict.explain import explain_conflict
from fleetplan.planner.questions.conflict.requirement import Requirement, RequirementKind
from fleetplan.planner.questions.conflict.requirements import requirements_of
from fleetplan.planner.questions.conflict.ways_out import WayOut
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.solve_outcome import stated_outcome
from fleetplan.planner.search import NEVER, Deadline, SearchLimits, Shortages, feasible, work
from fleetplan.planner.search.feasible import Verdict


@pytest.mark.more
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
    """The time of the candidates counts against the time for reasons, of which a minimum always remains."""
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
    """Reasons of an infeasible fleet keep to the remaining time, also after slow candidates."""
    left: list[float] = []

    def shortages(*arguments: object) -> Shortages:
        left.extend(each.left_s for each in arguments if isinstance(each, Deadline))
        return Shortages(())

    monkeypatch.setattr(api, "find_shortages", shortages)
    question = one_kind(services=[service("chat", 1e6, engines=engine_table([("aggregated", "A", 1, 1.0)]))])
    candidates, problem = Resolver(EXACT).problem(question)
    for by, most_s in (
        (NEVER, 6.0 + api.EXPLANATION_S),
        (Deadline.after(0.0), api.LEAST_EXPLANATION_S),
    ):
        limits = SearchLimits(6.0, 0.01, workers=1, explained=by)
        found = solve_problem(candidates, problem, limits, None, lambda _: None)
        assert isinstance(found.outcome, Infeasible)
        share = api.SHORTAGES_SHARE_OF_TIME
        assert 0.5 * share * most_s < left.pop() <= share * most_s


def test_no_question_begins_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """No question starts that would pass the deadline if it took as long as the ones already answered."""
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
    """Counted work includes the building of models."""
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
    """No service is evaluated that would pass the deadline if it took as long as those already evaluated."""
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
    """Progress names a service that is evaluated again only once."""

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
