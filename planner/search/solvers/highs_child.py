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
import threading
import time
from typing import IO, Any

import highspy
import numpy as np

LEAST_INTERVAL_S = 0.1
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
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._bound = -highspy.kHighsInf

    def improved(self, bound: float, values: np.ndarray[Any, Any]) -> None:
        """There is a better plan."""
        if not self._only_last:
            self.write(bound, values)

    def progressed(self, bound: float) -> None:
        """A search says how far it is."""
        if not self._only_last and bound > self._bound and time.monotonic() - self._last >= LEAST_INTERVAL_S:
            self.write(bound, None)

    def write(
        self,
        bound: float,
        values: np.ndarray[Any, Any] | None,
        infeasible: bool = False,
        iterations: int = 0,
    ) -> None:
        """Write one answer, with the iterations of a search that has ended."""
        answer = {
            "bound": bound if abs(bound) < highspy.kHighsInf else None,
            "values": None if values is None else values.tolist(),
            "infeasible": infeasible,
            "iterations": iterations,
        }
        with self._lock:
            self._last, self._bound = time.monotonic(), max(self._bound, bound)
            self._target.write(json.dumps(answer) + "\n")
            self._target.flush()


class Searches:
    """One search of the program, and more of them with other seeds, which tell each other of their plans.

    A seed is worth a factor of two in time, and half of a search passes without a good plan. The first one
    that ends ends all.

    Parameters
    ----------
    arrays : dict[str, NDArray]
        The program.
    answers : Answers
        Hears of what they find.
    """

    def __init__(self, arrays: dict[str, np.ndarray[Any, Any]], answers: Answers) -> None:
        self._arrays = arrays
        self._answers = answers
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._over = False
        self._least = highspy.kHighsInf
        self._plan: tuple[int, np.ndarray[Any, Any]] | None = None
        self._others: list[threading.Thread] = []

    def alone(self) -> None:
        """Run one search, which ends as if there could be no others."""
        self._finish(_solver(self._arrays))

    def first(self, requests: IO[bytes]) -> None:
        """Run the first search, and one more for each line that is read meanwhile."""
        threading.Thread(target=self._start_others, args=(requests,), daemon=True).start()
        self._search(seed=0)
        with self._lock:
            others = list(self._others)
        for other in others:
            other.join()

    def _start_others(self, requests: IO[bytes]) -> None:
        for _ in requests:
            with self._lock:
                if self._over:
                    return
                other = threading.Thread(target=self._search, args=(len(self._others) + 1,))
                self._others.append(other)
                other.start()

    def _search(self, seed: int) -> None:
        """Run a search until it ends or another one has."""
        left_s = float(self._arrays["time_limit_s"]) - (time.monotonic() - self._started)
        solver = _solver({**self._arrays, "time_limit_s": np.array(max(left_s, 0.0))})
        solver.setOptionValue("random_seed", seed)
        told = None

        def improved(event: Any) -> None:
            found, values = float(event.data_out.objective_function_value), event.data_out.mip_solution
            with self._lock:
                if found >= self._least:
                    return
                self._least, self._plan = found, (seed, np.array(values))
            self._answers.improved(float(event.data_out.mip_dual_bound), np.array(values))

        def listens(event: Any) -> None:
            nonlocal told
            with self._lock:
                plan = self._plan
            # Once: HiGHS may have reasons of its own not to take it.
            if plan is not None and plan is not told and plan[0] != seed:
                told = plan
                event.data_in.setSolution(plan[1])

        def looks_up(event: Any) -> None:
            self._answers.progressed(float(event.data_out.mip_dual_bound))
            event.data_in.user_interrupt = self._over

        solver.cbMipImprovingSolution.subscribe(improved)
        solver.cbMipUserSolution.subscribe(listens)
        solver.cbMipInterrupt.subscribe(looks_up)
        self._finish(solver)

    def _finish(self, solver: highspy.Highs) -> None:
        """Run a search, and write how it ended unless another one was first."""
        solver.run()
        with self._lock:
            late, self._over = self._over, True
        if late:
            return
        info = solver.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        values = np.array(solver.getSolution().col_value) if found else None
        infeasible = solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible
        iterations = max(int(info.simplex_iteration_count), 0)
        self._answers.write(float(info.mip_dual_bound), values, infeasible and not found, iterations)


def main(source: IO[bytes], target: IO[str], only_last: bool = False) -> None:
    """Solve the program that stands in `source`: its length in bytes, a line break, and an npz archive.

    Each line after it asks for one search more, unless only the last answer is of interest.
    """
    with np.load(io.BytesIO(_archive(source)), allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    searches = Searches(arrays, Answers(target, only_last))
    if only_last:
        searches.alone()
    else:
        searches.first(source)


def _archive(source: IO[bytes]) -> bytes:
    """The archive, which an unbuffered source gives piece by piece."""
    length = int(source.readline())
    archive = bytearray()
    while len(archive) < length:
        piece = source.read(length - len(archive))
        if not piece:
            raise EOFError(f"the program ends after {len(archive)} of {length} bytes")
        archive += piece
    return bytes(archive)


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
    solver.setOptionValue("mip_max_nodes", int(arrays["node_limit"]))
    # On small fleets a restart costs more than it saves: ten of them, three seeds each, took 68 s without any
    # instead of 83 s.
    solver.setOptionValue("mip_allow_restart", False)
    solver.passModel(program)
    return solver


if __name__ == "__main__":
    # Whoever started it hears Ctrl-C and ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # HiGHS itself prints to standard output now and then; the answers go out by a copy of it.
    # Whoever has enough closes the pipe. The program comes in unbuffered: a thread that waits for more at the
    # end would hold the buffer's lock.
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(os.dup(1), "w", encoding="utf-8") as answers,
        open(0, "rb", buffering=0, closefd=False) as program,
    ):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main(program, answers, only_last="--once" in sys.argv)
