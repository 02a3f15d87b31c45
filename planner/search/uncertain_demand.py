"""The order of the solves of uncertain demand: all scenarios together, each alone, and the wrong forecasts.

A plan at the expected cost comes first, and keeps most of the time while its gap is open. The solves of each
scenario alone begin at this plan, and give back what they find: joined plans and a bound
(planner/search/joint_plans.py), from which the search goes on in the time that is left. A least regret counts
from the best plan for each scenario alone, so those come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleetplan.planner.plan import Plan, WrongForecast
from fleetplan.planner.problem import KnownBound, Problem
from fleetplan.planner.search.joint_plans import LEAST_REGRET, best_of, better_of
from fleetplan.planner.search.result import LEAST_S, SearchResult, SolveStatus, Watcher
from fleetplan.planner.search.run import search
from fleetplan.planner.search.scenarios import (
    Evaluation,
    KnownScenarios,
    with_scenario_optima,
    wrong_forecasts,
)
from fleetplan.planner.search.work import Spent

KEPT_SHARE_OF_TIME: Final = 0.15
"""Share of the time limit that is kept for each scenario alone and the wrong forecasts, however large the gap
of the plan for all of them is."""

LEAST_SHARE_OF_TIME: Final = 0.05
"""The same at the least, past the limit too: on a busy machine a search ends later than it should."""

MOST_SHARE_OF_TIME: Final = 0.5
"""The same at the most, once that gap is closed."""

ALONE_SHARE_OF_FORECASTS: Final = 0.5
"""Share of that time to solve every scenario alone; the wrong forecasts have the rest."""

REGRET_SHARE_OF_TIME: Final = 0.45
"""Share of the time limit to solve every scenario alone for the least regret, which is known no better than
the best of each."""

LEAST_RESUMED_SHARE_OF_TIME: Final = 0.02
"""With a smaller share of the time limit left no search goes on: its model has to be built."""

Found = tuple[Problem, SearchResult, tuple[WrongForecast, ...]]
"""The problem with the best of each scenario alone, the plan for all of them, and the wrong forecasts."""


def search_scenarios(
    problem: Problem, evaluation: Evaluation, watch: Watcher | None, forecasts: bool
) -> Found:
    """Solve a problem of uncertain demand.

    Parameters
    ----------
    problem : Problem
        With demand scenarios.
    evaluation : Evaluation
        How it is solved.
    watch : callable or None
        Told of every better plan for all scenarios, and bound.
    forecasts : bool
        Whether to say what would be best for each scenario, and what it costs to be wrong.

    Returns
    -------
    Found
        With the time and the work of all solves. Without the best of each scenario where one has none in its
        time, and where a stop came before.
    """
    searched = _Scenarios(problem, evaluation, watch, forecasts)
    if problem.fleet.demand_objective == LEAST_REGRET:
        return searched.least_regret()
    return searched.expected_cost()


class _Scenarios:
    """The solves of one problem of uncertain demand, and the time that they have left."""

    def __init__(
        self, problem: Problem, evaluation: Evaluation, watch: Watcher | None, forecasts: bool
    ) -> None:
        self.problem = problem
        self.limits = evaluation.limits
        self.spent = Spent(counted=self.limits.reproducible)
        self.evaluation = replace(evaluation, spent=self.spent)
        self.watch = watch
        self.forecasts = forecasts

    def least_regret(self) -> Found:
        """The best of each scenario alone, then the wrong forecasts, then the plan of least regret."""
        alone_s = REGRET_SHARE_OF_TIME * self.limits.time_limit_s
        known = self.known_scenarios(None, alone_s, KEPT_SHARE_OF_TIME * self.limits.time_limit_s)
        result = self.search(known.problem, self.left_s)
        result = best_of(known.problem, result, _joined(known), self.limits)
        return known.problem, self.whole(result), known.wrong

    def expected_cost(self) -> Found:
        """The plan of least expected cost, then the best of each scenario alone and the wrong forecasts."""
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
        """Time until the limit, or work where the clock must not decide. [s]"""
        return self.limits.time_limit_s - self.spent.seconds

    def search(self, problem: Problem, time_limit_s: float) -> SearchResult:
        """Search a plan for all scenarios."""
        limits = replace(self.limits, time_limit_s=max(time_limit_s, LEAST_S))
        result = search(problem, limits, self.watch, self.evaluation.stop, self.evaluation.holds)
        self.spent.add(result.deterministic_time)
        return result

    def known_scenarios(self, plan: Plan | None, alone_s: float, wrong_s: float) -> KnownScenarios:
        """The best of each scenario alone and the wrong forecasts, where a plan for all of them may be known.

        Parameters
        ----------
        plan : Plan or None
            Serves every scenario.
        alone_s, wrong_s : float
            Time for each of the two questions. [s]
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
        """How solves are done that have so many seconds together.

        With a plan for all scenarios none goes on past the limit to find a first one.
        """
        limits = replace(self.limits, time_limit_s=max(seconds, LEAST_S))
        if plan is not None and not limits.reproducible:
            limits = replace(limits, latest=limits.latest.within(max(self.left_s, limits.time_limit_s)))
        return replace(self.evaluation, limits=limits)

    def resumed(self, result: SearchResult) -> SearchResult:
        """The same, or a better plan found in the time that is left, where the gap of its cost is open."""
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
        """The same with the time and the work of all solves."""
        return replace(result, wall_s=self.spent.clock_s, deterministic_time=self.spent.work_s)


def _joined(known: KnownScenarios) -> list[dict[str, SearchResult]]:
    """Plans by scenario under the purchases for one of them, where they are known for every other one."""
    names = list(known.problem.scenario_optima or {})
    return [
        {name: known.found(planned, name) for name in names}
        for planned in known.alone
        if all((planned, name) in known.others for name in names if name != planned)
    ]
