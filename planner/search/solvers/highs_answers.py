"""What HiGHS answers to one job: an integer program, a block's among them, a linear one, or many in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.growing_linear import GrowingLinear
from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    AnyJob,
    Array,
    Basis,
    CompositeJob,
    Effort,
    Indices,
    Job,
    Rows,
    StackedRows,
)
from fleetplan.planner.search.solvers.highs_model import cost_unit, model_of
from fleetplan.planner.search.work import iteration_s

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

FOR_A_BOUND: Final[Options] = {
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_lp_age_limit": 3,
    "mip_pscost_minreliable": 1,
}
"""What is worth buying, of teams' years, seeds 1 to 5, takes 5.8, 5.4, 6.6, 2.4 and 5.4 s of a core instead
of 6.9, 6.3, 7.5, 4.1 and 17.6 without the first three. With an age limit, by which cuts that do not bind
leave sooner, the first quarter of seed 5 with cuts of blocks takes 15 instead of 26 s. With the last, by
which one branching says enough of a variable, seeds 1, 2, 3 and 5 with cuts for whole replicas take 9.5, 4.8,
5.2 and 4.5 instead of 11.4, 6.8, 5.7 and 6.2 s."""

FEASIBLE: Final = 1e-6
"""How far a start may be from its limits; HiGHS allows as much. [scaled units]"""

LINEAR_ATTEMPTS: Final[tuple[Options, ...]] = (
    {},
    {"presolve": "off"},
    {"presolve": "on", "solver": "ipm"},
)
"""Ways to solve a linear program, the next where HiGHS gives up on the one before."""


def solve(job: AnyJob, programs: StackedRows) -> Answer:
    """Solve one job, which may name one of some programs by its number."""
    if not isinstance(job, Job):
        return _composite(job, programs)
    unit = cost_unit(job.cost)
    rows = programs.program(job.rows) if isinstance(job.rows, int) else job.rows
    if job.upper is not None:
        rows = rows.within(rows.lower, job.upper)
    if job.effort is None:
        return _linear(rows, job.cost, unit)
    if isinstance(job.rows, int):
        options: Options = {**BLOCK_OPTIONS, **(FEW_CUTS if job.effort.cuts else NO_CUTS)}
    else:
        options = ROUNDING if job.effort.rounds else {}
    solver = model_of(rows, job.cost / unit, linear=False, firm=job.effort.firm)
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return _integer(solver, rows, job, unit)


def _composite(job: CompositeJob, programs: StackedRows) -> Answer:
    """Do a job of many programs, whose work is theirs."""
    solver = _Counting(programs)
    answer = job.run(solver)
    return replace(answer, work_s=solver.work_s)


class _Counting:
    """Solves the programs of one job, and counts their work.

    Parameters
    ----------
    programs : StackedRows
        Those that have a number.

    Attributes
    ----------
    work_s : float
        Work so far, as `Answer` has it. [s]
    """

    def __init__(self, programs: StackedRows) -> None:
        self._programs = programs
        self.work_s = 0.0

    def __call__(self, job: Job) -> Answer:
        """Solve one program."""
        answer = solve(job, self._programs)
        self._worked(answer.work_s)
        return answer

    def _worked(self, work_s: float) -> None:
        self.work_s += work_s

    def program(self, number: int) -> Rows:
        """One of the programs that jobs name by number."""
        return self._programs.program(number)

    def growing(
        self, program: Rows, cost: Array, variables: Indices, start: Basis | None = None
    ) -> GrowingLinear:
        """Begin with some variables of a linear program, and from a basis of all of it where one is known."""
        return GrowingLinear(program, cost, variables, self._worked, start)


def limit(solver: highspy.Highs, effort: Effort, unit: float) -> None:
    """Set when HiGHS may stop, with costs in some unit."""
    solver.setOptionValue("mip_rel_gap", effort.gap_ratio)
    if effort.gap:
        solver.setOptionValue("mip_abs_gap", effort.gap / unit)
    if not effort.restarts:
        solver.setOptionValue("mip_allow_restart", False)
    if effort.for_a_bound:
        for name, value in FOR_A_BOUND.items():
            solver.setOptionValue(name, value)
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
    known = _begin(solver, rows, job, unit)
    solver.run()
    info, found, infeasible = solver.getInfo(), found_by(solver), is_infeasible(solver)
    bound = np.inf if infeasible else float(info.mip_dual_bound) * unit
    nodes, work_s = max(0, int(info.mip_node_count)), _work_s(solver, rows)
    values = (
        None
        if found is None
        else np.where(rows.whole, np.round(found), np.clip(found, rows.lower, rows.upper))
    )
    objective = np.inf if values is None else float(job.cost @ values)
    if known < np.inf:
        # What is cheaper than the start by more than the gap was looked for alone: of the rest nothing is
        # proven, though HiGHS may have found some of it and call it the optimum.
        bound = min(bound, known - _content(job, known))
        if objective >= known:
            values, objective, infeasible = job.start, known, False
    if values is None:
        return Answer(None, np.inf, bound, infeasible=infeasible, nodes=nodes, work_s=work_s)
    return Answer(values, objective, bound, nodes=nodes, work_s=work_s)


def _content(job: Job, objective: float) -> float:
    """Gap at which a search ends; none for blocks, whose bounds are wanted. [objective units]"""
    if job.effort is None or isinstance(job.rows, int):
        return 0.0
    return max(job.effort.gap, job.effort.gap_ratio * abs(objective))


def _begin(solver: highspy.Highs, rows: Rows, job: Job, unit: float) -> float:
    """Tell HiGHS of the start, where there is one.

    HiGHS 1.16.0 may take a start for a cheaper one where presolve changed the program, and then calls it the
    optimum: one of 9.008 for 8.848, where the best is 8.995 (a master of a medium fleet, 1e12; the tests have
    a case of six variables). 1.14.0 and 1.15.1 do not. So only the cost of a start is told: nothing dearer is
    looked for.

    Returns
    -------
    float
        Cost of the start; infinite where there is none, or it has to be completed. [objective units]
    """
    if job.start is None:
        return np.inf
    if not _holds(rows, job.start):
        start = highspy.HighsSolution()
        start.col_value = job.start.tolist()
        solver.setSolution(start)
        return np.inf
    known = float(job.cost @ job.start)
    solver.setOptionValue("objective_bound", (known - _content(job, known)) / unit)
    return known


def _holds(rows: Rows, values: Array) -> bool:
    """Whether some values are a solution. The matrix may be without scipy's operators."""
    matrix = rows.rows
    sums = np.concatenate([[0.0], np.cumsum(matrix.data * values[matrix.indices])])
    used = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    whole = values[rows.whole]
    beyond = max(
        (used - rows.row_upper).max(initial=0.0),
        (rows.row_lower - used).max(initial=0.0),
        (values - rows.upper).max(initial=0.0),
        (rows.lower - values).max(initial=0.0),
        np.abs(whole - np.round(whole)).max(initial=0.0),
    )
    return bool(beyond <= FEASIBLE)


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
    return Answer(
        np.array(solution.col_value),
        objective,
        objective,
        row_duals=np.array(solution.row_dual) * unit,
        reduced_costs=np.array(solution.col_dual) * unit,
        work_s=work_s,
    )
