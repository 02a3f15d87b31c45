"""A process that answers questions in lines of JSON: highspy cannot live beside OR-Tools.

In: {"path", "mode", "caps", "time_limit_s"}. Out: {"stages": [[name, value, bound], ...]} or {"error"}.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[3]


class OracleError(Exception):
    """Failure of the worker."""


class Oracle:
    """Client of the worker: starts the process, sends questions, and ends it.

    Parameters
    ----------
    time_limit_s : float
        For an answer, where a question has no limit of its own. [s]
    """

    def __init__(self, time_limit_s: float = 30.0) -> None:
        self._time_limit_s = time_limit_s
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.oracles.independent.worker"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(
        self,
        path: Path,
        *,
        mode: str = "exact",
        caps: Mapping[str, float] | None = None,
        time_limit_s: float | None = None,
    ) -> dict[str, tuple[float, float]]:
        """Return (value, bound) by stage; nothing where the fleet cannot be served.

        Raises
        ------
        OracleError
            If the worker found neither a solution nor a proof.
        """
        limit_s = self._time_limit_s if time_limit_s is None else time_limit_s
        question = {"path": str(path), "mode": mode, "caps": dict(caps or {}), "time_limit_s": limit_s}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        reply = json.loads(self._process.stdout.readline())
        if "error" in reply:
            raise OracleError(reply["error"])
        return {name: (value, bound) for name, value, bound in reply["stages"]}


def main() -> None:
    """Answer until the input ends."""
    from tests.oracles.independent.answer import answer  # noqa: PLC0415

    # HiGHS prints its name to the standard output as soon as it is there; replies go their own way.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            found = answer(Path(question.pop("path")), **question)
            reply: dict[str, object] = {
                "stages": [(stage.name, stage.value, stage.bound) for stage in found.stages]
            }
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
