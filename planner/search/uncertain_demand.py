"""Order of solves for uncertain demand: all scenarios together, each alone, and wrong forecasts.

The search for the least expected cost comes first and keeps most of the time while its gap is open. The
solves of each scenario start from its plan and return merged plans and a bound
(planner/search/joint_plans.py), from which the search resumes in the remaining time. Least regret is measured
from each scenario's optimum, so those solves come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleetplan.planner.plan import Plan, WrongForecast
from fleetplan.planner.problem import KnownBound, Problem
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.joint_plans import LEAST_REGRET, best_of, better_of
from fleetplan.planner.search.result import LEAST_S, SearchResult, SolveStatus, Watcher
from fleetplan.planner.search.scenarios import (
    Evaluation,
    KnownScenarios,
    with_scenario_optima,
    wrong_forecasts,
)
from fleetplan.planner.search.work import TimeSpent

KEPT_SHARE_OF_TIME: Final = 0.15
"""Share of the time limit reserved for single scenarios and wrong forecasts while the joint gap is open."""

LEAST_SHARE_OF_TIME: Final = 0.05
"""Least share for them, past the limit too: on a busy machine the joint search may overrun."""

MOST_SHARE_OF_TIME: Final = 0.5
"""Largest share for them, once the joint gap is closed."""

ALONE_SHARE_OF_FORECASTS: Final = 0.5
"""Share of that time for single scenarios; wrong forecasts get the rest."""

REGRET_SHARE_OF_TIME: Final = 0.45
"""Share of the time limit for single scenarios under least regret, whose accuracy depends on their optima."""

LEAST_RESUMED_SHARE_OF_TIME: Final = 0.02
"""Least share of the time limit to resume the joint search: its model has to be built again."""

Found = tuple[Problem, SearchResult, tuple[WrongForecast, ...]]
"""Problem with the optimum of each scenario, the joint result, and the wrong forecasts."""


def search_scenarios(
    problem: Problem, evaluation: Evaluation, watch: Watcher | None, forecasts: bool
) -> Found:
    """Solve a problem of uncertain demand.

    Parameters
    ----------
    problem : Problem
        Problem with demand scenarios.
    evaluation : Evaluation
        Settings of the solves.
    watch : callable or None
        Called with every better joint plan and bound.
    forecasts : bool
        Whether to evaluate wrong forecasts too.

    Returns
    -------
    Found
        Includes the time and work of all solves. Without scenario optima if a scenario has no plan in its
        time, or the user stopped before.
    """
    searched = _Scenarios(problem, evaluation, watch, forecasts)
    if problem.fleet.demand_objective == LEAST_REGRET:
        return searched.least_regret()
    return searched.expected_cost()


class _Scenarios:
    """Solves of one problem of uncertain demand within a shared time limit."""

    def __init__(
        self, problem: Problem, evaluation: Evaluation, watch: Watcher | None, forecasts: bool
    ) -> None:
        self.problem = problem
        self.limits = evaluation.limits
        self.spent = TimeSpent(counted=self.limits.reproducible)
        self.evaluation = replace(evaluation, spent=self.spent)
        self.watch = watch
        self.forecasts = forecasts

    def least_regret(self) -> Found:
        """Solve each scenario alone, evaluate wrong forecasts, then minimise the largest regret."""
        alone_s = REGRET_SHARE_OF_TIME * self.limits.time_limit_s
        known = self.known_scenarios(None, alone_s, KEPT_SHARE_OF_TIME * self.limits.time_limit_s)
        result = self.search(known.problem, self.left_s)
        result = best_of(known.problem, result, _joined(known), self.limits)
        return known.problem, self.whole(result), known.wrong

    def expected_cost(self) -> Found:
        """Minimise expected cost, then solve each scenario alone and evaluate wrong forecasts."""
        result = self.search(self.problem, self.limits.time_limit_s * (1 - KEPT_SHARE_OF_TIME))
        infeasible = result.status is SolveStatus.INFEASIBLE
        if infeasible or self.evaluation.over:
            return self.problem, self.whole(result), ()
        plan = None if result.solution is None else self.evaluation.build(self.problem, result)
        least_s, most_s = (
            share * self.limits.time_limit_s for share in (LEAST_SHARE_OF_TIME, MOST_SHARE_OF_TIME)
        )
        forecasts_s = min(max(self.left_s, least_s), most_s)
        alone_s = ALONE_SHARE_OF_FORECASTS * forecasts_s
        known = self.known_scenarios(plan, alone_s, forecasts_s - alone_s)
        result = best_of(known.problem, result, _joined(known), self.limits)
        return known.problem, self.whole(self.resumed(result)), known.wrong

    @property
    def left_s(self) -> float:
        """Return the time until the limit, counted as work in reproducible runs. [s]"""
        return self.limits.time_limit_s - self.spent.seconds

    def search(self, problem: Problem, time_limit_s: float) -> SearchResult:
        """Search a joint plan for all scenarios."""
        limits = replace(self.limits, time_limit_s=max(time_limit_s, LEAST_S))
        result = search(problem, limits, self.watch, self.evaluation.stop, self.evaluation.holds)
        self.spent.add(result.deterministic_time)
        return result

    def known_scenarios(self, plan: Plan | None, alone_s: float, wrong_s: float) -> KnownScenarios:
        """Solve each scenario alone and evaluate wrong forecasts, starting from a joint plan if known.

        Parameters
        ----------
        plan : Plan or None
            Joint plan for every scenario.
        alone_s, wrong_s : float
            Time for the two kinds of solves. [s]
        """
        started_s = self.spent.seconds
        problem, alone = with_scenario_optima(self.problem, self.within(alone_s, plan), plan)
        wrong: tuple[WrongForecast, ...] = ()
        others: Mapping[tuple[str, str], SearchResult] = {}
        if self.forecasts:
            left_s = alone_s + wrong_s - (self.spent.seconds - started_s)
            wrong, others = wrong_forecasts(problem, self.within(min(left_s, wrong_s), plan))
        return KnownScenarios(problem, alone, wrong, others).improved(plan)

    def within(self, seconds: float, plan: Plan | None) -> Evaluation:
        """Return settings for solves that share this many seconds.

        Given a joint plan, no solve runs past the limit to find a first plan.
        """
        limits = replace(self.limits, time_limit_s=max(seconds, LEAST_S))
        if plan is not None and not limits.reproducible:
            limits = replace(limits, latest=limits.latest.within(max(self.left_s, limits.time_limit_s)))
        return replace(self.evaluation, limits=limits)

    def resumed(self, result: SearchResult) -> SearchResult:
        """Return the result, improved in the remaining time if its cost gap is open."""
        goes_on = result.status is SolveStatus.LIMIT and not self.evaluation.stop.requested
        lexicographic = result.goal is not None or self.problem.fleet.policy.unmet != "forbid"
        enough_time = self.left_s > LEAST_RESUMED_SHARE_OF_TIME * self.limits.time_limit_s
        if not goes_on or lexicographic or not enough_time:
            return result
        plan = self.evaluation.build(self.problem, result)
        bound = KnownBound(plan.bound_usd, result.bound_source)
        known = replace(self.problem, begins_with=plan, bounded_by=bound)
        return better_of(self.search(known, self.left_s), result, self.limits)

    def whole(self, result: SearchResult) -> SearchResult:
        """Return the result with the time and work of all solves."""
        return replace(result, wall_s=self.spent.clock_s, deterministic_time=self.spent.work_s)


def _joined(known: KnownScenarios) -> list[dict[str, SearchResult]]:
    """Return the results by scenario under each scenario's purchases, where all scenarios were solved."""
    names = list(known.problem.scenario_optima or {})
    return [
        {name: known.found(planned, name) for name in names}
        for planned in known.alone
        if all((planned, name) in known.others for name in names if name != planned)
    ]
