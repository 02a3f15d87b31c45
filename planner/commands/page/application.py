"""The web application: pages, the state of a solve, and requests from a browser."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.commands.page.changes import Changes, edited, open_file
from fleetplan.planner.commands.page.guard import REPORT_POLICY, Application, Guard
from fleetplan.planner.commands.page.saving import download, report_of, save_scenario
from fleetplan.planner.commands.page.session import BusyError, KeptPlan, Session
from fleetplan.planner.commands.page.views import page_of, refusals, state_of
from fleetplan.planner.report.html.page import style_sheet
from fleetplan.planner.report.html.side_by_side import NamedOutcome, side_by_side_page

STATIC: Final = {
    "page.js": "text/javascript",
    "form.js": "text/javascript",
    "paper.js": "text/javascript",
    "plans.js": "text/javascript",
    "progress.js": "text/javascript",
    "page.css": "text/css",
}
"""Static files by name, with their media types."""

OF_REPORTS: Final = {"content-security-policy": REPORT_POLICY}

_FOLDER: Final = files("fleetplan.planner.commands.page")


class SolveRequest(BaseModel):
    """A request to plan."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    changes: Changes = Changes()
    begin: int | None = None
    """Number of the displayed plan."""


class CancelRequest(BaseModel):
    """A request to end the running solve."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep: bool
    """Whether to keep its best plan."""


class NewScenario(BaseModel):
    """A request to save the changes of a plan as a scenario."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(max_length=100)]
    """Name of the scenario."""


class NoSuchPlanError(Exception):
    """The session does not have the plan, or no longer keeps it."""


def application(session: Session, token: str, host: str) -> Application:
    """Return the application of a session.

    Parameters
    ----------
    session : Session
        The fleet file and its plans.
    token : str
        First part of every path.
    host : str
        Host on which the server listens.
    """
    views = _Views(session)
    routes = [
        Route("/", views.page),
        Route("/static/{name}", views.static),
        Route("/state", views.state),
        Route("/solve", views.solve, methods=["POST"]),
        Route("/stop", views.stop, methods=["POST"]),
        Route("/plans/{number:int}/report.html", views.report),
        Route("/plans/{number:int}/beside/{other:int}", views.side_by_side),
        Route("/plans/{number:int}/files/{form}", views.download),
        Route("/plans/{number:int}/scenario", views.save, methods=["POST"]),
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
    """Handlers of the page. Other threads read files and draw reports."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._drawn: dict[int, str] = {}

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
        asked = SolveRequest.model_validate_json(await request.body())

        def begin() -> None:
            file = open_file(self._session.settings, asked.changes.scenario)
            found = edited(asked.changes, file)
            self._session.ask(found.scenarios, found.assignments, found.title, asked.begin)

        try:
            await run_in_threadpool(begin)
        except BusyError:
            return JSONResponse(refusals("a solve is already running: stop it first"), 409)
        return JSONResponse(state_of(self._session), 202)

    async def stop(self, request: Request) -> Response:
        ending = CancelRequest.model_validate_json(await request.body())
        self._session.stop(keep=ending.keep)
        return JSONResponse(state_of(self._session), 202)

    async def report(self, request: Request) -> Response:
        kept = self._plan(request.path_params["number"])
        if kept.number not in self._drawn:
            self._drawn[kept.number] = await run_in_threadpool(report_of, kept.outcome)
            for number in self._drawn.keys() - {each.number for each in self._session.plans()}:
                del self._drawn[number]
        return HTMLResponse(self._drawn[kept.number], headers=OF_REPORTS)

    async def side_by_side(self, request: Request) -> Response:
        sides = [
            NamedOutcome(f"plan {kept.number}", kept.title, kept.outcome)
            for kept in (self._plan(request.path_params[name]) for name in ("number", "other"))
        ]
        return HTMLResponse(await run_in_threadpool(side_by_side_page, *sides), headers=OF_REPORTS)

    async def download(self, request: Request) -> Response:
        kept = self._plan(request.path_params["number"])
        found = await run_in_threadpool(download, kept, request.path_params["form"])
        attached = f'attachment; filename="plan-{kept.number}-{found.name}"'
        return Response(
            found.content, media_type="application/octet-stream", headers={"content-disposition": attached}
        )

    async def save(self, request: Request) -> Response:
        asked = NewScenario.model_validate_json(await request.body())
        kept, path = self._plan(request.path_params["number"]), self._session.settings.path
        await run_in_threadpool(save_scenario, path, kept, asked.name)
        return JSONResponse({"saved": asked.name, "file": str(path)}, 201)

    def _plan(self, number: int) -> KeptPlan:
        plan = self._session.plan(number)
        if plan is None:
            raise NoSuchPlanError
        return plan


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
    return JSONResponse(refusals("this plan no longer exists: reload the page"), 404)
