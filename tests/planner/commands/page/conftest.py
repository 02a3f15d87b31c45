"""A page of a tiny fleet, with a planning process that starts from imported modules."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.planner.commands.page.tiny import TOKEN, Page, write_fleet
from tests.warm import WarmProcess

from fleetplan.planner.commands.page import planner_process
from fleetplan.planner.commands.page.application import application
from fleetplan.planner.commands.page.messages import Settings
from fleetplan.planner.commands.page.session import Session


def _warm(command: Sequence[str], **options: Any) -> WarmProcess:
    return WarmProcess(command[1:], **options)


@pytest.fixture(scope="session", autouse=True)
def warm_planners() -> Iterator[None]:
    """Start the processes that plan warm."""
    with pytest.MonkeyPatch.context() as patched:
        own = SimpleNamespace(Popen=_warm, PIPE=subprocess.PIPE)
        patched.setattr(planner_process, "subprocess", own)
        yield


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path = write_fleet(tmp_path_factory.mktemp("fleet"))
    opened = Session(Settings(path, time_limit_s=20.0, gap_ratio=0.01, seed=1))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def page(session: Session) -> Page:
    return Page(application(session, TOKEN, "127.0.0.1"))
