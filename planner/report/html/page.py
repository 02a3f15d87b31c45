"""The HTML report: assemble every section from a plan and render the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from markupsafe import Markup

from fleetplan.fleet.figures import currency_code, rate_text, shown_in
from fleetplan.planner.landscape.frontier_points import FrontierPoint
from fleetplan.planner.plan import Infeasible, Plan, currency_of
from fleetplan.planner.questions.diff import PlanDiff, diff
from fleetplan.planner.report.after_tax import after_tax
from fleetplan.planner.report.beyond_horizon import beyond_the_horizon, owed_by_quarter
from fleetplan.planner.report.brief_console import unmet_by_service
from fleetplan.planner.report.common_purchases import purchases_by_scenario
from fleetplan.planner.report.day_console import UNMET_AT_MOST
from fleetplan.planner.report.decision import decision, ordered_accelerators, simpler
from fleetplan.planner.report.extension import extension
from fleetplan.planner.report.headline import status_text
from fleetplan.planner.report.html import money_view, templates
from fleetplan.planner.report.html.evidence_view import left_out, share_bars
from fleetplan.planner.report.html.fleet_map import fleet_pictures, service_styles
from fleetplan.planner.report.html.frontier_view import frontier_figure, frontiers
from fleetplan.planner.report.html.moments import in_order, moments
from fleetplan.planner.report.html.purchases_view import timeline
from fleetplan.planner.report.html.service_views import (
    LARGEST_SERVICES,
    CapacityBar,
    capacities,
    capacity_bars,
    capacity_figure,
    hardware_colours,
    largest_services,
    latency_rows,
)
from fleetplan.planner.report.html.svg import SERIES_COLOURS, unique_names
from fleetplan.planner.report.idle_capacity import all_idle, idle_pools
from fleetplan.planner.report.inaccurate_hardware import blind_error_text

REPORT_FILE: Final = "report.html"

MOST_ROWS: Final = 600
"""Maximum number of rows of a table; the CSV files next to the page hold all rows."""

MOST_PICTURES: Final = 12
"""Maximum number of fleet pictures: three quarters, day and night, in two demand scenarios."""

_ROOM: Final = "fleetplan.planner.report.html"


@dataclass(frozen=True, slots=True)
class PageComparison:
    """Comparison of the plan in force with the new plan."""

    found: PlanDiff
    by_kind: Markup
    by_service: Markup


@dataclass(frozen=True, slots=True)
class Figures:
    """All drawings of a page with their legends; empty if there is nothing to draw."""

    cost_by_kind: Markup
    cost_by_service: Markup
    capacity: tuple[Markup, ...]
    bars: tuple[CapacityBar, ...]
    capacity_styles: dict[str, str]
    frontiers: tuple[Markup, ...]
    frontier_styles: dict[str, str]


def report_page(plan: Plan, frontier: Sequence[FrontierPoint] = (), baseline: Plan | None = None) -> str:
    """Return the report of a plan as one HTML document.

    Parameters
    ----------
    plan : Plan
        Plan to report; format 1.0 has no prices and targets to show.
    frontier : Sequence[FrontierPoint]
        Frontiers of the plan's services; without them, the section explains how to get them.
    baseline : Plan, optional
        Plan in force.
    """
    with shown_in(currency_of(plan)):
        return _report_page(plan, frontier, baseline)


def _report_page(plan: Plan, frontier: Sequence[FrontierPoint], baseline: Plan | None) -> str:
    currency = currency_of(plan)
    own_styles, n_services = service_styles(plan), len({row.service for row in plan.placements})
    figures = _figures(plan, frontier)
    return render(
        "report.html.j2",
        plan=plan,
        status=status_text(plan),
        currency=currency_code(),
        rate="" if currency is None else rate_text(currency),
        decision=decision(plan),
        ordered=ordered_accelerators(plan),
        simpler=simpler(plan),
        extension=extension(plan),
        after_tax=after_tax(plan),
        comparison=None if baseline is None else _comparison(baseline, plan),
        pictures=fleet_pictures(plan)[:MOST_PICTURES],
        n_moments=len(moments(plan)),
        most_rows=MOST_ROWS,
        service_styles={**own_styles, "other services": "other"}
        if n_services > len(own_styles)
        else own_styles,
        idle=idle_pools(plan),
        all_idle=all_idle(plan).parts(),
        figures=figures,
        most_services=LARGEST_SERVICES,
        n_services=n_services,
        latencies=latency_rows(plan),
        by_scenario=purchases_by_scenario(plan),
        unmet=unmet_by_service(plan),
        unmet_at_most=UNMET_AT_MOST,
        timeline=timeline(plan),
        beyond=beyond_the_horizon(plan),
        owed=owed_by_quarter(plan),
        shares=share_bars(plan),
        blind_error=blind_error_text(),
        left_out=left_out(plan.rejections),
    )


def infeasible_page(outcome: Infeasible) -> str:
    """Return the report of an infeasible fleet."""
    return render("infeasible.html.j2", outcome=outcome, left_out=left_out(outcome.rejections))


def render(template: str, **values: object) -> str:
    """Return a page rendered from a template and values."""
    shared = templates.template(_ROOM, "parts.html.j2").make_module()
    # The style sheet is part of this package, so no escaping is needed.
    page = templates.template(_ROOM, template)
    return page.render(parts=shared, style=Markup(style_sheet()), **values)


def style_sheet() -> str:
    """Return the style sheet of all pages."""
    return files(_ROOM).joinpath("style.css").read_text(encoding="utf-8")


def _legend(colours: dict[str, int], drawn: Iterable[str]) -> dict[str, str]:
    """Return the CSS classes of the drawn names, in the order of the colours."""
    names = set(drawn)
    return {name: f"s{index % SERIES_COLOURS}" for name, index in colours.items() if name in names}


def _figures(plan: Plan, frontier: Sequence[FrontierPoint]) -> Figures:
    lines = frontiers(plan, frontier, largest_services(plan))
    # Hardware that the plan does not use comes last.
    colours = in_order([*hardware_colours(plan), *(name for each in lines for name in each.lines)])
    shown = () if plan.inputs is None else capacities(plan, plan.inputs)
    bars = capacity_bars(shown)
    return Figures(
        unique_names(
            money_view.waterfall_figure(money_view.by_kind(plan), "cost by kind", gains=False), "kind"
        ),
        unique_names(
            money_view.waterfall_figure(money_view.by_service(plan), "cost by service", gains=False),
            "service",
        ),
        ()
        if bars
        else tuple(
            unique_names(capacity_figure(each, colours), f"capacity{n}") for n, each in enumerate(shown)
        ),
        bars,
        _legend(colours, (name for each in shown for name in each.by_hardware)),
        tuple(unique_names(frontier_figure(each, colours), f"frontier{n}") for n, each in enumerate(lines)),
        _legend(colours, (name for each in lines for name in each.lines)),
    )


def _comparison(baseline: Plan, plan: Plan) -> PageComparison:
    found = diff(baseline, plan)
    return PageComparison(found, *compared_costs(found))


def compared_costs(found: PlanDiff) -> tuple[Markup, Markup]:
    """Return the waterfalls of the change in cost by kind and by service."""
    by_kind, by_service = (
        unique_names(
            money_view.waterfall_figure(money_view.changes(found, costs), label, gains=True), f"change-{name}"
        )
        for name, label, costs in (
            ("kind", "change of cost by kind", found.cost_by_kind),
            ("service", "change of cost by service", found.cost_by_service),
        )
    )
    return by_kind, by_service
