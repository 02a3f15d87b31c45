"""Print a plan on one screen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import (
    agreeing,
    counted,
    currency_code,
    figure,
    money,
    shown_in,
)
from fleetplan.fleet.units import KWH_PER_MWH
from fleetplan.planner.plan import MomentKey, Placement, Plan, currency_of
from fleetplan.planner.report.beyond_horizon import LEAST_WIDTH, print_beyond_the_horizon, print_options
from fleetplan.planner.report.brief_console import (
    MOST_LISTED,
    brief_limits,
    fits_a_screen,
    print_brief_changes,
    print_brief_pools,
    print_services,
    worst,
)
from fleetplan.planner.report.day_console import (
    has_slices,
    likeliest,
    pool_lines,
    print_day,
    print_scenarios,
    probability,
)
from fleetplan.planner.report.decision import DEFAULT_REGION, decided, verb, where_and_when
from fleetplan.planner.report.headline import print_headline
from fleetplan.planner.report.idle_capacity import all_idle
from fleetplan.planner.report.inaccurate_hardware import blind_error_text
from fleetplan.planner.report.queueing import print_unqueued

LEAST_CONFIG_WIDTH = 28
"""Minimum width of the configuration column, for two lines per typical placement. [columns]"""

PHASES = {"prefill": "P", "decode": "D", "aggregated": "A"}
"""Letters of the phases in the placement lines."""

FLOWS_SHOWN = 4
"""Largest flows to other regions printed for each service; the tables hold all of them."""


def print_plan(plan: Plan, console: Console, full: bool = False) -> None:
    """Print the decision first (cost, gap, purchases, binding constraints), then pools, placements, evidence.

    Parameters
    ----------
    plan : Plan
        A verified plan.
    console : Console
        Output console.
    full : bool
        Whether to print every pool, supply option and placement in every moment. Otherwise a plan that
        exceeds one screen has one line per pool and per service.
    """
    with shown_in(currency_of(plan)):
        _print_plan(plan, console, full)


def _print_plan(plan: Plan, console: Console, full: bool) -> None:
    brief = not full and not fits_a_screen(plan)
    print_headline(plan, brief, console)
    _purchases(plan, brief, console)
    _retirements(plan, brief, console)
    _costs(plan, console)
    print_beyond_the_horizon(plan, console)
    _limits(plan, brief, console)
    print_scenarios(plan, console)
    if brief:
        print_brief_pools(plan, console)
        print_services(plan, console)
        print_brief_changes(plan, console)
    else:
        _pools(plan, console)
        print_options(plan, console)
        for period in plan.periods:
            _placements(plan, period, console)
        if console.width < LEAST_WIDTH:
            console.print(f"TTFT, TPOT and P:D from {LEAST_WIDTH} columns on", style="dim")
        _changes(plan, console)
        print_day(plan, console)
    _survivors(plan, console)
    _served_elsewhere(plan, console)
    print_unqueued(plan, console)
    _evidence(plan, console)
    if brief:
        console.print(
            "Every moment: `--full`, `plan explain PLAN.json --full`, report and tables of `--out`",
            style="dim",
        )


def _placements(plan: Plan, period: str, console: Console) -> None:
    """Print a period's likeliest placements by service, region and slice, with traffic, latency and cost."""
    shown = likeliest(plan)
    placed = [row for row in plan.placements if (row.period, row.scenario) == (period, shown)]
    title = f"Placements{where_and_when(DEFAULT_REGION, period)}"
    title += "" if shown is None else f" if demand is {escape(shown)}"
    if not placed:
        console.print(f"[italic]{title}[/]: nothing runs")
        return
    title += " (P prefill, D decode, A aggregated)"
    narrow = console.width < LEAST_WIDTH
    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    table.add_column("service", overflow="fold")
    table.add_column("region")
    if has_slices(placed):
        table.add_column("slice")
    table.add_column("replicas x config on hardware", overflow="fold", min_width=LEAST_CONFIG_WIDTH)
    for name in ("req/s", "load", *(() if narrow else ("TTFT ms", "TPOT ms", "P:D")), currency_code()):
        table.add_column(name, justify="right", no_wrap=True)
    groups: dict[tuple[str, str, str | None], list[Placement]] = defaultdict(list)
    for row in placed:
        groups[row.service, row.region, row.slice].append(row)
    ratios = {(r.service, r.region, r.moment_key): r.ratio for r in plan.phase_ratios}
    for (service, region, slice_name), rows in groups.items():
        served = sum(row.requests_per_s for row in rows if row.phase != "decode")
        load = sum(row.utilisation * row.accelerators for row in rows) / sum(row.accelerators for row in rows)
        ratio = ratios.get((service, region, rows[0].moment_key))
        table.add_row(
            escape(service),
            escape(region),
            *([escape(slice_name or "")] if has_slices(placed) else []),
            escape(", ".join(_configs(rows))),
            figure(served),
            f"{load:.0%}",
            *(() if narrow else _figures(rows, ratio)),
            money(sum(row.usd for row in rows) / probability(plan, shown)),
        )
    console.print(table)


def _figures(rows: Sequence[Placement], ratio: float | None) -> tuple[str, str, str]:
    """Return TTFT, TPOT and the ratio of prefill to decode accelerators as text."""
    latencies = worst(row.ttft_ms for row in rows), worst(row.tpot_ms for row in rows)
    return *latencies, "" if ratio is None else f"{ratio:.2f}"


def _configs(rows: Sequence[Placement]) -> list[str]:
    """Return the replicas by phase, configuration and hardware, added up over pools."""
    replicas: dict[tuple[str, str, str], int] = defaultdict(int)
    for row in rows:
        replicas[PHASES[row.phase], row.config, row.hardware] += row.replicas
    return [f"{phase} {count}x {config} {part}" for (phase, config, part), count in replicas.items()]


def _pools(plan: Plan, console: Console) -> None:
    table = Table(title="Pools", box=None, pad_edge=False, title_justify="left")
    several = len(plan.periods) > 1
    for name in ("pool", "hardware", *(["period"] if several else [])):
        table.add_column(name, overflow="fold", no_wrap=name == "hardware")
    narrow = console.width < LEAST_WIDTH
    heads = ("accel.", "used", "reserve") if narrow else ("accelerators", "used", "reserve", "in use")
    for name in (*heads, currency_code(), f"idle {currency_code()}"):
        table.add_column(name, justify="right", no_wrap=True)
    for row, used, utilisation, usd, idle_usd in pool_lines(plan):
        table.add_row(
            escape(row.pool),
            escape(row.hardware),
            *([row.period] if several else []),
            str(row.accelerators),
            used,
            str(row.reserve_accelerators),
            *([] if narrow else [utilisation]),
            money(usd),
            money(idle_usd),
        )
    console.print(table)


def _purchases(plan: Plan, brief: bool, console: Console) -> None:
    orders = decided(plan)
    if len(orders) <= 1:
        # The decision already states a single order.
        return
    lines = []
    for row in orders:
        price = f", price {money(row.capex_usd)}" if row.capex_usd else ""
        lines.append(
            f"{verb(row)} {counted(row.units, row.unit)} {escape(row.hardware)}"
            f"{escape(where_and_when(row.region, row.period))} ({escape(row.offer)}, {money(row.usd)}{price})"
        )
    console.print(f"[bold]Orders[/]: {_listed(lines, brief)}")


def _retirements(plan: Plan, brief: bool, console: Console) -> None:
    for kind, heading in (("retire", "Retire"), ("return", "Leases end")):
        leaving = [row for row in plan.retirements if row.kind == kind and not row.assumed]
        if not leaving:
            continue
        lines = []
        for row in leaving:
            sale = f" (sold for {money(row.resale_usd)})" if row.resale_usd else ""
            lines.append(
                f"{counted(row.hosts, row.unit)} {escape(row.hardware)} from {escape(row.pool)} "
                f"{row.period}{sale}"
            )
        console.print(f"[bold]{heading}[/]: {_listed(lines, brief)}")


def _listed(parts: Sequence[str], brief: bool) -> str:
    """Join the parts of a line; in brief the first ones and the number of the others."""
    more = len(parts) - MOST_LISTED if brief else 0
    return "; ".join(parts) if more <= 0 else f"{'; '.join(parts[:MOST_LISTED])}; and {more} more"


def _changes(plan: Plan, console: Console) -> None:
    """Print how many accelerators start and end in each period."""
    shown = likeliest(plan)
    for period in plan.periods:
        changes = [row for row in plan.transitions if (row.period, row.scenario) == (period, shown)]
        usd = money(sum(row.usd for row in plan.transitions if row.period == period))
        for slice_name in dict.fromkeys(row.slice for row in changes):
            rows = [row for row in changes if row.slice == slice_name]
            started = sum(max(0, row.accelerators) for row in rows)
            ended = sum(max(0, -row.accelerators) for row in rows)
            when = escape(period if slice_name is None else f"{period} {slice_name}")
            console.print(
                f"[bold]Changes[/] {when}: {counted(started, 'accelerator', 'start')} ({usd}), "
                f"{ended} {agreeing(ended, 'are')} freed"
            )


def _survivors(plan: Plan, console: Console) -> None:
    """Print the services that survive the loss of each region; equal sets of services share a line."""
    regions: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for lost in dict.fromkeys(row.lost_region for row in plan.region_losses):
        kept = dict.fromkeys(row.service for row in plan.region_losses if row.lost_region == lost)
        regions[tuple(kept)].append(lost)
    for kept_services, lost_regions in regions.items():
        which = " or ".join(lost_regions)
        console.print(
            f"[bold]After losing {escape(which)}[/] the other regions still serve all of "
            f"{escape(', '.join(kept_services))}"
        )


def _served_elsewhere(plan: Plan, console: Console) -> None:
    """Print the largest flows of each service to other regions, each in its busiest moment."""
    rates: dict[str, dict[tuple[str, str], dict[MomentKey, float]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(float))
    )
    for row in plan.placements:
        for origin, by_class in row.requests_per_s_by_origin.items():
            if row.phase != "decode":
                rates[row.service][origin, row.region][row.moment_key] += sum(by_class.values())
    lines = []
    for service, ways in rates.items():
        most = {way: max(by_moment.values()) for way, by_moment in ways.items()}
        largest = sorted(most, key=lambda way: -most[way])[:FLOWS_SHOWN]
        text = ", ".join(
            f"{'up to ' if len(ways[way]) > 1 else ''}{figure(most[way])} requests/s of {way[0]} by {way[1]}"
            for way in largest
        )
        if more := len(most) - len(largest):
            moments: dict[MomentKey, float] = defaultdict(float)
            for by_moment in ways.values():
                for moment, rate in by_moment.items():
                    moments[moment] += rate
            text += f" and {more} more, {figure(max(moments.values()))} requests/s in all"
        lines.append(f"{escape(service)}: {escape(text)}")
    if lines:
        console.print(f"[bold]Served from other regions[/]: {'; '.join(lines)}")


def _costs(plan: Plan, console: Console) -> None:
    parts = [f"{kind.replace('_', ' ')} {money(usd)}" for kind, usd in plan.cost_breakdown.items()]
    idle = sum(row.idle_usd for row in plan.pools)
    of_it = f"idle capacity is {money(idle)} of it" if idle or not plan.cost_breakdown else "nothing is idle"
    idle_mwh = sum(row.idle_energy_kwh for row in plan.pools) / KWH_PER_MWH
    known = [f"{name} {money(usd)}" for name, usd in all_idle(plan).parts().items()]
    known += [f"it draws {figure(idle_mwh, 3)} MWh"] if idle_mwh else []
    if known:
        of_it += f" ({', '.join(known)})"
    if plan.retirements:
        leaving = sum(row.retirement_usd for row in plan.pools)
        of_it += f", hosts that leave {money(leaving)} (book value less sale)"
    console.print(f"[bold]Cost[/]: {', '.join(parts)}; {of_it}")


def _evidence(plan: Plan, console: Console) -> None:
    """Print the spend by source of the operator times, and the errors against published benchmarks."""
    shares = sorted(plan.provenance.spend_share.items(), key=lambda item: -item[1])
    text = ", ".join(f"{share:.0%} {kind}" for kind, share in shares if share >= 0.005)
    if text:
        console.print(f"[bold]Data quality[/], by spend: {text} operator times")
    known = [
        f"{escape(error.hardware)} {error.median_ratio:.0%} / {error.p90_ratio:.0%}"
        for error in plan.provenance.model_errors
        if error.median_ratio is not None and error.p90_ratio is not None
    ]
    unknown = [escape(error.hardware) for error in plan.provenance.model_errors if error.median_ratio is None]
    if known:
        console.print(
            "[bold]TPOT error[/] against published benchmarks (median / 90th percentile): "
            f"{', '.join(known)}; {blind_error_text()}"
        )
    if unknown:
        console.print(f"[bold]TPOT error unknown[/], no published benchmark: {', '.join(unknown)}")


def _limits(plan: Plan, brief: bool, console: Console) -> None:
    if not plan.binding:
        return
    if brief:
        console.print(f"[bold]Binding constraints[/]: {_listed(brief_limits(plan), brief)}")
        return
    parts = [
        f"{escape(row.name)}, {figure(row.used, 5)} of {figure(row.limit, 5)} {row.unit}"
        for row in plan.binding[:8]
    ]
    more = f" and {len(plan.binding) - 8} more" if len(plan.binding) > 8 else ""
    console.print(f"[bold]Binding constraints[/]: {'; '.join(parts)}{more}")
