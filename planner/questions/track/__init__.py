"""How a plan went: what was measured beside what was planned, and the fleet file of the next plan.

In: plan.json and a table of what happened (`read_actuals`). Out: a `TrackReport` (`track`) with every
variance in money, and the next fleet file (`next_fleet`).
"""

from fleetplan.planner.questions.track.actuals import (
    Actuals,
    GatheredActuals,
    Mean,
    period_dates,
    read_actuals,
)
from fleetplan.planner.questions.track.next_fleet import next_fleet
from fleetplan.planner.questions.track.variances import (
    DemandRow,
    Finding,
    LatencyRow,
    PeriodCost,
    PoolRow,
    TrackReport,
    track,
)

__all__ = [
    "Actuals",
    "DemandRow",
    "Finding",
    "GatheredActuals",
    "LatencyRow",
    "Mean",
    "PeriodCost",
    "PoolRow",
    "TrackReport",
    "next_fleet",
    "period_dates",
    "read_actuals",
    "track",
]
