"""The report marks latencies that exclude queueing, and no others."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.planner.verify.plans import PLANS

from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import ServiceInput
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.queueing import print_unqueued

MEAN: dict[str, object] = {"ttft_ms": 500.0, "tpot_ms": None, "load_limits": ()}
UNDER_LOAD: dict[str, object] = {**MEAN, "load_limits": ("TTFT p95 500 ms",)}
NO_LIMIT: dict[str, object] = {**MEAN, "ttft_ms": None}


def plan(services: dict[str, dict[str, object]]) -> Plan:
    """A plan that places these services, with these limits."""
    made = PLANS["scarce"]()[1]
    assert made.inputs is not None
    (first, *_), row = made.inputs.services, made.placements[0]
    inputs: list[ServiceInput] = [
        first.model_copy(update={"name": name, **limits}) for name, limits in services.items()
    ]
    return made.model_copy(
        update={
            "inputs": made.inputs.model_copy(update={"services": tuple(inputs)}),
            "placements": tuple(row.model_copy(update={"service": name}) for name in services),
        }
    )


def printed(found: Plan) -> str:
    out = io.StringIO()
    print_unqueued(found, Console(file=out, width=300))
    return out.getvalue()


def test_services_with_limits_on_means_are_named() -> None:
    said = printed(plan({"chat": MEAN, "code": UNDER_LOAD, "batch": NO_LIMIT, "rag": MEAN}))
    assert said.startswith("Without queueing: TTFT and TPOT of chat, rag. `plan replay`")


def test_many_of_them_are_counted() -> None:
    assert "TTFT and TPOT of 5 services." in printed(plan({f"s{each}": MEAN for each in range(5)}))


@pytest.mark.parametrize("limits", [UNDER_LOAD, NO_LIMIT])
def test_nothing_is_said_where_queueing_is_planned_for_or_there_is_no_limit(
    limits: dict[str, object],
) -> None:
    assert printed(plan({"chat": limits})) == ""
    made = plan({"chat": limits})
    assert printed(made.model_copy(update={"inputs": None})) == ""
    assert printed(made.model_copy(update={"placements": ()})) == ""


def test_the_screen_of_a_plan_says_it() -> None:
    out = io.StringIO()
    print_plan(plan({"chat": MEAN}), Console(file=out, width=200))
    assert "Without queueing: TTFT and TPOT of chat." in out.getvalue()
