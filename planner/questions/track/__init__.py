"""Compare a plan with actual figures, and write the fleet file of the next plan.

Inputs are plan.json and a table of measurements (`read_actuals`). Outputs are a `TrackReport` (`track`) with
every variance in money, and the next fleet file (`next_fleet`).
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
    LatencyRow,
    PeriodCost,
    PoolRow,
    TrackReport,
    VarianceFinding,
    track,
)

__all__ = [
    "Actuals",
    "DemandRow",
    "GatheredActuals",
    "LatencyRow",
    "Mean",
    "PeriodCost",
    "PoolRow",
    "TrackReport",
    "VarianceFinding",
    "next_fleet",
    "period_dates",
    "read_actuals",
    "track",
]
