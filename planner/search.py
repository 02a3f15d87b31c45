"""Solving: feasibility by priority, then least cost, with the bound and the best plan at any time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from ortools.sat.python import cp_model

from fleetplan.planner.model import PlanningModel, build_model
from fleetplan.planner.objective import fixed_usd, total_cost, unmet_demand
from fleetplan.planner.problem import Problem
from fleetplan.planner.scaling import USD_RESOLUTION
from fleetplan.planner.variables import Variables

FULL_SERVICE_SHARE_OF_TIME = 0.5
"""Share of the time limit for a plan that serves everything, where unmet demand is allowed."""

UNMET_SHARE_OF_TIME = 0.4
"""Share of the time left that each priority may take before cost is looked at."""

SIMPLIFY_TIME_LIMIT_S = 5.0
"""Time to look for a simpler plan of the same cost. [s]"""

OPTIMAL_GAP = 1e-9
"""Gap below which a plan is called optimal: the float rounding of the objective."""


class SolveStatus(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"
    WITHIN_GAP = "within_gap"
    LIMIT = "limit"
    INFEASIBLE = "infeasible"
    NO_PLAN = "no_plan"


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When a search may stop.

    Attributes
    ----------
    time_limit_s : float
        Wall time of all solves together. [s]
    gap_ratio : float
        (plan - bound) / plan at which a plan is good enough.
    seed : int
        Seed of the solver.
    workers : int
        Parallel searches.
    """

    time_limit_s: float = 120.0
    gap_ratio: float = 0.001
    seed: int = 1
    workers: int = 8


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a running search, for those who watch it."""

    stage: str
    wall_s: float
    objective_usd: float | None
    bound_usd: float | None


@dataclass(frozen=True, slots=True)
class Solution:
    """Raw values of a model's variables.

    Attributes
    ----------
    replicas, load, unmet, acquired, packed : dict
        Values by the keys of `Variables`; zeros are left out.
    """

    replicas: dict[tuple[int, int, int], int]
    load: dict[tuple[int, int, int, int], int]
    unmet: dict[tuple[int, int], int]
    acquired: dict[tuple[int, int, int], int]
    packed: dict[tuple[int, int, tuple[int, ...]], int]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    status : SolveStatus
        How it ended.
    solution : Solution or None
        The best plan's values.
    objective_usd, bound_usd : float or None
        TCO of the integer model and a proven lower bound on it. [USD]
    bound_source : str
        Where the bound is from.
    wall_s, deterministic_time : float
        Time that the solves took. [s; solver units]
    """

    status: SolveStatus
    solution: Solution | None
    objective_usd: float | None
    bound_usd: float | None
    bound_source: str
    wall_s: float
    deterministic_time: float


Watcher = Callable[[Progress], None]


def search(problem: Problem, limits: SearchLimits, watch: Watcher | None = None) -> SearchResult:
    """Find the cheapest plan that leaves the least demand unmet.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    limits : SearchLimits
        When to stop.
    watch : callable, optional
        Called with every improvement of plan or bound.

    Returns
    -------
    SearchResult
        Infeasible only if that is proven.
    """
    clock = _Clock(limits, watch or (lambda _: None))
    forbidden = problem.fleet.policy.unmet == "forbid"
    planning = build_model(problem, allow_unmet=False)
    result = clock.minimise_cost(planning, "cost", 1.0 if forbidden else FULL_SERVICE_SHARE_OF_TIME)
    if not forbidden and result.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_PLAN):
        planning = build_model(problem, allow_unmet=True)
        result = _search_with_unmet(problem, planning, clock)
    if result.solution is None or result.bound_usd is None:
        return result
    return _simplify(planning, result, result.solution, result.bound_usd, clock)


def _search_with_unmet(problem: Problem, planning: PlanningModel, clock: _Clock) -> SearchResult:
    """Least unmet demand priority by priority, each fixed before the next; then least cost."""
    model, variables = planning.model, planning.variables
    for priority in sorted({service.priority for service in problem.fleet.services}):
        unmet = unmet_demand(problem, variables, priority)
        if isinstance(unmet, int):
            continue
        model.minimize(unmet)
        solver, status = clock.solve(model, f"unmet demand of priority {priority}", UNMET_SHARE_OF_TIME)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return clock.outcome(planning, solver, status)
        _hint(model, variables, solver)
        # The solver's objective is a float and these sums pass 2^53, so the value is taken from the sum.
        model.add(unmet <= solver.value(unmet)).with_name(f"unmet_limit[{priority}]")
    return clock.minimise_cost(planning, "cost of what is served", 1.0)


def _hint(model: cp_model.CpModel, variables: Variables, solver: cp_model.CpSolver) -> None:
    """Start the next solve from the values of the last."""
    model.clear_hints()
    for variable in variables.all():
        model.add_hint(variable, solver.value(variable))


def _simplify(
    planning: PlanningModel, result: SearchResult, solution: Solution, bound_usd: float, clock: _Clock
) -> SearchResult:
    """Among the plans within the asked gap of the bound, one with few distinct configurations.

    Plans that close to the bound cannot be told apart by cost, so the one that is simplest to run is
    taken: a plan that is not improved within `SIMPLIFY_TIME_LIMIT_S` stays as it is.
    """
    left = min(clock.time_left_s(), SIMPLIFY_TIME_LIMIT_S)
    if result.status is SolveStatus.LIMIT or left < 0.1:
        return result
    problem, model, variables = planning.problem, planning.model, planning.variables
    cost = total_cost(problem, variables)
    allowed_usd = max(result.objective_usd or 0.0, bound_usd / (1 - clock.limits.gap_ratio))
    model.add(cost <= math.floor((allowed_usd - fixed_usd(problem)) * USD_RESOLUTION) + 1)
    running: dict[tuple[int, str], cp_model.IntVar] = {}
    model.clear_hints()
    for (c, p, q), replicas in variables.replicas.items():
        key = (c, problem.pools[p].region)
        if key not in running:
            running[key] = model.new_bool_var(f"distinct[{problem.candidates[c].label},{key[1]}]")
        model.add(replicas <= replicas.proto.domain[1] * running[key])
        model.add_hint(replicas, solution.replicas.get((c, p, q), 0))
    model.minimize(sum(running.values()))
    solver, status = clock.solve(model, "fewest configurations", left / max(clock.time_left_s(), 1e-9))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return result
    objective_usd = solver.value(cost) / USD_RESOLUTION + fixed_usd(problem)
    gap = (objective_usd - bound_usd) / objective_usd if objective_usd > 0 else 0.0
    return replace(
        result,
        status=SolveStatus.OPTIMAL if gap < OPTIMAL_GAP else SolveStatus.WITHIN_GAP,
        solution=_values(variables, solver),
        objective_usd=objective_usd,
        wall_s=clock.wall_s(),
        deterministic_time=clock.deterministic_time,
    )


class _Clock:
    """One search: its limits, the time spent, and who watches."""

    def __init__(self, limits: SearchLimits, watch: Watcher) -> None:
        self.limits = limits
        self.watch = watch
        self.started = time.monotonic()
        self.deterministic_time = 0.0

    def wall_s(self) -> float:
        return time.monotonic() - self.started

    def time_left_s(self) -> float:
        return self.limits.time_limit_s - self.wall_s()

    def minimise_cost(self, planning: PlanningModel, stage: str, share_of_time: float) -> SearchResult:
        planning.model.minimize(total_cost(planning.problem, planning.variables))
        solver, status = self.solve(planning.model, stage, share_of_time, fixed_usd(planning.problem))
        return self.outcome(planning, solver, status)

    def solve(
        self, model: cp_model.CpModel, stage: str, share_of_time: float, offset_usd: float | None = None
    ) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
        left = self.time_left_s()
        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.max_time_in_seconds = max(left * share_of_time, 0.1)
        parameters.random_seed = self.limits.seed
        parameters.num_workers = self.limits.workers
        parameters.linearization_level = 2
        report = _Report(self, solver, stage, offset_usd)
        solver.best_bound_callback = report.on_bound
        status = solver.solve(model, report)
        self.deterministic_time += solver.response_proto.deterministic_time
        return solver, status

    def outcome(
        self, planning: PlanningModel, solver: cp_model.CpSolver, status: cp_model.CpSolverStatus
    ) -> SearchResult:
        wall_s = self.wall_s()
        source = "CP-SAT"
        if status == cp_model.INFEASIBLE:
            return SearchResult(
                SolveStatus.INFEASIBLE, None, None, None, source, wall_s, self.deterministic_time
            )
        if status == cp_model.MODEL_INVALID:
            raise RuntimeError(f"the model is invalid: {planning.model.validate()}")
        fixed = fixed_usd(planning.problem)
        if status == cp_model.UNKNOWN:
            return SearchResult(
                SolveStatus.NO_PLAN, None, None, None, source, wall_s, self.deterministic_time
            )
        objective = solver.objective_value / USD_RESOLUTION + fixed
        bound = min(solver.best_objective_bound / USD_RESOLUTION + fixed, objective)
        gap = (objective - bound) / objective if objective > 0 else 0.0
        if gap <= self.limits.gap_ratio:
            ended = SolveStatus.OPTIMAL if status == cp_model.OPTIMAL and gap < OPTIMAL_GAP else SolveStatus.WITHIN_GAP
        else:
            ended = SolveStatus.LIMIT
        return SearchResult(
            ended,
            _values(planning.variables, solver),
            objective,
            bound,
            source,
            wall_s,
            self.deterministic_time,
        )


class _Report(cp_model.CpSolverSolutionCallback):
    """Tells the watcher of every better plan and bound, and stops at the gap that was asked for.

    The solver's own gap limit is on the variable cost alone; ours is on the whole TCO.
    """

    def __init__(
        self, clock: _Clock, solver: cp_model.CpSolver, stage: str, offset_usd: float | None
    ) -> None:
        super().__init__()
        self.clock = clock
        self.solver = solver
        self.stage = stage
        self.offset_usd = offset_usd
        self.objective_usd: float | None = None
        self.bound_usd: float | None = None

    def on_solution_callback(self) -> None:
        """Note the plan that was just found."""
        self.objective_usd = self._usd(self.objective_value)
        self.bound_usd = self._usd(self.best_objective_bound)
        self._tell()

    def on_bound(self, bound: float) -> None:
        """Note a better bound."""
        self.bound_usd = self._usd(bound)
        self._tell()

    def _usd(self, units: float) -> float | None:
        return None if self.offset_usd is None else units / USD_RESOLUTION + self.offset_usd

    def _tell(self) -> None:
        wall_s = self.clock.wall_s()
        self.clock.watch(Progress(self.stage, wall_s, self.objective_usd, self.bound_usd))
        if self.objective_usd is None or self.bound_usd is None:
            return
        if self.objective_usd - self.bound_usd <= self.clock.limits.gap_ratio * self.objective_usd:
            self.solver.stop_search()


def _values(variables: Variables, solver: cp_model.CpSolver) -> Solution:
    return Solution(
        replicas={key: value for key, v in variables.replicas.items() if (value := solver.value(v))},
        load={key: value for key, v in variables.load.items() if (value := solver.value(v))},
        unmet={key: value for key, v in variables.unmet.items() if (value := solver.value(v))},
        acquired={key: value for key, v in variables.acquired.items() if (value := solver.value(v))},
        packed={key: value for key, v in variables.packed.items() if (value := solver.value(v))},
    )


def default_workers() -> int:
    """Parallel searches for this machine: at least eight, as CP-SAT's strategies complement each other."""
    return max(8, os.cpu_count() or 1)
