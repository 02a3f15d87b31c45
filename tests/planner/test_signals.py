"""Signals that `plan` hears while it imports, searches, or has written everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.planner.test_process import write_fleet
from tests.warm import ran


@pytest.fixture(autouse=True)
def in_a_folder_with_a_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fleet(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("within", ["", "library", "finaliser"])
@pytest.mark.parametrize(("number", "module"), [("SIGINT", "typer"), ("SIGTERM", "numpy")])
def test_a_signal_in_an_import_ends_without_a_traceback(number: str, module: str, within: str) -> None:
    """A library that starts up makes an ImportError of what is raised; a finaliser ignores it."""
    program = f"""
import os, signal, sys
from importlib.machinery import ExtensionFileLoader
signal.signal(signal.SIGINT, signal.default_int_handler)
class Library(ExtensionFileLoader):
    def exec_module(self, module):
        try:
            os.kill(os.getpid(), signal.{number})
        except BaseException:
            raise ImportError("initialization failed")
class Finaliser:
    def __del__(self):
        os.kill(os.getpid(), signal.{number})
class Finder:
    def find_spec(self, name, path, target=None):
        if name != "{module}":
            return
        if "{within}" == "library":
            Library(name, name).exec_module(None)
        elif "{within}" == "finaliser":
            Finaliser()
        else:
            os.kill(os.getpid(), signal.{number})
sys.meta_path.insert(0, Finder())
sys.argv = ["plan", "fleet.yaml"]
from fleetplan.planner.start import main
main()
"""
    done = _run(program)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "stopped\n")


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_after_everything_is_written_changes_nothing(number: str) -> None:
    """Ctrl-C after the last output does not change the exit code."""
    program = f"""
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.{number}))
sys.argv = ["plan", "--version"]
from fleetplan.planner.start import main
main()
"""
    done = _run(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Python" in done.stdout


def _run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def _stopped_while(body: str, number: str) -> subprocess.CompletedProcess[str]:
    """Run `plan` with a search that sends the process a signal, waits until it is heard, and runs `body`."""
    program = f"""
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from types import SimpleNamespace
from fleetplan.planner import api
from fleetplan.planner.search.result import SolveStatus
real = api._searched
def searched(problem, evaluation, watch, forecasts):
    time.sleep(0.2)
    os.kill(os.getpid(), signal.{number})
    while not evaluation.stop.requested:
        time.sleep(0.01)
    {body}
api._searched = searched
sys.argv = ["plan", "fleet.yaml"]
from fleetplan.planner.start import main
main()
"""
    return ran(["-c", program], text=True)


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_stop_before_the_first_plan_says_so(number: str) -> None:
    done = _stopped_while(
        "return problem, SimpleNamespace(status=SolveStatus.NO_PLAN, deterministic_time=0.0), ()", number
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.endswith(
        "stopping at the best plan; press Ctrl-C again to abort\nstopped before the first plan\n"
    )


def test_sigterm_keeps_the_best_plan() -> None:
    done = _stopped_while(
        "from fleetplan.planner.search.solvers.interrupt import Stop\n"
        "    from dataclasses import replace\n"
        "    return real(problem, replace(evaluation, stop=Stop()), watch, forecasts)",
        "SIGTERM",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("zwölf €")
