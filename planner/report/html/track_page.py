"""The page that compares a plan with actual demand, cost and latency."""

from __future__ import annotations

from typing import Final

from fleetplan.planner.questions.track import TrackReport
from fleetplan.planner.report.html.page import render
from fleetplan.planner.report.track_console import finding_text

TRACK_PAGE: Final = "track.html"


def track_page(report: TrackReport) -> str:
    """Return the comparison as one HTML document.

    Parameters
    ----------
    report : TrackReport
        Plan compared with actual figures.
    """
    by_assumption = [
        (name, sum(each.usd for each in report.findings if each.assumption == name))
        for name in ("demand", "rates", "price")
    ]
    known = [row.actual for row in report.costs if row.actual is not None]
    return render(
        "track.html.j2",
        report=report,
        actual=sum(known) if len(known) == len(report.costs) else None,
        by_assumption=[(name, usd) for name, usd in by_assumption if round(usd, 2)],
        notable=[(each, finding_text(each)) for each in report.findings if each.is_notable],
    )
