"""Figures without a window, and files of them that two runs write alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save(figure: Figure, path: Path) -> Path:
    """Write a figure to a file whose suffix says how; the same figure gives the same file."""
    import matplotlib as mpl  # noqa: PLC0415  (a quarter of a second, and few commands draw)

    with mpl.rc_context({"svg.hashsalt": "fleetplan"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, bbox_inches="tight", metadata=metadata)
    return path


def new_figure(columns: int, width: float = 5.2, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes side by side, without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    figure = NewFigure(figsize=(width * columns, height), dpi=120)
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False)
    return figure, list(axes[0])
