"""`plan` as a process: signals and unwritable output, handled before anything large is imported.

SIGTERM works like Ctrl-C: a search ends with its best plan, and everything else ends with exit code 4.
"""

from __future__ import annotations

import atexit
import errno
import signal
import sys

# Before signals are handled, Ctrl-C shows a traceback: import nothing slow until then.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType
    from typing import Final

_EXIT_BAD_INPUT: Final = 2
_EXIT_LIMIT: Final = 4
_EXIT_BROKEN_PIPE: Final = 128 + signal.SIGPIPE
"""Exit code that a shell reports for a program whose output nobody read."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM.

    After a plain `KeyboardInterrupt` in code that a C extension runs (such as an import), Python ends the
    process by SIGINT whatever its exit code, even if it was caught.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.signal_number = signal_number


_AGAIN_S: Final = 0.05
"""Time after which a signal is sent again that could not be raised. [s]"""


def _stop(signal_number: int, frame: FrameType | None) -> None:
    # A library in C++ makes an ImportError of what is raised while it starts up.
    if _starts_library(frame):
        _send_again(signal_number)
    else:
        raise Stopped(signal_number)


def _send_again(signal_number: int) -> None:
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal_number))
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def _unraised(unraisable: UnraisableHookArgs) -> None:
    """Send a signal again that was raised where Python ignores it, such as in a finaliser."""
    if isinstance(unraisable.exc_value, Stopped):
        _send_again(unraisable.exc_value.signal_number)
    else:
        sys.__unraisablehook__(unraisable)


def _starts_library(frame: FrameType | None) -> bool:
    """Return whether the import of an extension module is under way."""
    while frame is not None:
        if frame.f_code.co_name in ("create_module", "exec_module"):
            loader = frame.f_locals.get("self")
            if any(each.__name__ == "ExtensionFileLoader" for each in type(loader).__mro__):
                return True
        frame = frame.f_back
    return False


def _hear_signals() -> None:
    sys.unraisablehook = _unraised
    signal.signal(signal.SIGTERM, _stop)
    # Last at the exit, when everything is written: what is left to free takes a second after a sweep.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        atexit.register(signal.signal, number, signal.SIG_IGN)
    # A background job ignores Ctrl-C, which is for the foreground job.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)


def _is_of_memory(error: BaseException) -> bool:
    """Return whether memory is exhausted, including for a library, a thread or a process."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    words = ("map segment",) if isinstance(error, ImportError) else ("can't start new thread",)
    return isinstance(error, MemoryError) or any(each in str(error) for each in words)


def _is_of_temporary_files(error: BaseException) -> bool:
    """Return whether no folder accepts temporary files, as in a container with a read-only file system."""
    # Python's error names no file; only this message distinguishes it from a missing file.
    return isinstance(error, FileNotFoundError) and "No usable temporary directory" in str(error)


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        _hear_signals()
        from fleetplan.planner.commands.memory import (  # noqa: PLC0415
            calm_libraries,
            guard_memory,
            look_for_garbage_less_often,
        )
        from fleetplan.planner.commands.terminal import OutputError, drop_output, guard_streams  # noqa: PLC0415

        guard_streams()
        calm_libraries()
        look_for_garbage_less_often()
        guard_memory()
        try:
            from fleetplan.planner import cli  # noqa: PLC0415

            try:
                cli.main()
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except OutputError as error:
            drop_output()
            if error.is_closed:
                sys.exit(_EXIT_BROKEN_PIPE)
            sys.stderr.write(f"standard output cannot be written: {error}\n")
            sys.exit(_EXIT_BAD_INPUT)
    except (MemoryError, ImportError, RuntimeError, OSError) as error:
        if _is_of_temporary_files(error):
            sys.stderr.write("no folder accepts temporary files: make /tmp writable, or name one in TMPDIR\n")
            sys.exit(_EXIT_BAD_INPUT)
        if not _is_of_memory(error):
            raise
        from fleetplan.planner.commands.memory import say_no_memory  # noqa: PLC0415

        say_no_memory()
    except KeyboardInterrupt:
        # Before a command started; afterwards the command line reports it.
        sys.stderr.write("stopped\n")
        sys.exit(_EXIT_LIMIT)
