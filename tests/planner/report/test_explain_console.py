"""Answers of `plan explain` state the moments of their rows."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from tests.planner.verify.plans import PLANS

from fleetplan.fleet.inventory import MustUse
from fleetplan.planner.questions.why_not.answer import WhyNot
from fleetplan.planner.questions.why_not.subject import Subject, SubjectKind
from fleetplan.planner.report.explain_console import print_why_not


def test_placements_of_a_day_are_told_apart_by_their_slice() -> None:
    """Placements of several slices are shown with their slice."""
    plan = PLANS["day of two regions"]()[1]
    part = plan.placements[0].hardware
    used = tuple(row for row in plan.placements if row.hardware == part)[:6]
    assert len({row.slice for row in used}) > 1
    screen = StringIO()
    subject = Subject(SubjectKind.HARDWARE, part, MustUse(part, hardware=part))
    print_why_not(WhyNot(subject, used, ()), Console(file=screen, width=160))
    lines = [line for line in screen.getvalue().splitlines() if " on " in line]
    assert sorted(line.split(":")[0].strip() for line in lines) == sorted(
        " ".join([*(part for part in row.moment_key if part), row.region]) for row in used
    )
