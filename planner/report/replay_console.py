"""Print a replay: one line per service and region, then the limits that are missed."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import agreeing, counted, figure
from fleetplan.planner.replay.outcome import LimitCheck, PlaceOutcome, ReplayOutcome

FEW_REQUESTS: Final = 100
"""Number of requests below which the 99th percentile is that of the slowest request."""

LEAST_TENTHS: Final = 0.05
"""Minimum rate to print with tenths. [requests/s]"""

_NAMES: Final = {"ttft": "TTFT", "tpot": "TPOT"}


def print_replay(outcome: ReplayOutcome, console: Console) -> None:
    """Print the outcome of a replay.

    Parameters
    ----------
    outcome : ReplayOutcome
        Outcome of the replay.
    console : rich.console.Console
        Output console.
    """
    speed = outcome.requests / outcome.cpu_s if outcome.cpu_s > 0 else 0.0
    load = "" if outcome.load_ratio == 1 else f", {outcome.load_ratio:.0%} of the planned traffic"
    when = " ".join([outcome.period, *([outcome.slice] if outcome.slice else [])])
    console.print(
        f"{escape(outcome.fleet)} {escape(when)}: {counted(outcome.requests, 'request')} in "
        f"{outcome.duration_s:g} s, arrivals {outcome.arrivals}{load}, seed {outcome.seed} "
        f"({speed:,.0f} simulated requests per CPU second)"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("service", "region"):
        table.add_column(name)
    for name in (
        "req/s",
        "TTFT p50",
        "p95",
        "p99 ms",
        "TPOT p50",
        "p95",
        "p99 ms",
        "wait p99 ms",
        "preempted",
    ):
        table.add_column(name, justify="right")
    table.add_column("limits")
    for place in outcome.places:
        table.add_row(*_cells(place))
    console.print(table)
    if outcome.not_simulated:
        names = ", ".join(escape(name) for name in outcome.not_simulated)
        console.print(f"Not simulated, because they declare their own rates: {names}")
    few = [place for place in outcome.places if place.requests < FEW_REQUESTS]
    if few:
        names = ", ".join(
            f"{escape(each.service)} in {escape(each.region)} ({each.requests})" for each in few
        )
        console.print(
            f"Fewer than {FEW_REQUESTS} requests of {names}: p99 is the slowest request; "
            "use a longer --duration"
        )
    console.print(_verdict(outcome))


def _cells(place: PlaceOutcome) -> list[str]:
    waits = max((group.wait_p99_ms for group in place.groups), default=0.0)
    tpot = ("", "", "")
    if place.tpot is not None:
        tpot = (f"{place.tpot.p50_ms:.1f}", f"{place.tpot.p95_ms:.1f}", f"{place.tpot.p99_ms:.1f}")
    return [
        escape(place.service),
        escape(place.region),
        f"{rate:.1f}" if (rate := place.requests_per_s) >= LEAST_TENTHS else figure(rate),
        f"{place.ttft.p50_ms:.0f}",
        f"{place.ttft.p95_ms:.0f}",
        f"{place.ttft.p99_ms:.0f}",
        *tpot,
        f"{waits:.0f}",
        f"{place.preempted_ratio:.1%}",
        "; ".join(limit_text(check) for check in place.limits),
    ]


def limit_text(check: LimitCheck) -> str:
    """Return the reached latency and its limit, such as `TTFT p95 412 of 500 ms`, marked if missed."""
    kind = "mean" if check.share is None else f"p{100 * check.share:g}"
    colour = "green" if check.holds else "red"
    missed = "" if check.holds else " missed"
    reached, limit = f"{check.reached_ms:.3g}", f"{check.limit_ms:g}"
    if check.reached_ms >= 1000:
        reached = f"{check.reached_ms:.0f}"
    return f"[{colour}]{_NAMES[check.latency]} {kind} {reached} of {limit} ms{missed}[/{colour}]"


def _verdict(outcome: ReplayOutcome) -> str:
    if not outcome.places:
        return "Nothing was simulated, so no limit is confirmed."
    checks = [check for place in outcome.places for check in place.limits]
    if not checks:
        return "The simulated services have no latency limit."
    missed = [check for check in checks if not check.holds]
    if not missed:
        return "Every limit holds."
    planned = sum(check.planned_under_load for check in missed)
    without = len(missed) - planned
    parts = []
    if planned:
        parts.append(f"{counted(planned, 'limit')} planned under load {agreeing(planned, 'are')} missed")
    if without:
        parts.append(
            f"{counted(without, 'limit')} on mean latency {agreeing(without, 'are')} missed, because the "
            "plan ignores queueing there: add traffic or percentiles to plan for it"
        )
    return "; ".join(parts) + "."
