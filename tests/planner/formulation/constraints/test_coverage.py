"""Family 1: every class is served in both phases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, rented_pool, service
from tests.planner.solving import is_infeasible, solve


def test_a_class_is_served_in_both_runtimes_at_once() -> None:
    # One aggregated replica takes 6 of 9 requests/s; the other 3 pass through both phases.
    question = fleet(
        services=[service("chat", 9.0)],
        hardware=[hardware("A", 1), hardware("P", 1), hardware("D", 1)],
        pools=[rented_pool(name, 1, 1.0, per_host=1) for name in ("A", "P", "D")],
    )
    runs = [
        candidate("chat", "A", 6.0),
        candidate("chat", "P", 3.0, phase="prefill"),
        candidate("chat", "D", 3.0, phase="decode"),
    ]
    solved = solve(question, runs)
    rates = {row.phase: row.requests_per_s for row in solved.rows()}
    assert rates == pytest.approx({"aggregated": 6.0, "prefill": 3.0, "decode": 3.0})


def test_prefill_without_decode_serves_nothing() -> None:
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    assert is_infeasible(question, [candidate("chat", "A", 5.0, phase="prefill")])


def test_the_two_phases_of_a_request_stand_in_one_region() -> None:
    question = fleet(
        services=[service("chat", {("east", "now", "all"): 1.0}, regions=("east",))],
        hardware=[hardware("P", 1), hardware("D", 1)],
        offers=[rent_offer("P", 1.0, regions=("east",)), rent_offer("D", 1.0, regions=("west",))],
        regions=[region("east"), region("west")],
    )
    runs = [candidate("chat", "P", 1.0, phase="prefill"), candidate("chat", "D", 1.0, phase="decode")]
    assert is_infeasible(question, runs)
    there = replace(question, offers=(question.offers[0], replace(question.offers[1], regions=("east",))))
    assert solve(there, runs).usd == pytest.approx(2 * 2190.0)


def test_headroom_is_capacity_above_demand() -> None:
    question = fleet(
        services=[service("chat", 4.0, headroom=0.25)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    # 5 requests/s with headroom, exactly two replicas of 2.5; traffic stays 4.
    solved = solve(question, [candidate("chat", "A", 2.5)])
    assert [(row.replicas, row.requests_per_s) for row in solved.rows()] == [(2, pytest.approx(4.0))]


def test_a_class_that_nothing_serves_is_infeasible() -> None:
    question = fleet(
        services=[service("chat", 2.0, classes={"short": 0.5, "long": 0.5})],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    assert is_infeasible(question, [candidate("chat", "A", (5.0, 0.0))])


def test_a_service_without_candidates_is_infeasible() -> None:
    question = fleet(services=[service("chat", 2.0)], hardware=[hardware("A", 1)], offers=[])
    assert is_infeasible(question, [])
