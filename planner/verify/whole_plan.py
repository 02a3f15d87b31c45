"""All checks over one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Candidate, Problem, find_candidate
from fleetplan.planner.verify.changes import check_transitions
from fleetplan.planner.verify.day import check_offline, check_tides
from fleetplan.planner.verify.demand_scenarios import check_demand_scenarios
from fleetplan.planner.verify.finance import check_cost_rows
from fleetplan.planner.verify.goals import check_goal
from fleetplan.planner.verify.handover import check_handover
from fleetplan.planner.verify.money import check_budgets, check_cost
from fleetplan.planner.verify.must_use import check_must_use
from fleetplan.planner.verify.placement import check_placement
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.quality import check_quality
from fleetplan.planner.verify.region_loss import check_region_loss
from fleetplan.planner.verify.retirement import check_retirement, retirement_faults
from fleetplan.planner.verify.serving import (
    check_configurations,
    check_coverage,
    check_latency,
    check_origins,
    check_replica_load,
)
from fleetplan.planner.verify.statements import placement_faults, purchase_faults
from fleetplan.planner.verify.supply import check_capacity, check_power, check_purchases
from fleetplan.planner.verify.violations import Violation

CHECKS: Final[tuple[Callable[[PlanCheck], Iterator[Violation]], ...]] = (
    check_coverage,
    check_handover,
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
    check_budgets,
    check_cost,
    check_cost_rows,
    check_goal,
)
"""One or more for each constraint family."""


class PlanError(Exception):
    """A plan breaks its own rules: a bug of ours, never a user's mistake."""


def verify(problem: Problem, plan: Plan) -> list[Violation]:
    """All rules that a plan breaks.

    Parameters
    ----------
    problem : Problem
        Sets and data, without rounding.
    plan : Plan
        What is to be checked; nothing but its placements, purchases, unmet demand and cost is trusted.

    Returns
    -------
    list[Violation]
        Empty for a plan that holds.
    """
    known: list[tuple[Placement, Candidate]] = []
    found: list[Violation] = []
    for row in plan.placements:
        faults = placement_faults(problem, row)
        found += [Violation("placement", fault) for fault in faults]
        candidate = find_candidate(problem, row)
        if candidate is not None and not faults:
            known.append((row, candidate))
    sound = []
    for purchase in plan.purchases:
        faults = purchase_faults(problem, purchase)
        found += [Violation("purchases", fault) for fault in faults]
        if not faults:
            sound.append(purchase)
    left = []
    for retired in plan.retirements:
        faults = retirement_faults(problem, retired)
        found += [Violation("retirement", fault) for fault in faults]
        if not faults:
            left.append(retired)
    # The rules are checked on what is left, so that one wrong name does not hide the rest.
    check = PlanCheck(
        problem, plan.model_copy(update={"purchases": tuple(sound), "retirements": tuple(left)}), tuple(known)
    )
    for family in CHECKS:
        found.extend(family(check))
    return found


def require_valid(problem: Problem, plan: Plan) -> None:
    """Raise if a plan breaks a rule.

    Raises
    ------
    PlanError
        With every violation.
    """
    violations = verify(problem, plan)
    if violations:
        lines = "\n".join(f"  {violation.family}: {violation.message}" for violation in violations)
        raise PlanError(f"the plan does not hold; this is a bug of fleetplan:\n{lines}")
