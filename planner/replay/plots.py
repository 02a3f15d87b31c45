"""Plots of a replay: latencies with limits, and queues and utilisation over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.planner.drawing import add_legend, drawn_name, new_figure, save
from fleetplan.planner.replay.outcome import Latency, PlaceOutcome, ReplayOutcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEPS: Final = (("p50_ms", "p50"), ("p90_ms", "p90"), ("p95_ms", "p95"), ("p99_ms", "p99"))
_COLOURS: Final = ("#b8d0e8", "#7fa8d1", "#3f78b0", "#1d4676")
_MOST_PLACES: Final = 12
"""Maximum number of services and regions in a timeline, by longest queue."""


def write_replay_plots(outcome: ReplayOutcome, folder: Path) -> list[Path]:
    """Write latencies.svg and timeline.svg into an existing folder."""
    if not outcome.places:
        return []
    figures = {"latencies": latency_figure(outcome), "timeline": timeline_figure(outcome)}
    return [save(figure, folder / f"{name}.svg") for name, figure in figures.items()]


def latency_figure(outcome: ReplayOutcome) -> Figure:
    """Return a figure of TTFT and TPOT percentiles by service and region, with limits as marks."""
    height = 1.2 + 0.42 * len(outcome.places)
    figure, axes = new_figure(2, 5.6, height)
    for axis, name, title in zip(axes, ("ttft", "tpot"), ("TTFT [ms]", "TPOT [ms]"), strict=True):
        _latency_bars(axis, outcome, name)
        axis.set_xlabel(title)
    axes[1].set_yticklabels([])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _latency_bars(axis: Axes, outcome: ReplayOutcome, name: str) -> None:
    rows = np.arange(len(outcome.places))
    for number, (field, label) in enumerate(reversed(_STEPS)):
        values = [_value(getattr(place, name), field) for place in outcome.places]
        axis.barh(rows, values, color=_COLOURS[len(_STEPS) - 1 - number], label=label, height=0.7)
    for row, place in enumerate(outcome.places):
        for check in place.limits:
            if check.latency == name:
                colour = "#2a7d2a" if check.holds else "#c02020"
                axis.plot([check.limit_ms] * 2, [row - 0.42, row + 0.42], color=colour, linewidth=2)
    axis.set_yticks(rows, [_label(place) for place in outcome.places], fontsize=8)
    axis.invert_yaxis()
    limits = [check.limit_ms for place in outcome.places for check in place.limits if check.latency == name]
    shown = [_value(getattr(place, name), field) for place in outcome.places for field, _ in _STEPS]
    # Requests of one output token have no TPOT, and a logarithmic axis needs positive values.
    if any(value > 0 for value in (*shown, *limits)):
        axis.set_xscale("log")
    else:
        axis.set_xticks([])
        axis.text(0.5, 0.5, "no request has any", transform=axis.transAxes, ha="center", va="center")
    axis.grid(axis="x", alpha=0.3)


def _value(latency: Latency | None, field: str) -> float:
    return float("nan") if latency is None else float(getattr(latency, field))


def timeline_figure(outcome: ReplayOutcome) -> Figure:
    """Return a figure of waiting requests and of the share of occupied places over time."""
    figure, (waiting, busy) = new_figure(2, 5.6, 4.2)
    places = sorted(outcome.places, key=_longest_queue, reverse=True)[:_MOST_PLACES]
    for place in places:
        times = sorted({point.time_s for point in place.timeline})
        queue = dict.fromkeys(times, 0)
        running, room = dict.fromkeys(times, 0), dict.fromkeys(times, 0)
        for point in place.timeline:
            queue[point.time_s] += point.waiting
            running[point.time_s] += point.running
            room[point.time_s] += point.places
        label = _label(place)
        waiting.plot(times, list(queue.values()), linewidth=1, label=label)
        busy.plot(times, [running[at] / max(1, room[at]) for at in times], linewidth=1, label=label)
    waiting.set_ylabel("waiting requests")
    busy.set_ylabel("share of places occupied")
    busy.set_ylim(0, 1.02)
    for axis in (waiting, busy):
        axis.set_xlabel("time [s]")
        axis.grid(alpha=0.3)
    add_legend(waiting)
    return figure


def _longest_queue(place: PlaceOutcome) -> int:
    return max((point.waiting for point in place.timeline), default=0)


def _label(place: PlaceOutcome) -> str:
    return drawn_name(f"{place.service}, {place.region}")
