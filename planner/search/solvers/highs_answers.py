"""HiGHS's answer to one job: an integer program, a block, a linear program, or a composite job."""

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
from fleetplan.planner.search.solvers.highs_model import cost_unit, integer_model, linear_model
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
"""For blocks of about a hundred variables, which a short tree search solves before heuristics pay off: 21
instead of 27 ms per block without the last three."""

FEW_CUTS: Final[Options] = {
    "mip_pool_soft_limit": 20,
    "mip_pool_age_limit": 30,
    "mip_allow_cut_separation_at_nodes": True,
    "mip_pscost_minreliable": 2,
}
"""Replicas are whole units: cuts raise a block's bound by hundredths, branching closes the rest. 15 to 24 ms
per block instead of 21 to 29 ms with HiGHS's defaults, to a gap of 0.03 %."""

NO_CUTS: Final[Options] = {
    "mip_pool_soft_limit": 1,
    "mip_pool_age_limit": 0,
    "mip_allow_cut_separation_at_nodes": False,
    "mip_pscost_minreliable": 8,
}
"""12 instead of 21 ms per block, to a gap of 1 %. The hardest blocks take longer without cuts."""

ROUNDING: Final[Options] = {"mip_heuristic_run_zi_round": True, "mip_heuristic_run_shifting": True}
"""For programs of one moment, with hundreds of variables after presolve. In a company that survives the loss
of a region, a plan after 0.44 instead of 1.14 s of a core, and 168 instead of 331 k USD after 2.2 s."""

FOR_A_BOUND: Final[Options] = {
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_lp_age_limit": 3,
    "mip_pscost_minreliable": 1,
}
"""For supply programs. On five teams' years, the first three options reduce their time from 6.9, 6.3, 7.5,
4.1 and 17.6 to 5.8, 5.4, 6.6, 2.4 and 5.4 s of a core. The age limit, by which cuts that do not bind leave
sooner, reduces a quarter with block cuts from 26 to 15 s. The last, by which one branching per variable is
reliable, reduces four programs with cover cuts from 11.4, 6.8, 5.7 and 6.2 to 9.5, 4.8, 5.2 and 4.5 s."""

FEASIBLE: Final = 1e-6
"""Largest violation of limits by a start; HiGHS allows as much. [scaled units]"""

LINEAR_ATTEMPTS: Final[tuple[Options, ...]] = (
    {},
    {"presolve": "off"},
    {"presolve": "on", "solver": "ipm"},
)
"""Options for a linear program, tried in turn while HiGHS gives up."""


def solve(job: AnyJob, programs: StackedRows) -> Answer:
    """Solve one job, which may refer to a stacked program by number."""
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
    return _integer(rows, job, unit, options)


def _composite(job: CompositeJob, programs: StackedRows) -> Answer:
    """Run a job of many programs, and add up their work."""
    solver = _Counting(programs)
    answer = job.run(solver)
    return replace(answer, work_s=solver.work_s)


class _Counting:
    """Solver for the programs of one job that adds up their work.

    Parameters
    ----------
    programs : StackedRows
        Programs that jobs refer to by number.

    Attributes
    ----------
    work_s : float
        Work so far, as in `Answer`. [s]
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
        """Return the program with this number."""
        return self._programs.program(number)

    def growing(
        self, program: Rows, cost: Array, variables: Indices, start: Basis | None = None
    ) -> GrowingLinear:
        """Return a growing linear program that starts with some variables, and from a basis if known."""
        return GrowingLinear(program, cost, variables, self._worked, start)


def limit(solver: highspy.Highs, effort: Effort, unit: float) -> None:
    """Set HiGHS's limits, for costs in this unit."""
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
    """Return the best solution; None without one."""
    found = solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return np.array(solver.getSolution().col_value) if found else None


def is_infeasible(solver: highspy.Highs) -> bool:
    """Return whether HiGHS reports infeasibility."""
    return bool(solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible)


def _integer(rows: Rows, job: Job, unit: float, options: Options) -> Answer:
    if job.effort is None:
        raise ValueError("an integer program needs limits")
    model = integer_model(rows, job.cost / unit, job.effort.firm)
    if model is None:
        return Answer(None, np.inf, np.inf, infeasible=True)
    solver, reduced = model
    for name, value in options.items():
        solver.setOptionValue(name, value)
    limit(solver, job.effort, unit)
    known = _begin(solver, rows, job, unit, reduced.kept)
    solver.run()
    info, found, infeasible = solver.getInfo(), found_by(solver), is_infeasible(solver)
    bound = np.inf if infeasible else float(info.mip_dual_bound) * unit
    nodes, work_s = max(0, int(info.mip_node_count)), _work_s(solver, rows)
    values = None
    if found is not None:
        found = reduced.whole(found)
        values = np.where(rows.whole, np.round(found), np.clip(found, rows.lower, rows.upper))
    objective = np.inf if values is None else float(job.cost @ values)
    if known < np.inf:
        # Only solutions cheaper than the start by more than the gap were searched: nothing is proven about
        # the rest, even if HiGHS finds some of it and calls it optimal.
        bound = min(bound, known - _content(job, known))
        if objective >= known:
            values, objective, infeasible = job.start, known, False
    if values is None:
        return Answer(None, np.inf, bound, infeasible=infeasible, nodes=nodes, work_s=work_s)
    return Answer(values, objective, bound, nodes=nodes, work_s=work_s)


def _content(job: Job, objective: float) -> float:
    """Return the gap at which a search ends; 0 for blocks, whose bounds are needed. [objective units]"""
    if job.effort is None or isinstance(job.rows, int):
        return 0.0
    return max(job.effort.gap, job.effort.gap_ratio * abs(objective))


def _begin(solver: highspy.Highs, rows: Rows, job: Job, unit: float, kept: Indices) -> float:
    """Pass the start to HiGHS, if there is one.

    HiGHS 1.16.0 may price a start too low where presolve changed the program, and then calls it optimal:
    9.008 as 8.848, with an optimum of 8.995 (1e12 objective units; the tests have a case of six variables).
    1.14.0 and 1.15.1 do not. Therefore only the cost of the start is passed, as a limit on the objective.

    Returns
    -------
    float
        Cost of the start; infinite if there is none or it is incomplete. [objective units]
    """
    if job.start is None:
        return np.inf
    if not _holds(rows, job.start):
        start = highspy.HighsSolution()
        start.col_value = job.start[kept].tolist()
        solver.setSolution(start)
        return np.inf
    known = float(job.cost @ job.start)
    solver.setOptionValue("objective_bound", (known - _content(job, known)) / unit)
    return known


def _holds(rows: Rows, values: Array) -> bool:
    """Return whether values are a solution. The matrix may lack scipy's operators."""
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
    """Return the work of the last run. [s]"""
    iterations = int(solver.getInfo().simplex_iteration_count)
    return max(0, iterations) * iteration_s(len(rows.rows.data))


def _linear(rows: Rows, cost: Array, unit: float) -> Answer:
    solver, work_s = linear_model(rows, cost / unit), 0.0
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
