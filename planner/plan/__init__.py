"""The plan document that every command reads or writes, and its counterpart for infeasible fleets.

Input: plan.json. Output: a `Plan` with its rows (placements, pools, purchases, costs, ...) or an
`Infeasible`. Entry points: `Plan`, `Infeasible`, `read.read_plan`, `read.read_outcome`; `inputs` holds the
inputs of the plan.
"""

from fleetplan.planner.plan.commitments import Commitment, RemainingValue, SupplyOption
from fleetplan.planner.plan.costs import (
    Cost,
    DemandScenarioCost,
    IncomeTaxCost,
    ScenarioPurchase,
    WrongForecast,
)
from fleetplan.planner.plan.currency import currency_of, in_currency, is_amount, rate_row, titled
from fleetplan.planner.plan.document import (
    FORMAT_VERSION,
    UNMET_GAP_RATIO,
    HomePreference,
    Plan,
    Simplification,
    StatedGoal,
    UnmetGap,
)
from fleetplan.planner.plan.infeasible import ConcessionRow, Conflict, Infeasible, Shortage, StatedWayOut
from fleetplan.planner.plan.provenance import (
    CalibrationUse,
    ModelError,
    PlanProvenance,
    Rejections,
    Solve,
    StatedTable,
)
from fleetplan.planner.plan.read import PLAN_FILE, read_outcome, read_plan
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
    most_at_once,
)

__all__ = [
    "FORMAT_VERSION",
    "PLAN_FILE",
    "RUNNING_KINDS",
    "UNMET_GAP_RATIO",
    "AtMoment",
    "Binding",
    "CalibrationUse",
    "Commitment",
    "ConcessionRow",
    "Conflict",
    "Cost",
    "DemandScenarioCost",
    "HomePreference",
    "IncomeTaxCost",
    "Infeasible",
    "KvFlow",
    "ModelError",
    "MomentKey",
    "OfflineWork",
    "PhaseRatio",
    "Placement",
    "Plan",
    "PlanProvenance",
    "PoolUse",
    "Purchase",
    "Rejections",
    "RemainingValue",
    "Retired",
    "ScenarioPurchase",
    "Shortage",
    "Simplification",
    "Solve",
    "StatedGoal",
    "StatedTable",
    "StatedWayOut",
    "SupplyOption",
    "SurvivingPlacement",
    "Transition",
    "Unmet",
    "UnmetGap",
    "WrongForecast",
    "currency_of",
    "in_currency",
    "is_amount",
    "most_at_once",
    "rate_row",
    "read_outcome",
    "read_plan",
    "titled",
]
