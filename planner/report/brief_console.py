"""Summary of a plan with many moments: one line per pool and per service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import LEAST_USD, currency_code, figure, money
from fleetplan.planner.plan import (
    Binding,
    MomentKey,
    OfflineWork,
    Placement,
    Plan,
    PoolUse,
    Transition,
    Unmet,
    most_at_once,
)
from fleetplan.planner.report.day_console import likeliest, pool_lines
from fleetplan.planner.report.decision import limit_names

ROWS_ON_A_SCREEN: Final = 45
"""Maximum number of pool, supply option and placement rows printed individually; longer plans are summarised.
"""

LINES_OF_A_TABLE: Final = 14
"""Maximum number of lines in the pool and service tables; the least expensive share the last line."""

PARTS_NAMED: Final = 3
"""Kinds of hardware listed for each service."""

_RowT = TypeVar("_RowT", OfflineWork, Placement, PoolUse, Transition)

MOST_LISTED: Final = 5
"""Orders, retirements, limits and shortages listed in a summary."""


def fits_a_screen(plan: Plan) -> bool:
    """Return whether a screen has room for a line per pool, supply option and placement."""
    placed = {(row.service, row.region, row.moment_key) for row in plan.placements}
    pools = {(row.pool, row.period) for row in plan.pools}
    return len(placed) + len(pools) + len(plan.supply_options) <= ROWS_ON_A_SCREEN


def print_brief_pools(plan: Plan, console: Console) -> None:
    """Print one line per pool: accelerators over time, peak use, reserve and cost."""
    by_pool: dict[str, list[PoolUse]] = defaultdict(list)
    for row in _shown(plan, plan.pools):
        by_pool[row.pool].append(row)
    usd: dict[str, float] = defaultdict(float)
    idle_usd: dict[str, float] = defaultdict(float)
    for line, _, _, pool_usd, pool_idle_usd in pool_lines(plan):
        usd[line.pool] += pool_usd
        idle_usd[line.pool] += pool_idle_usd
    code = currency_code()
    table = _table(
        "Pools",
        ("pool", "hardware"),
        ("accelerators", "most used", "reserve", code, f"idle {code}"),
    )
    # Leave out pools that stay empty.
    stocked = [
        pool
        for pool, rows in by_pool.items()
        if any(row.accelerators for row in rows) or abs(usd[pool]) >= LEAST_USD
    ]
    named, others = _dearest(stocked, lambda pool: usd[pool])
    for pool in named:
        rows = by_pool[pool]
        table.add_row(
            escape(pool),
            escape(rows[0].hardware),
            _over_time(plan, rows),
            str(max(row.used_accelerators for row in rows)),
            str(max(row.reserve_accelerators for row in rows)),
            money(usd[pool]),
            money(idle_usd[pool]),
        )
    if others:
        total, idle = (sum(each[pool] for pool in others) for each in (usd, idle_usd))
        table.add_row(f"{len(others)} more", "", "", "", "", money(total), money(idle))
    console.print(table)


def print_services(plan: Plan, console: Console) -> None:
    """Print one line per service: regions, hardware at the peak, longest latencies and cost."""
    by_service: dict[str, list[Placement]] = defaultdict(list)
    usd: dict[str, float] = defaultdict(float)
    for row in plan.placements:
        usd[row.service] += row.usd
    for row in _shown(plan, plan.placements):
        by_service[row.service].append(row)
    table = _table(
        "Services, at their peaks",
        ("service", "runs in", "accelerators"),
        ("req/s", "TTFT ms", "TPOT ms", currency_code()),
    )
    named, others = _dearest(by_service, lambda service: usd[service])
    for service in named:
        rows = by_service[service]
        peak, served = _peak(rows)
        table.add_row(
            escape(service),
            escape(", ".join(dict.fromkeys(row.region for row in rows))),
            escape(_hardware(row for row in rows if row.moment_key == peak)),
            figure(served),
            worst(row.ttft_ms for row in rows),
            worst(row.tpot_ms for row in rows),
            money(usd[service]),
        )
    if others:
        table.add_row(f"{len(others)} more", "", "", "", "", "", money(sum(usd[each] for each in others)))
    console.print(table)


def print_brief_changes(plan: Plan, console: Console) -> None:
    """Print the accelerators that start between periods and within a day, and the deferred offline work."""
    for title, rows in (("Changes", plan.transitions), ("Daily changes", plan.tides)):
        starts: dict[str, dict[MomentKey, int]] = {period: defaultdict(int) for period in plan.periods}
        for row in _shown(plan, rows):
            starts[row.period][row.moment_key] += max(0, row.accelerators)
        most = {period: max(counts.values(), default=0) for period, counts in starts.items()}
        parts = [f"{count:,} in {escape(period)}" for period, count in most.items() if count]
        if parts:
            at_once = " at the same time" if title == "Daily changes" else ""
            usd = money(sum(row.usd for row in rows))
            console.print(
                f"[bold]{title}[/], accelerators that start{at_once}: {', '.join(parts)} ({usd} in all)"
            )
    put_off: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for work in _shown(plan, plan.offline_work):
        put_off[work.service][0] += work.requests_per_day
        put_off[work.service][1] += work.requests_per_day if work.arises_in != work.slice else 0.0
    parts = [f"{escape(name)} {late / total:.0%}" for name, (total, late) in put_off.items() if late > 0]
    if parts:
        console.print(f"[bold]Offline work[/] deferred to another slice: {', '.join(parts)}")


@dataclass(frozen=True, slots=True)
class UnmetService:
    """Unmet demand of a service: its largest value and moment, its regions, and the number of moments."""

    service: str
    regions: tuple[str, ...]
    most_in: str
    requests_per_s: float
    moments: int


def unmet_by_service(plan: Plan) -> list[UnmetService]:
    """Return the unmet demand, one row per service."""
    by_service: dict[str, list[Unmet]] = defaultdict(list)
    for row in plan.shortages:
        by_service[row.service].append(row)
    found = []
    for service, rows in by_service.items():
        at_moment: dict[MomentKey, float] = defaultdict(float)
        for row in rows:
            at_moment[row.moment_key] += row.requests_per_s
        most = max(at_moment, key=lambda moment: at_moment[moment])
        regions = tuple(dict.fromkeys(row.region for row in rows))
        most_in = " ".join(part for part in most if part)
        found.append(UnmetService(service, regions, most_in, at_moment[most], len(at_moment)))
    return found


def print_brief_unmet(plan: Plan, console: Console) -> None:
    """Print the unmet demand, one line per service."""
    table = _table("Unmet", ("service", "regions", "most in"), ("req/s", "moments"))
    for row in unmet_by_service(plan):
        regions = ", ".join(row.regions)
        table.add_row(
            escape(row.service),
            escape(regions),
            escape(row.most_in),
            figure(row.requests_per_s),
            str(row.moments),
        )
    console.print(table)


def brief_limits(plan: Plan) -> list[str]:
    """Return each binding limit once, with its largest value and the number of moments in which it binds."""
    rows: dict[str, list[Binding]] = defaultdict(list)
    for name, row in zip(limit_names(plan), plan.binding, strict=True):
        rows[name].append(row)
    found = []
    for name, own in rows.items():
        most = max(own, key=lambda row: row.limit)
        times = f", in {len(own)} moments" if len(own) > 1 else ""
        at_most = "at most " if len({(row.used, row.limit) for row in own}) > 1 else ""
        found.append(
            f"{escape(name)}, {at_most}{figure(most.used, 5)} of {figure(most.limit, 5)} {most.unit}{times}"
        )
    return found


def worst(latencies_ms: Iterable[float | None]) -> str:
    """Return the longest latency as text, or an empty string if none is known."""
    known = [latency for latency in latencies_ms if latency is not None]
    return figure(max(known), 3) if known else ""


def _table(title: str, names: Sequence[str], figures: Sequence[str]) -> Table:
    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _shown(plan: Plan, rows: Iterable[_RowT]) -> list[_RowT]:
    """Return the rows of the most likely demand scenario."""
    shown = likeliest(plan)
    return [row for row in rows if row.scenario == shown]


def _dearest(names: Iterable[str], usd: Callable[[str], float]) -> tuple[list[str], list[str]]:
    """Split names into those with a line each (the most expensive) and those that share a line, in order."""
    every = list(names)
    if len(every) <= LINES_OF_A_TABLE:
        return every, []
    kept = set(sorted(every, key=usd, reverse=True)[: LINES_OF_A_TABLE - 1])
    return [name for name in every if name in kept], [name for name in every if name not in kept]


def _over_time(plan: Plan, rows: Sequence[PoolUse]) -> str:
    """Return a pool's accelerators by period, such as `8 > 16 > 24`; a single number if they never change."""
    stands = {row.period: row.accelerators for row in rows}
    by_period = [stands.get(period, 0) for period in plan.periods]
    changes = [count for at, count in enumerate(by_period) if at == 0 or count != by_period[at - 1]]
    return " > ".join(map(str, changes))


def _peak(rows: Sequence[Placement]) -> tuple[MomentKey, float]:
    """Return the moment with the most served requests, and their rate. [requests/s]"""
    served: dict[MomentKey, float] = defaultdict(float)
    for row in rows:
        served[row.moment_key] += row.requests_per_s if row.phase != "decode" else 0.0
    peak = max(served, key=lambda moment: served[moment])
    return peak, served[peak]


def _hardware(rows: Iterable[Placement]) -> str:
    """Return accelerators by hardware, largest count first: `92 B200-SXM, 42 H200-SXM`."""
    counts = most_at_once(rows, lambda row: row.hardware)
    parts = [f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
    more = parts[PARTS_NAMED:]
    return ", ".join([*parts[:PARTS_NAMED], *([f"{len(more)} more"] if more else [])])
