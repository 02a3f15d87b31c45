"""Figures that are computed once, and the decision that is left out where it closes nothing."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from tests.planner.builders import buy_offer, candidate, fleet, hardware, owned_pool, region, service

from fleetplan.planner.formulation.build import build_model
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.problem.memo import memoised


class Thing:
    """Something that can be referred to weakly."""


def test_an_answer_is_computed_once_and_forgotten_with_its_question() -> None:
    asked = []

    @memoised
    def figure(thing: Thing) -> list[int]:
        asked.append(1)
        return [len(asked)]

    first, second = Thing(), Thing()
    assert figure(first) is figure(first)
    assert figure(second) != figure(first)
    assert len(asked) == 2
    del first
    # What is this young, the first generation has.
    gc.collect(0)
    figure(second)
    assert len(asked) == 2
    # The next ones may have the place in memory of those that are gone, never their answers.
    assert [figure(Thing()) for _ in range(5)] == [[number] for number in range(3, 8)]


def problem(hosts: int, reserve: int) -> Problem:
    made = fleet(
        services=[service("s", {("east", "now", "all"): 4.0}, regions=["east"])],
        hardware=[hardware("A", 8, 700.0)],
        pools=[owned_pool("own", hosts, 100_000.0, hardware="A", per_host=8, region="east")],
        offers=[buy_offer("buy", 100_000.0, hardware="A", regions=["east"], per_unit=8, maximum=4)],
        regions=[region("east")],
        policy={"reserve_hosts_per_pool": reserve},
    )
    return build_problem(made, [candidate("s", "A", [2.0], phase="aggregated", accelerators=4)])


@pytest.mark.parametrize(("hosts", "decided"), [(0, True), (1, True), (2, False), (5, False)])
def test_a_pool_with_more_than_its_reserve_is_in_use(hosts: int, decided: bool) -> None:
    planning = build_model(problem(hosts, reserve=1), allow_unmet=False)
    assert bool(planning.variables.in_use) is decided


def test_a_changed_problem_has_figures_of_its_own() -> None:
    before = problem(2, reserve=0)
    after = replace(before, candidates=())
    assert before.candidates_of("s") == [0]
    assert after.candidates_of("s") == []
    assert before.candidates_of("s") == [0]
