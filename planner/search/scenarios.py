"""Optimum of each demand scenario, and the cost of having planned for another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fleetplan.planner.plan import Plan, Unmet, WrongForecast
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import part_of
from fleetplan.planner.problem.scenarios import FixedSupply, ScenarioOptimum
from fleetplan.planner.search.budgets_kept import Holds, search
from fleetplan.planner.search.result import LEAST_S, SearchLimits, SearchResult
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.stages import OWN_SHARE_OF_GAP
from fleetplan.planner.search.warm_start import supply_of
from fleetplan.planner.search.work import TimeSpent

LEAST_REGRET: Final = "least-regret"

TOGETHER: Final = ""
"""Name that stands for all scenarios where purchases are keyed by the scenario they were made for."""

Build = Callable[[Problem, SearchResult], Plan]
"""Function that turns a search result into a verified plan."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Settings and counters of the solves by scenario.

    Attributes
    ----------
    limits : SearchLimits
        Of all solves of one question together.
    stop : Stop
        Ends each search at its best plan.
    build : callable
        Turns a search result into a verified plan.
    holds : callable
        Checks whether a result keeps the budgets.
    spent : TimeSpent
        Time or work of all solves so far.
    """

    limits: SearchLimits
    stop: Stop
    build: Build
    holds: Holds
    spent: TimeSpent = field(default_factory=lambda: TimeSpent(counted=False))

    @property
    def over(self) -> bool:
        """Return whether no further solve may begin."""
        return self.stop.requested or self.limits.latest.passed

    def search(self, problem: Problem, time_limit_s: float) -> SearchResult:
        """Search a plan within a time limit and charge its work."""
        # Only the cost of this plan is shown, so a simpler plan is not needed.
        limits = replace(self.limits, time_limit_s=max(time_limit_s, LEAST_S), simplified=False)
        result = search(problem, limits, None, self.stop, self.holds)
        self.spent.add(result.deterministic_time)
        return result


def single_scenario(problem: Problem, scenario: str) -> Problem:
    """Return the problem in which one demand scenario is certain.

    Parameters
    ----------
    problem : Problem
        Problem with demand scenarios.
    scenario : str
        The scenario that occurs. A TCO limit applies to the mean of all scenarios, so it is dropped where all
        demand is served at least cost; allowances for simpler plans are dropped too.
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


def with_scenario_optima(
    problem: Problem, evaluation: Evaluation, plan: Plan | None = None
) -> tuple[Problem, dict[str, SearchResult]]:
    """Solve each scenario alone and return the problem with the optima; without them if one has no plan.

    Parameters
    ----------
    problem : Problem
        Problem with demand scenarios.
    evaluation : Evaluation
        Settings of the solves.
    plan : Plan, optional
        Plan for all scenarios from which each search starts.

    Returns
    -------
    tuple[Problem, dict[str, SearchResult]]
        The problem, and the result of each scenario.
    """
    found: dict[str, ScenarioOptimum] = {}
    results: dict[str, SearchResult] = {}
    scenarios = problem.fleet.demand_scenarios
    begins_with = problem.begins_with if plan is None else plan
    ends_s = evaluation.spent.seconds + evaluation.limits.time_limit_s
    if problem.fleet.demand_objective == LEAST_REGRET:
        own_ratio = evaluation.limits.gap_ratio * OWN_SHARE_OF_GAP
        evaluation = replace(evaluation, limits=replace(evaluation.limits, gap_ratio=own_ratio))
    for done, scenario in enumerate(scenarios):
        left_s = (ends_s - evaluation.spent.seconds) / (len(scenarios) - done)
        part = replace(single_scenario(problem, scenario.name), begins_with=begins_with)
        result = evaluation.search(part, left_s)
        if result.solution is None:
            return problem, {}
        results[scenario.name] = result
        built = evaluation.build(part, result)
        supply = FixedSupply(result.solution.acquired, result.solution.retired)
        unmet = unmet_requests_per_s(part, built.unmet, scenario.name)
        gap = largest_unmet_gap(built)
        usd, bound_usd = built.objective_usd, built.bound_usd
        found[scenario.name] = ScenarioOptimum(usd, bound_usd, unmet, supply, gap, built)
    return replace(problem, scenario_optima=found), results


def wrong_forecasts(
    problem: Problem, evaluation: Evaluation
) -> tuple[tuple[WrongForecast, ...], dict[tuple[str, str], SearchResult]]:
    """Evaluate the best purchases for each scenario in every other one: their cost and unmet demand.

    Parameters
    ----------
    problem : Problem
        Problem with the optimum of each scenario.
    evaluation : Evaluation
        Settings of the solves.

    Returns
    -------
    tuple[tuple[WrongForecast, ...], dict[tuple[str, str], SearchResult]]
        One row and one result per ordered pair of scenarios, as far as time allows. Purchases, rents and
        retirements are those of the first scenario; placements are decided anew, and demand may stay unmet.
    """
    best = problem.scenario_optima or {}
    pairs = [(one, other) for one in best for other in best if one != other]
    ends_s = evaluation.spent.seconds + evaluation.limits.time_limit_s
    rows = []
    results: dict[tuple[str, str], SearchResult] = {}
    for done, (planned_for, turns_out) in enumerate(pairs):
        if evaluation.over:
            break
        left_s = (ends_s - evaluation.spent.seconds) / (len(pairs) - done)
        part = replace(single_scenario(problem, turns_out), fixed_supply=best[planned_for].supply)
        lenient = replace(part.fleet.policy, unmet="penalise")
        # The placements of the expected scenario fit these purchases and serve much of this one.
        begin = _turned_out(best[planned_for].plan, turns_out) or problem.begins_with
        part = replace(part, fleet=replace(part.fleet, policy=lenient), begins_with=begin)
        result = evaluation.search(part, left_s)
        results[planned_for, turns_out] = result
        plan = None if result.solution is None else evaluation.build(part, result)
        rows.append(_wrong_forecast(part, planned_for, turns_out, plan, best[turns_out]))
    return tuple(rows), results


def _turned_out(plan: Plan | None, scenario: str) -> Plan | None:
    """Return a plan of one scenario with its placements renamed to another."""
    if plan is None:
        return None
    rows = tuple(row.model_copy(update={"scenario": scenario}) for row in plan.placements)
    return plan.model_copy(update={"placements": rows})


@dataclass(frozen=True, slots=True)
class KnownScenarios:
    """Optima of the demand scenarios and costs of wrong forecasts, known before the joint search.

    Attributes
    ----------
    problem : Problem
        Problem with the optimum of each scenario.
    alone : dict[str, SearchResult]
        Result of each scenario alone.
    wrong : tuple[WrongForecast, ...]
        Costs of the best purchases for one scenario in another.
    others : dict[tuple[str, str], SearchResult]
        The results behind those costs.
    """

    problem: Problem
    alone: Mapping[str, SearchResult]
    wrong: tuple[WrongForecast, ...]
    others: Mapping[tuple[str, str], SearchResult]

    def improved(self, plan: Plan | None = None) -> KnownScenarios:
        """Replace a scenario's purchases by those for another one where these cost less and serve no less.

        Parameters
        ----------
        plan : Plan, optional
            Plan for all scenarios, whose purchases and placements may replace them too.
        """
        best = dict(self.problem.scenario_optima or {})
        rows = {(row.planned_for, row.turns_out): row for row in self.wrong}
        complete = len(rows) == len(best) * (len(best) - 1)
        together = [] if plan is None or not self.problem.scenarios_are_bounds else _of_all(plan, best)
        taken = {name: self._better(name, [*(self.wrong if complete else ()), *together]) for name in best}
        # Purchases by scenario: its own, or those that replace them.
        of = {name: name if row is None else row.planned_for for name, row in taken.items()}
        if all(name == planned for name, planned in of.items()):
            return self
        rows |= {(row.planned_for, row.turns_out): row for row in together}
        supplies = {name: each.supply for name, each in best.items()}
        if plan is not None:
            supplies[TOGETHER] = supply_of(self.problem, plan)
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
                supply=supplies[of[name]],
                plan=best[name].plan if of[name] == name else None,
            )
        wrong = []
        for stated in self.wrong:
            one, other = stated.planned_for, stated.turns_out
            known = rows[of[one], other] if of[one] != other else _planned_for_itself(other, best[other])
            extra_usd = None if known.usd is None else known.usd - optima[other].usd
            wrong.append(known.model_copy(update={"planned_for": one, "extra_usd": extra_usd}))
        # A joint plan's placements in one scenario are not a solve of that scenario.
        own = {name for name in best if of[name] in best}
        return KnownScenarios(
            problem=replace(self.problem, scenario_optima=optima),
            alone={name: self.found(of[name], name) for name in own},
            wrong=tuple(wrong),
            others={pair: self.found(of[pair[0]], pair[1]) for pair in self.others if pair[0] in own},
        )

    def _better(self, scenario: str, rows: Sequence[WrongForecast]) -> WrongForecast | None:
        """Return the cheapest purchases for another scenario that cost less here and serve no less."""
        best = (self.problem.scenario_optima or {})[scenario]
        better = [
            row
            for row in rows
            if row.turns_out == scenario
            and row.usd is not None
            and row.usd < best.usd
            and (row.unmet_requests_per_s or 0.0) <= best.unmet_requests_per_s
        ]
        return min(better, key=lambda row: row.usd or 0.0, default=None)

    def found(self, planned_for: str, turns_out: str) -> SearchResult:
        """Return the result of one scenario under the best purchases for another."""
        return self.alone[turns_out] if planned_for == turns_out else self.others[planned_for, turns_out]


def _of_all(plan: Plan, best: Mapping[str, ScenarioOptimum]) -> list[WrongForecast]:
    """Return the cost of a joint plan in each scenario, with its own placements."""
    return [
        WrongForecast(
            planned_for=TOGETHER,
            turns_out=row.name,
            usd=row.usd,
            bound_usd=min(best[row.name].bound_usd, row.usd),
            unmet_requests_per_s=row.unmet_requests_per_s,
            # Its placements were not optimised for this scenario.
            unmet_gap=1.0 if row.unmet_requests_per_s > 0 else 0.0,
        )
        for row in plan.demand_scenarios
        if row.name in best
    ]


def _planned_for_itself(scenario: str, best: ScenarioOptimum) -> WrongForecast:
    """Return the cost of a scenario's best purchases in that scenario."""
    return WrongForecast(
        planned_for=scenario,
        turns_out=scenario,
        usd=best.usd,
        bound_usd=best.bound_usd,
        unmet_requests_per_s=best.unmet_requests_per_s,
        unmet_gap=best.unmet_gap,
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
        unmet_gap=largest_unmet_gap(plan),
        extra_usd=plan.objective_usd - best.usd,
    )


def largest_unmet_gap(plan: Plan) -> float:
    """Return the largest share of a priority's unmet demand that another plan might serve."""
    return max((each.gap for each in plan.unmet_gaps), default=0.0)


def unmet_requests_per_s(problem: Problem, unmet: Sequence[Unmet], scenario: str) -> float:
    """Return the unmet demand of a scenario, averaged over the hours of the horizon. [requests/s]"""
    return sum(
        row.requests_per_s * problem.moment_of(row).hours_share / len(problem.periods)
        for row in unmet
        if row.scenario == scenario
    )
