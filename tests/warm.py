"""Processes with imported modules: forks of one process that has imported them.

Tests start some hundreds of processes, and each would import the same for up to two seconds of a CPU before
it does what is tested. A `WarmProcess` is a `subprocess.Popen` like any other, of Python with `-m` or `-c`: a
process of its own and a child of the one that started it, with the files, folder and environment that it was
given. Tests of what a process imports, or does before it has, start it in the ordinary way.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import json
import multiprocessing.util
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.warm_server import PID_BYTES, SIZE_BYTES, exactly

ROOT: Final = Path(__file__).parents[1]

PLAN: Final = (
    "distributed.cli.dask_scheduler",
    "distributed.cli.dask_worker",
    "matplotlib.figure",
    "ortools.sat.python.cp_model",
    "pandas",
    "rich.console",
    "fleetplan.perfmodel.landscape",
    "fleetplan.planner.candidates.build",
    "fleetplan.planner.cli",
    "fleetplan.planner.export.workbook",
    "fleetplan.planner.questions.solve_outcome",
    "fleetplan.planner.questions.sweep.run",
    "fleetplan.planner.questions.service_history",
    "fleetplan.planner.report.console",
    "fleetplan.planner.report.explain_console",
    "fleetplan.planner.report.folder",
    "fleetplan.planner.report.html.write",
    "fleetplan.planner.report.progress",
    "fleetplan.planner.report.search_console",
    "matplotlib.backends.backend_svg",
    "xlsxwriter",
    # Last: what it reads with all of them imported.
    "tests.warm_tables",
)
"""Of what `plan` imports to solve a fleet and to write the plan, and processes of a cluster besides."""

HIGHS: Final = (
    "scipy.sparse",
    "fleetplan.planner.search.blocks.few_slots",
    "fleetplan.planner.search.blocks.rolling_supply",
    "fleetplan.planner.search.blocks.sifting",
    "fleetplan.planner.search.solvers.highs_answers",
    "fleetplan.planner.search.solvers.highs_jobs",
)
"""Of what a process of HiGHS imports, with what the jobs of blocks are made of; it must not hold OR-Tools."""

_CHILD_SUBREAPER: Final = 36
"""Of prctl(2): who adopts the processes whose parents have ended."""


class WarmProcess(subprocess.Popen[Any]):
    """A Python process with imported modules.

    Parameters
    ----------
    words : sequence of str
        What follows `python`: `-m` and a module or `-c` and code, and their arguments.
    modules : tuple[str, ...]
        What is imported; of everything else the process is told as any other.
    options
        As `subprocess.Popen` has them.
    """

    def __init__(self, words: Sequence[str], modules: tuple[str, ...] = PLAN, **options: Any) -> None:
        self._words, self._modules = list(words), modules
        super().__init__([sys.executable, *words], **options)

    def _execute_child(self, *given: Any) -> None:
        begin = super()._execute_child  # type: ignore[misc]
        asked = inspect.signature(begin).bind(*given).arguments
        server = _server(self._modules)
        if server is None:
            begin(*given)
            return
        pipes = [
            asked[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        ]
        files = [
            number if own == -1 else own
            for number, own in enumerate((asked["p2cread"], asked["c2pwrite"], asked["errwrite"]))
        ]
        self.pid = server.started(
            {
                "words": self._words,
                "folder": str(Path(asked["cwd"] or ".").absolute()),
                "environment": dict(os.environ if asked["env"] is None else asked["env"]),
                "own_session": bool(asked["start_new_session"]),
                "as": [0, 1, 2],
            },
            files,
        )
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def ran(
    words: Sequence[str],
    modules: tuple[str, ...] = PLAN,
    given: Any = None,
    timeout_s: float = 100.0,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a warm process to its end, and return what it wrote."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if given is not None:
        pipes["stdin"] = subprocess.PIPE
    with WarmProcess(words, modules, **pipes | options) as process:
        try:
            out, errors = process.communicate(given, timeout_s)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def spawned(path: bytes, words: Sequence[str], kept: Sequence[int]) -> int:
    """Start a process like `multiprocessing.util.spawnv_passfds`; processes of pools start warm.

    Its number is returned; besides the standard files it has those of `kept`, by the same numbers.
    """
    server = _server(PLAN) if words[-1] == "--multiprocessing-fork" else None
    if server is None:
        return begun_anew(path, words, kept)
    files = [0, 1, 2, *kept]
    asked = {"words": list(words[words.index("-c") :]), "folder": str(Path.cwd()), "as": files}
    return server.started(asked | {"environment": dict(os.environ), "own_session": False}, files)


begun_anew = multiprocessing.util.spawnv_passfds


class _Server:
    """The process that forks, as the one that asks it sees it."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair()
        self._socket, self._lock = ours, threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm_server", str(theirs.fileno()), *modules],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._end)

    def started(self, asked: dict[str, Any], files: Sequence[int]) -> int:
        """Start a process with these standard files; its number."""
        text = json.dumps(asked).encode("utf-8", "surrogateescape")
        with self._lock:
            # For the moment in which the process between this one and the new one ends.
            _adopt_orphans(1)
            try:
                socket.send_fds(self._socket, [len(text).to_bytes(SIZE_BYTES, "little")], list(files))
                self._socket.sendall(text)
                number = int.from_bytes(exactly(self._socket, PID_BYTES), "little")
                exactly(self._socket, 1)
            finally:
                _adopt_orphans(0)
        return number

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


def _adopt_orphans(whether: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_CHILD_SUBREAPER, whether, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


@cache
def _server(modules: tuple[str, ...]) -> _Server | None:
    """Return the server of all tests of this process; None on systems without fork."""
    return _Server(modules) if sys.platform == "linux" else None
