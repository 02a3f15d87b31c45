"""The page as text, and the state of its session as what JSON holds."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.commands.page.changes import OpenFile, open_file
from fleetplan.planner.commands.page.session import KeptPlan, Session, Solving
from fleetplan.planner.plan import Plan
from fleetplan.planner.report.figures import money, percent
from fleetplan.planner.report.html.page import environment

_FOLDER: Final = files("fleetplan.planner.commands.page")


def page_of(session: Session, scenario: str | None) -> str:
    """Return the page of a session, its form filled from the fleet file with a scenario laid on it."""
    issues: tuple[Issue, ...] = ()
    file: OpenFile | None = None
    try:
        file = open_file(session.settings, scenario)
    except InputError as error:
        issues = error.issues
    template = environment().from_string(_FOLDER.joinpath("page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        path=str(session.settings.path),
        file=file,
        scenario=scenario,
        issues=[str(each) for each in issues],
        settings=session.settings,
    )


def state_of(session: Session) -> dict[str, object]:
    """Return what a browser shows of a session."""
    solving, issues, reason = session.now()
    return {
        "solving": None if solving is None else _solving(solving),
        "issues": [_issue(each) for each in issues],
        "reason": reason,
        "plans": [_plan(each) for each in session.plans()],
    }


def refusals(*issues: Issue | str) -> dict[str, object]:
    """Return why a request is refused."""
    return {
        "issues": [
            {"text": each, "key": "", "hint": ""} if isinstance(each, str) else _issue(each)
            for each in issues
        ]
    }


def _issue(issue: Issue) -> dict[str, object]:
    return {"text": str(issue), "key": issue.key_path, "hint": issue.hint}


def _solving(solving: Solving) -> dict[str, object]:
    return {
        "number": solving.question.number,
        "title": solving.title,
        "doing": solving.doing,
        "elapsed_s": round(solving.elapsed_s, 1),
        "first_s": solving.first_s,
        "stopping": solving.stopping,
        "cancelled": solving.cancelled,
        "stage": solving.steps[-1][1].stage if solving.steps else "",
        "steps": [[round(seconds, 2), step.objective_usd, step.bound_usd] for seconds, step in solving.steps],
        **_figures(solving),
    }


def _figures(solving: Solving) -> dict[str, object]:
    """The best plan, the bound and the gap, as people read them."""
    step = solving.steps[-1][1] if solving.steps else None
    plan, bound = (None, None) if step is None else (step.objective_usd, step.bound_usd)
    return {
        "plan": None if plan is None else money(plan),
        "bound": None if bound is None else money(bound),
        "gap": percent((plan - bound) / plan) if plan and bound is not None else None,
    }


def _plan(kept: KeptPlan) -> dict[str, object]:
    outcome = kept.outcome
    found = isinstance(outcome, Plan)
    return {
        "number": kept.number,
        "title": kept.title,
        "whole_s": round(kept.whole_s, 1),
        "first_s": None if kept.first_s is None else round(kept.first_s, 1),
        "usd": outcome.objective_usd if isinstance(outcome, Plan) else None,
        "tco": money(outcome.objective_usd) if isinstance(outcome, Plan) else "cannot be served",
        "gap": percent(outcome.gap) if isinstance(outcome, Plan) else "",
        "unmet": bool(outcome.shortages) if isinstance(outcome, Plan) else not found,
        "assignments": list(kept.assignments),
        "scenarios": list(kept.scenarios),
    }
