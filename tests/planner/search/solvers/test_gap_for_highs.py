"""Gap at which HiGHS may end, from the gap of the whole cost."""

from __future__ import annotations

import pytest

from fleetplan.planner.search.solvers.highs_program import GAP_MARGIN, gap_between, gap_for


def test_a_poor_plan_asks_for_no_finer_gap_than_a_good_one() -> None:
    """The gap asked of HiGHS follows from the bound, fixed costs included, not from the current plan."""
    fixed, asked = 27.0, 0.01

    def enough(objective: float, bound: float) -> bool:
        return objective - bound <= asked * (objective + fixed)

    poor, good, bound = 22.0, 10.7, 9.0
    gap = gap_between(bound, poor, enough)
    assert gap == pytest.approx(GAP_MARGIN * asked * (bound + fixed), rel=1e-3)
    assert gap > 1.4 * gap_for(poor, enough) * good

    def one_side(objective: float, bound: float) -> bool:
        return objective < 10 or enough(objective, bound)

    # Where any plan below a limit will do, those above it still need a gap.
    assert gap_between(bound, poor, one_side) <= asked * (15 + fixed)
    assert gap_between(bound, bound, enough) == 0.0


@pytest.mark.parametrize("objective", [-10.0, 10.0])
def test_the_gap_of_a_plan_that_earns_is_no_wider_than_that_of_its_whole_cost(objective: float) -> None:
    """The gap asked of HiGHS is that of the whole cost, also where the decided part earns money."""
    fixed, asked = 37.0, 0.01

    def enough(objective: float, bound: float) -> bool:
        return objective - bound <= asked * (objective + fixed)

    usd = objective + fixed
    assert gap_for(objective, enough) == pytest.approx(GAP_MARGIN * asked * usd / abs(objective), abs=1e-5)
