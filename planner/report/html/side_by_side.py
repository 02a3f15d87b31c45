"""The page that compares two plans: decisions, costs and differences."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions.diff import CostChange, diff
from fleetplan.planner.report.decision import decision
from fleetplan.planner.report.html.page import MOST_ROWS, render


@dataclass(frozen=True, slots=True)
class NamedOutcome:
    """A plan or a proof of infeasibility, with its name on the page.

    Attributes
    ----------
    name, about : str
        Name on the page, and text that distinguishes it.
    outcome : Plan or Infeasible
        Plan, or proof of infeasibility.
    """

    name: str
    about: str
    outcome: Plan | Infeasible


def side_by_side_page(before: NamedOutcome, after: NamedOutcome) -> str:
    """Return the comparison as one HTML document.

    Parameters
    ----------
    before, after : NamedOutcome
        Outcomes on the left and on the right; differences go from left to right.
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
    """Return the cost of each kind of hardware in both plans, over all pools and periods. [USD]"""
    usd: list[dict[str, float]] = []
    for plan in (before, after):
        costs: dict[str, float] = {}
        for use in plan.pools:
            costs[use.hardware] = costs.get(use.hardware, 0.0) + use.usd
        usd.append(costs)
    names = dict.fromkeys([*usd[0], *usd[1]])
    return [CostChange(name, usd[0].get(name, 0.0), usd[1].get(name, 0.0)) for name in names]
