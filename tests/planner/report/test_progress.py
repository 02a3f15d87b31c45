"""Lines of progress: one for each improvement."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from fleetplan.planner.formulation import Goal, ReachedGoal
from fleetplan.planner.report import progress
from fleetplan.planner.report.progress import QUIET_S, ProgressLine
from fleetplan.planner.search import Progress


def test_a_line_that_says_nothing_new_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress of a search by region repeats no line."""
    monkeypatch.setattr(progress, "INTERVAL_S", 0.0)
    stream = StringIO()
    line = ProgressLine(Console(file=stream, width=160))
    for second, plan in enumerate((9.0e3, 9.0e3, 8.0e3, 8.0e3)):
        line(Progress("cost in us-east", QUIET_S + second, plan, 5.0e3, "", ""))
    assert [text.split("  ") for text in stream.getvalue().splitlines()] == [
        ["", " 2.0 s", "cost in us-east", "plan $9 k", "bound $5 k", "gap 44%"],
        ["", " 4.0 s", "cost in us-east", "plan $8 k", "bound $5 k", "gap 38%"],
    ]


def test_a_goal_is_shown_with_its_bound_and_gap() -> None:
    """The stage of a goal has figures in the unit of the goal."""
    stream = StringIO()
    reached = ReachedGoal(Goal("energy", "kWh", 1), 12000.0, 11400.0)
    ProgressLine(Console(file=stream, width=160))(
        Progress("energy", QUIET_S, None, None, "HiGHS", "raised the bound", reached)
    )
    assert stream.getvalue().split() == [
        "2.0",
        "s",
        "energy",
        "plan",
        "12,000",
        "bound",
        "11,400",
        "gap",
        "5.00%",
    ]
