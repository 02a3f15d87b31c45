"""Stages of a search on one part's model: an optional goal first, then cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import (
    Goal,
    PlanningModel,
    ReachedGoal,
    Variables,
    goal_of,
    goal_units,
    values_of,
)
from fleetplan.planner.problem.independent_parts import Component
from fleetplan.planner.search.blocks.columns import ColumnMemory
from fleetplan.planner.search.blocks.request import WarmStart
from fleetplan.planner.search.blocks.solve import LEAST_VARIABLES, decomposed, solve_in_blocks
from fleetplan.planner.search.blocks.whole_first import solve_whole_first, worth_solving_whole
from fleetplan.planner.search.cluster_seats import ClusterSeats
from fleetplan.planner.search.program_cache import program_key
from fleetplan.planner.search.result import (
    Progress,
    SearchLimits,
    SearchResult,
    SolveStatus,
    Watcher,
    status_of,
)
from fleetplan.planner.search.solvers.best import WITHDRAWN, least_of
from fleetplan.planner.search.solvers.cpsat import hint
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.proofs import Proof, contradicted
from fleetplan.planner.search.solvers.race import solve_model
from fleetplan.planner.search.solvers.reproducible import solve_reproducibly
from fleetplan.planner.search.solvers.request import (
    PATIENT,
    ExtraTime,
    Listener,
    ModelOutcome,
    ModelStatus,
    Patience,
    SolverLimits,
    Step,
)
from fleetplan.planner.search.solvers.seats import OpenSeats
from fleetplan.planner.units import ENERGY_ROUNDING_RATIO, USD_RESOLUTION, gap_of_cost

GOAL_SHARE_OF_TIME = 0.6
"""Share of the time for a goal that comes before TCO."""

OWN_SHARE_OF_GAP: Final = 0.5
"""Share of the target gap of a goal at which its search may stop, because the rest of the gap has other
causes."""

NOTHING_PROVEN: Final = Proof(-math.inf, "")


class Stages:
    """Stages of one part: time limits, work spent, and the watcher."""

    def __init__(self, part: Component, limits: SearchLimits, started: float, stop: Stop) -> None:
        self.stop = stop
        self.problem = part.problem
        self.fixed_usd = part.fixed_usd
        self.limits = limits
        self.started = started
        self.deadline = time.monotonic() + limits.time_limit_s
        self.deterministic_time = 0.0
        # Time kept for later stages. [s]
        self.reserved_s = 0.0
        self.label = ""
        self.watch: Watcher = lambda _: None
        self.goal = goal_of(part.problem)
        # Bound known before the search, for plans that serve all demand. [objective units]
        self.known = NOTHING_PROVEN
        self.reached: ReachedGoal | None = None
        # Proven unmet demand by priority, for the priorities searched. [units of unmet demand]
        self.unmet_bounds: dict[int, float] = {}
        self.values: cp_model.CpSolver | None = None
        self.memory = ColumnMemory()
        self.priorities = tuple(sorted({service.priority for service in self.problem.fleet.services}))

    def time_left_s(self) -> float:
        """Return the time until the limit, counted as work in reproducible runs. [s]"""
        if self.limits.reproducible:
            return self.limits.time_limit_s - self.deterministic_time - self.reserved_s
        return self.deadline - time.monotonic() - self.reserved_s

    def seconds_left(self) -> float:
        """Return the time until the limit; infinite in reproducible runs. [s]"""
        return math.inf if self.limits.reproducible else max(self.time_left_s(), 0.1)

    def tell(
        self,
        stage: str,
        step: Step,
        plan_usd: float | None,
        bound_usd: float | None,
        goal: ReachedGoal | None = None,
    ) -> None:
        """Report a step to the watcher."""
        wall_s = time.monotonic() - self.started
        self.watch(Progress(stage + self.label, wall_s, plan_usd, bound_usd, step.source, step.detail, goal))

    def usd(self, units: float) -> float:
        """Convert a value of the cost objective to TCO. [USD]"""
        return units / USD_RESOLUTION + self.fixed_usd

    def minimise(
        self,
        planning: PlanningModel,
        stage: str,
        patience: Patience = PATIENT,
        known: Proof = NOTHING_PROVEN,
        row_duals: FloatArray | None = None,
    ) -> ModelOutcome:
        """Minimise the goal that comes before TCO, if there is one, then TCO."""
        if self.goal is None:
            return self.minimise_cost(planning, stage, known, patience, row_duals)
        # Known dual prices belong to the model without the goal's limit.
        return self.reach(planning, self.goal, patience) or self.minimise_cost(
            planning, stage, known, patience
        )

    def reach(self, planning: PlanningModel, goal: Goal, patience: Patience) -> ModelOutcome | None:
        """Optimise a goal and fix its value; return an outcome only if no plan exists."""
        model, units = planning.model, goal_units(planning.problem, planning.variables, goal)
        model.minimize(units)

        def enough(objective: float, bound: float) -> bool:
            value, known = goal.figure(objective), goal.figure(bound)
            # The rest of the gap is not this search's to close: stop at half the target.
            own_ratio = self.limits.gap_ratio * OWN_SHARE_OF_GAP
            return (
                goal.told_gap(value, known) <= self.limits.search_gap_ratio
                or goal.gap(value, known) <= own_ratio
            )

        def on_step(step: Step) -> None:
            known = None
            if step.objective is not None and step.bound is not None:
                known = ReachedGoal(goal, goal.figure(step.objective), goal.figure(step.bound))
            self.tell(goal.name, step, None, None, known)

        seconds = self.time_left_s() * GOAL_SHARE_OF_TIME
        outcome = self.solve(planning, seconds, enough, on_step, patience)
        if outcome.values is None or outcome.bound is None:
            return outcome
        hint(model, outcome.values)
        # Sums exceed 2^53, and the solver's objective is a float: evaluate the sum instead.
        value = outcome.values.value(units)
        # Plans that differ in the goal only by whole load units compete on cost.
        bound = min(outcome.bound if goal.provable else least_of(model), value)
        most = max(value, math.floor(bound + goal.rounding_units(bound)))
        model.add(units <= most).with_name("goal_limit")
        self.reached = ReachedGoal(goal, goal.figure(value), goal.figure(bound))
        return None

    def minimise_cost(
        self,
        planning: PlanningModel,
        stage: str,
        known: Proof = NOTHING_PROVEN,
        patience: Patience = PATIENT,
        row_duals: FloatArray | None = None,
    ) -> ModelOutcome:
        """Minimise TCO, given a known bound and initial dual prices of the blocks."""
        planning.model.minimize(planning.total_cost)

        def enough(objective: float, bound: float) -> bool:
            # The target gap is a share of the whole TCO, fixed costs included.
            plan, least = self.usd(objective), self.usd(max(bound, known.bound))
            thresholds = self.limits.thresholds
            decided = thresholds is not None and thresholds.decided(plan, least)
            return decided or plan - least <= self.limits.search_gap_ratio * plan + self.limits.slack_usd

        def on_step(step: Step) -> None:
            best = max(known.bound, -math.inf if step.bound is None else step.bound)
            bound = None if best == -math.inf else self.usd(best)
            self.tell(stage, step, None if step.objective is None else self.usd(step.objective), bound)

        outcome = self._recalled(
            planning,
            enough,
            on_step,
            lambda: self.solve(planning, self.time_left_s(), enough, on_step, patience, row_duals=row_duals),
        )
        if outcome.objective is None or outcome.bound is None or outcome.bound >= known.bound:
            return outcome
        # The bound comes from another model, and both round the energy of load units, whose size depends on
        # demand.
        rounding = 2 * ENERGY_ROUNDING_RATIO * self.usd(outcome.objective) * USD_RESOLUTION
        if contradicted(known.bound, outcome.objective):
            least = known.bound - rounding
            if outcome.bound < least <= outcome.objective:
                return replace(outcome, bound=least, bound_source=known.source)
            withdrawn = Step(known.source, WITHDRAWN, outcome.objective, outcome.bound)
            self.tell(stage, withdrawn, self.usd(outcome.objective), self.usd(outcome.bound))
            return outcome
        return replace(outcome, bound=min(known.bound, outcome.objective), bound_source=known.source)

    def _recalled(
        self,
        planning: PlanningModel,
        enough: Callable[[float, float], bool],
        on_step: Listener,
        solve: Callable[[], ModelOutcome],
    ) -> ModelOutcome:
        """Return the cached outcome of a program if it is good enough, else solve and cache."""
        program_cache, model = self.limits.program_cache, planning.model
        large = len(model.proto.variables) >= LEAST_VARIABLES
        if program_cache is None or self.limits.reproducible or large:
            return solve()
        key = program_key(model)
        known = program_cache.found(key)
        if known is None or known.values is None or known.objective is None or known.bound is None:
            return program_cache.noted(key, solve())
        on_step(Step(known.bound_source, "reused an identical model's result", known.objective, known.bound))
        if enough(known.objective, known.bound):
            return replace(known, deterministic_time=0.0)
        hint(model, known.values)
        outcome = solve()
        if outcome.objective is not None and (outcome.bound is None or outcome.bound < known.bound):
            bound = min(known.bound, outcome.objective)
            outcome = replace(outcome, bound=bound, bound_source=known.bound_source)
        return program_cache.noted(key, outcome)

    def solve(
        self,
        planning: PlanningModel,
        time_limit_s: float,
        enough: Callable[[float, float], bool],
        on_step: Listener,
        patience: Patience = PATIENT,
        extra_time: ExtraTime | None = None,
        row_duals: FloatArray | None = None,
    ) -> ModelOutcome:
        """Solve one stage: in blocks if the model is large, else as a whole."""
        limits = SolverLimits(
            max(time_limit_s, 0.1),
            self.limits.seed,
            self.limits.workers,
            self.stop,
            patience,
            extra_time,
            self.limits.latest,
            self._seats(),
        )
        parts = decomposed(planning)
        if parts is not None:
            reproducible = self.limits.reproducible
            warm_start = WarmStart(self.memory, row_duals)
            # Overtime is for unmet demand at prices beside which HiGHS's tolerances hide the cost.
            whole_first = extra_time is None and worth_solving_whole(planning)
            search = solve_whole_first if whole_first else solve_in_blocks
            outcome = search(planning, parts, limits, enough, on_step, reproducible, warm_start)
        elif self.limits.reproducible:
            outcome = solve_reproducibly(planning.model, planning.continuous, limits, enough)
        else:
            outcome = solve_model(planning.model, planning.continuous, limits, enough, on_step)
        self.deterministic_time += outcome.deterministic_time
        return outcome

    def _seats(self) -> OpenSeats | None:
        """Return the cluster's seats, or None where it is lost or absent."""
        cluster = self.limits.cluster
        return None if cluster is None or cluster.lost else partial(ClusterSeats, cluster)

    def result(self, variables: Variables, outcome: ModelOutcome) -> SearchResult:
        """Return the outcome of a cost stage in dollars."""
        wall_s = time.monotonic() - self.started
        if outcome.values is None or outcome.objective is None or outcome.bound is None:
            infeasible = outcome.status is ModelStatus.INFEASIBLE
            status = SolveStatus.INFEASIBLE if infeasible else SolveStatus.NO_PLAN
            source = outcome.bound_source
            return SearchResult(status, None, None, None, source, wall_s, self.deterministic_time)
        objective = self.usd(outcome.objective)
        bound = min(self.usd(outcome.bound), objective)
        return SearchResult(
            self.cost_status(objective, bound),
            values_of(variables, outcome.values),
            objective,
            bound,
            outcome.bound_source,
            wall_s,
            self.deterministic_time,
            self.reached,
        )

    def cost_status(self, objective_usd: float, bound_usd: float) -> SolveStatus:
        """Return the status of a plan by cost and bound, counting the unused gap of other parts. [USD]"""
        return self.status(gap_of_cost(objective_usd, min(bound_usd + self.limits.slack_usd, objective_usd)))

    def status(self, gap: float) -> SolveStatus:
        """Return the status of a plan by the larger of its TCO gap and its goal's gap."""
        return status_of(gap if self.reached is None else max(gap, self.reached.gap), self.limits)
