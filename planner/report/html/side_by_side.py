"""The page of two plans side by side: what each does and costs, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions.diff import CostChange, diff
from fleetplan.planner.report.decision import decision
from fleetplan.planner.report.html.page import MOST_ROWS, render


@dataclass(frozen=True, slots=True)
class NamedOutcome:
    """A plan, or the proof that there is none.

    Attributes
    ----------
    name, about : str
        What the page calls it, and what sets it apart.
    outcome : Plan or Infeasible
        What was found.
    """

    name: str
    about: str
    outcome: Plan | Infeasible


def side_by_side_page(before: NamedOutcome, after: NamedOutcome) -> str:
    """Return the page as one HTML document.

    Parameters
    ----------
    before, after : NamedOutcome
        What stands left and right; differences are from left to right.
    """
    plans = [each.outcome for each in (before, after) if isinstance(each.outcome, Plan)]
    found = diff(plans[0], plans[1]) if len(plans) == 2 else None
    return render(
        "side_by_side.html.j2",
        title=f"{before.name} beside {after.name}",
        sides=(before, after),
        decisions=[
            decision(each.outcome) if isinstance(each.outcome, Plan) else None for each in (before, after)
        ],
        hardware=[] if found is None else _hardware(plans[0], plans[1]),
        found=found,
        most_rows=MOST_ROWS,
    )


def _hardware(before: Plan, after: Plan) -> list[CostChange]:
    """What each kind of hardware costs in both plans, over all pools and periods. [USD]"""
    usd: list[dict[str, float]] = []
    for plan in (before, after):
        costs: dict[str, float] = {}
        for use in plan.pools:
            costs[use.hardware] = costs.get(use.hardware, 0.0) + use.usd
        usd.append(costs)
    names = dict.fromkeys([*usd[0], *usd[1]])
    return [CostChange(name, usd[0].get(name, 0.0), usd[1].get(name, 0.0)) for name in names]
