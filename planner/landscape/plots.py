"""Landscape figures: frontier, heat map of batch and tensor parallelism, and step by operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.landscape import (
    AGGREGATED,
    DECODE,
    PREFILL,
    REASONS,
    GridBlock,
    GridPlace,
    LatencyTarget,
    evaluate_block,
    pareto_mask,
    search_layouts,
)
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.planner.drawing import add_legend, drawn_name, new_figure, save
from fleetplan.planner.landscape.answer import LandscapeAnswer
from fleetplan.planner.landscape.explain import Explanation, explain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED_OPERATORS: Final = 9
"""Operators of a bar with separate colours; the rest is merged."""

_LATENCY: Final = {PREFILL: "ttft_ms", DECODE: "tpot_ms", AGGREGATED: "tpot_ms"}


def write_plots(answer: LandscapeAnswer, folder: Path, suffix: str) -> list[Path]:
    """Draw the figures of an answer.

    Parameters
    ----------
    answer : LandscapeAnswer
        The answer.
    folder : Path
        Created if missing.
    suffix : str
        svg or png.

    Returns
    -------
    list[Path]
        frontier, heatmap and breakdown, if there is something to draw.
    """
    drawn = {"frontier": frontier_figure(answer), "heatmap": heat_map_figure(answer)}
    bars = best_steps(answer)
    if bars:
        drawn["breakdown"] = breakdown_figure(bars)
    return [save(figure, folder / f"{name}.{suffix}") for name, figure in drawn.items() if figure is not None]


def frontier_figure(answer: LandscapeAnswer) -> Figure | None:
    """Draw throughput per accelerator against latency, one panel per phase, one line per hardware."""
    from matplotlib.ticker import LogFormatter  # noqa: PLC0415  (as in new_figure)

    phases = {
        phase: points
        for phase, points in answer.phase_points.items()
        # A request of one token has no TPOT.
        if points.count and getattr(points, _LATENCY[phase]).any()
    }
    if not phases:
        return None
    figure, panels = new_figure(len(phases))
    for axes, (phase, points) in zip(panels, phases.items(), strict=True):
        for position, option in enumerate(answer.question.space.options):
            own = points.take((points.option == position) & (points.request == 0))
            if not own.count:
                continue
            # The figure shows only two of the objectives.
            own = own.take(pareto_mask([-own.requests_per_s_per_accelerator, getattr(own, _LATENCY[phase])]))
            latency = getattr(own, _LATENCY[phase])
            order = np.argsort(latency)
            name = drawn_name(f"{option.hardware} {option.evaluator.precision.weights}")
            axes.plot(
                latency[order],
                own.requests_per_s_per_accelerator[order],
                ".-",
                markersize=4,
                lw=0.8,
                label=name,
            )
        axes.set_xlabel("TTFT [ms]" if phase == PREFILL else "TPOT [ms]")
        axes.set_ylabel("requests/s per accelerator")
        axes.set_title(phase)
        axes.set_xscale("log")
        # Plain milliseconds; powers of ten overlap within one decade.
        for set_formatter in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
            set_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.8)))
        axes.grid(visible=True, alpha=0.3)
        add_legend(axes, framed=True)
    figure.tight_layout()
    return figure


def heat_map_figure(answer: LandscapeAnswer) -> Figure | None:
    """Draw the decode rate over batch and tensor parallelism, one stage and one rank, for every hardware.

    Configurations that do not fit memory are blank, hardware on which nothing runs is left out, and missed
    latency targets are hatched.
    """
    space = answer.question.space
    panels = []
    for position, option in enumerate(space.options):
        evaluator = option.evaluator
        layouts = [
            layout
            for layout in search_layouts(evaluator.architecture, evaluator.accelerator, space.search)
            if layout.pp == layout.dp == layout.ep == 1
        ]
        if layouts:
            axes = (layouts, space.search.decode_batches, space.requests[:1])
            block = evaluate_block(
                option, GridPlace(position, DECODE, 0, 0), axes, LatencyTarget(None, space.target.tpot_ms)
            )
            # Skip hardware on which nothing fits memory: it has no scale.
            if not np.isnan(_drawn_rates(block)).all():
                panels.append((option, block))
    if not panels:
        return None
    figure, drawn = new_figure(len(panels))
    for axes_of, (option, block) in zip(drawn, panels, strict=True):
        image = axes_of.pcolormesh(_drawn_rates(block), cmap="viridis")
        for row, column in np.argwhere(_is_late(block)).tolist():
            axes_of.fill_between([column, column + 1], row, row + 1, facecolor="none", hatch="//", lw=0)
        axes_of.set_yticks(
            np.arange(len(block.layouts)) + 0.5, [f"TP{layout.tp}" for layout in block.layouts]
        )
        marks = np.arange(0, len(block.batches), max(1, len(block.batches) // 8))
        axes_of.set_xticks(marks + 0.5, [str(block.batches[mark]) for mark in marks])
        axes_of.set_xlabel("batch")
        title = f"{option.hardware}: decode requests/s per accelerator"
        axes_of.set_title(drawn_name(title), fontsize=8)
        figure.colorbar(image, ax=axes_of)
    figure.tight_layout()
    return figure


def _is_late(block: GridBlock) -> NDArray[np.bool_]:
    """Return which layouts (rows) and batches (columns) miss the TPOT limit."""
    return np.equal(block.excluded[:, :, 0], REASONS.index("tpot"), dtype=np.bool_)


def _drawn_rates(block: GridBlock) -> NDArray[np.float64]:
    """Return requests/s per accelerator by layout and batch; NaN for configurations that do not run."""
    runs = (block.excluded[:, :, 0] == 0) | _is_late(block)
    return np.where(runs, block.requests_per_s_per_accelerator[:, :, 0], np.nan)


def best_steps(answer: LandscapeAnswer) -> list[tuple[str, Explanation]]:
    """Return the configuration with the highest rate of each hardware and phase, explained by operator."""
    space = answer.question.space
    found = []
    for phase, points in answer.phase_points.items():
        for position, option in enumerate(space.options):
            own = points.take((points.option == position) & (points.request == 0))
            if own.count:
                best = int(np.argmax(own.requests_per_s_per_accelerator))
                layout, batch = own.layout[best], int(own.batch[best])
                taken = explain(option, phase, layout, batch, space.requests[0])
                found.append((f"{option.hardware} {phase}\n{Configuration(layout, batch).label}", taken))
    return found


def breakdown_figure(bars: Sequence[tuple[str, Explanation]]) -> Figure:
    """Draw one bar per step, divided by operator, as shares of the step."""
    totals: dict[str, float] = {}
    for _, taken in bars:
        for line in taken.lines:
            totals[line.name] = totals.get(line.name, 0.0) + line.time_ms / taken.latency_ms
    named = sorted(totals, key=lambda name: -totals[name])[:_NAMED_OPERATORS]
    figure, (axes,) = new_figure(1, width=max(5.0, 1.1 * len(bars) + 3.0), height=4.6)
    bottom = np.zeros(len(bars))
    for name in (*named, "other"):
        shares = np.array(
            [
                sum(
                    line.time_ms
                    for line in taken.lines
                    if (line.name if line.name in named else "other") == name
                )
                / taken.latency_ms
                for _, taken in bars
            ]
        )
        if shares.any():
            axes.bar(range(len(bars)), shares, bottom=bottom, label=name.replace("_", " "), width=0.7)
        bottom += shares
    axes.set_xticks(
        range(len(bars)),
        [drawn_name(f"{name}\n{taken.latency_ms:.1f} ms") for name, taken in bars],
        fontsize=6,
    )
    axes.set_ylabel("share of the step")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
