"""Print a plan and actual figures for `plan track`."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import figure, money, signed_money
from fleetplan.planner.questions.track import TrackReport, VarianceFinding

FINDINGS_SHOWN: Final = 20


def finding_text(found: VarianceFinding) -> str:
    """Return a variance in words."""
    off = abs(found.ratio - 1)
    direction = "above" if found.ratio > 1 else "below"
    if found.assumption == "demand":
        what = f"demand of {found.service} ({found.place})"
    elif found.assumption == "rates":
        what = f"rates of {found.service} on {found.place}"
    else:
        what = f"price of {found.place} ({found.service})"
    return f"{what}: {off:.1%} {direction} the plan"


def print_track(report: TrackReport, console: Console) -> None:
    """Print cost by period, variances in money, then demand, pools and latencies.

    Parameters
    ----------
    report : TrackReport
        Plan compared with actual figures.
    console : Console
        Output console.
    """
    console.print(_costs(report))
    notable = [each for each in report.findings if each.is_notable]
    console.print("[bold]Variances[/]" if notable else "[bold]No variance[/] of 2 % or more.")
    for each in notable[:FINDINGS_SHOWN]:
        console.print(f"  {signed_money(each.usd):>10}  {escape(each.period)}  {escape(finding_text(each))}")
    if len(notable) > FINDINGS_SHOWN:
        console.print(f"  and {len(notable) - FINDINGS_SHOWN} more: findings.csv")
    for row in report.latencies:
        if row.limit_ms is None or row.actual_ms <= row.limit_ms:
            continue
        latency = row.figure.removesuffix("_ms").upper()
        console.print(
            f"[red]{latency} of {escape(row.service)} in {escape(row.period)}: {figure(row.actual_ms)} ms, "
            f"limit {figure(row.limit_ms)} ms[/]"
        )
    console.print(_pools(report))


def _costs(report: TrackReport) -> Table:
    title = f"{escape(report.fleet)}: plan and actual"
    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    table.add_column("period")
    for name in ("planned", "flexed", "actual", "capacity"):
        table.add_column(name, justify="right")
    for row in report.costs:
        actual = "not measured" if row.actual is None else money(row.actual)
        rest = "" if row.capacity is None else signed_money(row.capacity)
        table.add_row(escape(row.period), money(row.planned), money(row.flexed), actual, rest)
    return table


def _pools(report: TrackReport) -> Table:
    table = Table(title="Pools", box=None, pad_edge=False, title_justify="left")
    for name in ("pool", "period"):
        table.add_column(name, overflow="fold")
    for name in ("accelerators", "actual", "use", "actual", "cost", "actual"):
        table.add_column(name, justify="right")
    for row in report.pools:
        table.add_row(
            escape(row.pool),
            escape(row.period),
            f"{row.planned_accelerators:,.0f}",
            "" if row.actual_accelerators is None else f"{row.actual_accelerators:,.0f}",
            f"{row.planned_utilisation:.0%}",
            "" if row.actual_utilisation is None else f"{row.actual_utilisation:.0%}",
            money(row.planned_usd),
            "" if row.actual_usd is None else money(row.actual_usd),
        )
    return table
