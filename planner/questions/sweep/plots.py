"""Plots of a sweep: TCO over the grid, and the hardware in use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from fleetplan.planner.drawing import add_legend, drawn_name, new_figure, save
from fleetplan.planner.questions.sweep.axes import SweepAxis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TCO: Final = "tco"
IN_USE: Final = "in use: "
MOST_LINES: Final = 8
"""Maximum number of lines in a plot; larger grids have a heat map."""


def write_sweep_plots(axes: Sequence[SweepAxis], table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write the plots of a sweep.

    Parameters
    ----------
    axes : Sequence[SweepAxis]
        Axes of the grid; plots use the first two, at the first value of the others.
    table : pandas.DataFrame
        Table from `sweep_table`.
    folder : Path
        Output folder; created if it does not exist.

    Returns
    -------
    list[Path]
        tco.svg with a line per value of the second axis, hardware.svg over the first axis, and heatmap.svg
        for two or more axes. Empty if no point has a plan.
    """
    solved = table[table["metric"] != ""]
    for axis in axes[2:]:
        solved = solved[solved[axis.key] == table[axis.key].iloc[0]]
    if solved.empty:
        return []
    figures = {"tco": tco_figure(axes, solved), "hardware": hardware_figure(axes, solved)}
    if len(axes) > 1:
        figures["heatmap"] = heat_map_figure(axes, solved)
    return [save(figure, folder / f"{name}.svg") for name, figure in figures.items()]


def tco_figure(axes: Sequence[SweepAxis], table: pd.DataFrame) -> Figure:
    """Return a figure of the TCO over the first axis, one line per value of the second, bounds shaded."""
    figure, (plot,) = new_figure(1)
    first = axes[0].key
    groups = [("", table)]
    if len(axes) > 1:
        groups = [(str(value), rows) for value, rows in table.groupby(axes[1].key, sort=False)]
    for label, group in groups[:MOST_LINES]:
        rows = group[group["metric"] == TCO]
        bounds = group[group["metric"] == "tco bound"]
        places = _places(rows[first])
        name = drawn_name(f"{axes[1].key}={label}") if label else None
        (line,) = plot.plot(places, rows["value"] / 1e3, marker="o", label=name)
        plot.fill_between(
            places, bounds["value"] / 1e3, rows["value"] / 1e3, alpha=0.2, color=line.get_color()
        )
    _label_places(plot, table[first])
    plot.set_xlabel(drawn_name(first))
    plot.set_ylabel("TCO over the horizon [k USD], shaded down to the bound")
    if len(axes) > 1:
        add_legend(plot, font_size="small")
    return figure


def hardware_figure(axes: Sequence[SweepAxis], table: pd.DataFrame) -> Figure:
    """Return a figure of accelerators by hardware over the first axis, at the first value of the second."""
    first = axes[0].key
    shown = table if len(axes) == 1 else table[table[axes[1].key] == table[axes[1].key].iloc[0]]
    figure, (plot,) = new_figure(1)
    values = list(dict.fromkeys(shown[first]))
    base = [0.0] * len(values)
    for metric in dict.fromkeys(shown.loc[shown["metric"].str.startswith(IN_USE), "metric"]):
        rows = shown[shown["metric"] == metric].set_index(first)["value"]
        heights = [float(rows.get(value, 0.0)) for value in values]
        plot.bar(range(len(values)), heights, bottom=base, label=drawn_name(metric.removeprefix(IN_USE)))
        base = [low + height for low, height in zip(base, heights, strict=True)]
    plot.set_xticks(range(len(values)), [drawn_name(str(value)) for value in values])
    title = first if len(axes) == 1 else f"{first}, at {axes[1].key}={shown[axes[1].key].iloc[0]}"
    plot.set_xlabel(drawn_name(title))
    plot.set_ylabel("accelerators in use")
    add_legend(plot, font_size="small")
    return figure


def heat_map_figure(axes: Sequence[SweepAxis], table: pd.DataFrame) -> Figure:
    """Return a heat map of the TCO over the first two axes; points without a plan are blank."""
    first, second = axes[0].key, axes[1].key
    rows = table[table["metric"] == TCO]
    grid = rows.pivot_table(index=second, columns=first, values="value", sort=False) / 1e3
    figure, (plot,) = new_figure(1)
    picture = plot.imshow(grid.to_numpy(dtype=float), aspect="auto", origin="lower", cmap="viridis")
    plot.set_xticks(range(len(grid.columns)), [drawn_name(str(value)) for value in grid.columns])
    plot.set_yticks(range(len(grid.index)), [drawn_name(str(value)) for value in grid.index])
    plot.set_xlabel(drawn_name(first))
    plot.set_ylabel(drawn_name(second))
    figure.colorbar(picture, label="TCO over the horizon [k USD]")
    return figure


def _places(values: pd.Series) -> list[float]:
    """Return the positions of values on an axis: numbers to scale, other values at equal distances."""
    if pd.api.types.is_numeric_dtype(values):
        return [float(value) for value in values]
    order = list(dict.fromkeys(values))
    return [float(order.index(value)) for value in values]


def _label_places(plot: object, values: pd.Series) -> None:
    from matplotlib.axes import Axes  # noqa: PLC0415  (loaded with the figure)

    if isinstance(plot, Axes) and not pd.api.types.is_numeric_dtype(values):
        order = list(dict.fromkeys(values))
        plot.set_xticks(range(len(order)), [drawn_name(str(value)) for value in order])
