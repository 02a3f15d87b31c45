"""`plan` where its memory is limited: one sentence, whichever of its libraries runs out of it.

Libraries in C++ end the process where memory does not suffice, and OpenBLAS asks for it without an end. So
the command runs in a child, whose end is said in words, and not at all where its libraries do not fit.
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
"""Address space for the libraries and a fleet of 150 services on two cores: at 1,000 MiB some of them end the
process, at 1,400 MiB there is a plan. [B]"""

EXIT_LIMIT: Final = 4

SENTENCE: Final = "out of memory: allow the process more, or plan a smaller fleet\n"

_ENDED_BY_LIBRARIES: Final = (127, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL)
"""How a process ends whose library has no memory, or that the kernel takes it from; 127 is the linker's."""

_OF_OPENBLAS: Final = "OPENBLAS_NUM_THREADS"
_CALM: Final = (_OF_OPENBLAS, "OMP_NUM_THREADS")
"""Each thread of these libraries takes 32 MiB before anybody asks for it."""

ALLOCATIONS: Final = (10_000, 20, 20)
"""After how many objects garbage is looked for, and after how many such looks among older ones. Modules live
as long as the process: with Python's (700, 10, 10) the looks among them took 0.33 s of 3.0 s of imports on a
busy machine, with these 0.2 s."""

_PR_SET_PDEATHSIG: Final = 1


def calm_libraries() -> None:
    """Let OpenBLAS compute in one thread, unless the user says otherwise.

    The matrices of this program are small: more threads took twice the CPU time of a forecast, and were no
    faster.
    """
    os.environ.setdefault(_OF_OPENBLAS, "1")


def look_for_garbage_less_often() -> None:
    """Let a command start without many looks for garbage among the modules that it imports."""
    gc.set_threshold(*ALLOCATIONS)


def guard_memory() -> None:
    """Return in a child that is watched where memory is limited, else in this process."""
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
    # A parent that is killed takes the child with it, where the system knows how.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def say_no_memory() -> NoReturn:
    """Say it and end, without what Python does at the end, for which there may be no memory."""
    sys.stderr.write(SENTENCE)
    sys.stderr.flush()
    os._exit(EXIT_LIMIT)


def _watch(child: int) -> NoReturn:
    """Wait for the end of the child, and end like it."""
    # Ctrl-C reaches both; what ends this process alone is for the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in _ENDED_BY_LIBRARIES:
        say_no_memory()
    os._exit(code if code >= 0 else 128 - code)
