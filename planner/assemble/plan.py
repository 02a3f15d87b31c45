"""Build the plan from the result of a search: rows, costs and limits, recomputed without rounding."""

from __future__ import annotations

from collections.abc import Sequence

from fleetplan.planner.assemble.binding import binding_limits
from fleetplan.planner.assemble.changes import tides, transitions
from fleetplan.planner.assemble.commitments import commitments, remaining_values
from fleetplan.planner.assemble.costs import (
    after_income_tax,
    carbon_kg,
    cost_breakdown,
    cost_rows,
    usd_per_million_tokens,
)
from fleetplan.planner.assemble.goal import reached_goal
from fleetplan.planner.assemble.inputs import state_inputs
from fleetplan.planner.assemble.kv_flows import kv_flows, used_up_links
from fleetplan.planner.assemble.model_figures import model_unused_usd
from fleetplan.planner.assemble.offline_work import offline_rows
from fleetplan.planner.assemble.placements import phase_ratios, placements, unmet_rows
from fleetplan.planner.assemble.pools import pool_uses
from fleetplan.planner.assemble.provenance import with_evidence
from fleetplan.planner.assemble.purchases import purchases, retirements
from fleetplan.planner.assemble.region_losses import region_losses
from fleetplan.planner.assemble.scenario_costs import scenario_costs, scenario_purchases
from fleetplan.planner.assemble.simplification import simplification
from fleetplan.planner.assemble.supply_options import supply_options
from fleetplan.planner.assemble.traffic import spread_traffic
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.plan import Plan, PlanProvenance, Solve, Unmet, UnmetGap
from fleetplan.planner.problem import Problem
from fleetplan.planner.search import SearchResult
from fleetplan.planner.units import gap_of_cost


def build_plan(
    problem: Problem, candidates: CandidateSet, result: SearchResult, provenance: PlanProvenance, solve: Solve
) -> Plan:
    """Return a plan document from the result of a search, with costs recomputed without rounding."""
    solution = result.solution
    if solution is None or result.bound_usd is None:
        raise ValueError("the search found no plan")
    traffic = spread_traffic(problem, solution)
    rows = placements(problem, traffic, solution)
    bought = purchases(problem, solution)
    pools = pool_uses(problem, traffic, solution)
    flows = kv_flows(problem, traffic)
    costs = cost_breakdown(problem, solution, rows)
    by_scope = cost_rows(problem, solution, rows, pools)
    unmet = unmet_rows(problem, traffic)
    objective = sum(costs.values())
    scenarios = scenario_costs(problem, objective - sum(row.running_usd for row in rows), rows, unmet)
    simpler = simplification(problem, result, traffic, objective)
    # The model rounds costs; a bound is capped at the cost of every known plan, including the cheapest one.
    bound = min(result.bound_usd, objective - (0.0 if simpler is None else simpler.usd))
    return Plan(
        fleet=problem.fleet.name,
        periods=problem.periods,
        extension_periods=problem.periods[problem.fleet.n_stated :],
        status=result.status.value,
        objective_usd=objective,
        bound_usd=bound,
        gap=gap_of_cost(objective, bound),
        unmet=unmet,
        placements=rows,
        purchases=bought,
        pools=pools,
        phase_ratios=phase_ratios(problem, rows),
        cost_breakdown=costs,
        costs=by_scope,
        income_tax=after_income_tax(problem, by_scope, objective),
        carbon_kg=carbon_kg(problem, rows, pools),
        usd_per_million_tokens=usd_per_million_tokens(problem, rows, objective),
        binding=(*binding_limits(problem, rows, bought, pools, costs), *used_up_links(problem, flows)),
        rejections=candidates.rejections,
        provenance=with_evidence(provenance, rows),
        solve=solve,
        transitions=transitions(problem, traffic.replicas),
        tides=tides(problem, traffic.replicas),
        offline_work=offline_rows(problem, traffic.put_off),
        region_losses=region_losses(problem, solution, traffic.unmet),
        kv_flows=flows,
        model_usd=result.objective_usd,
        model_unused_usd=model_unused_usd(problem, solution, traffic, result.objective_usd),
        retirements=retirements(problem, solution),
        simplification=simpler,
        commitments=commitments(problem, solution),
        remaining_values=remaining_values(problem, solution),
        supply_options=supply_options(problem, solution),
        goal=reached_goal(problem, result.goal, rows, pools, unmet, scenarios),
        unmet_gaps=_unmet_gaps(problem, result, unmet),
        demand_objective=problem.fleet.demand_objective,
        demand_scenarios=scenarios,
        scenario_purchases=scenario_purchases(problem),
        inputs=state_inputs(problem, solution, rows, costs),
    )


def _unmet_gaps(problem: Problem, result: SearchResult, unmet: Sequence[Unmet]) -> tuple[UnmetGap, ...]:
    """Return the gaps of priorities with unmet demand; pure rounding in the model does not count."""
    lacking = {problem.services[row.service].priority for row in unmet}
    return tuple(
        UnmetGap(priority=priority, gap=left.gap, model_requests_per_s=left.value)
        for priority, left in result.unmet.items()
        if priority in lacking
    )
