"""HiGHS in a process of its own: reads a mixed-integer program from stdin, writes what it finds to stdout.

It runs apart because highspy and OR-Tools cannot live in one process, and because its search cannot be
stopped from outside. Every better plan and bound goes out at once. No fleetplan module is imported.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import time
from typing import IO, Any

import highspy
import numpy as np

LEAST_INTERVAL_S = 0.5
"""Between two answers that only raise the bound. [s]"""


class Answers:
    """Writes each better plan and bound as one JSON line.

    Parameters
    ----------
    target : IO[str]
        Receives the lines.
    only_last : bool
        Whether to say nothing before the end, so that what is said does not depend on the clock.
    """

    def __init__(self, target: IO[str], only_last: bool) -> None:
        self._target = target
        self._only_last = only_last
        self._last = time.monotonic()
        self._bound = -highspy.kHighsInf

    def improved(self, event: Any) -> None:
        """HiGHS found a better plan."""
        if not self._only_last:
            self.write(float(event.data_out.mip_dual_bound), np.asarray(event.data_out.mip_solution))

    def progressed(self, event: Any) -> None:
        """HiGHS says how far it is."""
        bound, now = float(event.data_out.mip_dual_bound), time.monotonic()
        if not self._only_last and bound > self._bound and now - self._last >= LEAST_INTERVAL_S:
            self.write(bound, None)

    def write(self, bound: float, values: np.ndarray[Any, Any] | None) -> None:
        """Write one answer."""
        self._last, self._bound = time.monotonic(), bound
        answer = {
            "bound": bound if abs(bound) < highspy.kHighsInf else None,
            "values": None if values is None else values.tolist(),
        }
        self._target.write(json.dumps(answer) + "\n")
        self._target.flush()


def main(source: IO[bytes], target: IO[str], only_last: bool = False) -> None:
    """Solve the program that stands in `source` as an npz archive."""
    with np.load(io.BytesIO(source.read()), allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    solver = _solver(arrays)
    answers = Answers(target, only_last)
    solver.cbMipImprovingSolution.subscribe(answers.improved)
    solver.cbMipLogging.subscribe(answers.progressed)
    solver.run()
    info = solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    answers.write(float(info.mip_dual_bound), np.array(solver.getSolution().col_value) if found else None)


def _solver(arrays: dict[str, np.ndarray[Any, Any]]) -> highspy.Highs:
    """HiGHS with the program of an archive."""
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = (int(each) for each in arrays["shape"])
    program.col_cost_ = arrays["cost"]
    program.col_lower_, program.col_upper_ = arrays["lower"], arrays["upper"]
    program.row_lower_, program.row_upper_ = arrays["row_lower"], arrays["row_upper"]
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = arrays["row_starts"]
    program.a_matrix_.index_ = arrays["columns"]
    program.a_matrix_.value_ = arrays["values"]
    kinds = highspy.HighsVarType
    program.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in arrays["integrality"]]
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    # Beside it CP-SAT has the other cores; also, threads would make the answer depend on the machine.
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("time_limit", float(arrays["time_limit_s"]))
    solver.setOptionValue("mip_rel_gap", float(arrays["gap_ratio"]))
    # On small fleets a restart costs more than it saves: ten of them, three seeds each, took 68 s without any
    # instead of 83 s.
    solver.setOptionValue("mip_allow_restart", False)
    # Its own interval of 5 s would keep bounds back for as long.
    solver.setOptionValue("mip_min_logging_interval", LEAST_INTERVAL_S)
    solver.passModel(program)
    return solver


if __name__ == "__main__":
    # Whoever started it hears Ctrl-C and ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # HiGHS itself prints to standard output now and then; the answers go out by a copy of it.
    # Whoever has enough closes the pipe.
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main(sys.stdin.buffer, answers, only_last="--once" in sys.argv)
