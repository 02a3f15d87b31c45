"""Family 5: what runs in a region stays within its power."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service
from tests.planner.families import check_deletion, check_golden, check_infeasible, check_optimum
from tests.planner.solving import is_infeasible, solve


def test_the_example_has_its_optimum() -> None:
    check_optimum("power")


def test_the_changed_example_has_no_plan() -> None:
    check_infeasible("power")


def test_the_rows_are_the_golden_ones() -> None:
    check_golden("power")


def test_without_the_family_the_verifier_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    check_deletion("power", monkeypatch)


def test_the_limit_is_on_facility_power() -> None:
    here = region(power_kw=(3.0,), pue=1.5)
    question = fleet(
        services=[service("chat", 2.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        regions=[here],
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0)]
    assert solve(question, runs).plan is not None
    assert is_infeasible(replace(question, regions=(replace(here, power_kw=(2.99,)),)), runs)


def test_each_period_has_its_own_limit() -> None:
    periods = ("2026Q1", "2026Q2")
    question = fleet(
        services=[service("chat", 2.0, periods=periods)],
        hardware=[hardware("A", 1), hardware("cool", 1)],
        offers=[rent_offer("A", 1.0, periods=periods), rent_offer("cool", 2.0, periods=periods)],
        regions=[region(power_kw=(2.0, 1.0))],
        periods=periods,
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0), candidate("chat", "cool", 1.0, power_kw=0.5)]
    solved = solve(question, runs)
    assert {(row.period, row.hardware) for row in solved.rows()} == {("2026Q1", "A"), ("2026Q2", "cool")}
