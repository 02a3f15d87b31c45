"""Run all checks over one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.verify.bill import check_bill
from fleetplan.planner.verify.binding import check_binding
from fleetplan.planner.verify.changes import check_tides, check_transitions
from fleetplan.planner.verify.commitments import check_commitments
from fleetplan.planner.verify.costs import check_budgets, check_cost, check_cost_rows
from fleetplan.planner.verify.demand_scenarios import check_demand_scenarios
from fleetplan.planner.verify.evidence import Evidence, check_evidence
from fleetplan.planner.verify.goals import check_goal
from fleetplan.planner.verify.income_tax import check_income_tax
from fleetplan.planner.verify.kv_transfer import check_kv_transfer
from fleetplan.planner.verify.launches import check_launches
from fleetplan.planner.verify.must_use import check_must_use
from fleetplan.planner.verify.names import (
    Names,
    flow_faults,
    flow_key,
    names_of_plan,
    placement_faults,
    placement_key,
    sound_rows,
    surviving_faults,
    surviving_key,
    unmet_faults,
    unmet_key,
    work_faults,
    work_key,
)
from fleetplan.planner.verify.offline import check_offline
from fleetplan.planner.verify.placement import check_placement
from fleetplan.planner.verify.placement_figures import (
    check_phase_ratios,
    check_placement_figures,
    check_pools,
)
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.quality import check_quality
from fleetplan.planner.verify.region_loss import check_region_loss
from fleetplan.planner.verify.serving import (
    check_configurations,
    check_coverage,
    check_latency,
    check_origins,
    check_replica_load,
)
from fleetplan.planner.verify.simplicity import check_simplicity
from fleetplan.planner.verify.stated_inputs import check_inputs
from fleetplan.planner.verify.supply import (
    check_capacity,
    check_power,
    check_purchases,
    check_retirement,
    purchase_faults,
    retirement_faults,
)
from fleetplan.planner.verify.supply_rules import fleet_pools
from fleetplan.planner.verify.violations import Violation

CHECKS: Final[tuple[Callable[[PlanCheck], Iterator[Violation]], ...]] = (
    check_coverage,
    check_kv_transfer,
    check_origins,
    check_latency,
    check_replica_load,
    check_capacity,
    check_power,
    check_purchases,
    check_retirement,
    check_transitions,
    check_tides,
    check_configurations,
    check_region_loss,
    check_placement,
    check_quality,
    check_offline,
    check_demand_scenarios,
    check_must_use,
    check_placement_figures,
    check_pools,
    check_phase_ratios,
    check_budgets,
    check_cost,
    check_cost_rows,
    check_income_tax,
    check_bill,
    check_commitments,
    check_simplicity,
    check_binding,
    check_inputs,
    check_launches,
    check_goal,
)
"""At least one check per constraint family, and one per derived part of a plan."""


class PlanError(Exception):
    """A plan violates its own rules: a bug in fleetplan, never a mistake of the user."""


def verify(problem: Problem, plan: Plan, evidence: Evidence | None = None) -> list[Violation]:
    """Return all violations of a plan.

    Parameters
    ----------
    problem : Problem
        Sets and data, without rounding.
    plan : Plan
        Plan to verify. Decisions are taken as given once they keep every rule: placements, purchases,
        retirements, unmet demand, flows and offline work. All other parts of the plan must follow from them.
    evidence : Evidence, optional
        Origin of the candidates; without it, the plan's statements on candidates are not checked.

    Returns
    -------
    list[Violation]
        Violations; empty for a valid plan.
    """
    return list(violations(problem, plan, evidence))


def violations(problem: Problem, plan: Plan, evidence: Evidence | None = None) -> Iterator[Violation]:
    """Yield the violations of a plan as they are found; parameters as in `verify`."""
    names, pools = Names(problem), fleet_pools(problem)
    yield from names_of_plan(problem, plan.fleet, plan.periods)
    rows, wrong = sound_rows("placement", plan.placements, partial(placement_faults, names), placement_key)
    yield from wrong
    unmet, wrong = sound_rows("coverage", plan.unmet, partial(unmet_faults, names), unmet_key)
    flows, wrong_flows = sound_rows("kv_transfer", plan.kv_flows, partial(flow_faults, names), flow_key)
    work, wrong_work = sound_rows("offline", plan.offline_work, partial(work_faults, names), work_key)
    lost, wrong_losses = sound_rows(
        "region_loss", plan.region_losses, partial(surviving_faults, names), surviving_key
    )
    yield from (*wrong, *wrong_flows, *wrong_work, *wrong_losses)
    bought, gone = [], []
    for purchase in plan.purchases:
        faults_of = purchase_faults(problem, pools, purchase)
        yield from (Violation("purchases", fault) for fault in faults_of)
        bought += [] if faults_of else [purchase]
    for retired in plan.retirements:
        faults_of = retirement_faults(problem, pools, retired)
        yield from (Violation("retirement", fault) for fault in faults_of)
        gone += [] if faults_of else [retired]
    # Check the rules on the remaining rows, so that one wrong name does not hide other violations.
    kept = {
        "unmet": tuple(unmet),
        "kv_flows": tuple(flows),
        "offline_work": tuple(work),
        "region_losses": tuple(lost),
        "purchases": tuple(bought),
        "retirements": tuple(gone),
    }
    runs = tuple((row, names.candidates[row.key]) for row in rows)
    check = PlanCheck(problem, plan.model_copy(update=kept), runs)
    for family_of in CHECKS:
        yield from family_of(check)
    if evidence is not None:
        yield from check_evidence(plan, evidence)


def require_valid(problem: Problem, plan: Plan, evidence: Evidence | None = None) -> None:
    """Raise an error if a plan violates a rule.

    Raises
    ------
    PlanError
        Lists every violation.
    """
    broken = verify(problem, plan, evidence)
    if broken:
        lines = "\n".join(f"  {violation.family}: {violation.message}" for violation in broken)
        raise PlanError(f"the plan does not hold; this is a bug of fleetplan:\n{lines}")
