"""Unmet demand within rounding is not a shortage; many shortages fit on a screen."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.planner.verify.plans import PLANS

from fleetplan.planner.plan import Infeasible, Plan, Shortage
from fleetplan.planner.plan.document import UNMET_ROUNDING_SHARE
from fleetplan.planner.report.brief_console import MOST_LISTED, unmet_by_service
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.decision import asked_by
from fleetplan.planner.report.html.page import infeasible_page, report_page
from fleetplan.planner.report.infeasible_console import print_infeasible
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA


def with_unmet(requests_per_s: float) -> Plan:
    """A plan of demand that may stay unmet, with so much of it unmet."""
    plan = PLANS["scarce"]()[1]
    (row,) = plan.unmet
    assert plan.shortages == plan.unmet
    assert plan.shortage_gaps == plan.unmet_gaps
    return plan.model_copy(update={"unmet": (row.model_copy(update={"requests_per_s": requests_per_s}),)})


def shown(plan: Plan) -> str:
    screen = io.StringIO()
    print_plan(plan, Console(file=screen, width=160))
    return screen.getvalue()


@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize(("requests_per_s", "is_short"), [(1.6e-5, False), (1e-3, True)])
def test_rounding_is_no_shortage(requests_per_s: float, is_short: bool) -> None:
    plan = with_unmet(requests_per_s)
    (row,) = plan.unmet
    assert plan.inputs is not None
    (demand,) = [
        each.requests_per_s
        for each in plan.inputs.demand
        if (each.service, each.request_class) == (row.service, row.request_class)
    ]
    assert 3.0 < demand < 7.0
    assert pytest.approx(1 / LOAD_UNITS_PER_REPLICA) == UNMET_ROUNDING_SHARE
    assert bool(plan.shortages) == is_short
    assert bool(plan.shortage_gaps) == is_short
    assert ("unmet" in shown(plan)) == is_short
    assert ("Demand that is not served" in report_page(plan, (), None)) == is_short
    assert plan.model_copy(update={"inputs": None}).shortages == plan.unmet


LIMITS_LEAVE_NO_PLAN = "the limits leave no plan even if no demand is served"
TOO_SHORT = "the time was too short to find the shortages"


def infeasible(periods: int, complete: bool = True) -> Infeasible:
    """Return an infeasible plan that is short of 1, 2, 3 ... of 9 requests/s of chat in its periods."""
    plan = PLANS["scarce"]()[1]
    rows = tuple(
        Shortage(
            period=f"P{number}",
            region="west" if number % 2 else "east",
            service="chat",
            request_class="all",
            unmet_requests_per_s=float(number),
            demand_requests_per_s=9.0,
            accelerators_short={"A": number},
            reason="hardware",
        )
        for number in range(1, periods + 1)
    )
    return Infeasible(
        fleet="f",
        shortages=rows,
        shortages_complete=complete,
        rejections=(),
        provenance=plan.provenance,
        solve=plan.solve,
    )


def infeasible_lines(outcome: Infeasible, full: bool = False) -> list[str]:
    screen = io.StringIO()
    print_infeasible(outcome, full, Console(file=screen, width=160))
    return screen.getvalue().splitlines()


def test_many_shortages_for_one_reason_are_one_line_with_the_largest() -> None:
    few = infeasible_lines(infeasible(MOST_LISTED))
    assert sum("requests/s unserved;" in line for line in few) == MOST_LISTED
    most = MOST_LISTED + 3
    many = infeasible_lines(infeasible(most))
    (line,) = [line for line in many if "unserved" in line]
    assert line.startswith(f"  chat in east P{most}: {most} of 9 requests/s unserved; missing: hardware ")
    assert line.endswith(f"({most} shortages for this reason in west, east)")
    assert f"additional capacity needed: {most} A accelerators" in "".join(many)
    assert any(line.startswith(f"All {most} shortages: `plan solve --full`") for line in many)
    full = infeasible_lines(infeasible(most), full=True)
    assert sum("requests/s unserved;" in line for line in full) == most
    assert "All" not in "".join(full)


@pytest.mark.parametrize(
    ("periods", "complete", "said", "not_said"),
    [
        (0, True, LIMITS_LEAVE_NO_PLAN, TOO_SHORT),
        (0, False, TOO_SHORT, LIMITS_LEAVE_NO_PLAN),
        (1, False, "the time was too short to find more shortages", LIMITS_LEAVE_NO_PLAN),
        (1, True, "missing: hardware", "too short"),
    ],
)
def test_shortages_that_were_not_found_in_time_are_no_verdict_on_limits(
    periods: int, complete: bool, said: str, not_said: str
) -> None:
    outcome = infeasible(periods, complete)
    page = infeasible_page(outcome).lower().replace('<td class="reason">hardware', "missing: hardware")
    for text in ("\n".join(infeasible_lines(outcome)), page):
        assert said in text
        assert not_said not in text


def test_the_page_has_unmet_demand_by_service() -> None:
    plan = PLANS["scarce"]()[1]
    (row, *_) = plan.unmet
    more = row.model_copy(update={"period": "later", "requests_per_s": row.requests_per_s + 1})
    page = report_page(plan.model_copy(update={"unmet": (*plan.unmet, more)}), (), None)
    most = unmet_by_service(plan.model_copy(update={"unmet": (*plan.unmet, more)}))[0]
    assert (most.service, most.most_in, most.moments) == (row.service, "later", 2)
    assert most.requests_per_s == row.requests_per_s + 1
    assert f"<td>{row.service}</td><td>{row.region}</td><td>later</td>" in page
    # The only class of a service has no name.
    assert f"<li>{asked_by(more)}: " in page


def test_shortages_that_may_be_smaller_say_so() -> None:
    outcome = infeasible(1).model_copy(update={"shortages_least": False})
    for text in ("\n".join(infeasible_lines(outcome)), infeasible_page(outcome)):
        assert "the time was too short to prove that the unserved demand is minimal" in text.lower()
