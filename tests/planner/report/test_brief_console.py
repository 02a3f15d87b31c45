"""A plan of many moments fits on one screen, with figures that match its rows."""

from __future__ import annotations

from collections import defaultdict
from io import StringIO

import pytest
from rich.console import Console
from tests.parts import first_parts
from tests.planner.verify.plans import PLANS

from fleetplan.fleet.figures import figure, money
from fleetplan.planner.plan import MomentKey, Plan
from fleetplan.planner.plan.document import Binding
from fleetplan.planner.report.brief_console import (
    LINES_OF_A_TABLE,
    MOST_LISTED,
    ROWS_ON_A_SCREEN,
    fits_a_screen,
)
from fleetplan.planner.report.console import print_plan

SCREEN_LINES = 60
"""Lines of a screen of 160 columns."""

PERIODS = tuple(f"20{27 + n // 4}Q{n % 4 + 1}" for n in range(12))


def shown(plan: Plan, full: bool = False) -> list[str]:
    screen = StringIO()
    print_plan(plan, Console(file=screen, width=160, color_system=None), full)
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def repeated(plan: Plan, services: int = 1) -> Plan:
    """The same plan in twelve quarters, with copies of its services and pools; demand grows."""
    names = range(services)
    placements = tuple(
        row.model_copy(
            update={
                "period": period,
                "service": f"{row.service}-{name}",
                "requests_per_s": row.requests_per_s * (1 + number),
            }
        )
        for number, period in enumerate(PERIODS)
        for row in plan.placements
        if row.period == plan.periods[0]
        for name in names
    )
    pools = tuple(
        row.model_copy(update={"period": period, "pool": f"{row.pool}-{name}"})
        for period in PERIODS
        for row in plan.pools
        if row.period == plan.periods[0]
        for name in names
    )
    limits = tuple(
        Binding(family="capacity", name=f"{pool} {period}", used=8.0, limit=8.0, unit="accelerators")
        for period in PERIODS
        for pool in dict.fromkeys(row.pool for row in plan.pools)
    )
    return plan.model_copy(
        update={"periods": PERIODS, "placements": placements, "pools": pools, "binding": limits}
    )


@pytest.fixture(scope="module")
def small() -> Plan:
    return PLANS["day of two regions"]()[1]


def test_a_small_plan_is_printed_whole(small: Plan) -> None:
    assert fits_a_screen(small)
    assert shown(small) == shown(small, full=True)
    assert any(line.startswith("Placements") for line in shown(small))


@pytest.mark.parametrize("services", first_parts((5, LINES_OF_A_TABLE + 2, 40), 1, more=1))
def test_many_moments_fit_one_screen(small: Plan, services: int) -> None:
    plan = repeated(small, services)
    assert len(plan.placements) > ROWS_ON_A_SCREEN
    lines = shown(plan)
    assert len(lines) <= SCREEN_LINES
    assert not any(line.startswith("Placements") for line in lines)
    assert lines[-1].startswith("Every moment: `--full`")
    whole = shown(plan, full=True)
    assert sum(line.startswith("Placements") for line in whole) == len(PERIODS)
    assert lines[:3] == whole[:3]


def test_lines_add_up_and_the_rest_has_one(small: Plan) -> None:
    plan = repeated(small, LINES_OF_A_TABLE + 4)
    lines = shown(plan)
    start = lines.index(next(line for line in lines if line.startswith("Services")))
    (end,) = [at for at, line in enumerate(lines) if at > start and " more  " in line]
    rows = [line.split() for line in lines[start + 2 : end]]
    named = [row for row in rows if row[0].startswith(f"{small.placements[0].service}-")]
    own = [row for row in plan.placements if row.service == named[0][0]]
    assert len(named) <= LINES_OF_A_TABLE
    assert " ".join(named[0]).endswith(money(sum(row.usd for row in own)))
    served: dict[MomentKey, float] = defaultdict(float)
    for row in own:
        served[row.moment_key] += row.requests_per_s if row.phase != "decode" else 0.0
    peak = max(served, key=lambda moment: served[moment])
    assert peak[0] == PERIODS[-1]
    assert figure(served[peak]) in named[0]
    rest = lines[end]
    services = dict.fromkeys(row.service for row in plan.placements)
    listed = {row[0] for row in named}
    others = sum(row.usd for row in plan.placements if row.service not in listed)
    assert rest.split()[0] == str(len(services) - len(named))
    assert rest.endswith(money(others))


def test_a_pool_that_grows_says_so(small: Plan) -> None:
    plan = repeated(small, 5)
    grown = tuple(
        row.model_copy(update={"accelerators": 8 if row.period < PERIODS[6] else 24}) for row in plan.pools
    )
    lines = shown(plan.model_copy(update={"pools": grown}))
    assert sum(" 8 > 24 " in line for line in lines) == len({row.pool for row in grown})


def test_limits_and_shortages_are_counted(small: Plan) -> None:
    plan = repeated(small, 5)
    (limits,) = [line for line in shown(plan) if line.startswith("Binding constraints")]
    assert f", 8 of 8 accelerators, in {len(PERIODS)} moments" in limits
    # Limits that grow: "24 of 24 accelerators, in 12 moments" was only true of the last.
    grown = [
        row.model_copy(update={"used": 24.0, "limit": 24.0}) if PERIODS[-1] in row.name else row
        for row in plan.binding
    ]
    (limits,) = [
        line
        for line in shown(plan.model_copy(update={"binding": tuple(grown)}))
        if line.startswith("Binding constraints")
    ]
    assert f", at most 24 of 24 accelerators, in {len(PERIODS)} moments" in limits
    short = PLANS["scarce"]()[1]
    row = short.unmet[0]
    unmet = tuple(
        row.model_copy(update={"period": period, "requests_per_s": 2.0 + number})
        for number, period in enumerate(PERIODS)
    )
    assert len(unmet) > MOST_LISTED
    lines = shown(repeated(short, 9).model_copy(update={"unmet": unmet, "inputs": None}))
    table = lines.index(next(line for line in lines if line.startswith("Unmet")))
    most = row.model_copy(update={"period": PERIODS[-1]}).moment_key
    assert lines[table + 2].split() == [
        row.service, row.region, *(part for part in most if part), figure(13.0), str(len(PERIODS)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "wall_s", "ended"),
    [
        (
            "limit",
            6.0,
            "stopped or out of time after 6.0 s of search, of 30 s in all",
        ),
        ("limit", 29.0, "time limit reached after 29.0 s of search"),
        ("within_gap", 6.0, "within the requested gap after 6.0 s of search"),
    ],
)
def test_a_search_that_began_late_says_so(small: Plan, status: str, wall_s: float, ended: str) -> None:
    """The first line names the time of the candidates if they left little for the search.

    A search that the user stops does so, too.
    """
    plan = small.model_copy(
        update={
            "status": status,
            "solve": small.solve.model_copy(update={"wall_s": wall_s}),
            "provenance": small.provenance.model_copy(update={"time_limit_s": 30.0}),
        }
    )
    line = next(each for each in shown(plan) if each.startswith("Optimality gap"))
    assert ended in line
    assert ("in all" in line) == ("in all" in ended)
