"""Figures without a window, and files of them that two runs write alike."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetplan.fleet.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PLOT_SUFFIXES: Final = (".svg", ".png", ".pdf")
"""Of files that figures are written to."""

_UNDATED: Final = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""What leaves out when a figure was drawn."""


def save(figure: Figure, path: Path) -> Path:
    """Write a figure to a file whose suffix says how; the same figure gives the same file.

    Parameters
    ----------
    figure : Figure
        What is drawn.
    path : Path
        Ends in one of `PLOT_SUFFIXES`; its folder is made where there is none.

    Raises
    ------
    FileNotWrittenError
        It cannot be written; an older file is then as it was.
    """
    import matplotlib as mpl  # noqa: PLC0415  (a quarter of a second, and few commands draw)

    with mpl.rc_context({"svg.hashsalt": "fleetplan"}):
        metadata = _UNDATED.get(path.suffix)
        drawn = BytesIO()
        figure.savefig(drawn, format=path.suffix[1:], bbox_inches="tight", metadata=metadata)
    return write_whole(path, drawn.getvalue())


def new_figure(columns: int, width: float = 5.2, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes side by side, without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    figure = NewFigure(figsize=(width * columns, height), dpi=120)
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False)
    return figure, list(axes[0])
