"""Stages of a search that may leave demand unmet: minimise unmet demand, then cost."""

from __future__ import annotations

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
from fleetplan.planner.search.blocks.solve import decomposed
from fleetplan.planner.search.most_served import MostServed, value_of
from fleetplan.planner.search.result import (
    LeastUnmet,
    SearchResult,
)
from fleetplan.planner.search.solvers.cpsat import hint, hint_values
from fleetplan.planner.search.solvers.proofs import Proof
from fleetplan.planner.search.solvers.request import (
    ModelOutcome,
    Overtime,
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
        return lenient, self.minimise_unmet(lenient) or self.minimise(lenient, "cost of served demand")

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
        first = None if prices.row_duals is None else prices.row_duals / weighing.coarse
        model.minimize(weighing.objective)
        hint_nothing(model, variables)
        nothing = list(model.proto.solution_hint.values)
        served = MostServed(planning, self.priorities, nothing)

        def usd(value: float) -> float:
            return self.usd(weighing.cost(value, weighing.shortage(served.last)))

        def enough(objective: float, bound: float) -> bool:
            return usd(objective) - usd(bound) <= self.limits.search_gap_ratio * usd(objective)

        def on_step(step: Step) -> None:
            if step.values is not None:
                served.note(step.values.tolist())
            something = served.last != nothing and step.objective is not None
            plan_usd = usd(step.objective) if something and step.objective is not None else None
            bound_usd = usd(step.bound) if something and step.bound is not None else None
            self.tell(WEIGHING, step, plan_usd, bound_usd)

        def good(objective: float, bound: float) -> bool:
            return usd(objective) - usd(bound) <= WEIGHED_GAP_RATIO * usd(objective)

        left_s = self.time_left_s()
        seconds = max(left_s * WEIGHED_SHARE_OF_TIME, min(LEAST_WEIGHED_S, left_s * MOST_WEIGHED_SHARE))
        overtime = Overtime(max(left_s * MOST_WEIGHED_SHARE - seconds, 0.0), good)
        outcome = self.solve(planning, seconds, enough, on_step, overtime=overtime, row_duals=first)
        if outcome.values is None or outcome.bound is None:
            return outcome
        served.note(list(outcome.values.response_proto.solution))
        hint_values(model, served.best)
        for priority, unmet in served.unmet.items():
            # No bound is proven per priority (benchmarks/RESULTS.md: strength of the linear relaxation).
            self.unmet_bounds[priority] = 0.0
            # Allow one more rate unit each: whole load units of other replicas do not fit exactly.
            most = value_of(unmet, served.best) + rounding_of(unmet)
            model.add(unmet <= most).with_name(f"unmet_limit[{priority}]")
        # Of the plan that is kept, not of the one reported last.
        missing = weighing.shortage(served.best) + weighing.rounding()
        known = Proof(weighing.cost(outcome.bound, missing), outcome.bound_source)
        return self.minimise(planning, "cost of served demand", known=known)

    def minimise_unmet(self, planning: PlanningModel) -> ModelOutcome | None:
        """Minimise unmet demand priority by priority and fix it; return an outcome only if no plan exists."""
        model, variables = planning.model, planning.variables
        for priority in self.priorities:
            unmet = unmet_demand(self.problem, variables, priority)
            if isinstance(unmet, int):
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
            self.unmet_bounds[priority] = max(outcome.bound or 0.0, 0.0)
            # Sums exceed 2^53, and the solver's objective is a float: evaluate the sum instead.
            model.add(unmet <= outcome.values.value(unmet)).with_name(f"unmet_limit[{priority}]")
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
