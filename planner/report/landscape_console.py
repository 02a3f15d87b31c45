"""Print the answer of `plan landscape` on one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.landscape import AGGREGATED, DECODE, PREFILL, frontiers
from fleetplan.planner.landscape.answer import LandscapeAnswer, best_rows, filtered
from fleetplan.planner.landscape.explain import Explanation
from fleetplan.planner.landscape.waterfall import Stage

FORMATS = {
    "best_by": ("best by", "{}"),
    "row": ("row", "{:d}"),
    "latency": ("latency", "{}"),
    "quality": ("quality", "{}"),
    "request": ("request", "{}"),
    "input_tokens": ("in", "{:d}"),
    "output_tokens": ("out", "{:d}"),
    "hardware": ("hardware", "{}"),
    "weights": ("weights", "{}"),
    "kv": ("KV", "{}"),
    "config": ("config", "{}"),
    "prefill": ("prefill", "{}"),
    "decode": ("decode", "{}"),
    "prefill_row": ("prefill row", "{:d}"),
    "decode_row": ("decode row", "{:d}"),
    "prefill_accelerators_per_decode_accelerator": ("P:D", "{:.2f}"),
    "accelerators_per_replica": ("cards", "{:d}"),
    "requests_per_s_per_accelerator": ("req/s/card", "{:.4g}"),
    "requests_per_s_per_256": ("QPS/256", "{:.1f}"),
    "ttft_ms": ("TTFT ms", "{:.1f}"),
    "tpot_ms": ("TPOT ms", "{:.2f}"),
    "usd_per_million_tokens": ("$/Mtok", "{:.4f}"),
    "usd_per_thousand_requests": ("$/1000 req", "{:.3f}"),
    "kwh_per_million_tokens": ("kWh/Mtok", "{:.4f}"),
    "memory_gib_per_accelerator": ("GiB", "{:.1f}"),
    "runtime": ("runtime", "{}"),
    "served_by": ("served by", "{}"),
    "source": ("source", "{}"),
    "bottleneck": ("bottleneck", "{}"),
}
"""Heading and format of the columns on screen, in this order."""

SHOWN_ROWS = 12
"""Rows of a frontier on screen; files hold all rows."""


def print_answer(answer: LandscapeAnswer, condition: str | None, console: Console) -> None:
    """Print counts, the best configurations, and the frontiers."""
    question = answer.question
    console.print(f"[bold]{escape(question.title)}[/bold]")
    target = question.space.target
    limits = [
        f"{name} {limit:g} ms"
        for name, limit in (("TTFT", target.ttft_ms), ("TPOT", target.tpot_ms))
        if limit is not None
    ]
    console.print(f"limits: {', '.join(limits) or 'none'}")
    for note in question.price_notes:
        console.print(f"  {escape(note)}")
    count = answer.result.configurations
    console.print(
        f"{counted(count, 'configuration')} in {answer.wall_s:.2f} s: {count / answer.wall_s:.0f} "
        f"configurations/s"
    )
    print_counts(answer, console)
    for phase, points in answer.phase_points.items():
        best = filtered(answer.table(points), condition)
        if points.count:
            print_rows(f"{phase}: the best", best_rows_by_request(best), console)
        frontier = filtered(answer.table(frontiers(points, across_options=True)), condition)
        print_frontier(f"{phase}: Pareto frontier", frontier, console)
    pairs = answer.pairs()
    if len(pairs):
        print_rows(
            "disaggregated, prefill and decode together: the best", best_rows_by_request(pairs), console
        )


def best_rows_by_request(table: pd.DataFrame) -> pd.DataFrame:
    """Return the best rows of each request."""
    parts = [best_rows(rows.reset_index(drop=True)) for _, rows in table.groupby("request", sort=False)]
    return pd.concat(parts, ignore_index=True) if parts else table


def print_counts(answer: LandscapeAnswer, console: Console) -> None:
    """Print the number of usable configurations, and of those excluded for each reason."""
    by_option: dict[tuple[int, str], Counter[str]] = {}
    for (number, phase, reason), count in answer.result.excluded.items():
        by_option.setdefault((number, phase), Counter())[reason] += count
    reasons = sorted({reason for counts in by_option.values() for reason in counts if reason})
    lines = Table(box=None, pad_edge=False)
    for name in ("hardware", "weights", "phase"):
        lines.add_column(name)
    for name in ("usable", *reasons):
        lines.add_column(name, justify="right")
    options = answer.question.space.options
    order = {PREFILL: 0, DECODE: 1, AGGREGATED: 2}
    for (position, phase), counts in sorted(
        by_option.items(), key=lambda item: (item[0][0], order[item[0][1]])
    ):
        option = options[position]
        figures = [f"{counts[name]:,}" if counts[name] else "-" for name in ("", *reasons)]
        lines.add_row(option.hardware, option.evaluator.precision.weights, phase, *figures)
    console.print(lines)


def print_frontier(title: str, table: pd.DataFrame, console: Console) -> None:
    """Print evenly spaced rows of a frontier, fastest first."""
    if table.empty:
        return
    for request, rows in table.groupby("request", sort=False):
        ordered = rows.sort_values("requests_per_s_per_accelerator", ascending=False).reset_index(drop=True)
        step = max(1, -(-len(ordered) // SHOWN_ROWS))
        print_rows(f"{title}, {request} ({counted(len(ordered), 'row')})", ordered.iloc[::step], console)


def print_rows(title: str, table: pd.DataFrame, console: Console) -> None:
    """Print the columns of a table that fit on screen."""
    columns = [name for name in FORMATS if name in table and not _is_blank(table[name])]
    lines = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
    for name in columns:
        numeric = pd.api.types.is_numeric_dtype(table[name])
        lines.add_column(FORMATS[name][0], justify="right" if numeric else "left", overflow="fold")
    for row in table[columns].itertuples(index=False):
        lines.add_row(*(escape(_cell(name, value)) for name, value in zip(columns, row, strict=True)))
    console.print()
    console.print(lines)


def print_explanation(title: str, taken: Explanation, stages: Sequence[Stage], console: Console) -> None:
    """Print one configuration operator by operator, and its waterfall."""
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print(f"{taken.step}: {taken.latency_ms:.3f} ms")
    lines = Table(box=None, pad_edge=False)
    for name, justify in (
        ("operator", "left"),
        ("dtype", "left"),
        ("runs", "right"),
        ("ms", "right"),
        ("share", "right"),
        ("light ms", "right"),
        ("of light", "right"),
        ("source", "left"),
        ("shape", "left"),
    ):
        lines.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for line in taken.lines:
        share = line.time_ms / taken.latency_ms if taken.latency_ms else 0.0
        lines.add_row(
            line.name,
            line.dtype,
            f"{line.count:g}",
            f"{line.time_ms:.4f}",
            f"{share:.1%}",
            f"{line.light_ms:.4f}",
            f"{line.light_share:.0%}",
            line.source,
            line.shape,
        )
    console.print(lines)
    print_waterfall(stages, console)


def print_waterfall(stages: Sequence[Stage], console: Console) -> None:
    """Print the throughput left of the peak after each kind of loss."""
    lines = Table(title="from peak to served FLOPS", title_justify="left", box=None, pad_edge=False)
    for name in ("after", "TFLOPS a card", "of peak", "factor"):
        lines.add_column(name, justify="left" if name == "after" else "right")
    before = stages[0].tflops
    for stage in stages:
        lines.add_row(
            stage.name,
            f"{stage.tflops:.1f}",
            f"{stage.tflops / stages[0].tflops:.1%}",
            f"{stage.tflops / before:.2f}",
        )
        before = stage.tflops
    console.print()
    console.print(lines)


def _is_blank(column: pd.Series) -> bool:
    return bool(column.isna().all())


def _cell(name: str, value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124  (NaN)
        return "-"
    return FORMATS[name][1].format(value)
