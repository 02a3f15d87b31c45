"""Run `plan` under a memory limit: report a shortage in one sentence, whichever library runs out.

C++ libraries abort the process without memory, and OpenBLAS retries forever. So the command runs in a child
process whose end is reported in words; it does not start if its libraries do not fit.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Final, NoReturn

LEAST_BYTES: Final = 1536 * 2**20
"""Address space for the libraries and a fleet of 150 services on two cores: 1,000 MiB is too little for some
libraries, 1,400 MiB is enough for a plan. [B]
"""

EXIT_LIMIT: Final = 4

SENTENCE: Final = "out of memory: allow the process more, or plan a smaller fleet\n"

_ENDED_BY_LIBRARIES: Final = (127, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL)
"""Exit codes of a process that ran out of memory in a library or was killed for it; 127 is the linker's."""

_OF_OPENBLAS: Final = "OPENBLAS_NUM_THREADS"
_CALM: Final = (_OF_OPENBLAS, "OMP_NUM_THREADS")
"""Each thread of these libraries reserves 32 MiB at the start."""

ALLOCATIONS: Final = (10_000, 20, 20)
"""Thresholds of the garbage collector: new objects, then collections of younger generations. Imported modules
live as long as the process, so frequent collections during imports are wasted; Python's default (700, 10, 10)
spends 10 % of the import time on them.
"""

_PR_SET_PDEATHSIG: Final = 1


def calm_libraries() -> None:
    """Run OpenBLAS in one thread, unless the user states otherwise.

    The matrices of this program are small: more threads double the CPU time of a forecast without a gain.
    """
    os.environ.setdefault(_OF_OPENBLAS, "1")


def look_for_garbage_less_often() -> None:
    """Raise the garbage collector's thresholds for the import of modules."""
    gc.set_threshold(*ALLOCATIONS)


def guard_memory() -> None:
    """Continue in a supervised child process if memory is limited, else in this process."""
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    limits = [resource.getrlimit(kind)[0] for kind in kinds]
    if all(limit == resource.RLIM_INFINITY for limit in limits):
        return
    if min(limit for limit in limits if limit != resource.RLIM_INFINITY) < LEAST_BYTES:
        say_no_memory()
    for name in _CALM:
        os.environ.setdefault(name, "1")
    child = os.fork()
    if child:
        _watch(child)
    # If the parent is killed, the child ends too, on systems that support it.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def say_no_memory() -> NoReturn:
    """Print the message and exit without Python's clean-up, which may need memory."""
    sys.stderr.write(SENTENCE)
    sys.stderr.flush()
    os._exit(EXIT_LIMIT)


def _watch(child: int) -> NoReturn:
    """Wait for the child and exit with its status."""
    # Ctrl-C reaches both processes; SIGTERM to this process is forwarded to the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in _ENDED_BY_LIBRARIES:
        say_no_memory()
    os._exit(code if code >= 0 else 128 - code)
