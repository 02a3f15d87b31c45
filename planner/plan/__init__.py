"""The document that every command reads or writes: a plan, or what a fleet without one is short of.

In: plan.json. Out: a `Plan` with its rows (placements, pools, purchases, costs, ...) or an `Infeasible`.
Entry points: `Plan`, `Infeasible`, `read.read_plan`, `read.read_outcome`; `inputs` holds what a plan rests
on.
"""

from fleetplan.planner.plan.costs import Cost, DemandScenarioCost, WrongForecast
from fleetplan.planner.plan.document import FORMAT_VERSION, UNMET_GAP_RATIO, Goal, Plan, UnmetGap
from fleetplan.planner.plan.infeasible import Conflict, GivenWay, Infeasible, Shortage, WayOut
from fleetplan.planner.plan.provenance import (
    CalibrationUse,
    ModelError,
    Provenance,
    Rejections,
    Solve,
    TableSource,
)
from fleetplan.planner.plan.read import read_outcome, read_plan
from fleetplan.planner.plan.record import AtMoment, MomentKey
from fleetplan.planner.plan.rows import (
    RUNNING_KINDS,
    Binding,
    KvFlow,
    OfflineWork,
    PhaseRatio,
    Placement,
    PoolUse,
    Purchase,
    Retired,
    SurvivingPlacement,
    Transition,
    Unmet,
)

__all__ = [
    "FORMAT_VERSION",
    "RUNNING_KINDS",
    "UNMET_GAP_RATIO",
    "AtMoment",
    "Binding",
    "CalibrationUse",
    "Conflict",
    "Cost",
    "DemandScenarioCost",
    "GivenWay",
    "Goal",
    "Infeasible",
    "KvFlow",
    "ModelError",
    "MomentKey",
    "OfflineWork",
    "PhaseRatio",
    "Placement",
    "Plan",
    "PoolUse",
    "Provenance",
    "Purchase",
    "Rejections",
    "Retired",
    "Shortage",
    "Solve",
    "SurvivingPlacement",
    "TableSource",
    "Transition",
    "Unmet",
    "UnmetGap",
    "WayOut",
    "WrongForecast",
    "read_outcome",
    "read_plan",
]
