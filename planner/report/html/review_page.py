"""The page on which reviewers approve a plan: actions, reasons, cost and risks."""

from __future__ import annotations

from typing import Final

from fleetplan.planner.questions.diff import DiffSubject
from fleetplan.planner.questions.review import STRESS, Review
from fleetplan.planner.report.decision import decision
from fleetplan.planner.report.html.page import compared_costs, render

ACTIONS: Final = {
    "Bought and rented": DiffSubject.PURCHASE,
    "Retired": DiffSubject.RETIREMENT,
    "Unmet demand": DiffSubject.UNMET,
}
"""Headings of the changes listed individually; placements are summarised by where services run."""


def review_page(asked: Review) -> str:
    """Return the review as one HTML document.

    Parameters
    ----------
    asked : Review
        The plan compared with the previous one.
    """
    by_kind, by_service = compared_costs(asked.found)
    sections = {
        title: [each for each in asked.found.changes if each.subject is subject]
        for title, subject in ACTIONS.items()
    }
    return render(
        "review.html.j2",
        review=asked,
        decision=decision(asked.new),
        sections={title: rows for title, rows in sections.items() if rows},
        by_kind=by_kind,
        by_service=by_service,
        stressed=any(risk.startswith(STRESS) for risk in asked.risks),
    )
