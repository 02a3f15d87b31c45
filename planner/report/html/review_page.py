"""The page on which reviewers approve a plan: what it does, why, what it costs, what it risks."""

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
"""Headings of the lines that are told one by one; placements are told by where services run."""


def review_page(asked: Review) -> str:
    """Return the page as one HTML document.

    Parameters
    ----------
    asked : Review
        The plan beside the one before.
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
