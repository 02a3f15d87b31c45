"""Waterfalls of the cost, and of its changes against the plan in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from fleetplan.fleet.figures import currency_code, money, signed_money
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.diff import IDLE, CostChange, PlanDiff
from fleetplan.planner.report.html.svg import GAIN, GRID, INK, LOSS, QUIET, Frame, draw, series, short
from fleetplan.planner.report.idle_capacity import all_idle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST_SHARE = 0.004
"""Share of the largest total below which steps are merged into one."""

MOST_STEPS = 16
"""Maximum number of steps of a waterfall, which is a quarter of a page high in print."""

LETTER_IN = 0.062
"""Mean width of a letter in a label of 8 points. [inch]"""


@dataclass(frozen=True, slots=True)
class MoneyStep:
    """One bar of a waterfall.

    Attributes
    ----------
    name : str
        Label.
    usd : float
        Length of the bar; a total starts at zero. [USD]
    is_total : bool
        Whether the bar is a total instead of a step.
    """

    name: str
    usd: float
    is_total: bool = False


def by_kind(plan: Plan) -> tuple[MoneyStep, ...]:
    """Return the cost by kind, and the TCO as their sum."""
    steps = [MoneyStep(kind.replace("_", " "), usd) for kind, usd in plan.cost_breakdown.items()]
    return (*_largest_first(steps, plan.objective_usd), MoneyStep("TCO", plan.objective_usd, True))


def by_service(plan: Plan) -> tuple[MoneyStep, ...]:
    """Return the cost by service, followed by the cost that no service pays for."""
    usd: dict[str, float] = {}
    for row in plan.placements:
        usd[row.service] = usd.get(row.service, 0.0) + row.usd
    steps = _largest_first([MoneyStep(name, each) for name, each in usd.items()], plan.objective_usd)
    left = plan.objective_usd - sum(usd.values())
    leaving = sum(row.retirement_usd for row in plan.pools)
    kept = all_idle(plan).parts()
    # Plans of early formats only state the total.
    if abs(left - leaving - sum(kept.values())) > SMALLEST_SHARE * abs(plan.objective_usd):
        return (*steps, MoneyStep(IDLE, left), MoneyStep("TCO", plan.objective_usd, True))
    idle = [MoneyStep(f"idle: {name}", each) for name, each in kept.items()]
    if plan.retirements:
        idle.append(MoneyStep("hosts that leave", left - sum(kept.values())))
    return (*steps, *idle, MoneyStep("TCO", plan.objective_usd, True))


def changes(found: PlanDiff, costs: Sequence[CostChange]) -> tuple[MoneyStep, ...]:
    """Return the steps from the cost of the plan in force to that of the new plan."""
    size = max(abs(found.tco.before_usd), abs(found.tco.after_usd))
    steps = _largest_first([MoneyStep(cost.name, cost.delta_usd) for cost in costs if not cost.same], size)
    return (
        MoneyStep("in force", found.tco.before_usd, True),
        *steps,
        MoneyStep("planned", found.tco.after_usd, True),
    )


def _largest_first(steps: Sequence[MoneyStep], total_usd: float) -> list[MoneyStep]:
    """Return the largest steps, and one step for the others if there are several."""
    sized = sorted((step for step in steps if step.usd), key=lambda step: -abs(step.usd))
    large = [step for step in sized if abs(step.usd) >= SMALLEST_SHARE * abs(total_usd)][:MOST_STEPS]
    rest = sized[len(large) :]
    kept = sorted(large if len(rest) > 1 else sized, key=lambda step: -step.usd)
    return (
        [*kept, MoneyStep(f"{len(rest)} smaller", sum(step.usd for step in rest))] if len(rest) > 1 else kept
    )


def waterfall_figure(steps: Sequence[MoneyStep], label: str, *, gains: bool) -> Markup:
    """Return a waterfall drawn from top to bottom.

    Parameters
    ----------
    steps : Sequence[MoneyStep]
        Steps in drawing order.
    label : str
        Description of the figure.
    gains : bool
        Whether steps down are good and steps up bad, as in a comparison.
    """

    def colour(step: MoneyStep) -> str:
        if step.is_total:
            return QUIET
        if gains:
            return GAIN if step.usd < 0 else LOSS
        return series(0) if step.usd >= 0 else GAIN

    def paint(axes: Axes) -> None:
        level, ends = 0.0, [0.0]
        for row, step in enumerate(steps):
            start = 0.0 if step.is_total else level
            level = start + step.usd
            ends += [start, level]
            axes.barh(row, step.usd, 0.62, left=start, color=colour(step))
            shown = money(step.usd) if step.is_total or not gains else signed_money(step.usd)
            axes.annotate(
                shown,
                (max(start, level), row),
                (4, 0),
                textcoords="offset points",
                va="center",
                color=INK,
                fontsize=8,
            )
            if row + 1 < len(steps):
                axes.vlines(level, row - 0.31, row + 1.31, color=GRID, lw=0.8)
        low, high = _span(ends, cut=gains)
        axes.set_xlim(low, high + 0.28 * (high - low))
        if low > 0:
            axes.set_xlabel(f"{currency_code()}, axis not from zero")
        axes.set_yticks(range(len(steps)), [short(step.name) for step in steps])
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(lambda usd, _: money(usd))
        axes.locator_params(axis="x", nbins=4)
        axes.grid(visible=True, axis="x")
        axes.tick_params(axis="y", length=0)

    letters = max((len(short(step.name)) for step in steps), default=0)
    frame = Frame(
        4.4, 0.7 + 0.27 * len(steps), left_in=0.15 + LETTER_IN * letters, top_in=0.06, bottom_in=0.42
    )
    return draw(paint, label, frame)


def _span(ends: Sequence[float], *, cut: bool) -> tuple[float, float]:
    """Return the ends of the axis, cut if changes are small relative to the totals."""
    low, high = min(ends), max(ends)
    least = min((level for level in ends if level), default=0.0)
    if cut and low == 0 and least > 0.5 * high:
        low = max(0.0, least - 0.6 * (high - least))
    return low, high if high > low else low + 1.0
