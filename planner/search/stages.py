"""Solving a problem: part by part, demand before cost, cost before simplicity, the best plan at any time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import (
    Goal,
    PlanningModel,
    Reached,
    Variables,
    build_model,
    fixed_usd,
    goal_of,
    goal_units,
    unmet_demand,
    unmet_units,
    unmet_units_per_request,
    values_of,
)
from fleetplan.planner.plan import UNMET_GAP_RATIO
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.independent_parts import Component, components
from fleetplan.planner.search.blocks.matrix import FloatArray
from fleetplan.planner.search.blocks.patterns import PatternMemory
from fleetplan.planner.search.blocks.request import Beginning
from fleetplan.planner.search.blocks.solve import decomposed, solve_in_blocks
from fleetplan.planner.search.local_serving import send_home
from fleetplan.planner.search.parts import joined
from fleetplan.planner.search.result import (
    LeastUnmet,
    Progress,
    SearchLimits,
    SearchResult,
    SolveStatus,
    Watcher,
    status_of,
)
from fleetplan.planner.search.simplicity import prefer_simple
from fleetplan.planner.search.solvers.best import WITHDRAWN, least_of
from fleetplan.planner.search.solvers.cpsat import configured_solver, hint
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import VARIABLES, Proof, contradicted
from fleetplan.planner.search.solvers.race import solve_model
from fleetplan.planner.search.solvers.reproducible import solve_reproducibly
from fleetplan.planner.search.solvers.request import (
    PATIENT,
    Listener,
    ModelOutcome,
    ModelStatus,
    Overtime,
    Patience,
    SolverLimits,
    Step,
)
from fleetplan.planner.search.unmet_prices import (
    LeastShortage,
    hint_nothing,
    least_shortage,
    prices_of_unmet,
    rounding_of,
    weigh,
)
from fleetplan.planner.search.warm_start import hint_known_plan
from fleetplan.planner.units import USD_RESOLUTION

FULL_SERVICE_SHARE_OF_TIME = 0.33
"""Share of the time limit to find a plan that serves everything, where unmet demand is allowed; with one the
search has all of it."""

UNMET_SHARE_OF_TIME = 0.4
"""Share of the time left that each priority may take before cost is looked at."""

PATIENCE_ROUNDS = 3
"""Rounds over blocks after which a large fleet without a plan that serves everything is let off, where demand
may stay unmet: with a plan the first or the second finds one."""

WEIGHED_SHARE_OF_TIME = 0.2
"""Share of the time left for a large fleet's unmet demand and cost together, before cost alone. With 0.15 the
gap in cost is no smaller after 120 s, and more demand is left unmet."""

LEAST_WEIGHED_S, MOST_WEIGHED_SHARE = 5.0, 0.6
"""It has at least so much, within this share of it: where time is short, service comes first. [s]"""

WEIGHED_GAP_RATIO = 2.0
"""While plan and bound of both together are further apart than this multiple of the plan's cost, it goes on
within that share: what it leaves unmet stays unmet. Plans that serve nothing are hundreds of times their cost
away, those of the first neighbourhoods about once; with 0.5 or 1 the least cost has too little time left."""

WEIGHING = "unmet demand and cost"
"""Name of the stage that weighs one against the other."""

GOAL_SHARE_OF_TIME = 0.6
"""Share of the time for an objective that comes before TCO."""

SIMPLIFY_TIME_LIMIT_S = 5.0
"""Time to look for a simpler plan of the same cost. [s]"""

SIMPLICITY_RATIO = 0.0005
"""What a plan may cost more for fewer configurations: less than the prices are known to."""


def search(
    problem: Problem, limits: SearchLimits, watch: Watcher | None = None, stop: Stop | None = None
) -> SearchResult:
    """Find the cheapest plan that leaves the least demand unmet.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    limits : SearchLimits
        When to stop.
    watch : callable, optional
        Called with every improvement of plan or bound.
    stop : Stop, optional
        Ends the search at its best plan.

    Returns
    -------
    SearchResult
        Infeasible only if that is proven. Parts of the problem that share nothing are solved one by one;
        their gaps are each within the asked one, so the whole is.
    """
    started = time.monotonic()
    parts = components(problem)
    # What exists in regions without demand costs, and no decision changes it.
    elsewhere_usd = fixed_usd(problem) - sum(part.fixed_usd for part in parts)
    results: list[SearchResult] = []
    for done, part in enumerate(parts):
        spent = sum(result.deterministic_time for result in results)
        left = limits.time_limit_s - (spent if limits.reproducible else time.monotonic() - started)
        own_limits = replace(limits, time_limit_s=max(left / (len(parts) - done), 0.1))
        run = _Run(part, own_limits, started, stop or Stop())
        run.watch = watch or (lambda _: None)
        run.label = "" if len(parts) == 1 else f" of part {done + 1}/{len(parts)}"
        result = run.search()
        if result.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_PLAN):
            return replace(result, wall_s=time.monotonic() - started)
        results.append(result)
    return joined(parts, results, elsewhere_usd, limits, time.monotonic() - started)


def _bound_from_above(limits: Iterable[tuple[cp_model.IntVar, int]]) -> None:
    """Let each variable be at most its limit."""
    for variable, limit in limits:
        variable.proto.domain[1] = limit


NOTHING_PROVEN: Final = Proof(-math.inf, "")


class _Run:
    """The search of one part: its limits, the time spent, and who watches."""

    def __init__(self, part: Component, limits: SearchLimits, started: float, stop: Stop) -> None:
        self.stop = stop
        self.problem = part.problem
        self.fixed_usd = part.fixed_usd
        self.limits = limits
        self.started = started
        self.deadline = time.monotonic() + limits.time_limit_s
        self.deterministic_time = 0.0
        self.label = ""
        self.watch: Watcher = lambda _: None
        self.goal = goal_of(part.problem)
        self.reached: Reached | None = None
        # What is proven to stay unmet of each priority that was looked at. [units of unmet demand]
        self.unmet_bounds: dict[int, float] = {}
        self.values: cp_model.CpSolver | None = None
        self.memory = PatternMemory()
        self.priorities = tuple(sorted({service.priority for service in self.problem.fleet.services}))

    def search(self) -> SearchResult:
        """Serve everything at least cost; if that is impossible and allowed, leave the least unmet."""
        if self.goal is not None and self.goal.rising:
            planning = build_model(self.problem, allow_unmet=True)
            outcome = self.minimise(planning, "cost of what is served")
        elif self.problem.fleet.policy.unmet == "forbid":
            planning = build_model(self.problem, allow_unmet=False)
            hint_known_plan(planning)
            outcome = self.minimise(planning, "cost")
        else:
            planning, outcome = self.serve_most()
        result = self.result(planning.variables, outcome)
        if result.solution is None:
            return result
        self.values = outcome.values
        simple = self.at_home(planning, self.simplify(planning, result, outcome))
        return self.with_unmet(self.without_false_bound(planning, simple))

    def without_false_bound(self, planning: PlanningModel, result: SearchResult) -> SearchResult:
        """The same with a bound that its plan does not contradict."""
        objective_usd, bound_usd = result.objective_usd or 0.0, result.bound_usd or 0.0
        if not contradicted(bound_usd, objective_usd):
            return result
        planning.model.minimize(planning.total_cost)
        least_usd = min(self.usd(least_of(planning.model)), objective_usd)
        self.tell("cost", Step(result.bound_source, WITHDRAWN, None, None), objective_usd, least_usd)
        gap = (objective_usd - least_usd) / objective_usd if objective_usd > 0 else 0.0
        return replace(result, bound_usd=least_usd, bound_source=VARIABLES, status=self.status(gap))

    def with_unmet(self, result: SearchResult) -> SearchResult:
        """The same with what it leaves unmet, and what is proven of that."""
        if result.solution is None or not self.unmet_bounds:
            return result
        unit = unmet_units_per_request(self.problem)
        left: dict[int, LeastUnmet] = {}
        for priority, bound in self.unmet_bounds.items():
            units = unmet_units(self.problem, result.solution.unmet, priority)
            if units:
                left[priority] = LeastUnmet(units / unit, min(bound, units) / unit)
        return replace(result, unmet=left)

    def serve_most(self) -> tuple[PlanningModel, ModelOutcome]:
        """The cheapest plan that serves everything, or else one that leaves the least unmet."""
        lenient = build_model(self.problem, allow_unmet=True)
        if decomposed(lenient) is not None:
            return lenient, self.serve_most_in_blocks(lenient)
        strict = build_model(self.problem, allow_unmet=False)
        hint_known_plan(strict)
        patience = Patience(seconds=FULL_SERVICE_SHARE_OF_TIME * self.time_left_s())
        outcome = self.minimise(strict, "cost", patience)
        if outcome.values is not None:
            return strict, outcome
        return lenient, self.minimise_unmet(lenient) or self.minimise(lenient, "cost of what is served")

    def serve_most_in_blocks(self, planning: PlanningModel) -> ModelOutcome:
        """The same of a large fleet: without trying to serve everything where no relaxation could."""
        least = least_shortage(planning, self.stop, self.seconds_left())
        if least is None or not least.impossible:
            # Patterns are those of the same model in which demand may stay unmet.
            unmet = [(variable, variable.proto.domain[1]) for variable in planning.variables.unmet.values()]
            _bound_from_above((variable, 0) for variable, _ in unmet)
            hint_known_plan(planning)
            patience = Patience(PATIENCE_ROUNDS, FULL_SERVICE_SHARE_OF_TIME * self.time_left_s())
            duals = None if least is None else least.all_served_duals
            outcome = self.minimise(planning, "cost", patience, row_duals=duals)
            if outcome.values is not None:
                return outcome
            _bound_from_above(unmet)
        else:
            named = ", ".join(map(str, least.lacking)) or "none by more than a little"
            step = Step("guide", f"no plan serves everything; short: priority {named}", None, None)
            self.tell(WEIGHING, step, None, None)
        return self.weigh_unmet(planning, least)

    def at_home(self, planning: PlanningModel, result: SearchResult) -> SearchResult:
        """The same plan, with as few requests as may be served in another region."""
        if self.values is None or self.limits.reproducible:
            return result
        planning.model.add(planning.total_cost <= self.values.value(planning.total_cost))
        solver = send_home(planning, self.values, self.limits.seed)
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

    def time_left_s(self) -> float:
        """Time until the limit, or work where the clock must not decide. [s]"""
        if self.limits.reproducible:
            return self.limits.time_limit_s - self.deterministic_time
        return self.deadline - time.monotonic()

    def seconds_left(self) -> float:
        """Time until the limit, without end where the clock must not decide. [s]"""
        return math.inf if self.limits.reproducible else max(self.time_left_s(), 0.1)

    def tell(self, stage: str, step: Step, plan_usd: float | None, bound_usd: float | None) -> None:
        """Tell those who watch of a step."""
        wall_s = time.monotonic() - self.started
        self.watch(Progress(stage + self.label, wall_s, plan_usd, bound_usd, step.source, step.detail))

    def usd(self, units: float) -> float:
        """TCO of a value of the cost objective. [USD]"""
        return units / USD_RESOLUTION + self.fixed_usd

    def minimise(
        self,
        planning: PlanningModel,
        stage: str,
        patience: Patience = PATIENT,
        known: Proof = NOTHING_PROVEN,
        row_duals: FloatArray | None = None,
    ) -> ModelOutcome:
        """Solve for the objective that comes before TCO, where there is one, then for the least TCO."""
        if self.goal is None:
            return self.minimise_cost(planning, stage, known, patience, row_duals)
        # Duals that are known are of a model without the goal's limit.
        return self.reach(planning, self.goal, patience) or self.minimise_cost(
            planning, stage, known, patience
        )

    def reach(self, planning: PlanningModel, goal: Goal, patience: Patience) -> ModelOutcome | None:
        """Fix the best value of a goal; an outcome only if there is no plan at all."""
        model, units = planning.model, goal_units(planning.problem, planning.variables, goal)
        model.minimize(units)

        def enough(objective: float, bound: float) -> bool:
            return goal.gap(goal.figure(objective), goal.figure(bound)) <= self.limits.gap_ratio

        def listen(step: Step) -> None:
            self.tell(goal.name, step, None, None)

        seconds = self.time_left_s() * GOAL_SHARE_OF_TIME
        outcome = self.solve(planning, seconds, enough, listen, patience)
        if outcome.values is None or outcome.bound is None:
            return outcome
        hint(model, outcome.values)
        # The solver's objective is a float and these sums pass 2^53: the value is taken from the sum.
        value = outcome.values.value(units)
        # Cost decides between plans that reach the same but for whole load units.
        bound = min(outcome.bound, value)
        most = max(value, math.floor(bound + goal.rounding_units(bound)))
        model.add(units <= most).with_name("goal_limit")
        self.reached = Reached(goal, goal.figure(value), goal.figure(bound))
        return None

    def minimise_cost(
        self,
        planning: PlanningModel,
        stage: str,
        known: Proof = NOTHING_PROVEN,
        patience: Patience = PATIENT,
        row_duals: FloatArray | None = None,
    ) -> ModelOutcome:
        """Solve for the least TCO, of which a bound may be known, and prices at which blocks begin."""
        planning.model.minimize(planning.total_cost)

        def enough(objective: float, bound: float) -> bool:
            # The gap is on the whole TCO, of which the objective is the part that can be decided.
            plan = self.usd(objective)
            return plan - self.usd(max(bound, known.bound)) <= self.limits.gap_ratio * plan

        def listen(step: Step) -> None:
            best = max(known.bound, -math.inf if step.bound is None else step.bound)
            bound = None if best == -math.inf else self.usd(best)
            self.tell(stage, step, None if step.objective is None else self.usd(step.objective), bound)

        outcome = self.solve(planning, self.time_left_s(), enough, listen, patience, row_duals=row_duals)
        if outcome.objective is None or outcome.bound is None or outcome.bound >= known.bound:
            return outcome
        if contradicted(known.bound, outcome.objective):
            withdrawn = Step(known.source, WITHDRAWN, outcome.objective, outcome.bound)
            self.tell(stage, withdrawn, self.usd(outcome.objective), self.usd(outcome.bound))
            return outcome
        return replace(outcome, bound=min(known.bound, outcome.objective), bound_source=known.source)

    def weigh_unmet(self, planning: PlanningModel, least: LeastShortage | None) -> ModelOutcome:
        """Weigh unmet demand against cost, then minimise cost with no more of it unmet."""
        model, variables = planning.model, planning.variables
        prices = prices_of_unmet(planning, least, self.stop, self.seconds_left())
        weighing = weigh(planning, prices.by_priority)
        first = None if prices.row_duals is None else prices.row_duals / weighing.coarse
        model.minimize(weighing.objective)
        hint_nothing(model, variables)
        shortage = all_of_it = weighing.shortage(model.proto.solution_hint.values)

        def usd(value: float) -> float:
            return self.usd(weighing.cost(value, shortage))

        def enough(objective: float, bound: float) -> bool:
            return usd(objective) - usd(bound) <= self.limits.gap_ratio * usd(objective)

        def listen(step: Step) -> None:
            nonlocal shortage
            if step.values is not None:
                shortage = weighing.shortage(step.values)
            served = shortage < all_of_it and step.objective is not None
            plan_usd = usd(step.objective) if served and step.objective is not None else None
            bound_usd = usd(step.bound) if served and step.bound is not None else None
            self.tell(WEIGHING, step, plan_usd, bound_usd)

        def good(objective: float, bound: float) -> bool:
            return usd(objective) - usd(bound) <= WEIGHED_GAP_RATIO * usd(objective)

        left_s = self.time_left_s()
        seconds = max(left_s * WEIGHED_SHARE_OF_TIME, min(LEAST_WEIGHED_S, left_s * MOST_WEIGHED_SHARE))
        overtime = Overtime(max(left_s * MOST_WEIGHED_SHARE - seconds, 0.0), good)
        outcome = self.solve(planning, seconds, enough, listen, overtime=overtime, row_duals=first)
        if outcome.values is None or outcome.bound is None:
            return outcome
        hint(model, outcome.values)
        for priority in self.priorities:
            unmet = unmet_demand(self.problem, variables, priority)
            if not isinstance(unmet, int):
                left = outcome.values.value(unmet)
                # Unproven for one priority: benchmarks/RESULTS.md has what a linear relaxation is worth.
                self.unmet_bounds[priority] = 0.0
                # A rate unit of each more: the whole units of other replicas fit no better.
                model.add(unmet <= left + rounding_of(unmet)).with_name(f"unmet_limit[{priority}]")
        # Of this very plan, whatever was told last.
        missing = weighing.shortage(list(outcome.values.response_proto.solution)) + weighing.rounding()
        known = Proof(weighing.cost(outcome.bound, missing), outcome.bound_source)
        return self.minimise(planning, "cost of what is served", known=known)

    def minimise_unmet(self, planning: PlanningModel) -> ModelOutcome | None:
        """Fix the least unmet demand priority by priority; an outcome only if there is no plan at all."""
        model, variables = planning.model, planning.variables
        for priority in self.priorities:
            unmet = unmet_demand(self.problem, variables, priority)
            if isinstance(unmet, int):
                continue
            model.minimize(unmet)
            stage = f"unmet demand of priority {priority}"

            def listen(step: Step, stage: str = stage) -> None:
                self.tell(stage, step, None, None)

            outcome = self.solve(
                planning,
                self.time_left_s() * UNMET_SHARE_OF_TIME,
                lambda value, bound: value - bound <= UNMET_GAP_RATIO * value,
                listen,
            )
            if outcome.values is None:
                return outcome
            hint(model, outcome.values)
            self.unmet_bounds[priority] = max(outcome.bound or 0.0, 0.0)
            # The solver's objective is a float and these sums pass 2^53: the value is taken from the sum.
            model.add(unmet <= outcome.values.value(unmet)).with_name(f"unmet_limit[{priority}]")
        return None

    def solve(
        self,
        planning: PlanningModel,
        time_limit_s: float,
        enough: Callable[[float, float], bool],
        listen: Listener,
        patience: Patience = PATIENT,
        overtime: Overtime | None = None,
        row_duals: FloatArray | None = None,
    ) -> ModelOutcome:
        """Solve one stage; blocks begin at prices that are known."""
        limits = SolverLimits(
            max(time_limit_s, 0.1), self.limits.seed, self.limits.workers, self.stop, patience, overtime
        )
        parts = decomposed(planning)
        if parts is not None:
            reproducible = self.limits.reproducible
            beginning = Beginning(self.memory, row_duals)
            outcome = solve_in_blocks(planning, parts, limits, enough, listen, reproducible, beginning)
        elif self.limits.reproducible:
            outcome = solve_reproducibly(planning.model, planning.continuous, limits, enough)
        else:
            outcome = solve_model(planning.model, planning.continuous, limits, enough, listen)
        self.deterministic_time += outcome.deterministic_time
        return outcome

    def result(self, variables: Variables, outcome: ModelOutcome) -> SearchResult:
        """What a cost stage found, in dollars."""
        wall_s = time.monotonic() - self.started
        if outcome.values is None or outcome.objective is None or outcome.bound is None:
            infeasible = outcome.status is ModelStatus.INFEASIBLE
            status = SolveStatus.INFEASIBLE if infeasible else SolveStatus.NO_PLAN
            source = outcome.bound_source
            return SearchResult(status, None, None, None, source, wall_s, self.deterministic_time)
        objective = self.usd(outcome.objective)
        bound = min(self.usd(outcome.bound), objective)
        gap = (objective - bound) / objective if objective > 0 else 0.0
        return SearchResult(
            self.status(gap),
            values_of(variables, outcome.values),
            objective,
            bound,
            outcome.bound_source,
            wall_s,
            self.deterministic_time,
            self.reached,
        )

    def status(self, gap: float) -> SolveStatus:
        """How good a plan is by its gap in TCO, and by that of the goal before it."""
        return status_of(gap if self.reached is None else max(gap, self.reached.gap), self.limits)

    def simplify(self, planning: PlanningModel, result: SearchResult, outcome: ModelOutcome) -> SearchResult:
        """Among the plans of about the same cost, one with few distinct configurations.

        About the same: at most `SIMPLICITY_RATIO` dearer and still within the asked gap of the bound.
        Without an improvement within `SIMPLIFY_TIME_LIMIT_S` the plan stays as it is.
        """
        left = min(self.time_left_s(), SIMPLIFY_TIME_LIMIT_S)
        unproven = result.status is SolveStatus.LIMIT
        # What a few seconds find depends on the machine.
        timed = self.limits.reproducible or left < 0.1 or self.stop.requested
        if unproven or timed or outcome.values is None:
            return result
        model, variables = planning.model, planning.variables
        objective_usd, bound_usd = result.objective_usd or 0.0, result.bound_usd or 0.0
        cost = planning.total_cost
        within_gap_usd = bound_usd / (1 - self.limits.gap_ratio)
        allowed_usd = max(objective_usd, min(objective_usd * (1 + SIMPLICITY_RATIO), within_gap_usd))
        model.add(cost <= math.floor((allowed_usd - self.fixed_usd) * USD_RESOLUTION) + 1)
        hint(model, outcome.values)
        prefer_simple(planning)
        solver = configured_solver(left, self.limits.seed, self.limits.workers)
        self.stop.running(solver)
        status = solver.solve(model)
        self.stop.running(None)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return result
        self.deterministic_time += solver.response_proto.deterministic_time
        self.values = solver
        objective_usd = self.usd(solver.value(cost))
        gap = (objective_usd - bound_usd) / objective_usd if objective_usd > 0 else 0.0
        return replace(
            result,
            status=self.status(gap),
            solution=values_of(variables, solver),
            objective_usd=objective_usd,
            wall_s=time.monotonic() - self.started,
            deterministic_time=self.deterministic_time,
        )
