"""HiGHS in a process of its own: reads jobs from stdin and writes answers to stdout, pickled, one by one.

It runs apart because highspy and OR-Tools cannot live in one process, and because a search cannot be stopped
from outside. A tuple that is read holds the programs that the jobs after it name by number. A `SearchJob` is
the last job of its process: every better plan and bound goes out at once, and requests for more searches
come in.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import IO, Any, Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    AnyJob,
    Array,
    CompositeJob,
    Effort,
    Job,
    Rows,
    SearchJob,
)
from fleetplan.planner.search.work import iteration_s

LEAST_INTERVAL_S: Final = 0.1
"""Between two answers of a search that only raise the bound. [s]"""

PARENT_POLL_S: Final = 1.0
"""How often a child looks whether its parent is still there. [s]"""

Options = Mapping[str, str | float | bool]

BLOCK_OPTIONS: Final[Options] = {
    "mip_heuristic_effort": 0.0,
    "mip_detect_symmetry": False,
    "mip_allow_restart": False,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""For blocks of about a hundred variables, which a short tree search solves before heuristics have paid: 21
instead of 27 ms a block without the last three, in a medium fleet's second round. Presolve pays where the
search begins with a good column: 8.6 s instead of 12.8 s for 224 blocks; without one 12.4 s."""

FEW_CUTS: Final[Options] = {
    "mip_pool_soft_limit": 20,
    "mip_pool_age_limit": 30,
    "mip_allow_cut_separation_at_nodes": True,
    "mip_pscost_minreliable": 2,
}
"""Replicas are lumpy: cuts raise a block's bound by hundredths where branching closes the rest. 15 to 24 ms a
block instead of 21 to 29 ms with HiGHS's own settings, to a gap of 0.03 %."""

NO_CUTS: Final[Options] = {
    "mip_pool_soft_limit": 1,
    "mip_pool_age_limit": 0,
    "mip_allow_cut_separation_at_nodes": False,
    "mip_pscost_minreliable": 8,
}
"""12 ms instead of 21 ms a block, to a gap of 1 %. The hardest blocks take longer without cuts."""

ROUNDING: Final[Options] = {"mip_heuristic_run_zi_round": True, "mip_heuristic_run_shifting": True}
"""For programs of one moment: hundreds of variables that presolve leaves. One of a company with the loss of a
region (seed 1): a plan after 0.44 s of a core instead of 1.14 s, 168 k instead of 331 k USD after 2.2 s."""

LINEAR_ATTEMPTS: Final[tuple[Options, ...]] = (
    {},
    {"presolve": "off"},
    {"presolve": "on", "solver": "ipm"},
)
"""Ways to solve a linear program, the next where HiGHS gives up on the one before."""


class Known:
    """The programs that jobs name by number, each with the solver that holds it."""

    def __init__(self, programs: tuple[Rows, ...]) -> None:
        self._programs = programs
        self._solvers: dict[int, highspy.Highs] = {}

    def solver(self, number: int) -> tuple[Rows, highspy.Highs]:
        """A program and a solver that holds it with some cost."""
        rows = self._programs[number]
        if number not in self._solvers:
            self._solvers[number] = model_of(rows, np.zeros(len(rows.lower)), linear=False)
        return rows, self._solvers[number]


def cost_unit(cost: Array) -> float:
    """Unit in which the largest cost is 1: HiGHS loses its way with costs of 1e11."""
    return float(np.abs(cost).max(initial=0.0)) or 1.0


def solve(job: AnyJob, known: Known) -> Answer:
    """Solve one job."""
    if not isinstance(job, Job):
        return _composite(job, known)
    unit = cost_unit(job.cost)
    if job.effort is None:
        if isinstance(job.rows, int):
            raise ValueError("blocks are not solved as linear relaxations")
        return _linear(job.rows, job.cost, unit)
    if isinstance(job.rows, int):
        rows, solver = known.solver(job.rows)
        solver.clearSolver()
        variables = np.arange(len(job.cost), dtype=np.int32)
        solver.changeColsCost(len(variables), variables, job.cost / unit)
        for name, value in {**BLOCK_OPTIONS, **(FEW_CUTS if job.effort.cuts else NO_CUTS)}.items():
            solver.setOptionValue(name, value)
    else:
        rows, solver = job.rows, model_of(job.rows, job.cost / unit, linear=False)
        for name, value in (ROUNDING if job.effort.rounds else {}).items():
            solver.setOptionValue(name, value)
    return _integer(solver, rows, job, unit)


def _composite(job: CompositeJob, known: Known) -> Answer:
    """Do a job of many programs, whose work is theirs."""
    work_s = 0.0

    def solved(part: Job) -> Answer:
        nonlocal work_s
        answer = solve(part, known)
        work_s += answer.work_s
        return answer

    answer = job.run(solved)
    return replace(answer, work_s=work_s)


def model_of(rows: Rows, cost: Array, linear: bool) -> highspy.Highs:
    """HiGHS with a program."""
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.rows.shape
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = rows.lower, rows.upper
    program.row_lower_, program.row_upper_ = rows.row_lower, rows.row_upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = rows.rows.indptr
    program.a_matrix_.index_ = rows.rows.indices
    program.a_matrix_.value_ = rows.rows.data
    if not linear:
        integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        program.integrality_ = [integer if whole else continuous for whole in rows.whole]
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    # One process a core; also, threads would make the answer depend on the machine. The parallel dual simplex
    # of HiGHS 1.16 saves a fifth on two idle cores and takes six times as long beside other work.
    solver.setOptionValue("threads", 1)
    solver.passModel(program)
    return solver


def limit(solver: highspy.Highs, effort: Effort, unit: float) -> None:
    """Set when HiGHS may stop, with costs in some unit."""
    solver.setOptionValue("mip_rel_gap", effort.gap_ratio)
    if effort.gap:
        solver.setOptionValue("mip_abs_gap", effort.gap / unit)
    if not effort.restarts:
        solver.setOptionValue("mip_allow_restart", False)
    solver.setOptionValue("mip_max_nodes", effort.node_limit)
    solver.setOptionValue("mip_max_improving_sols", effort.improvements or highspy.kHighsIInf)
    limit_s = highspy.kHighsInf if effort.time_limit_s is None else effort.time_limit_s
    # HiGHS counts the time of all runs of one solver together.
    solver.setOptionValue("time_limit", solver.getRunTime() + limit_s)


def found_by(solver: highspy.Highs) -> Array | None:
    """The best solution; None without one."""
    found = solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return np.array(solver.getSolution().col_value) if found else None


def is_infeasible(solver: highspy.Highs) -> bool:
    """Whether HiGHS says that there is no solution."""
    return bool(solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible)


def _integer(solver: highspy.Highs, rows: Rows, job: Job, unit: float) -> Answer:
    if job.effort is None:
        raise ValueError("an integer program needs limits")
    limit(solver, job.effort, unit)
    if job.start is not None:
        start = highspy.HighsSolution()
        start.col_value = job.start.tolist()
        solver.setSolution(start)
    solver.run()
    info, found, infeasible = solver.getInfo(), found_by(solver), is_infeasible(solver)
    bound = np.inf if infeasible else float(info.mip_dual_bound) * unit
    nodes, work_s = max(0, int(info.mip_node_count)), _work_s(solver, rows)
    if found is None:
        return Answer(None, np.inf, bound, infeasible=infeasible, nodes=nodes, work_s=work_s)
    values = np.where(rows.whole, np.round(found), np.clip(found, rows.lower, rows.upper))
    return Answer(values, float(job.cost @ values), bound, nodes=nodes, work_s=work_s)


def _work_s(solver: highspy.Highs, rows: Rows) -> float:
    """The work of the last run. [s]"""
    iterations = int(solver.getInfo().simplex_iteration_count)
    return max(0, iterations) * iteration_s(len(rows.rows.data))


def _linear(rows: Rows, cost: Array, unit: float) -> Answer:
    solver, work_s = model_of(rows, cost / unit, linear=True), 0.0
    for options in LINEAR_ATTEMPTS:
        for name, value in options.items():
            solver.setOptionValue(name, value)
        solver.clearSolver()
        solver.run()
        work_s += _work_s(solver, rows)
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible):
            break
    if status != highspy.HighsModelStatus.kOptimal:
        infeasible = status == highspy.HighsModelStatus.kInfeasible
        said = solver.modelStatusToString(status)
        return Answer(None, np.inf, -np.inf, infeasible=infeasible, work_s=work_s, status=said)
    solution = solver.getSolution()
    objective = float(solver.getInfo().objective_function_value) * unit
    duals = np.array(solution.row_dual) * unit
    return Answer(np.array(solution.col_value), objective, objective, row_duals=duals, work_s=work_s)


class Searches:
    """One search of a program, and more of them with other seeds, which tell each other of their plans.

    A seed is worth a factor of two in time, and half of a search passes without a good plan. The first one
    that ends ends all.

    Parameters
    ----------
    job : SearchJob
        The program.
    write : callable
        Sends an answer.
    """

    def __init__(self, job: SearchJob, write: Callable[[Answer], None]) -> None:
        self._job = job
        self._write = write
        self._unit = cost_unit(job.cost)
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._over = False
        self._least = highspy.kHighsInf
        self._plan: tuple[int, Array] | None = None
        self._others: list[threading.Thread] = []
        self._answered = time.monotonic()
        self._bound = -highspy.kHighsInf

    def run(self, requests: IO[bytes]) -> None:
        """Run the first search, and one more for each request that is read meanwhile."""
        threading.Thread(target=self._start_others, args=(requests,), daemon=True).start()
        self._search(seed=0)
        with self._lock:
            others = list(self._others)
        for other in others:
            other.join()

    def _start_others(self, requests: IO[bytes]) -> None:
        with contextlib.suppress(EOFError):
            while True:
                pickle.load(requests)
                with self._lock:
                    if self._over:
                        return
                    other = threading.Thread(target=self._search, args=(len(self._others) + 1,))
                    self._others.append(other)
                    other.start()

    def _search(self, seed: int) -> None:
        """Run a search until it ends or another one has."""
        solver, effort = model_of(self._job.rows, self._job.cost / self._unit, linear=False), self._job.effort
        if effort.time_limit_s is not None:
            left_s = effort.time_limit_s - (time.monotonic() - self._started)
            effort = replace(effort, time_limit_s=max(left_s, 0.0))
        limit(solver, effort, self._unit)
        solver.setOptionValue("random_seed", seed)
        told = None

        def improved(event: Any) -> None:
            found, values = float(event.data_out.objective_function_value), event.data_out.mip_solution
            with self._lock:
                if found >= self._least:
                    return
                self._least, self._plan = found, (seed, np.array(values))
            self._answer(float(event.data_out.mip_dual_bound), np.array(values))

        def listens(event: Any) -> None:
            nonlocal told
            with self._lock:
                plan = self._plan
            # Once: HiGHS may have reasons of its own not to take it.
            if plan is not None and plan is not told and plan[0] != seed:
                told = plan
                event.data_in.setSolution(plan[1])

        def looks_up(event: Any) -> None:
            bound = float(event.data_out.mip_dual_bound)
            if bound > self._bound and time.monotonic() - self._answered >= LEAST_INTERVAL_S:
                self._answer(bound, None)
            event.data_in.user_interrupt = self._over

        solver.cbMipImprovingSolution.subscribe(improved)
        solver.cbMipUserSolution.subscribe(listens)
        solver.cbMipInterrupt.subscribe(looks_up)
        solver.run()
        with self._lock:
            late, self._over = self._over, True
        if not late:
            values, infeasible = found_by(solver), is_infeasible(solver)
            self._answer(float(solver.getInfo().mip_dual_bound), values, infeasible and values is None)

    def _answer(self, bound: float, values: Array | None, infeasible: bool = False) -> None:
        """Send what is known, in the units of the job."""
        objective = np.inf if values is None else float(self._job.cost @ values)
        with self._lock:
            self._answered, self._bound = time.monotonic(), max(self._bound, bound)
            self._write(Answer(values, objective, bound * self._unit, infeasible=infeasible))


def main(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer jobs until the source ends."""

    def write(answer: Answer) -> None:
        pickle.dump(answer, target, protocol=pickle.HIGHEST_PROTOCOL)
        target.flush()

    known = Known(())
    with contextlib.suppress(EOFError):
        while True:
            asked: AnyJob | SearchJob | tuple[Rows, ...] = pickle.load(source)
            if isinstance(asked, tuple):
                known = Known(asked)
            elif isinstance(asked, SearchJob):
                Searches(asked, write).run(source)
                return
            else:
                write(solve(asked, known))


def end_with(parent: int) -> None:
    """End this process once its parent has: it may be far from the end of its job."""
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(0)


if __name__ == "__main__":
    # Whoever started it hears Ctrl-C and ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(int(sys.argv[1]),), daemon=True).start()
    # HiGHS itself prints to standard output now and then; the answers go out by a copy of it.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # A pipe that is closed: nobody waits for answers any more.
    with contextlib.suppress(BrokenPipeError):
        main(sys.stdin.buffer, answers)
    # Not by the interpreter's end: a thread may wait for requests, and a closed pipe would raise once more.
    os._exit(0)
