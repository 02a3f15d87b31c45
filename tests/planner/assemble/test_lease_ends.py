"""Hosts return at the end of their lease without a decision to retire them."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console
from tests.planner.builders import candidate, fleet, hardware, owned_pool, rented_pool, service
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Owned
from fleetplan.planner.export.launch.terraform import purchase_changes
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.diff import DiffSubject, diff
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.decision import decision
from fleetplan.planner.report.html.purchases_view import timeline
from fleetplan.planner.verify import verify

QUARTERS = ("2027Q1", "2027Q2")


def leaving() -> Plan:
    """A lease that ends, and a host that is worn out, both with the first quarter; a third serves."""
    lease = rented_pool("lease", 2, 1.0, hardware="L", periods=QUARTERS)
    assert lease.rented is not None
    old = Owned(160_000.0, "2026Q1", 16, 0.0, end_of_life="2027Q2")
    built = fleet(
        services=[service("chat", 1.0, periods=QUARTERS)],
        hardware=[hardware(part, 8) for part in "LOK"],
        pools=[
            replace(lease, rented=replace(lease.rented, lease_end="2027Q2")),
            replace(owned_pool("old", 1, 160_000.0, hardware="O"), owned=old),
            owned_pool("kept", 1, 160_000.0, hardware="K"),
        ],
        periods=QUARTERS,
    )
    solved = solve(built, [candidate("chat", "K", 1.0, accelerators=8)])
    assert solved.plan is not None
    assert verify(solved.problem, solved.plan) == []
    told = tuple(row.model_copy(update={"kind": "retire"}) for row in solved.plan.retirements)
    untrue = solved.plan.model_copy(update={"retirements": told})
    assert [fault.family for fault in verify(solved.problem, untrue)] == ["retirement"]
    return solved.plan


def test_a_lease_that_ends_is_told_as_such() -> None:
    plan = leaving()
    assert {(row.pool, row.kind) for row in plan.retirements} == {("lease", "return"), ("old", "retire")}
    told = decision(plan)
    assert "return 2 hosts (L) at the end of the lease" in told
    assert "retire 1 host (O)" in told
    screen = Console(width=200, record=True, file=io.StringIO())
    print_plan(plan, screen)
    text = screen.export_text()
    assert "Retire: 1 host O from old 2027Q2" in text
    assert "Leases end: 2 hosts L from lease 2027Q2" in text
    assert [row.title for row in timeline(plan)] == ["return 2 hosts L", "retire 1 host O"]


def test_files_tell_what_is_returned_from_what_is_retired() -> None:
    plan = leaving()
    changes = json.loads(purchase_changes(plan))["resource_changes"]
    assert {each["type"] for each in changes} == {"fleetplan_leased", "fleetplan_owned"}
    bare = plan.model_copy(update={"retirements": ()})
    names = {line.name for line in diff(bare, plan).changes if line.subject is DiffSubject.RETIREMENT}
    assert names == {"L from lease, lease ends", "O from old"}
