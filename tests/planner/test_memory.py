"""Memory that solves keep in a long-running process: `plan serve`, a notebook, a soak test."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.live_objects import live_by_class
from tests.parts import first_of
from tests.planner.questions.tiny import EXACT, with_engine_tables
from tests.planner.random_fleets import tiny_case

from fleetplan.planner.formulation.packing import Packing
from fleetplan.planner.questions.resolving import KNOWN_OF_A_SERVICE, Resolver


@pytest.mark.parametrize("count", first_of((2, 4), 1))
def test_nothing_of_a_solve_outlives_it(count: int) -> None:
    seeds = range(count)
    for seed in seeds:
        Resolver(EXACT).solve(with_engine_tables(tiny_case(seed)))
    before = live_by_class("fleetplan.")
    for seed in seeds:
        Resolver(EXACT).solve(with_engine_tables(tiny_case(seed + len(seeds))))
    grown = live_by_class("fleetplan.") - before
    # Divisions of hosts into replicas, in a bounded cache.
    del grown[Packing.__qualname__]
    assert not grown


def test_a_page_that_changes_a_service_all_day_keeps_its_last_candidates() -> None:
    fleet = with_engine_tables(tiny_case(0))
    first, *others = fleet.services
    resolver = Resolver(EXACT)
    for step in range(KNOWN_OF_A_SERVICE + 4):
        engines = first.engines.copy()
        engines["requests_per_s"] *= 1 + step / 100
        changed = replace(fleet, services=(replace(first, engines=engines), *others))
        found = resolver.candidates(changed)
        assert found.candidates == Resolver(EXACT).candidates(changed).candidates
    assert {name: len(known) for name, known in resolver._known.items()} == {
        first.name: KNOWN_OF_A_SERVICE,
        **{each.name: 1 for each in others},
    }
