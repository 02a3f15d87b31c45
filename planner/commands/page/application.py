"""The web application: pages, the state of a solve, and what a browser asks for."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.commands.page.changes import Changes, edited, open_file
from fleetplan.planner.commands.page.guard import REPORT_POLICY, Application, Guard
from fleetplan.planner.commands.page.session import BusyError, KeptPlan, Session
from fleetplan.planner.commands.page.views import page_of, refusals, state_of
from fleetplan.planner.plan import Infeasible
from fleetplan.planner.report.html.page import infeasible_page, report_page, style_sheet

STATIC: Final = {
    "page.js": "text/javascript",
    "form.js": "text/javascript",
    "progress.js": "text/javascript",
    "page.css": "text/css",
}
"""Files of the page by name, with their kinds."""

_FOLDER: Final = files("fleetplan.planner.commands.page")


class Asked(BaseModel):
    """A request to plan."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    changes: Changes = Changes()
    begin: int | None = None
    """Number of the plan that is shown."""


class Ending(BaseModel):
    """A request to end the solve that is running."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep: bool
    """Whether its best plan is of use."""


class NoSuchPlanError(Exception):
    """A plan that the session does not have, or has no longer."""


def application(session: Session, token: str, host: str) -> Application:
    """Return the application of a session.

    Parameters
    ----------
    session : Session
        The fleet file and its plans.
    token : str
        What every path begins with.
    host : str
        What the server listens on.
    """
    views = _Views(session)
    routes = [
        Route("/", views.page),
        Route("/static/{name}", views.static),
        Route("/state", views.state),
        Route("/solve", views.solve, methods=["POST"]),
        Route("/stop", views.stop, methods=["POST"]),
        Route("/plans/{number:int}/report.html", views.report),
    ]
    app = Starlette(
        routes=[Mount(f"/{token}", routes=routes)],
        exception_handlers={
            InputError: _refuse_input,
            ValidationError: _refuse_request,
            NoSuchPlanError: _no_such_plan,
        },
    )
    return Guard(app, token, host)


class _Views:
    """What the page shows and does. Reading files and drawing reports is work for other threads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def page(self, request: Request) -> Response:
        scenario = request.query_params.get("scenario") or None
        return HTMLResponse(await run_in_threadpool(page_of, self._session, scenario))

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == "report.css":
            return Response(style_sheet(), media_type="text/css")
        if name not in STATIC:
            return Response(status_code=404)
        return Response(_FOLDER.joinpath(name).read_bytes(), media_type=STATIC[name])

    async def state(self, request: Request) -> Response:
        return JSONResponse(state_of(self._session))

    async def solve(self, request: Request) -> Response:
        asked = Asked.model_validate_json(await request.body())

        def begin() -> None:
            file = open_file(self._session.settings, asked.changes.scenario)
            found = edited(asked.changes, file)
            self._session.ask(found.scenarios, found.assignments, found.title, asked.begin)

        try:
            await run_in_threadpool(begin)
        except BusyError:
            return JSONResponse(refusals("a plan is being made already: stop it first"), 409)
        return JSONResponse(state_of(self._session), 202)

    async def stop(self, request: Request) -> Response:
        ending = Ending.model_validate_json(await request.body())
        self._session.stop(keep=ending.keep)
        return JSONResponse(state_of(self._session), 202)

    async def report(self, request: Request) -> Response:
        plan = self._plan(request.path_params["number"])
        return await _document(lambda: _report(plan))

    def _plan(self, number: int) -> KeptPlan:
        plan = self._session.plan(number)
        if plan is None:
            raise NoSuchPlanError
        return plan


def _report(plan: KeptPlan) -> str:
    outcome = plan.outcome
    return infeasible_page(outcome) if isinstance(outcome, Infeasible) else report_page(outcome)


async def _document(draw: Callable[[], str]) -> Response:
    text = await run_in_threadpool(draw)
    return HTMLResponse(text, headers={"content-security-policy": REPORT_POLICY})


def _refuse_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, InputError)
    return JSONResponse(refusals(*error.issues), 422)


def _refuse_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, ValidationError)
    issues = [
        Issue("the page", 0, 0, ".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()
    ]
    return JSONResponse(refusals(*issues), 422)


def _no_such_plan(request: Request, error: Exception) -> Response:
    return JSONResponse(refusals("there is no such plan any more: reload the page"), 404)
