"""The web application's handle on the process that solves (child.py): ask, stop and end."""

from __future__ import annotations

import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from fleetplan.fleet.machine import child_environment
from fleetplan.planner.commands.page.messages import Message, PlanRequest, Settings, StopRequest


class PlannerProcess:
    """A process that solves, with the threads that exchange messages with it.

    Parameters
    ----------
    settings : Settings
        Fleet file and limits.
    hear : callable
        Receives every message, in a separate thread.
    lost : callable
        Called if the process ends unexpectedly.
    """

    def __init__(
        self, settings: Settings, hear: Callable[[Message], None], lost: Callable[[PlannerProcess], None]
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fleetplan.planner.commands.page.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # In a new session, so that Ctrl-C reaches only this process, which then ends the other.
            start_new_session=True,
            env=child_environment(),
        )
        self._hear, self._lost = hear, lost
        self._ended = False
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._send(settings)
        threading.Thread(target=self._listen, daemon=True).start()
        # A plan exceeds the buffer of a pipe, and the process only reads after its start.
        threading.Thread(target=self._write, daemon=True).start()

    def ask(self, question: PlanRequest) -> None:
        """Send a question; its answer arrives as a message."""
        self._send(question)

    def stop(self, number: int) -> None:
        """Stop the search for a question at its best plan."""
        self._send(StopRequest(number))

    def end(self) -> None:
        """Kill the process; the processes of its solvers end when they notice."""
        self._ended = True
        self._process.kill()
        self._process.wait()

    def _send(self, thing: Settings | PlanRequest | StopRequest) -> None:
        self._unsent.put(pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL))

    def _write(self) -> None:
        target = self._pipe(self._process.stdin)
        # If the process has ended, the listener reports it; part of a question may remain in the buffer.
        with suppress(BrokenPipeError), target:
            while (pickled := self._unsent.get()) is not None:
                target.write(pickled)
                target.flush()

    def _listen(self) -> None:
        source = self._pipe(self._process.stdout)
        with suppress(EOFError, OSError, pickle.UnpicklingError), source:
            while True:
                self._hear(pickle.load(source))
        self._process.wait()
        self._unsent.put(None)
        if not self._ended:
            self._lost(self)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None, "both pipes were requested"
        return pipe
