"""Process that imports modules once, and forks itself for each requested process.

`python -m tests.warm_server SOCKET MODULE...`
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
import types
from contextlib import suppress
from typing import Any, Final, TextIO

SIZE_BYTES: Final = 8
PID_BYTES: Final = 8

MOST_FILES: Final = 16
"""That a process is given: the standard ones, and those of a pool."""


def exactly(connection: socket.socket, count: int) -> bytes:
    """Return this number of bytes; fewer at the end of the input."""
    found = b""
    while len(found) < count and (more := connection.recv(count - len(found))):
        found += more
    return found


def main() -> None:
    """Import, then answer until the connection closes; each fork runs its request."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    # There is little garbage among modules, and looking for it takes a tenth of the time of their imports.
    gc.disable()
    for name in sys.argv[2:]:
        # An extra may not be installed.
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    gc.enable()
    interrupt = signal.getsignal(signal.SIGINT)
    # Ctrl-C is for the tests: this process ends when they do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked, files = _forked(connection)
    signal.signal(signal.SIGINT, interrupt)
    _become(asked, files)
    try:
        _run(asked["words"])
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _end(end.code or 0)
        raise
    _end(0)


def _forked(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request and return in the fork. An intermediate process ends, so the tests adopt it."""
    while True:
        size, files, _, _ = socket.recv_fds(connection, SIZE_BYTES, MOST_FILES)
        if not size:
            os._exit(0)
        size += exactly(connection, SIZE_BYTES - len(size))
        asked = json.loads(
            exactly(connection, int.from_bytes(size, "little")).decode("utf-8", "surrogateescape")
        )
        may_go, go = os.pipe()
        between = os.fork()
        if not between:
            number = os.fork()
            if number:
                connection.sendall(number.to_bytes(PID_BYTES, "little"))
                os._exit(0)
            connection.close()
            os.close(go)
            os.read(may_go, 1)
            os.close(may_go)
            return asked, list(files)
        os.waitpid(between, 0)
        for each in (*files, may_go):
            os.close(each)
        os.write(go, b".")
        os.close(go)
        connection.sendall(b".")


def _become(asked: dict[str, Any], files: list[int]) -> None:
    """Take the files, the folder, the environment and the words of a new process."""
    # Beyond all of these numbers first: one of them may be a file that comes later.
    beyond = [fcntl.fcntl(each, fcntl.F_DUPFD, max(asked["as"]) + 1) for each in files]
    for each in files:
        os.close(each)
    for each, number in zip(beyond, asked["as"], strict=True):
        os.dup2(each, number)
        os.close(each)
    if asked["own_session"]:
        os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    after = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    own = "" if asked["words"][0] == "-c" else asked["folder"]
    sys.path[:] = [own, *after, *(each for each in sys.path[1:] if each not in after)]
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdin = sys.__stdin__ = _stream(0, encoding=encoding)
    sys.stdout = sys.__stdout__ = _stream(1, mode="w", encoding=encoding, errors=errors or None)
    sys.stderr = sys.__stderr__ = _stream(
        2, mode="w", encoding=encoding, errors="backslashreplace", buffering=1
    )


def _stream(number: int, **options: Any) -> TextIO:
    """Return what Python makes of a file that it begins with."""
    return open(number, closefd=False, **options)  # type: ignore[no-any-return]


def _run(words: list[str]) -> None:
    """Do what `python` does with these words."""
    how, what, *rest = words
    sys.argv[:] = [how, *rest]
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        own = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), own.__dict__)


def _end(code: int) -> None:
    """End as Python does, but for taking every module apart, which takes a sixth of a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    # What could not be written is Python's own to say.
    sys.exit(code)


if __name__ == "__main__":
    main()
