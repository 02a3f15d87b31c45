"""Costs by kind as stated in a plan."""

from __future__ import annotations

from fleetplan.planner.assemble.costs import stated_kinds


def test_what_rounding_leaves_of_a_sum_is_no_cost() -> None:
    left = 0.1 + 0.2 - 0.3
    assert left != 0
    assert stated_kinds({"rent": 1.5, "maintenance": left, "energy": 0.0}) == {"rent": 1.5}


def test_a_small_cost_is_one() -> None:
    assert stated_kinds({"rent": 1e6, "energy": 1e-3, "resale": -2e6}) == {
        "energy": 1e-3,
        "rent": 1e6,
        "resale": -2e6,
    }
