"""Process that gives every hostile file to a reader, with limits on time and memory.

`python -m tests.hostile.driver` loads the command line once. Each line that it reads, a reader, a folder and
inputs as JSON with tabs between them, is then answered by a fork of its own: one line of JSON for each input
in the folder's `answers`, what went wrong in its `errors`, and the exit code to standard output.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from tests.cache_home import own_cache_home
from tests.hostile.inputs import INPUTS
from tests.hostile.readers import READERS

PATIENCE_S = 20
"""For one file, on a machine that does other things too. [s]"""

MOST_BYTES = 6 * 2**30
"""Address space of the process: libraries take some of it without using it."""


class TooLongError(BaseException):
    """A reader has not ended in time."""


def _ring(number: int, frame: Any) -> None:
    raise TooLongError


def main() -> None:
    """Answer until the input ends."""
    from fleetplan.planner import api, cli  # noqa: F401, PLC0415

    for line in sys.stdin:
        name, folder, inputs = line.rstrip("\n").split("\t")
        child = os.fork()
        if not child:
            _answer_all(cli, name, Path(folder), json.loads(inputs))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _answer_all(cli: Any, name: str, folder: Path, inputs: Sequence[str]) -> NoReturn:
    """Give one reader these inputs, and end the process."""
    errors = (folder / "errors").open("w")
    try:
        os.environ |= {
            "XDG_CACHE_HOME": str(own_cache_home(folder / "cache")),
            "XDG_DATA_HOME": str(folder / "data"),
        }
        with (folder / "answers").open("w") as answers:
            _give(cli, name, folder, inputs, answers)
    except BaseException:
        traceback.print_exc(file=errors)
        errors.flush()
        os._exit(1)
    os._exit(0)


def _give(cli: Any, name: str, folder: Path, inputs: Sequence[str], answers: IO[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, _ring)
    # The first one pays for what is imported when it is needed.
    _answer(cli, name, "absent", folder / "first")
    for each in inputs:
        found = _answer(cli, name, each, folder / each.replace(" ", "-"))
        answers.write(json.dumps({"input": each, **found}) + "\n")


def _answer(cli: Any, name: str, each: str, folder: Path) -> dict[str, Any]:
    own = folder / "own"
    own.mkdir(parents=True)
    reader = READERS[name]
    path = folder / f"hostile.{reader.form}"
    INPUTS[each](path, reader)
    arguments = [str(argument) for argument in reader.command(path, own)]
    before = _files(own)
    said = {stream: (folder / stream).open("w+b") for stream in ("out", "err")}
    for number, stream in ((1, "out"), (2, "err")):
        os.dup2(said[stream].fileno(), number)
    started = time.monotonic()
    if each == "unreadable":
        _forbid(path)
    signal.alarm(PATIENCE_S)
    try:
        cli.main(arguments)
        code: int | str | None = 0
    except SystemExit as end:
        code = end.code
    except TooLongError:
        code = "too long"
    except BaseException:
        code = "traceback"
        traceback.print_exc()
    finally:
        signal.alarm(0)
        sys.stdout.flush()
        sys.stderr.flush()
    os.open = _open
    text = {}
    for stream, file in said.items():
        file.seek(0)
        text[stream] = file.read().decode("utf-8", "replace")
        file.close()
    return {
        "code": code,
        "seconds": time.monotonic() - started,
        "peak_mib": _peak_mib(),
        "written": sorted(_files(own) - before),
        **text,
    }


def _peak_mib() -> float:
    """Most memory that this program has held; `getrusage` counts what its parent held at the fork as well."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = (each for each in status.read_text().splitlines() if each.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


_open = os.open


def _forbid(path: Path) -> None:
    """Take the permission to read a file; from root, who has all of them, by the system call."""
    path.chmod(0)
    if os.geteuid() == 0:

        def refused(name: Any, *args: Any, **named: Any) -> int:
            if os.fspath(name) == str(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return _open(name, *args, **named)

        os.open = refused  # type: ignore[assignment]


def _files(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


if __name__ == "__main__":
    main()
