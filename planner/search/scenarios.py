"""Uncertain demand: each scenario solved alone, and the cost of having planned for another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.planner.plan import Plan, Unmet, WrongForecast
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import part_of
from fleetplan.planner.problem.scenarios import FixedSupply, ScenarioOptimum
from fleetplan.planner.search.result import SearchLimits, SearchResult
from fleetplan.planner.search.run import Holds, search
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.stages import OWN_SHARE_OF_GAP
from fleetplan.planner.search.work import Spent

SINGLE_SCENARIO_SHARE_OF_TIME: Final = 0.25
"""Share of the time limit to solve every scenario alone."""

REGRET_SHARE_OF_TIME: Final = 0.45
"""The same for the least regret, which is known no better than the best of each scenario."""

WRONG_FORECAST_SHARE_OF_TIME: Final = 0.25
"""Share of the time limit to evaluate the purchases for one scenario under the others."""

LEAST_REGRET: Final = "least-regret"

Build = Callable[[Problem, SearchResult], Plan]
"""A verified plan of what a search found."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How scenarios are solved one by one.

    Attributes
    ----------
    limits : SearchLimits
        Of the whole command.
    stop : Stop
        Ends them at their best plans.
    build : callable
        A verified plan of what a search found.
    holds : callable
        Whether what a search found keeps the budgets.
    """

    limits: SearchLimits
    stop: Stop
    build: Build
    holds: Holds


def single_scenario(problem: Problem, scenario: str) -> Problem:
    """The problem in which one demand scenario is certain.

    Parameters
    ----------
    problem : Problem
        With demand scenarios.
    scenario : str
        The one that turns out. A limit of TCO holds in the mean of all: where everything is served at least
        cost it is left out here, and nothing is paid for a simpler plan.
    """
    kept = [m for m, moment in enumerate(problem.moments) if moment.scenario == scenario]
    index = {m: position for position, m in enumerate(kept)}
    moments = tuple(
        replace(
            problem.moments[m],
            probability=1.0,
            before=None if (before := problem.moments[m].before) is None else index[before],
            slice_before=None if (earlier := problem.moments[m].slice_before) is None else index[earlier],
        )
        for m in kept
    )
    cells = tuple(replace(cell, moment=index[cell.moment]) for cell in problem.cells if cell.moment in index)
    only = tuple(
        replace(each, probability=1.0) for each in problem.fleet.demand_scenarios if each.name == scenario
    )
    policy = replace(problem.fleet.policy, simpler_percent=0.0)
    services = tuple(replace(each, home_percent=0.0) for each in problem.fleet.services)
    fleet = replace(problem.fleet, demand_objective="expected-cost", demand_scenarios=only, policy=policy)
    fleet = replace(fleet, services=services)
    if fleet.objective == "tco" and fleet.policy.unmet == "forbid":
        fleet = replace(fleet, budget=replace(fleet.budget, tco_usd=None))
    return part_of(problem, fleet=fleet, moments=moments, cells=cells, scenario_optima=None)


def with_scenario_optima(problem: Problem, evaluation: Evaluation) -> tuple[Problem, dict[str, SearchResult]]:
    """The problem with what would be best for each scenario alone; without where one has no plan.

    Parameters
    ----------
    problem : Problem
        With demand scenarios.
    evaluation : Evaluation
        How they are solved.

    Returns
    -------
    tuple[Problem, dict[str, SearchResult]]
        The problem, and what was found for each scenario.
    """
    found: dict[str, ScenarioOptimum] = {}
    results: dict[str, SearchResult] = {}
    scenarios = problem.fleet.demand_scenarios
    spent = Spent(counted=evaluation.limits.reproducible)
    limits, share = evaluation.limits, SINGLE_SCENARIO_SHARE_OF_TIME
    if problem.fleet.demand_objective == LEAST_REGRET:
        share = REGRET_SHARE_OF_TIME
        limits = replace(limits, gap_ratio=limits.gap_ratio * OWN_SHARE_OF_GAP)
    for done, scenario in enumerate(scenarios):
        left_s = (share * limits.time_limit_s - spent.seconds) / (len(scenarios) - done)
        part = single_scenario(problem, scenario.name)
        result = search(part, _within(limits, left_s), None, evaluation.stop, evaluation.holds)
        spent.add(result.deterministic_time)
        if result.solution is None:
            return problem, {}
        results[scenario.name] = result
        plan = evaluation.build(part, result)
        supply = FixedSupply(result.solution.acquired, result.solution.retired)
        unmet = unmet_requests_per_s(part, plan.unmet, scenario.name)
        gap = max((each.gap for each in plan.unmet_gaps), default=0.0)
        found[scenario.name] = ScenarioOptimum(plan.objective_usd, plan.bound_usd, unmet, supply, gap)
    return replace(problem, scenario_optima=found), results


def _within(limits: SearchLimits, time_limit_s: float) -> SearchLimits:
    return replace(limits, time_limit_s=max(time_limit_s, 0.1))


def wrong_forecasts(
    problem: Problem, evaluation: Evaluation
) -> tuple[tuple[WrongForecast, ...], dict[tuple[str, str], SearchResult]]:
    """What the best purchases for each scenario cost, and leave unserved, where another one turns out.

    Parameters
    ----------
    problem : Problem
        With the best of each scenario alone.
    evaluation : Evaluation
        How the placements are solved again.

    Returns
    -------
    tuple[tuple[WrongForecast, ...], dict[tuple[str, str], SearchResult]]
        One for every ordered pair of scenarios, none that a stop came before, and what was found for it.
        Purchases, rents and retirements are those of the first, placements are decided anew, and demand may
        stay unmet.
    """
    best = problem.scenario_optima or {}
    pairs = [(one, other) for one in best for other in best if one != other]
    spent = Spent(counted=evaluation.limits.reproducible)
    time_s = WRONG_FORECAST_SHARE_OF_TIME * evaluation.limits.time_limit_s
    rows = []
    results: dict[tuple[str, str], SearchResult] = {}
    for done, (planned_for, turns_out) in enumerate(pairs):
        if evaluation.stop.requested:
            break
        left_s = (time_s - spent.seconds) / (len(pairs) - done)
        part = replace(single_scenario(problem, turns_out), fixed_supply=best[planned_for].supply)
        lenient = replace(part.fleet.policy, unmet="penalise")
        part = replace(part, fleet=replace(part.fleet, policy=lenient))
        result = search(part, _within(evaluation.limits, left_s), None, evaluation.stop, evaluation.holds)
        spent.add(result.deterministic_time)
        results[planned_for, turns_out] = result
        plan = None if result.solution is None else evaluation.build(part, result)
        rows.append(_wrong_forecast(part, planned_for, turns_out, plan, best[turns_out]))
    return tuple(rows), results


@dataclass(frozen=True, slots=True)
class KnownScenarios:
    """What is known of the demand scenarios before a plan for all of them is searched.

    Attributes
    ----------
    problem : Problem
        With the best of each scenario alone.
    alone : dict[str, SearchResult]
        What was found for each.
    wrong : tuple[WrongForecast, ...]
        What the best purchases for one cost in another.
    others : dict[tuple[str, str], SearchResult]
        What was found for that.
    """

    problem: Problem
    alone: Mapping[str, SearchResult]
    wrong: tuple[WrongForecast, ...]
    others: Mapping[tuple[str, str], SearchResult]

    def improved(self) -> KnownScenarios:
        """The same with the purchases for another scenario, where they do better than those for it."""
        best = dict(self.problem.scenario_optima or {})
        rows = {(row.planned_for, row.turns_out): row for row in self.wrong}
        if len(rows) < len(best) * (len(best) - 1):
            return self
        taken = {name: self._better(name) for name in best}
        # Purchases for a scenario, and what runs with them in any: its own, or those that do better.
        of = {name: name if row is None else row.planned_for for name, row in taken.items()}
        if all(name == planned for name, planned in of.items()):
            return self
        optima = {}
        for name, row in taken.items():
            usd, unmet = best[name].usd, best[name].unmet_requests_per_s
            if row is not None and row.usd is not None and row.unmet_requests_per_s is not None:
                usd, unmet = row.usd, row.unmet_requests_per_s
            optima[name] = replace(
                best[name],
                usd=usd,
                bound_usd=min(best[name].bound_usd, usd),
                unmet_requests_per_s=unmet,
                supply=best[of[name]].supply,
            )
        wrong = []
        for one, other in rows:
            known = rows[of[one], other] if of[one] != other else _planned_for_itself(other, best[other])
            extra_usd = None if known.usd is None else known.usd - optima[other].usd
            wrong.append(known.model_copy(update={"planned_for": one, "extra_usd": extra_usd}))
        return KnownScenarios(
            problem=replace(self.problem, scenario_optima=optima),
            alone={name: self.found(of[name], name) for name in best},
            wrong=tuple(wrong),
            others={(one, other): self.found(of[one], other) for one, other in self.others},
        )

    def _better(self, scenario: str) -> WrongForecast | None:
        """The purchases for another scenario that do best in one, if they do better and serve no less."""
        best = (self.problem.scenario_optima or {})[scenario]
        better = [
            row
            for row in self.wrong
            if row.turns_out == scenario
            and row.usd is not None
            and row.usd < best.usd
            and (row.unmet_requests_per_s or 0.0) <= best.unmet_requests_per_s
        ]
        return min(better, key=lambda row: row.usd or 0.0, default=None)

    def found(self, planned_for: str, turns_out: str) -> SearchResult:
        """What was found for a scenario with the best purchases for one."""
        return self.alone[turns_out] if planned_for == turns_out else self.others[planned_for, turns_out]


def _planned_for_itself(scenario: str, best: ScenarioOptimum) -> WrongForecast:
    """What the best purchases for a scenario cost in itself."""
    return WrongForecast(
        planned_for=scenario,
        turns_out=scenario,
        usd=best.usd,
        bound_usd=best.bound_usd,
        unmet_requests_per_s=best.unmet_requests_per_s,
    )


def _wrong_forecast(
    problem: Problem, planned_for: str, turns_out: str, plan: Plan | None, best: ScenarioOptimum
) -> WrongForecast:
    if plan is None:
        return WrongForecast(planned_for=planned_for, turns_out=turns_out)
    return WrongForecast(
        planned_for=planned_for,
        turns_out=turns_out,
        usd=plan.objective_usd,
        bound_usd=plan.bound_usd,
        unmet_requests_per_s=unmet_requests_per_s(problem, plan.unmet, turns_out),
        extra_usd=plan.objective_usd - best.usd,
    )


def unmet_requests_per_s(problem: Problem, unmet: Sequence[Unmet], scenario: str) -> float:
    """What stays unserved in a scenario, the mean over the hours of the horizon. [requests/s]"""
    return sum(
        row.requests_per_s * problem.moment_of(row).hours_share / len(problem.periods)
        for row in unmet
        if row.scenario == scenario
    )
