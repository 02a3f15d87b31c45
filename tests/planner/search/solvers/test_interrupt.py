"""Ctrl-C in one search, in one search of many, and in a command that solves often."""

import signal
import threading
import time
from pathlib import Path

import pytest
from tests.parts import first_parts
from tests.warm import ran

from fleetplan.planner.search.solvers.interrupt import Stop, run_interruptibly

TINY = Path(__file__).parents[4] / "scenarios" / "tiny.yaml"


def until_stopped(stop: Stop) -> str:
    """A search that finds a plan and ends when stopped."""
    threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
    deadline = time.monotonic() + 20.0
    while not stop.requested and time.monotonic() < deadline:
        time.sleep(0.01)
    return "best so far"


@pytest.fixture(autouse=True)
def _heard(monkeypatch: pytest.MonkeyPatch) -> object:
    """Ctrl-C is heard also where the tests are a background job, whose children ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield None
    signal.signal(signal.SIGINT, before)


def test_a_search_that_is_stopped_returns_its_best() -> None:
    said: list[str] = []
    assert run_interruptibly(until_stopped, lambda: said.append("heard")) == "best so far"
    assert said == ["heard"]


def test_one_search_of_many_that_is_stopped_ends_them_all() -> None:
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(until_stopped, lambda: said.append("heard"), keep_best=False)
    assert said == []


AT_ANY_MOMENT = """
import signal, sys, time
from dis import opname
from fleetplan.fleet import machine
from fleetplan.planner.search.solvers.interrupt import run_interruptibly
signal.signal(signal.SIGINT, signal.default_int_handler)
machine.POLL_S = 0.01
def until_stopped(stop):
    deadline = time.monotonic() + 10
    while not stop.requested and time.monotonic() < deadline:
        time.sleep(0.001)
    return stop.requested
def interrupted_at(moment):
    left, before = [moment], {}
    def traced(frame, event, _):
        frame.f_trace_opcodes = True
        if event == "opcode":
            now = opname[frame.f_code.co_code[frame.f_lasti]]
            if before.get(id(frame), "").startswith(("RESUME", "CALL", "JUMP_BACKWARD")):
                left[0] -= 1
                if left[0] == 0:
                    signal.raise_signal(signal.SIGINT)
            before[id(frame)] = now
        return traced
    sys.settrace(traced)
    try:
        run_interruptibly(until_stopped, lambda: None)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
for moment in range(*map(int, sys.argv[1:])):
    interrupted_at(moment)
"""
"""Ctrl-C at moments between instructions at which Python runs the handlers of signals."""


@pytest.mark.parametrize(
    "moments", first_parts(("250 410 4", *(f"{at} {at + 80} 1" for at in range(1, 481, 80))), 1)
)
def test_a_search_ends_at_whatever_moment_it_is_stopped(moments: str) -> None:
    """A search ends and releases its locks, whichever moment a signal interrupts."""
    done = ran(["-c", AT_ANY_MOMENT, *moments.split()], timeout_s=60.0, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.more
def test_a_command_that_is_stopped_without_a_result_says_so() -> None:
    program = "\n".join(
        [
            "import signal",
            "from fleetplan.planner.commands import what_if",
            "from fleetplan.planner.questions import loaded_plan",
            "def stopped(*_): raise KeyboardInterrupt",
            "loaded_plan.read_asked_plan = stopped",
            "from fleetplan.planner.cli import main",
            f"main(['stress', {str(TINY)!r}])",
        ]
    )
    done = ran(["-c", program], text=True)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "stopped\n")


def test_a_solver_that_ended_is_not_stopped_however_it_ended() -> None:
    stopped: list[str] = []

    class Solver:
        def __init__(self, name: str) -> None:
            self.name = name

        def stop_search(self) -> None:
            stopped.append(self.name)

    stop = Stop()
    with pytest.raises(MemoryError), stop.reaches(Solver("failed")):
        raise MemoryError
    stop.request()
    assert stopped == []
    with stop.reaches(Solver("running")):
        stop.request()
    assert stopped == ["running"]
