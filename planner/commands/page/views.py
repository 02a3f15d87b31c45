"""Render the page as HTML, and the state of its session as JSON."""

from __future__ import annotations

import shlex
from typing import Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import money, percent
from fleetplan.planner.commands.page.changes import OpenFile, open_file
from fleetplan.planner.commands.page.saving import OWN_FORMS
from fleetplan.planner.commands.page.session import KeptPlan, RunningSolve, Session
from fleetplan.planner.export.launch.files import FORMATS
from fleetplan.planner.plan import Plan
from fleetplan.planner.report.html.templates import template

EXPORT_LABELS: Final = {
    "workbook": "workbook for finance (Excel)",
    "launch": "launch commands",
    "dynamo": "NVIDIA Dynamo manifests",
    "llm-d": "llm-d values",
    "lws": "LeaderWorkerSet manifests",
    "kueue": "Kueue quotas",
    "karpenter": "Karpenter node pools",
    "gke": "GKE node pools",
    "node-pools": "nodes by period (CSV)",
    "purchases": "purchases (JSON)",
}
"""Labels of the formats of `plan export`."""

_ROOM: Final = "fleetplan.planner.commands.page"


def page_of(session: Session, scenario: str | None) -> str:
    """Return the page of a session, with its form filled from the fleet file and a scenario."""
    issues: tuple[Issue, ...] = ()
    file: OpenFile | None = None
    try:
        file = open_file(session.settings, scenario)
    except InputError as error:
        issues = error.issues
    return template(_ROOM, "page.html.j2").render(
        path=str(session.settings.path),
        file=file,
        scenario=scenario,
        issues=[str(each) for each in issues],
        settings=session.settings,
        forms={**OWN_FORMS, **{name: EXPORT_LABELS.get(name, name) for name in FORMATS}},
    )


def state_of(session: Session) -> dict[str, object]:
    """Return the state of a session for a browser."""
    solving, issues, reason = session.now()
    return {
        "solving": None if solving is None else _solving(solving),
        "issues": [_issue(each) for each in issues],
        "reason": reason,
        "plans": [_plan(each, str(session.settings.path)) for each in session.plans()],
    }


def refusals(*issues: Issue | str) -> dict[str, object]:
    """Return the reasons for refusing a request."""
    return {
        "issues": [
            {"text": each, "key": "", "hint": ""} if isinstance(each, str) else _issue(each)
            for each in issues
        ]
    }


def _issue(issue: Issue) -> dict[str, object]:
    return {"text": str(issue), "key": issue.key_path, "hint": issue.hint}


def _solving(solving: RunningSolve) -> dict[str, object]:
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


def _figures(solving: RunningSolve) -> dict[str, object]:
    """Return the best plan, the bound and the gap as text."""
    step = solving.steps[-1][1] if solving.steps else None
    plan, bound = (None, None) if step is None else (step.objective_usd, step.bound_usd)
    return {
        "plan": None if plan is None else money(plan),
        "bound": None if bound is None else money(bound),
        "gap": percent((plan - bound) / plan) if plan and bound is not None else None,
    }


def _plan(kept: KeptPlan, path: str) -> dict[str, object]:
    plan = kept.outcome if isinstance(kept.outcome, Plan) else None
    options = [
        *(f"-s {shlex.quote(name)}" for name in kept.scenarios),
        *(f"--set {shlex.quote(text)}" for text in kept.assignments),
    ]
    return {
        "number": kept.number,
        "title": kept.title,
        "whole_s": round(kept.whole_s, 1),
        "first_s": None if kept.first_s is None else round(kept.first_s, 1),
        "usd": None if plan is None else plan.objective_usd,
        "tco": "cannot be served" if plan is None else money(plan.objective_usd),
        "gap": "" if plan is None else percent(plan.gap),
        "unserved": plan is not None and bool(plan.shortages),
        "changed": bool(options),
        "command": " ".join(["plan", shlex.quote(path), *options]),
    }
