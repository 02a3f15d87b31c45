"""Unmet demand below the rounding of the model is stated in the document, and called no shortage."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.planner.verify.plans import PLANS

from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.document import UNMET_ROUNDING_SHARE
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.html.page import report_page
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
