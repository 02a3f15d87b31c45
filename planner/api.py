"""The way of the data: fleet -> candidates -> problem -> search -> plan -> verified plan."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.resolve import stale_prices
from fleetplan.perfmodel.predict import TPOT_ERROR
from fleetplan.planner.assemble import rows as assemble
from fleetplan.planner.assemble.binding import binding_limits
from fleetplan.planner.assemble.changes import tides, transitions
from fleetplan.planner.assemble.costs import carbon_kg, cost_rows, running_usd
from fleetplan.planner.assemble.goal import reached_goal
from fleetplan.planner.assemble.inputs import state_inputs
from fleetplan.planner.assemble.kv_flows import kv_flows, used_up_links
from fleetplan.planner.assemble.model_figures import model_usd
from fleetplan.planner.assemble.offline_work import offline_rows
from fleetplan.planner.assemble.region_losses import region_losses
from fleetplan.planner.candidates.build import CandidateSet
from fleetplan.planner.candidates.prepare import prepare
from fleetplan.planner.plan import (
    Infeasible,
    ModelError,
    Placement,
    Plan,
    Provenance,
    Shortage,
    Solve,
    UnmetGap,
    WrongForecast,
)
from fleetplan.planner.problem import Problem
from fleetplan.planner.search.joint_plans import best_of
from fleetplan.planner.search.result import SearchLimits, SearchResult, SolveStatus, Watcher
from fleetplan.planner.search.scenarios import (
    LEAST_REGRET,
    Evaluation,
    scenario_costs,
    with_best_alone,
    wrong_forecasts,
)
from fleetplan.planner.search.shortage import find_shortages
from fleetplan.planner.search.solvers.interrupt import Stop, run_interruptibly
from fleetplan.planner.search.stages import search
from fleetplan.planner.verify import require_valid


class NoPlanFoundError(Exception):
    """A limit was reached before the first plan, and infeasibility is not proven."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A verified plan, or the proof that there is none, with the problem behind it."""

    problem: Problem
    candidates: CandidateSet
    outcome: Plan | Infeasible


def plan_fleet(
    fleet: Fleet,
    limits: SearchLimits,
    watch: Watcher | None = None,
    announce: Callable[[str], None] | None = None,
    baseline: Plan | None = None,
) -> Planned:
    """Find and verify the cheapest plan of a fleet.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    limits : SearchLimits
        When to stop.
    watch : callable, optional
        Told of every better plan and bound.
    announce : callable, optional
        Told what is being done.
    baseline : Plan, optional
        The plan in force: what starts in the first period is counted against it.

    Raises
    ------
    NoPlanFoundError
        If the limit came before the first plan.
    PlanError
        If the plan breaks a rule: a bug.
    """
    say = announce or (lambda _: None)
    candidates, problem = prepare(fleet, say, baseline)
    say(f"{len(candidates.candidates)} candidates; solving")
    return solve_problem(candidates, problem, limits, watch, say, forecasts=True)


def solve_problem(
    candidates: CandidateSet,
    problem: Problem,
    limits: SearchLimits,
    watch: Watcher | None,
    say: Callable[[str], None],
    final: bool = True,
    forecasts: bool = False,
) -> Planned:
    """Find and verify the cheapest plan of a problem whose candidates are known.

    Parameters
    ----------
    candidates : CandidateSet
        Where the problem's candidates come from; what was left out explains an infeasible fleet.
    problem, limits, watch : Problem, SearchLimits, callable or None
        As `plan_fleet` has them.
    say : callable
        Told what is being done.
    final : bool
        Whether this is the answer, not one solve of many: Ctrl-C then returns the best plan so far, and of an
        infeasible problem it is said what it lacks.
    forecasts : bool
        Whether to say, of uncertain demand, what would be best for each scenario, and what it costs to be
        wrong; takes about half of the time.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C in a solve of many.
    """
    provenance = _provenance(problem.fleet, candidates, limits)

    def built(part: Problem, result: SearchResult) -> Plan:
        plan = build_plan(part, candidates, result, provenance, _solve_record(result))
        require_valid(part, plan)
        return plan

    stops: list[Stop] = []

    def searched(stop: Stop) -> tuple[Problem, SearchResult, tuple[WrongForecast, ...]]:
        stops.append(stop)
        return _searched(problem, Evaluation(limits, stop, built), watch, forecasts)

    problem, result, wrong = run_interruptibly(
        searched, lambda: say("stopping at the best plan; once more to give up"), keep_best=final
    )
    if result.status is SolveStatus.NO_PLAN:
        if any(stop.requested for stop in stops):
            raise NoPlanFoundError("stopped before there was a plan")
        raise NoPlanFoundError(f"no plan within {limits.time_limit_s:g} s; raise --time-limit")
    solve = _solve_record(result)
    if result.status is SolveStatus.INFEASIBLE:
        short: tuple[Shortage, ...] = ()
        if final:
            say("proven infeasible; looking for what is short")
            short = find_shortages(problem, candidates.rejections, limits.seed, limits.workers)
        return Planned(
            problem,
            candidates,
            Infeasible(
                fleet=problem.fleet.name,
                shortages=short,
                rejections=candidates.rejections,
                provenance=provenance,
                solve=solve,
            ),
        )
    plan = build_plan(problem, candidates, result, provenance, solve)
    plan = plan.model_copy(update={"wrong_forecasts": wrong})
    require_valid(problem, plan)
    return Planned(problem, candidates, plan)


def _solve_record(result: SearchResult) -> Solve:
    """How a plan was found, for the plan."""
    return Solve(
        wall_s=result.wall_s,
        deterministic_time=result.deterministic_time,
        status=result.status.value,
        bound_source=result.bound_source,
    )


def _searched(
    problem: Problem, evaluation: Evaluation, watch: Watcher | None, forecasts: bool
) -> tuple[Problem, SearchResult, tuple[WrongForecast, ...]]:
    """Solve a problem; of uncertain demand each scenario alone, and the wrong forecasts, before."""
    limits = evaluation.limits
    uncertain = bool(problem.fleet.demand_scenarios)
    if not uncertain or not (forecasts or problem.fleet.demand_objective == LEAST_REGRET):
        return problem, search(problem, limits, watch, evaluation.stop), ()
    started = time.monotonic()
    problem, alone = with_best_alone(problem, evaluation)
    wrong, others = wrong_forecasts(problem, evaluation) if forecasts else ((), {})
    left_s = limits.time_limit_s - (time.monotonic() - started)
    result = search(problem, replace(limits, time_limit_s=max(left_s, 0.1)), watch, evaluation.stop)
    found = [
        {name: others[planned, name] if name != planned else alone[name] for name in alone}
        for planned in alone
        if all((planned, name) in others for name in alone if name != planned)
    ]
    return problem, best_of(problem, result, found, limits), wrong


def build_plan(
    problem: Problem,
    candidates: CandidateSet,
    result: SearchResult,
    provenance: Provenance,
    solve: Solve,
) -> Plan:
    """A plan document from what a search found, costs recomputed without rounding."""
    if result.solution is None or result.bound_usd is None:
        raise ValueError("the search found no plan")
    traffic = assemble.spread_traffic(problem, result.solution)
    rows = assemble.placements(problem, traffic, result.solution)
    bought = assemble.purchases(problem, result.solution)
    pools = assemble.pool_uses(problem, traffic, result.solution)
    flows = kv_flows(problem, traffic)
    costs = _cost_breakdown(problem, result, rows)
    unmet = assemble.unmet_rows(problem, traffic)
    standing = sum(costs.values()) - sum(running_usd(row) for row in rows)
    scenarios = scenario_costs(problem, standing, rows, unmet)
    objective = sum(costs.values())
    bound = min(result.bound_usd, objective)
    plan = Plan(
        fleet=problem.fleet.name,
        periods=problem.periods,
        status=result.status.value,
        objective_usd=objective,
        bound_usd=bound,
        gap=(objective - bound) / objective if objective > 0 else 0.0,
        unmet=unmet,
        placements=rows,
        purchases=bought,
        pools=pools,
        phase_ratios=assemble.phase_ratios(problem, rows),
        cost_breakdown=costs,
        usd_per_million_tokens=_usd_per_million_tokens(problem, rows, objective),
        binding=(
            *binding_limits(problem, rows, bought, pools, costs),
            *used_up_links(problem, flows),
        ),
        rejections=candidates.rejections,
        provenance=provenance.model_copy(
            update={"spend_share": _spend_share(rows), "model_errors": _model_errors(rows)}
        ),
        solve=solve,
        transitions=transitions(problem, traffic.replicas),
        tides=tides(problem, traffic.replicas),
        offline_work=offline_rows(problem, traffic.put_off),
        region_losses=region_losses(problem, result.solution, traffic.unmet),
        kv_flows=flows,
        model_usd=result.objective_usd,
        model_unused_usd=None
        if result.objective_usd is None
        else result.objective_usd - model_usd(problem, result.solution, traffic),
        retirements=assemble.retirements(problem, result.solution),
        goal=reached_goal(problem, result.goal, rows, unmet, scenarios),
        unmet_gaps=tuple(UnmetGap(priority=each, gap=left.gap) for each, left in result.unmet.items()),
        demand_objective=problem.fleet.demand_objective,
        demand_scenarios=scenarios,
        inputs=state_inputs(problem, result.solution, rows, costs),
    )
    capacity = {
        (pool.name, period): assemble.pool_cost_kinds(problem, result.solution, p, q)
        for p, pool in enumerate(problem.pools)
        for q, period in enumerate(problem.periods)
    }
    return plan.model_copy(
        update={"costs": cost_rows(problem, plan, capacity), "carbon_kg": carbon_kg(problem, rows)}
    )


def _cost_breakdown(problem: Problem, result: SearchResult, rows: tuple[Placement, ...]) -> dict[str, float]:
    """TCO over the horizon by kind. [USD]"""
    if result.solution is None:
        return {}
    kinds: dict[str, float] = defaultdict(float)
    for p in range(len(problem.pools)):
        for q in range(len(problem.periods)):
            for kind, usd in assemble.pool_cost_kinds(problem, result.solution, p, q).items():
                kinds[kind] += usd
    kinds["energy"] = sum(row.energy_usd for row in rows)
    kinds["transition"] = sum(row.transition_usd for row in rows)
    kinds["tidal"] = sum(row.tidal_usd for row in rows)
    kinds["data"] = sum(row.data_usd for row in rows)
    return {kind: usd for kind, usd in sorted(kinds.items()) if usd}


HOURS_PER_QUARTER_S = 2190 * 3600.0
"""Seconds of a quarter."""


def _usd_per_million_tokens(
    problem: Problem, rows: tuple[Placement, ...], objective_usd: float
) -> float | None:
    """TCO over the input and output tokens of the traffic at its peak rate. [USD per 1e6 tokens]"""
    tokens = 0.0
    for row in rows:
        if row.phase == "decode":
            continue
        for request_class in problem.services[row.service].classes:
            rate = row.requests_per_s_by_class.get(request_class.name, 0.0)
            if rate and (request_class.input_tokens is None or request_class.output_tokens is None):
                return None
            if rate:
                seconds = HOURS_PER_QUARTER_S * problem.moment_of(row).weight
                lengths = (request_class.input_tokens or 0) + (request_class.output_tokens or 0)
                tokens += rate * seconds * lengths
    return objective_usd / (tokens / 1e6) if tokens else None


def _model_errors(rows: tuple[Placement, ...]) -> tuple[ModelError, ...]:
    """Published errors of the hardware whose rates the performance model gave."""
    modelled = dict.fromkeys(row.hardware for row in rows if row.provenance["given"] < 1)
    found = []
    for name in sorted(modelled):
        error = TPOT_ERROR.get(name)
        if error is None:
            found.append(ModelError(hardware=name, median_ratio=None, p90_ratio=None, rows=0))
        else:
            found.append(
                ModelError(
                    hardware=name,
                    median_ratio=error.median_ratio,
                    p90_ratio=error.p90_ratio,
                    rows=error.rows,
                )
            )
    return tuple(found)


def _spend_share(rows: tuple[Placement, ...]) -> dict[str, float]:
    """Share of the placements' spend by how their rates were obtained."""
    spend: dict[str, float] = defaultdict(float)
    total = sum(row.usd for row in rows)
    for row in rows:
        for kind, share in row.provenance.items():
            spend[kind] += share * row.usd
    return {kind: usd / total for kind, usd in spend.items()} if total > 0 else {}


def _provenance(fleet: Fleet, candidates: CandidateSet, limits: SearchLimits) -> Provenance:
    versions = {}
    for package in ("fleetplan", "ortools", "numpy", "pandas", "aiconfigurator-core"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    prices = {offer.price_source for offer in fleet.offers}
    prices |= {pool.rented.price_source for pool in fleet.pools if pool.rented is not None}
    return Provenance(
        fleetplan_version=versions["fleetplan"],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        fleet_file=str(fleet.path),
        scenarios=fleet.scenarios,
        assignments=fleet.assignments,
        inputs_sha256=dict(fleet.input_hashes),
        table_sources=candidates.table_sources,
        price_sources=tuple(sorted(prices)),
        versions=versions,
        seed=limits.seed,
        time_limit_s=limits.time_limit_s,
        gap_limit=limits.gap_ratio,
        spend_share={},
        warnings=(
            *fleet.warnings,
            *stale_prices(fleet, datetime.now(UTC).date()),
            *candidates.warnings,
        ),
        calibrations=candidates.calibrations,
    )
