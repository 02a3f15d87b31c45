"""Tests run as `plan` does, in one thread of OpenBLAS, and search no garbage among hundreds of modules.

Processes of HiGHS that they start are forks of one that has imported it (warm.py).

The process ends without taking apart what its tests have kept, a gigabyte of objects.

What `make test` leaves out is counted by target and folder at its end, beside what was skipped.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing.util
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from _pytest.runner import runtestprotocol
from _pytest.unraisableexception import gc_collect_iterations_key

from fleetplan.planner.commands.memory import calm_libraries, look_for_garbage_less_often
from tests.warm import HIGHS, WarmProcess, spawned

# Before anything imports numpy, which reads it once.
calm_libraries()

# It read the options of all commands from their functions each time: a quarter of a second.
typer.testing._get_command = cache(typer.testing._get_command)

LEFT_OUT = pytest.StashKey[Counter[tuple[str, str]]]()
"""Tests that were deselected, by the target of make that runs them and by folder."""

LEFT_TO = {
    "make test-more": "repeat a test above on other models, fleets or limits, and laws on more examples",
    "make slow": "take minutes or repeat a test with all of its seeds, and laws on all examples",
}
"""Why a target runs what `make test` leaves out."""

_IN_WORKER = "left_out"

_EXIT_CODES: list[int] = []
"""Exit code of the session, once it has ended."""


@atexit.register
def end_at_once() -> None:
    """End the process of a session without Python's last steps, which take seconds of a core.

    Registered before the tests are imported, so that it is called after what they register.
    """
    # An exception after the session, of a plugin that cleans up, leaves its own exit code.
    if _EXIT_CODES and not hasattr(sys, "last_value"):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_EXIT_CODES[-1])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    """Note the exit code."""
    _EXIT_CODES.append(int(exitstatus))


def pytest_configure(config: pytest.Config) -> None:
    """Look through all that the tests have kept twice at the end, and not five times.

    A second time for what finalizers of the first made.
    """
    config.stash[gc_collect_iterations_key] = 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Import the tests without looking for garbage, and never look at what they import again."""
    gc.disable()
    try:
        return (yield)
    finally:
        # Not looked through first: that takes half a second of every process, and finds little.
        gc.freeze()
        look_for_garbage_less_often()
        gc.enable()


class _FromTheEnd(pytest.Dir):
    """A folder whose last file is collected first."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        return reversed(list(super().collect()))


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect in reverse order in every second process.

    In a new clone one then reads what the other one has compiled, where both would compile the same.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return _FromTheEnd.from_parent(parent, path=path) if int(number) % 2 else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put all tests in one order, wherever collection began.

    Scenarios come first: no core waits at the end for the one that plans the largest of them.
    """
    items.sort(
        key=lambda item: (not item.nodeid.startswith("tests/scenarios/"), item.nodeid.partition("::")[0])
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Send one report of a test that passes to the process that hands out the tests, not three.

    The others cost both processes half a millisecond a test. `--durations` and a file of results need them.
    """
    option = item.config.option
    if not hasattr(item.config, "workeroutput") or option.durations is not None or option.xmlpath:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def warm_solver() -> subprocess.Popen[bytes]:
    """Start a process of HiGHS as the planner does, but for its imports."""
    return WarmProcess(
        ("-m", "fleetplan.planner.search.solvers.highs_child", str(os.getpid())),
        HIGHS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.fixture(scope="session", autouse=True)
def warm_solvers() -> Iterator[None]:
    """Start processes of HiGHS and of pools warm, for all tests of this process; none evaluate beside it.

    Imported here: the process that hands the tests out runs none.
    """
    from fleetplan.planner.candidates import parallel_evaluation  # noqa: PLC0415
    from fleetplan.planner.search.solvers import highs_process, highs_race  # noqa: PLC0415

    # All cores have tests to run.
    os.environ.setdefault(parallel_evaluation.SWITCH, "off")
    with pytest.MonkeyPatch.context() as patched:
        for module in (highs_process, highs_race):
            patched.setattr(module, "started_child", warm_solver)
        patched.setattr(multiprocessing.util, "spawnv_passfds", spawned)
        yield


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests of pages: it takes three seconds of a core to start."""
    from tests.planner.browser import opened_browser  # noqa: PLC0415

    with opened_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def plain_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """`plan solve --out` writes no report and no workbook, which take longer than a small plan."""
    from fleetplan.planner.report import folder  # noqa: PLC0415

    monkeypatch.setattr(folder, "_write_documents", lambda *_: None)


@pytest.fixture
def plain_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of a page are empty: to draw them takes longer than a page whose words alone are looked for."""
    from markupsafe import Markup  # noqa: PLC0415

    from fleetplan.planner.report.html import frontier_view, money_view, service_views  # noqa: PLC0415

    for module in (frontier_view, money_view, service_views):
        monkeypatch.setattr(module, "draw", lambda *_: Markup("<svg></svg>"))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what is left out, and tell the process that started this one if there is one."""
    if not items:
        return
    config = items[0].config
    found = Counter(
        (_stage_of(item), "/".join(item.nodeid.partition("::")[0].split("/")[:-1])) for item in items
    )
    config.stash[LEFT_OUT] = found
    if hasattr(config, "workeroutput"):
        config.workeroutput[_IN_WORKER] = [[*where, count] for where, count in found.items()]


def _stage_of(item: pytest.Item) -> str:
    """Return the target of make that runs a test."""
    if item.get_closest_marker("slow"):
        return "make slow"
    return "make test-more" if item.get_closest_marker("more") else "make test"


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note which tests a process left out; all processes leave out the same."""
    if found := getattr(node, "workeroutput", {}).get(_IN_WORKER):
        node.config.stash[LEFT_OUT] = Counter({(stage, folder): count for stage, folder, count in found})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what `make test` left out and why."""
    left_out = config.stash.get(LEFT_OUT, Counter())
    if not left_out or config.getoption("markexpr") != "not slow and not more":
        return
    for stage, why in LEFT_TO.items():
        of_stage = {folder: count for (other, folder), count in sorted(left_out.items()) if other == stage}
        if not of_stage:
            continue
        terminalreporter.section(f"left to `{stage}`")
        terminalreporter.line(f"{sum(of_stage.values()):,} tests {why}. By folder:")
        for folder, count in of_stage.items():
            terminalreporter.line(f"{count:6,} {folder}")
