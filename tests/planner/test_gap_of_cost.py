"""The gap of a cost that may be nothing, or less."""

from __future__ import annotations

import pytest

from fleetplan.planner.units import gap_of_cost


@pytest.mark.parametrize(
    ("cost", "bound", "gap"),
    [
        (100.0, 90.0, 0.1),
        (100.0, -100.0, 2.0),
        (0.0, 0.0, 0.0),
        (0.0, -100.0, 1.0),
        (-100.0, -100.0, 0.0),
        (-100.0, -150.0, 0.5),
        (-0.02, -0.025, 0.0),
    ],
)
def test_a_cost_below_zero_has_a_gap_as_any_other(cost: float, bound: float, gap: float) -> None:
    assert gap_of_cost(cost, bound) == pytest.approx(gap)
