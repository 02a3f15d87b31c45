"""Solving: feasibility by priority, then least cost, with the bound and the best plan at any time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ortools.sat.python import cp_model

from fleetplan.planner.model import PlanningModel, build_model
from fleetplan.planner.objective import fixed_usd, total_cost, unmet_demand
from fleetplan.planner.problem import Problem
from fleetplan.planner.scaling import USD_RESOLUTION
from fleetplan.planner.variables import Variables

UNMET_SHARE_OF_TIME = 0.4
"""Share of the time limit that the priorities may take before cost is looked at."""


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
    full = build_model(problem, allow_unmet=False)
    result = clock.minimise_cost(full, "cost")
    if result.status is not SolveStatus.INFEASIBLE or problem.fleet.policy.unmet == "forbid":
        return result
    return _search_with_unmet(problem, clock)


def _search_with_unmet(problem: Problem, clock: _Clock) -> SearchResult:
    """Least unmet demand priority by priority, each fixed before the next; then least cost."""
    planning = build_model(problem, allow_unmet=True)
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
        model.add(unmet <= round(solver.objective_value)).with_name(f"unmet_limit[{priority}]")
    return clock.minimise_cost(planning, "cost of what is served")


def _hint(model: cp_model.CpModel, variables: Variables, solver: cp_model.CpSolver) -> None:
    """Start the next solve from the values of the last."""
    model.clear_hints()
    for group in (variables.replicas, variables.load, variables.disaggregated, variables.unmet):
        for variable in group.values():
            model.add_hint(variable, solver.value(variable))
    for variable in variables.acquired.values():
        model.add_hint(variable, solver.value(variable))


class _Clock:
    """One search: its limits, the time spent, and who watches."""

    def __init__(self, limits: SearchLimits, watch: Watcher) -> None:
        self.limits = limits
        self.watch = watch
        self.started = time.monotonic()
        self.deterministic_time = 0.0

    def minimise_cost(self, planning: PlanningModel, stage: str) -> SearchResult:
        planning.model.minimize(total_cost(planning.problem, planning.variables))
        solver, status = self.solve(planning.model, stage, 1.0, fixed_usd(planning.problem))
        return self.outcome(planning, solver, status)

    def solve(
        self, model: cp_model.CpModel, stage: str, share_of_time: float, offset_usd: float | None = None
    ) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
        left = self.limits.time_limit_s - (time.monotonic() - self.started)
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
        wall_s = time.monotonic() - self.started
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
            ended = SolveStatus.OPTIMAL if status == cp_model.OPTIMAL and gap < 1e-9 else SolveStatus.WITHIN_GAP
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
        wall_s = time.monotonic() - self.clock.started
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
