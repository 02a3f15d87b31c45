"""Search part by part: minimise unmet demand, then cost, then complexity."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import (
    PlanningModel,
    Solution,
    build_model,
    fixed_usd,
    values_of,
)
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.independent_parts import Component, components
from fleetplan.planner.search.joint_plans import better_of
from fleetplan.planner.search.parts import known_of, merge_parts, proof_of
from fleetplan.planner.search.region_by_region import RegionalSearch, separable_regions
from fleetplan.planner.search.result import (
    CheapestPlan,
    SearchLimits,
    SearchResult,
    SolveStatus,
    Watcher,
    decided,
)
from fleetplan.planner.search.simplicity import (
    ALL_SHARES_OF_TIME,
    NEARLY_SAME_RATIO,
    SimplerPlans,
    SimplerStep,
    StepBudget,
)
from fleetplan.planner.search.solvers.best import WITHDRAWN, least_of
from fleetplan.planner.search.solvers.cpsat import configured_solver, solve_by_work
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import VARIABLES, contradicted
from fleetplan.planner.search.solvers.race import FIRST_PLAN_GRACE_S
from fleetplan.planner.search.solvers.request import (
    ModelOutcome,
    Step,
)
from fleetplan.planner.search.stages import NOTHING_PROVEN
from fleetplan.planner.search.tie_breaks import prefer_local_serving
from fleetplan.planner.search.unmet import UnmetStages
from fleetplan.planner.search.warm_start import hint_known_plan, hint_solution
from fleetplan.planner.search.work import TimeSpent
from fleetplan.planner.units import USD_RESOLUTION, gap_of_cost

SIMPLIFY_TIME_LIMIT_S = 5.0
"""Time to look for a simpler plan of the same cost. [s]"""

FIRST_PLAN = " (first plan)"
"""Stage label of a search that any plan ends."""

LEAST_WHOLE_S = 1.0
"""Least remaining time to search the whole after its regions. [s]"""


def search_parts(
    problem: Problem, limits: SearchLimits, watch: Watcher | None = None, stop: Stop | None = None
) -> SearchResult:
    """Find the cheapest plan of the model: search the independent parts of a problem one by one.

    Parameters
    ----------
    problem, limits, watch, stop : Problem, SearchLimits, callable or None, Stop or None
        As in `budgets_kept.search`.

    Returns
    -------
    SearchResult
        Infeasible only if proven. Each part is within the target gap, so the whole is too.
    """
    started, spent = time.monotonic(), TimeSpent(counted=limits.reproducible)
    if not limits.reproducible:
        limits = limits.from_now()
        # All stages of all parts share one grace period.
        limits = replace(limits, latest=limits.latest.within(limits.time_limit_s + FIRST_PLAN_GRACE_S))
    parts = components(problem)
    # Existing hosts in regions without demand cost money that no decision changes.
    elsewhere_usd = fixed_usd(problem) - sum(part.fixed_usd for part in parts)
    results: list[SearchResult] = []
    for done, part in enumerate(parts):
        left = limits.time_limit_s - spent.seconds
        own_limits = replace(limits, time_limit_s=max(left / (len(parts) - done), 0.1))
        # A verge on the total cost decides nothing about a part, except that any plan will do.
        thresholds = limits.thresholds
        if thresholds is not None and not thresholds.any_plan:
            thresholds = None if len(parts) > 1 else thresholds.less(elsewhere_usd)
        own_limits = replace(own_limits, thresholds=thresholds)
        run = Run(part, own_limits, started, stop or Stop())
        run.watch = watch or (lambda _: None)
        run.label = "" if len(parts) == 1 else f" of part {done + 1}/{len(parts)}"
        run.known = known_of(part, problem, elsewhere_usd) if len(parts) == 1 else NOTHING_PROVEN
        result = _search_apart(run, part) or run.search()
        spent.add(result.deterministic_time)
        if result.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_PLAN):
            return replace(result, wall_s=time.monotonic() - started)
        results.append(result)
    return merge_parts(parts, results, elsewhere_usd, limits, time.monotonic() - started)


def _search_apart(run: Run, part: Component) -> SearchResult | None:
    """Search a part's regions one by one, then the whole if a gap is left; None without regions or a plan.

    The time and work count towards the run.
    """
    regions = separable_regions(part)
    if not regions:
        return None

    def search_part(
        component: Component,
        limits: SearchLimits,
        watch: Watcher,
        begin: Solution | None,
        before: SearchResult | None,
    ) -> SearchResult:
        part_run = Run(component, limits, run.started, run.stop)
        part_run.watch, part_run.begin, part_run.label = watch, begin, run.label
        if before is not None:
            part_run.known = proof_of(before, component)
        if component is part:
            part_run.memory = run.memory
            part_run.label += FIRST_PLAN
        else:
            part_run.label += f" in {', '.join(component.problem.regions)}"
            part_run.simplify_limit_s = SIMPLIFY_TIME_LIMIT_S / len(regions)
        outcome = part_run.search()
        if component is part:
            run.known = max(run.known, proof_of(outcome, part), key=lambda each: each.bound)
        return outcome

    regional = RegionalSearch(part, regions, run.limits, run.watch, run.stop, search_part)
    outcome = regional.run(lambda: run.time_left_s() - (regional.spent if run.limits.reproducible else 0.0))
    run.deterministic_time += regional.spent
    if outcome is None or outcome.solution is None:
        return outcome
    outcome = run.with_known_bound(replace(outcome, wall_s=time.monotonic() - run.started))
    is_over = run.time_left_s() < LEAST_WHOLE_S or run.stop.requested
    if is_over or outcome.status is not SolveStatus.LIMIT or decided(outcome, run.limits.thresholds):
        return outcome
    # Close the remaining gap on the whole, from the regions' joint plan and bound.
    run.begin = outcome.solution
    proof = proof_of(outcome, part)
    run.known = max(run.known, proof, key=lambda each: each.bound)
    whole = run.search()
    if whole.solution is None:
        return outcome
    # A plan within the gap may be a simpler one; with unmet demand the cheaper plan is not the better one.
    keeps_better = whole.status is SolveStatus.LIMIT and not outcome.unmet
    return better_of(outcome, whole, run.limits) if keeps_better else whole


class Run(UnmetStages):
    """Search of one part, stage by stage.

    Attributes
    ----------
    begin : Solution or None
        Plan of an earlier search of the part.
    simplify_limit_s : float
        Time to look for a simpler plan of about the same cost. [s]
    """

    begin: Solution | None = None
    simplify_limit_s = SIMPLIFY_TIME_LIMIT_S

    def search(self) -> SearchResult:
        """Serve all demand at least cost; if impossible and allowed, minimise unmet demand first."""
        if self.goal is not None and self.goal.rising:
            planning = build_model(self.problem, allow_unmet=True)
            outcome = self.minimise(planning, "cost of served demand")
        elif self.problem.fleet.policy.unmet == "forbid":
            planning = build_model(self.problem, allow_unmet=False)
            if self.begin is None:
                hint_known_plan(planning)
            else:
                hint_solution(planning, self.begin)
            outcome = self.minimise(planning, "cost", known=self.known)
        else:
            planning, outcome = self.serve_most()
        result = self.result(planning.variables, outcome)
        if result.solution is None:
            return result
        self.values = outcome.values
        simple = self.prefer_local(planning, self.simplify(planning, result, outcome))
        return self.with_unmet(self.without_false_bound(planning, simple))

    def with_known_bound(self, result: SearchResult) -> SearchResult:
        """Return the result with the known bound of the part where it is higher and not contradicted."""
        objective_usd, bound_usd = result.objective_usd or 0.0, result.bound_usd or 0.0
        known_usd = self.usd(self.known.bound)
        if not bound_usd < known_usd <= objective_usd:
            return result
        gap = gap_of_cost(objective_usd, known_usd)
        return replace(result, bound_usd=known_usd, bound_source=self.known.source, status=self.status(gap))

    def without_false_bound(self, planning: PlanningModel, result: SearchResult) -> SearchResult:
        """Return the result without a bound that its plan contradicts."""
        objective_usd, bound_usd = result.objective_usd or 0.0, result.bound_usd or 0.0
        if not contradicted(bound_usd, objective_usd):
            return result
        planning.model.minimize(planning.total_cost)
        least_usd = min(self.usd(least_of(planning.model)), objective_usd)
        self.tell("cost", Step(result.bound_source, WITHDRAWN, None, None), objective_usd, least_usd)
        gap = gap_of_cost(objective_usd, least_usd)
        return replace(result, bound_usd=least_usd, bound_source=VARIABLES, status=self.status(gap))

    def prefer_local(self, planning: PlanningModel, result: SearchResult) -> SearchResult:
        """Reroute requests of a plan so that as few as possible are served in other regions."""
        unwanted = self.limits.reproducible or not self.limits.simplified
        if self.values is None or unwanted or self.limits.latest.passed:
            return result
        planning.model.add(planning.total_cost <= self.values.value(planning.total_cost))
        solver = prefer_local_serving(planning, self.values, self.limits.seed)
        if solver is None:
            return result
        self.deterministic_time += solver.response_proto.deterministic_time
        objective_usd = self.usd(solver.value(planning.total_cost))
        return replace(
            result,
            solution=values_of(planning.variables, solver),
            objective_usd=objective_usd,
            wall_s=time.monotonic() - self.started,
            deterministic_time=self.deterministic_time,
        )

    def simplify(self, planning: PlanningModel, result: SearchResult, outcome: ModelOutcome) -> SearchResult:
        """Return the simplest plan within the cost allowance of the policy and the target gap.

        Without an improvement within `SIMPLIFY_TIME_LIMIT_S` the plan stays.
        """
        limit_s = min(self.time_left_s(), self.simplify_limit_s)
        unproven = result.status is SolveStatus.LIMIT
        is_wanted = self.limits.simplified and not self.stop.requested
        if unproven or not is_wanted or limit_s < 0.1 or outcome.values is None:
            return result
        objective_usd, bound_usd = result.objective_usd or 0.0, result.bound_usd or 0.0
        within_gap_usd = (bound_usd + self.limits.slack_usd) / (1 - self.limits.simpler_gap_ratio)

        def largest_objective(usd: float, known_usd: float) -> int:
            """Return the largest objective within the gap, at least a known plan's. [objective units]"""
            known = math.floor((known_usd - self.fixed_usd) * USD_RESOLUTION) + 1
            return max(known, math.floor((min(usd, within_gap_usd) - self.fixed_usd) * USD_RESOLUTION))

        def nearly_same(cost: int) -> int:
            usd = self.usd(cost)
            return largest_objective(usd * (1 + NEARLY_SAME_RATIO), usd)

        def allowed(percent: float) -> int:
            return largest_objective(objective_usd * (1 + percent / 100), objective_usd)

        home_allowances = {services: allowed(percent) for percent, services in self._home_preferences()}
        seconds = limit_s / ALL_SHARES_OF_TIME if home_allowances else limit_s
        began_s = self.time_left_s()
        step_budget = StepBudget(seconds, lambda: began_s - self.time_left_s())
        plans = SimplerPlans(planning, outcome.values, partial(self._ask, planning, step_budget))
        values = plans.search(
            allowed(self.problem.fleet.policy.simpler_percent), nearly_same, home_allowances
        )
        if values is outcome.values:
            return result
        self.values = values
        home_usd = plans.home_cost / USD_RESOLUTION
        cheapest = None if result.solution is None else CheapestPlan(objective_usd, result.solution, home_usd)
        simpler_usd = self.usd(values.value(planning.total_cost))
        return replace(
            result,
            status=self.cost_status(simpler_usd, bound_usd),
            solution=values_of(planning.variables, values),
            objective_usd=simpler_usd,
            wall_s=time.monotonic() - self.started,
            deterministic_time=self.deterministic_time,
            cheapest=cheapest if plans.varied else None,
        )

    def _home_preferences(self) -> list[tuple[float, frozenset[str]]]:
        """Return services by the extra cost allowed to serve them at home, largest first. [%]"""
        by_percent: dict[float, set[str]] = {}
        for service in self.problem.fleet.services:
            if service.home_percent > 0:
                by_percent.setdefault(service.home_percent, set()).add(service.name)
        return [(percent, frozenset(by_percent[percent])) for percent in sorted(by_percent, reverse=True)]

    def _ask(self, planning: PlanningModel, turns: StepBudget, step: SimplerStep) -> cp_model.CpSolver | None:
        """Solve the model within a share of the time, counted as work in reproducible runs."""
        if self.stop.requested:
            return None
        seconds = turns.next(step.share_of_time)
        reproducible = self.limits.reproducible
        solver = configured_solver(
            math.inf if reproducible else seconds,
            self.limits.seed,
            1 if reproducible else self.limits.workers,
        )
        solver.parameters.relative_gap_limit = step.gap_ratio
        with self.stop.reaches(solver):
            if reproducible:
                status, work_s = solve_by_work(
                    solver, planning.model, seconds, over=lambda: self.stop.requested
                )
            else:
                status = solver.solve(planning.model)
                work_s = solver.response_proto.deterministic_time
        self.deterministic_time += work_s
        return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
