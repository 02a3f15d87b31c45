"""Stages of a search that may leave demand unmet: minimise unmet demand, then cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import (
    PlanningModel,
    build_model,
    unmet_demand,
    unmet_requests_per_s,
    unmet_units,
)
from fleetplan.planner.plan import UNMET_GAP_RATIO
from fleetplan.planner.problem.independent_parts import Component
from fleetplan.planner.search.blocks.solve import decomposed
from fleetplan.planner.search.most_served import MostServed, value_of
from fleetplan.planner.search.result import (
    LeastUnmet,
    SearchLimits,
    SearchResult,
)
from fleetplan.planner.search.solvers.cpsat import hint, hint_values
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import Proof
from fleetplan.planner.search.solvers.request import (
    ExtraTime,
    ModelOutcome,
    ModelStatus,
    Patience,
    Step,
)
from fleetplan.planner.search.stages import Stages
from fleetplan.planner.search.unmet_prices import (
    LeastShortage,
    hint_nothing,
    least_shortage,
    prices_of_unmet,
    rounding_of,
    weigh,
)
from fleetplan.planner.search.warm_start import hint_known_plan

FULL_SERVICE_SHARE_OF_TIME = 0.33
"""Share of the time limit to find a plan that serves all demand, where unmet demand is allowed; once found,
the search keeps the whole limit."""

UNMET_SHARE_OF_TIME = 0.4
"""Share of the remaining time for the unmet demand of each priority."""

AGAIN_SHARE_OF_TIME = 0.05
"""Share of the time limit that must be left to minimise unmet demand once more from a cheaper plan."""

CHEAPER_SHARE_OF_TIME = 0.2
"""Share of the remaining time to minimise cost before unmet demand is minimised once more."""

PATIENCE_ROUNDS = 3
"""Block rounds after which a large fleet without a plan that serves all demand may leave some unmet: feasible
fleets find one in the first or second round."""

WEIGHED_SHARE_OF_TIME = 0.2
"""Share of a large fleet's remaining time to weigh unmet demand against cost, before minimising cost alone.
With 0.15, the cost gap after 120 s is no smaller, and more demand stays unmet."""

LEAST_WEIGHED_S, MOST_WEIGHED_SHARE = 5.0, 0.6
"""Least time for that, and its largest share of the remaining time: in short runs, service comes first.
[s]"""

WEIGHED_GAP_RATIO = 2.0
"""Weighing continues, up to that share, while its gap exceeds this multiple of the plan's cost: what it
leaves unmet stays unmet. The gap is hundreds of times the cost for plans that serve nothing, and about once
the cost after the first neighbourhoods; with 0.5 or 1, too little time is left to minimise cost."""

WEIGHING = "unmet demand and cost"
"""Name of the stage that weighs one against the other."""


def _bound_from_above(limits: Iterable[tuple[cp_model.IntVar, int]]) -> None:
    """Set the upper bounds of variables."""
    for variable, limit in limits:
        variable.proto.domain[1] = limit


class UnmetStages(Stages):
    """Stages of a part that may leave demand unmet."""

    def __init__(self, part: Component, limits: SearchLimits, started: float, stop: Stop) -> None:
        super().__init__(part, limits, started, stop)
        # Least unmet demand found, of each priority that was minimised. [units of unmet demand]
        self._unmet_left: dict[int, int] = {}

    def serve_most(self) -> tuple[PlanningModel, ModelOutcome]:
        """Return the cheapest plan that serves all demand, or else one with the least unmet demand."""
        lenient = build_model(self.problem, allow_unmet=True)
        if decomposed(lenient) is not None:
            return lenient, self.serve_most_in_blocks(lenient)
        strict = build_model(self.problem, allow_unmet=False)
        hint_known_plan(strict)
        patience = Patience(seconds=FULL_SERVICE_SHARE_OF_TIME * self.time_left_s())
        outcome = self.minimise(strict, "cost", patience, self.known)
        if outcome.values is not None:
            return strict, outcome
        return self.minimise_unmet_and_cost(lenient)

    def minimise_unmet_and_cost(self, planning: PlanningModel) -> tuple[PlanningModel, ModelOutcome]:
        """Minimise unmet demand, then cost, and again from that plan while unmet demand falls.

        The cheaper plan leaves supply and budget unused, which may serve more.
        """
        stage = "cost of served demand"
        stopped = self.minimise_unmet(planning)
        if stopped is not None or self._unmet_proven():
            return planning, stopped or self.minimise(planning, stage)
        outcome = self._cheaper(planning, stage)
        while outcome.values is not None and not self._unmet_proven() and self._has_time():
            before, again = dict(self._unmet_left), build_model(self.problem, allow_unmet=True)
            hint(again.model, outcome.values)
            if self.minimise_unmet(again) is not None or self._unmet_left == before:
                break
            cheaper = self._cheaper(again, stage)
            if cheaper.values is None:
                break
            planning, outcome = again, cheaper
        if outcome.values is None or outcome.status is ModelStatus.SOLVED or self.time_left_s() <= 0:
            return planning, outcome
        hint(planning.model, outcome.values)
        known = Proof(-math.inf if outcome.bound is None else outcome.bound, outcome.bound_source)
        last = self.minimise(planning, stage, known=known)
        return planning, outcome if last.values is None else last

    def _cheaper(self, planning: PlanningModel, stage: str) -> ModelOutcome:
        """Minimise cost in a share of the time, to serve more with what is saved."""
        self.reserved_s = (1 - CHEAPER_SHARE_OF_TIME) * self.time_left_s()
        try:
            return self.minimise(planning, stage)
        finally:
            self.reserved_s = 0.0

    def _has_time(self) -> bool:
        """Return whether enough time is left to minimise unmet demand once more."""
        wanted = not self.stop.requested and not self.limits.latest.passed
        return wanted and self.time_left_s() > AGAIN_SHARE_OF_TIME * self.limits.time_limit_s

    def _unmet_proven(self) -> bool:
        """Return whether no plan leaves less unmet, within the rounding of unmet demand."""
        return all(self._is_least(priority) for priority in self._unmet_left)

    def _is_least(self, priority: int) -> bool:
        left = self._unmet_left.get(priority, math.inf)
        return left - self.unmet_bounds.get(priority, 0.0) <= UNMET_GAP_RATIO * left < math.inf

    def serve_most_in_blocks(self, planning: PlanningModel) -> ModelOutcome:
        """Do the same for a large fleet, without the search for full service if a relaxation excludes it."""
        least = least_shortage(planning, self.stop, self.seconds_left())
        if least is None or not least.impossible:
            # Blocks reuse their columns for the same model with unmet demand.
            unmet = [(variable, variable.proto.domain[1]) for variable in planning.variables.unmet.values()]
            _bound_from_above((variable, 0) for variable, _ in unmet)
            hint_known_plan(planning)
            patience = Patience(PATIENCE_ROUNDS, FULL_SERVICE_SHARE_OF_TIME * self.time_left_s())
            duals = None if least is None else least.all_served_duals
            outcome = self.minimise(planning, "cost", patience, self.known, duals)
            if outcome.values is not None:
                return outcome
            _bound_from_above(unmet)
        else:
            named = ", ".join(map(str, least.lacking)) or "none beyond rounding"
            step = Step("root relaxation", f"no plan serves everything; short: priority {named}", None, None)
            self.tell(WEIGHING, step, None, None)
        return self.weigh_unmet(planning, least)

    def weigh_unmet(self, planning: PlanningModel, least: LeastShortage | None) -> ModelOutcome:
        """Weigh unmet demand against cost, then minimise cost with no more demand unmet."""
        model, variables = planning.model, planning.variables
        prices = prices_of_unmet(planning, least, self.stop, self.seconds_left())
        weighing = weigh(planning, prices.by_priority)
        first_duals = None if prices.row_duals is None else prices.row_duals / weighing.coarse
        model.minimize(weighing.objective)
        hint_nothing(model, variables)
        serving_nothing = list(model.proto.solution_hint.values)
        served = MostServed(planning, self.priorities, serving_nothing)

        def usd(value: float) -> float:
            return self.usd(weighing.cost(value, weighing.shortage(served.last)))

        def enough(objective: float, bound: float) -> bool:
            return usd(objective) - usd(bound) <= self.limits.search_gap_ratio * usd(objective)

        def on_step(step: Step) -> None:
            if step.values is not None:
                served.note(step.values.tolist())
            serves_some = served.last != serving_nothing and step.objective is not None
            plan_usd = usd(step.objective) if serves_some and step.objective is not None else None
            bound_usd = usd(step.bound) if serves_some and step.bound is not None else None
            self.tell(WEIGHING, step, plan_usd, bound_usd)

        def near_enough(objective: float, bound: float) -> bool:
            return usd(objective) - usd(bound) <= WEIGHED_GAP_RATIO * usd(objective)

        left_s = self.time_left_s()
        seconds = max(left_s * WEIGHED_SHARE_OF_TIME, min(LEAST_WEIGHED_S, left_s * MOST_WEIGHED_SHARE))
        extra_time = ExtraTime(max(left_s * MOST_WEIGHED_SHARE - seconds, 0.0), near_enough)
        outcome = self.solve(planning, seconds, enough, on_step, extra_time=extra_time, row_duals=first_duals)
        if outcome.values is None or outcome.bound is None:
            return outcome
        served.note(list(outcome.values.response_proto.solution))
        hint_values(model, served.best)
        for priority, unmet in served.unmet.items():
            # No bound is proven per priority (benchmarks/RESULTS.md: strength of the linear relaxation).
            self.unmet_bounds[priority] = 0.0
            # Allow one more rate unit each: whole load units of other replicas do not fit exactly.
            largest_unmet = value_of(unmet, served.best) + rounding_of(unmet)
            model.add(unmet <= largest_unmet).with_name(f"unmet_limit[{priority}]")
        # Of the plan that is kept, not of the one reported last.
        shortage = weighing.shortage(served.best) + weighing.rounding()
        known = Proof(weighing.cost(outcome.bound, shortage), outcome.bound_source)
        return self.minimise(planning, "cost of served demand", known=known)

    def minimise_unmet(self, planning: PlanningModel) -> ModelOutcome | None:
        """Minimise unmet demand priority by priority and fix it; return an outcome only if no plan exists."""
        model, variables = planning.model, planning.variables
        proven = True
        for priority in self.priorities:
            unmet = unmet_demand(self.problem, variables, priority)
            if isinstance(unmet, int):
                continue
            limit = f"unmet_limit[{priority}]"
            # Below a priority that may fall, others may rise.
            proven = proven and self._is_least(priority)
            if proven:
                model.add(unmet <= self._unmet_left[priority]).with_name(limit)
                continue
            model.minimize(unmet)
            stage = f"unmet demand of priority {priority}"

            def on_step(step: Step, stage: str = stage) -> None:
                self.tell(stage, step, None, None)

            outcome = self.solve(
                planning,
                self.time_left_s() * UNMET_SHARE_OF_TIME,
                lambda value, bound: value - bound <= UNMET_GAP_RATIO * value,
                on_step,
            )
            if outcome.values is None:
                return outcome
            hint(model, outcome.values)
            # A bound of an earlier search, which allowed more unmet demand of higher priorities, still holds.
            self.unmet_bounds[priority] = max(outcome.bound or 0.0, self.unmet_bounds.get(priority, 0.0))
            # Sums exceed 2^53, and the solver's objective is a float: evaluate the sum instead.
            self._unmet_left[priority] = outcome.values.value(unmet)
            model.add(unmet <= self._unmet_left[priority]).with_name(limit)
        return None

    def with_unmet(self, result: SearchResult) -> SearchResult:
        """Return the result with its unmet demand by priority and the proven bounds."""
        if result.solution is None or not self.unmet_bounds:
            return result
        left: dict[int, LeastUnmet] = {}
        for priority, bound in self.unmet_bounds.items():
            units = unmet_units(self.problem, result.solution.unmet, priority)
            if units:
                value = unmet_requests_per_s(self.problem, result.solution.unmet, priority)
                left[priority] = LeastUnmet(value, value * min(bound / units, 1.0))
        return replace(result, unmet=left)
