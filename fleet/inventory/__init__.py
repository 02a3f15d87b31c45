"""The fleet and the demand as the planner reads them, with all defaults and one value per period.

`Fleet` is a complete planning problem: `supply` (hardware, regions, pools, offers), `service` (demand,
latency targets), `policy` (rules, budgets, finance) and their values (`accelerator`, `demand`, `techniques`,
`traffic`). They contain no pydantic models and no alternative forms: a price that the file gives once has one
value per period here.
"""

from fleetplan.fleet.inventory.accelerator import Accelerator, Efficiency, Maturity, SpeedFigures
from fleetplan.fleet.inventory.demand import (
    Demand,
    DemandCase,
    DemandKey,
    DemandRates,
    DemandScenario,
    Offline,
    Slice,
    demand_cases,
)
from fleetplan.fleet.inventory.fleet import Fleet
from fleetplan.fleet.inventory.policy import (
    Budget,
    Currency,
    Finance,
    IncomeTax,
    Loan,
    MustUse,
    Policy,
    Tidal,
)
from fleetplan.fleet.inventory.service import (
    FollowedServices,
    LayoutSearch,
    OutsideLatency,
    Precision,
    RequestClass,
    Service,
)
from fleetplan.fleet.inventory.supply import Hardware, KvLink, Offer, Owned, Pool, Region, Rented
from fleetplan.fleet.inventory.techniques import (
    ExpertRouting,
    KvTier,
    KvTransfer,
    ModelVariant,
    Offload,
    PersistentKv,
    SpeculativeDecoding,
    Techniques,
)
from fleetplan.fleet.inventory.traffic import LatencyLimit, LengthBin, LengthHistogram, Traffic

__all__ = [
    "Accelerator",
    "Budget",
    "Currency",
    "Demand",
    "DemandCase",
    "DemandKey",
    "DemandRates",
    "DemandScenario",
    "Efficiency",
    "ExpertRouting",
    "Finance",
    "Fleet",
    "FollowedServices",
    "Hardware",
    "IncomeTax",
    "KvLink",
    "KvTier",
    "KvTransfer",
    "LatencyLimit",
    "LayoutSearch",
    "LengthBin",
    "LengthHistogram",
    "Loan",
    "Maturity",
    "ModelVariant",
    "MustUse",
    "Offer",
    "Offline",
    "Offload",
    "OutsideLatency",
    "Owned",
    "PersistentKv",
    "Policy",
    "Pool",
    "Precision",
    "Region",
    "Rented",
    "RequestClass",
    "Service",
    "Slice",
    "SpeculativeDecoding",
    "SpeedFigures",
    "Techniques",
    "Tidal",
    "Traffic",
    "demand_cases",
]
