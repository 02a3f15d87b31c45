"""Timeline of purchases, rentals and retirements by period."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import Plan, Purchase, Retired


@dataclass(frozen=True, slots=True)
class TimelineCell:
    """One period of a row: `state` is a CSS class, `text` the event of that period."""

    state: str
    text: str


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A purchase, a rental or a retirement.

    Attributes
    ----------
    title, detail : str
        Action and hardware, then offer or pool and region.
    usd : float
        Cost over the horizon; negative for a saving. [USD]
    stretches : tuple[TimelineCell, ...]
        One entry per period.
    """

    title: str
    detail: str
    usd: float
    stretches: tuple[TimelineCell, ...]


def timeline(plan: Plan) -> tuple[TimelineRow, ...]:
    """Return one row per purchase and retirement of a plan."""
    rows = [_bought(plan, row) for row in plan.purchases]
    for gone in plan.retirements:
        left = plan.periods.index(gone.period)
        stretches = tuple(
            TimelineCell("gone", "leaves" if q == left else "") if q >= left else TimelineCell("serves", "")
            for q in range(len(plan.periods))
        )
        title = f"{gone.kind} {counted(gone.hosts, gone.unit)} {gone.hardware}{_assumed(gone)}"
        rows.append(TimelineRow(title, f"{gone.pool} in {gone.region}", gone.usd, stretches))
    return tuple(rows)


def _assumed(row: Purchase | Retired) -> str:
    """Return a mark for orders assumed in the extension of the horizon; they are not ordered now."""
    return " (assumed)" if row.assumed else ""


def _bought(plan: Plan, row: Purchase) -> TimelineRow:
    served = _periods_served(plan, row)
    ordered = plan.periods.index(row.period)
    stretches = []
    for q, period in enumerate(plan.periods):
        if period in served:
            stretches.append(TimelineCell("serves", f"{row.accelerators}" if period == served[0] else ""))
        elif q == ordered:
            stretches.append(TimelineCell("ordered", "order"))
        elif ordered < q < plan.periods.index(served[0]):
            stretches.append(TimelineCell("waits", ""))
        else:
            stretches.append(TimelineCell("", ""))
    kind = "spot" if row.kind == "spot" else row.kind
    title = f"{kind} {counted(row.units, row.unit)} {row.hardware}{_assumed(row)}"
    return TimelineRow(title, f"{row.offer} in {row.region}", row.usd, tuple(stretches))


def _periods_served(plan: Plan, row: Purchase) -> list[str]:
    """Return the periods in which the order is in service, according to the bill."""
    item = f"{row.offer} {row.period}"
    charged = {
        line.period
        for line in (() if plan.inputs is None else plan.inputs.cost_lines)
        if line.item == item and line.pool == row.pool
    }
    return [period for period in plan.periods if period in charged] or [row.period]
