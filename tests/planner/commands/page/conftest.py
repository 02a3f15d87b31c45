"""The process that plans for a page begins where its modules are imported."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.warm import WarmProcess

from fleetplan.planner.commands.page import planner_process


def _warm(command: Sequence[str], **options: Any) -> WarmProcess:
    return WarmProcess(command[1:], **options)


@pytest.fixture(scope="session", autouse=True)
def warm_planners() -> Iterator[None]:
    """Start the processes that plan warm."""
    with pytest.MonkeyPatch.context() as patched:
        own = SimpleNamespace(Popen=_warm, PIPE=subprocess.PIPE)
        patched.setattr(planner_process, "subprocess", own)
        yield
