"""One solver on one fleet: our search, one CP-SAT model, or HiGHS, with its time and memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import scipy.sparse as sp
from ortools.sat.python import cp_model
from scipy.optimize import linprog

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.assemble import build_plan, provenance, solve_record, within_budgets
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.formulation import (
    PlanningModel,
    Solution,
    build_model,
    total_cost,
    unmet_demand,
)
from fleetplan.planner.problem import Problem
from fleetplan.planner.search import Progress, SearchLimits, SearchResult, search
from fleetplan.planner.search.solvers.highs_program import HighsAnswer, complete
from fleetplan.planner.search.solvers.highs_race import HighsRace
from fleetplan.planner.search.solvers.matrix import read_program
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.unmet_prices import rounding_of
from fleetplan.planner.units import USD_RESOLUTION
from fleetplan.planner.verify import verify

GIB: Final = 2**30

COMPLETION_S: Final = 10.0
"""Time to make HiGHS's last plan exact. [s]"""


@dataclass(slots=True)
class SolverRun:
    """What one solver did on one fleet.

    Attributes
    ----------
    steps : list[tuple[float, float | None, float | None]]
        Time, best plan and best bound after every step of the stage that minimises cost. [s; USD; USD]
    wall_s : float
        The whole solve. [s]
    memory_gib : float
        Most memory of all its processes together.
    result : SearchResult or None
        Of our search.
    linear_usd : float or None
        Bound of the linear relaxation, where it was asked for.
    exact_usd : float or None
        Of HiGHS's last plan with its replicas and supply, and loads that keep every row in exact integers;
        None where there are none, and of other solvers, whose plans are exact.
    """

    size: str
    variant: str
    seed: int
    solver: str
    fixed_usd: float
    steps: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    wall_s: float = 0.0
    memory_gib: float = 0.0
    result: SearchResult | None = None
    violations: int = 0
    linear_usd: float | None = None
    exact_usd: float | None = None

    def at(self, seconds: float) -> tuple[float | None, float | None]:
        """The best plan and bound known by a time. [USD]"""
        plan = bound = None
        for when, better, higher in self.steps:
            if when <= seconds:
                plan, bound = better or plan, higher or bound
        return plan, bound

    def gap(self, seconds: float) -> float:
        """Gap at a time; 1 without a plan or a bound."""
        plan, bound = self.at(seconds)
        return 1.0 if not plan or bound is None else max(0.0, (plan - bound) / plan)

    def decidable_gap(self, seconds: float) -> float:
        """The same without the cost of what exists."""
        plan, bound = self.at(seconds)
        if not plan or bound is None or plan <= self.fixed_usd:
            return 1.0
        return max(0.0, (plan - bound) / (plan - self.fixed_usd))

    def first_plan_s(self) -> float:
        """Time of the first plan; infinite without one. [s]"""
        return min((when for when, plan, _ in self.steps if plan), default=float("inf"))


def ours(problem: Problem, candidates: CandidateSet, limits: SearchLimits) -> Callable[[SolverRun], None]:
    """Our search, its plan verified."""

    def solve(run: SolverRun) -> None:
        started = time.monotonic()

        def watch(progress: Progress) -> None:
            plan, bound = progress.objective_usd, progress.bound_usd
            run.steps.append((time.monotonic() - started, plan, bound))

        result = search(problem, limits, watch, holds=within_budgets)
        run.wall_s = time.monotonic() - started
        run.steps.append((run.wall_s, result.objective_usd, result.bound_usd))
        run.result = result
        if result.solution is not None:
            made_from = provenance(problem.fleet, candidates, limits)
            plan = build_plan(problem, candidates, result, made_from, solve_record(result))
            run.violations = len(verify(problem, plan))

    return solve


def whole_model(problem: Problem, solution: Solution | None) -> PlanningModel:
    """The fleet as one model of cost, in which no more demand of any priority is unmet than in our plan."""
    left = {} if solution is None else solution.unmet
    planning = build_model(problem, allow_unmet=bool(left))
    planning.model.minimize(total_cost(problem, planning.variables))
    units = {planning.variables.unmet[key].index: unserved for key, unserved in left.items()}
    for priority in {service.priority for service in problem.fleet.services} if left else ():
        unmet = unmet_demand(problem, planning.variables, priority)
        if isinstance(unmet, int):
            continue
        flat = cp_model.FlatIntExpr(cp_model.LinearExpr.sum([unmet]))
        ours = sum(
            int(each) * units.get(variable.index, 0)
            for variable, each in zip(flat.vars, flat.coeffs, strict=True)
        )
        planning.model.add(unmet <= ours + rounding_of(unmet))
    return planning


def cpsat_alone(run: SolverRun, build: Callable[[], PlanningModel], limit_s: float) -> None:
    """CP-SAT with its default search on the whole model."""
    started = time.monotonic()
    planning = build()
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.1, limit_s - (time.monotonic() - started))
    solver.parameters.num_workers = usable_cores()

    class Watch(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            usd = self.objective_value / USD_RESOLUTION, self.best_objective_bound / USD_RESOLUTION
            run.steps.append((time.monotonic() - started, usd[0] + run.fixed_usd, usd[1] + run.fixed_usd))

    status = solver.solve(planning.model, Watch())
    bound = solver.best_objective_bound / USD_RESOLUTION + run.fixed_usd
    plan = None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        plan = solver.objective_value / USD_RESOLUTION + run.fixed_usd
    run.wall_s = time.monotonic() - started
    run.steps.append((run.wall_s, plan, bound))


def linear_usd(planning: PlanningModel, existing_usd: float) -> float:
    """What the linear relaxation of the whole model costs. [USD]"""
    relaxed = relax(read_program(planning.model), planning.continuous)
    unit = float(np.abs(planning.model.proto.objective.coeffs).max())
    cost = read_program(planning.model).cost * relaxed.variable_scale / unit
    sides = [(relaxed.rows, relaxed.row_upper), (-relaxed.rows, -relaxed.row_lower)]
    kept = [(rows[np.flatnonzero(np.isfinite(limit))], limit[np.isfinite(limit)]) for rows, limit in sides]
    answer = linprog(
        cost,
        A_ub=sp.vstack([rows for rows, _ in kept], format="csr"),
        b_ub=np.concatenate([limit for _, limit in kept]),
        bounds=np.column_stack([relaxed.lower, relaxed.upper]),
        method="highs",
    )
    return float(answer.fun) * unit / USD_RESOLUTION + existing_usd


def highs_alone(run: SolverRun, build: Callable[[], PlanningModel], limit_s: float) -> None:
    """HiGHS on the whole model with continuous loads; its last plan is made exact, in time of its own."""
    started = time.monotonic()
    planning = build()
    cost = dict(zip(planning.model.proto.objective.vars, planning.model.proto.objective.coeffs, strict=True))

    last: list[float] | None = None

    def hear(answer: HighsAnswer) -> None:
        nonlocal last
        plan = None
        if answer.values is not None:
            last = answer.values
            plan = sum(each * answer.values[j] for j, each in cost.items()) / USD_RESOLUTION + run.fixed_usd
        bound = None if answer.bound is None else answer.bound / USD_RESOLUTION + run.fixed_usd
        run.steps.append((time.monotonic() - started, plan, bound))

    left_s = max(1.0, limit_s - (time.monotonic() - started))
    with HighsRace(planning.model, planning.continuous, left_s, 1e-4, hear):
        time.sleep(left_s + 0.5)
    run.wall_s = time.monotonic() - started
    if last is None:
        return
    exact, _ = complete(planning.model, planning.continuous, last, COMPLETION_S)
    if exact is not None:
        run.exact_usd = exact.objective_value / USD_RESOLUTION + run.fixed_usd


def measured(run: SolverRun, solve: Callable[[SolverRun], None]) -> SolverRun:
    """A run with the most memory that it had, children included."""
    ended = threading.Event()
    most = 0

    def sample() -> None:
        nonlocal most
        while not ended.wait(0.25):
            most = max(most, sum(resident_bytes(pid) for pid in (os.getpid(), *children(os.getpid()))))

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    solve(run)
    ended.set()
    watcher.join()
    run.memory_gib = most / GIB
    return run


def children(pid: int) -> list[int]:
    """Return the processes that the threads of a process have started; none where it is gone."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(each) for each in thread.read_text(encoding="ascii").split()]
    return found


def resident_bytes(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
