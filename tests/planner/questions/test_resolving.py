"""Bounds, plans, candidates and equal programs reused between solves are valid."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.cache_home import own_cache_home
from tests.parts import first_parts
from tests.planner.builders import fleet, hardware, rent_offer, service
from tests.planner.formulation import two_regions
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.random_fleets import tiny_case

from fleetplan.fleet.files import SWITCH
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import Planned
from fleetplan.planner.candidates import CandidateSet, build_candidates, kept_candidates
from fleetplan.planner.jobs import open_jobs
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import KnownBound, Problem, build_problem
from fleetplan.planner.questions import fleet_edits, resolving
from fleetplan.planner.questions.alternatives import OnHardwareAlone, alternatives
from fleetplan.planner.questions.fleet_question import FleetQuestion
from fleetplan.planner.questions.marginal import marginal_table, one_more, unit_values
from fleetplan.planner.questions.pareto import pareto, pareto_table
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.reuse import bound_of, program_sha256, states_the_same
from fleetplan.planner.questions.stress import Stress, cases_of, stress_table, stressed
from fleetplan.planner.search import CostThresholds
from fleetplan.planner.search import run as search_run
from fleetplan.scenarios.load import load_fleet

SCENARIOS = Path(__file__).parents[3] / "scenarios"
ALL_SEEDS = range(24)
SEEDS = first_parts(([8, 17, 20], ALL_SEEDS), 1)


@cache
def planned_of(seed: int) -> tuple[Fleet, Plan | None]:
    """A random fleet and its plan, for all tests."""
    question = with_engine_tables(tiny_case(seed))
    return question, Resolver(EXACT).solve(question).plan


def planned(seeds: Sequence[int] = ALL_SEEDS) -> Iterator[tuple[Fleet, Plan]]:
    """Random fleets that have a plan which serves everything."""
    for question, plan in map(planned_of, seeds):
        if plan is not None and not plan.shortages:
            yield question, plan


@pytest.mark.parametrize("seeds", SEEDS, ids=("first", "all"))
def test_no_plan_on_some_of_the_hardware_costs_less_than_the_bound_with_all_of_it(
    seeds: Sequence[int],
) -> None:
    solved = 0
    for question, plan in planned(seeds):
        bound = bound_of(plan, question)
        assert bound is not None
        for name in question.hardware:
            change = OnHardwareAlone(frozenset(question.hardware) - {name})
            anew = Resolver(EXACT).answer(FleetQuestion(question, change))
            known = Resolver(EXACT).answer(FleetQuestion(question, change, begin=plan, bound=bound))
            assert anew.least_usd >= bound.usd * (1 - 1e-9)
            assert known.infeasible == anew.infeasible
            assert known.most_usd == pytest.approx(anew.most_usd)
            assert known.least_usd == pytest.approx(anew.least_usd)
            solved += known.plan is not None
    assert solved >= len(seeds) // 3


def test_a_known_bound_ends_a_search_and_is_told_with_its_source() -> None:
    question = fleet(
        services=[service("chat", 100.0, engines=engine_table([("aggregated", "A", 1, 10.0)]))],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 2.0)],
    )
    loose = Resolver(replace(EXACT, gap_ratio=0.5))
    exact = Resolver(EXACT).solve(question).most_usd
    found = loose.answer(FleetQuestion(question, bound=KnownBound(exact * 0.999, "another solve"))).plan
    assert found is not None
    assert found.bound_usd >= exact * 0.999 - 1e-6
    # One that a plan contradicts is not told.
    false = loose.answer(FleetQuestion(question, bound=KnownBound(exact * 1.5, "another solve"))).plan
    assert false is not None
    assert false.bound_usd <= exact * (1 + 1e-9)
    assert false.solve.bound_source != "another solve"


@pytest.mark.parametrize("fleets", first_parts((2, 10), 1))
def test_a_verge_tells_the_side_that_the_optimum_is_on(fleets: int) -> None:
    asked = 0
    for question, plan in itertools.islice(planned(), fleets):
        for ratio in (0.7, 0.99, 1.01, 1.5):
            cap_usd = plan.objective_usd * ratio
            answer = Resolver(EXACT).answer(
                FleetQuestion(question, thresholds=CostThresholds(cap_usd, cap_usd))
            )
            assert answer.plan is not None
            if ratio < 1:
                assert answer.least_usd >= cap_usd * (1 - 1e-9)
            else:
                assert answer.most_usd <= cap_usd * (1 + 1e-6)
            asked += 1
    assert asked >= 2 * fleets


def test_a_plan_that_nobody_sees_is_not_simplified(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    real = search_run.SimplerPlans

    def simpler(*arguments: Any) -> search_run.SimplerPlans:
        looked.append(arguments)
        return real(*arguments)

    question, plan = next(planned())
    monkeypatch.setattr(search_run, "SimplerPlans", simpler)
    hidden = Resolver(EXACT).answer(FleetQuestion(question))
    assert looked == []
    shown = Resolver(EXACT).answer(FleetQuestion(question, shown=True))
    assert looked
    assert hidden.most_usd <= shown.most_usd + 1e-6
    assert hidden.least_usd == pytest.approx(plan.bound_usd)


def test_a_regret_comes_before_a_bound_on_cost() -> None:
    question, plan = next(planned())
    assert bound_of(plan, question) is not None
    regretful = replace(question, demand_objective="least-regret", demand_scenarios=(None,))  # type: ignore[arg-type]
    assert bound_of(plan, regretful) is None
    assert bound_of(plan.model_copy(update={"goal": object()}), question) is None


@pytest.mark.parametrize("seeds", SEEDS, ids=("first", "all"))
def test_one_more_that_leaves_the_program_as_it_is_is_worth_nothing_and_not_solved(
    seeds: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[Fleet] = []
    real = resolving.solve_problem

    def counted(candidates: CandidateSet, problem: Problem, *more: Any, **options: Any) -> Planned:
        solved.append(problem.fleet)
        return real(candidates, problem, *more, **options)

    monkeypatch.setattr(resolving, "solve_problem", counted)
    same, other = 0, 0
    for question, plan in planned(seeds):
        resolver = Resolver(EXACT)
        before = resolver.problem(question)[1]
        for more in one_more(question):
            changed = more.edit(question)
            solved.clear()
            (found,) = unit_values([more], plan, question, resolver)
            after = resolver.problem(changed)[1]
            equal = program_sha256(before) == program_sha256(after)
            assert equal or not states_the_same(before, after)
            if equal:
                assert solved == []
                assert (found.least_usd, found.most_usd) == (0.0, 0.0)
                assert resolver.solve(changed).most_usd == pytest.approx(plan.objective_usd)
                same += 1
            else:
                other += len(solved)
    assert same >= 3
    assert other >= 5 * len(seeds) // 12


@pytest.mark.parametrize(("sign", "ttft_ms"), [(1, 250.0), (-1, 230.0)], ids=("looser", "tighter"))
def test_limits_on_ttft_state_the_same_until_another_region_is_in_reach(sign: int, ttft_ms: float) -> None:
    """The way takes 60 ms, and the limit of 300 ms leaves 50 ms for it, or 70 ms."""
    fleet_of, runs = two_regions.question(), [two_regions.timed(1.0, ttft_ms, "x1")]
    before, told = build_problem(fleet_of, runs), []
    for more_ms in (sign * 0.5, sign * 60.0):
        changed = fleet_edits.latency_limits_changed(
            fleet_of, "chat", partial(operator.add, more_ms), ttft=True, tpot=True
        )
        after = build_problem(changed, runs)
        told.append(states_the_same(before, after))
        assert told[-1] == (program_sha256(before) == program_sha256(after))
    assert told == [True, False]


def test_one_host_more_does_not_state_the_same() -> None:
    fleet_of, runs = two_regions.question(), [two_regions.timed(1.0, 250.0, "x1")]
    before = build_problem(fleet_of, runs)
    more = build_problem(fleet_edits.maximum_changed(fleet_of, "cheap", partial(operator.add, 1)), runs)
    assert states_the_same(before, build_problem(fleet_of, runs))
    assert not states_the_same(before, more)


@pytest.mark.parametrize("fleets", first_parts((2, 12), 1))
def test_a_plan_that_holds_under_a_case_is_not_solved_for_what_breaks(
    fleets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stress = Stress((-0.2, 0.2), (0.3, -0.3), 0, (), ())
    held = 0
    for question, plan in itertools.islice(planned(), fleets):
        resolver = Resolver(EXACT)
        for case in cases_of(question, stress):
            (short,) = stressed([case], plan, question, resolver)
            with monkeypatch.context() as patched:
                patched.setattr("fleetplan.planner.questions.stress._holds_as_it_is", lambda *_: False)
                (solved,) = stressed([case], plan, question, resolver)
            assert short.broken == solved.broken
            held += short.broken == ()
    assert held >= 5 * fleets // 3


def test_candidates_of_fewer_kinds_are_those_that_are_evaluated_for_them_alone() -> None:
    question = load_fleet(SCENARIOS / "tiny.yaml")
    resolver = Resolver(EXACT)
    assert {each.hardware for each in resolver.candidates(question).candidates} == {"H100-SXM", "H200-SXM"}
    fewer = replace(question, pools=())
    shared = resolver.candidates(fewer)
    alone = build_candidates(fewer, lambda _: None)
    (known,) = resolver._known.values()
    assert len(known) == 1
    assert shared.candidates == alone.candidates
    assert shared.rejections == alone.rejections
    assert {each.hardware for each in shared.candidates} == {"H200-SXM"}


def test_a_question_after_a_solve_evaluates_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A question reads the candidates of its plan from the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path)))
    monkeypatch.delenv(SWITCH, raising=False)
    question = load_fleet(SCENARIOS / "region-loss.yaml")
    said: list[str] = []
    built = kept_candidates(question, said.append)
    assert said
    said.clear()
    found = Resolver(EXACT, said.append).candidates(question)
    assert not said
    assert found.candidates == built.candidates
    assert found.rejections == built.rejections
    assert found.table_sources == built.table_sources
    assert found.warnings == built.warnings


def test_services_that_nobody_evaluated_before_are_evaluated_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Missing services are evaluated together, and progress counts the pairs of all of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path)))
    monkeypatch.delenv(SWITCH, raising=False)
    question = load_fleet(SCENARIOS / "region-loss.yaml")
    said: list[str] = []
    Resolver(EXACT, said.append).candidates(question)
    assert said[-1].startswith(f"evaluating {question.services[-1].name} on ")
    assert said[-1].endswith(f"({len(said)} of {len(said)})")
    assert len({line.split()[1] for line in said}) == len(question.services)


def quarter() -> tuple[Fleet, Plan]:
    """A fleet whose questions have several answers, and its plan."""
    question = load_fleet(SCENARIOS / "tiny.yaml")
    plan = Resolver(REPEATED).solve(question).plan
    assert plan is not None
    return question, plan


REPEATED = replace(EXACT, time_limit_s=30.0, gap_ratio=0.01, reproducible=True)


@pytest.mark.more
def test_questions_have_the_same_answers_on_one_worker_and_on_two() -> None:
    question, plan = quarter()
    cases = list(cases_of(question, Stress((0.1, -0.1), (0.2,), 0, (), (0.1,))))
    every = list(one_more(question))
    tables = []
    for workers in (1, 2):
        with open_jobs(workers=workers) as run:
            resolver = Resolver(REPEATED, run=run)
            tables.append(
                [
                    marginal_table(list(unit_values(every, plan, question, resolver))),
                    stress_table(list(stressed(cases, plan, question, resolver))),
                    pareto_table(list(pareto(plan, question, "accelerators", resolver))),
                    [(each.figure, each.usd) for each in alternatives(plan, question, 0.3, resolver)],
                ]
            )
    for one, two in zip(*tables, strict=True):
        if isinstance(one, list):
            assert one == two
        else:
            pd.testing.assert_frame_equal(one, two)
