"""Random fleets over four quarters with terms, lots and retirement: the planner against HiGHS."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.oracles.highs import highs_usd
from tests.parts import first_parts
from tests.planner.builders import buy_offer, candidate, fleet, hardware, owned_pool, rent_offer, service
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Finance, Fleet, Owned
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.search.result import SolveStatus

PERIODS = ("2027Q1", "2027Q2", "2027Q3", "2027Q4")


def random_question(seed: int) -> tuple[Fleet, tuple[Candidate, ...]]:
    """Two kinds of hosts of two accelerators: one owned, one on offer in every way."""
    draw = random.Random(seed)
    demand = {("here", quarter, "all"): float(draw.randint(0, 9)) for quarter in PERIODS}
    demand["here", draw.choice(PERIODS), "all"] = 6.0
    owned = Owned(
        float(draw.randint(10_000, 40_000)),
        draw.choice(("2023Q1", "2025Q3", "2026Q4")),
        16,
        draw.choice((0.0, 0.2, 0.4)),
        residual_ratio=draw.choice((0.0, 0.1)),
        resale_usd_per_host=draw.choice((None, tuple(float(draw.randint(0, 30_000)) for _ in PERIODS))),
        end_of_life=draw.choice((None, *PERIODS[1:])),
    )
    rent = rent_offer("rent", draw.uniform(0.8, 2.0), hardware="B", unit="host", per_unit=2, periods=PERIODS)
    offers = (
        replace(rent, max_units=(draw.randint(4, 20),) * 4),
        replace(rent, name="spot", spot_max_share=draw.choice((0.25, 0.5, 1.0))),
        replace(rent, name="reserve", term_periods=draw.randint(2, 4), lot_units=draw.randint(1, 3)),
        replace(
            buy_offer("buy", draw.uniform(5e3, 5e4), hardware="A", per_unit=2, periods=PERIODS),
            lead_time_periods=draw.randint(0, 2),
            lot_units=draw.randint(1, 3),
            residual_ratio=draw.choice((0.0, 0.2)),
        ),
    )
    question = fleet(
        services=[service("chat", demand, periods=PERIODS)],
        hardware=[hardware("A", 2), hardware("B", 2)],
        pools=[replace(owned_pool("old", draw.randint(1, 4), 1.0, hardware="A", per_host=2), owned=owned)],
        offers=offers,
        periods=PERIODS,
        policy={"reserve_hosts_per_pool": draw.randint(0, 1)},
    )
    finance = draw.choice((Finance(), Finance("annuity", 0.1), Finance(discount_rate_per_year=0.05)))
    runs = (
        candidate("chat", "A", draw.choice((1.0, 1.5))),
        candidate("chat", "A", draw.choice((2.5, 3.5)), accelerators=2),
        candidate("chat", "B", draw.choice((1.0, 2.0))),
    )
    return replace(question, finance=finance), runs


@pytest.mark.parametrize("seed", first_parts(range(20), 1, more=1))
def test_the_planner_and_highs_agree(seed: int) -> None:
    question, runs = random_question(seed)
    expected = highs_usd(build_problem(question, runs))
    solved = solve(question, runs)
    if expected is None:
        assert solved.result.status is SolveStatus.INFEASIBLE
    else:
        assert solved.usd == pytest.approx(expected, rel=1e-6, abs=1e-3)
