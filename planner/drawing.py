"""Figures without a window, and files of them that two runs write alike."""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from fleetplan.fleet.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PLOT_SUFFIXES: Final = (".svg", ".png", ".pdf")
"""Of files that figures are written to."""

_NO_GLYPH: Final = "Glyph .* missing from font"
"""Warning of a name in a script that the font of drawings has no signs for: it is drawn as boxes."""

_MARK_OF_HIDDEN: Final = "_"
"""What labels begin with that no legend shows."""

_ZERO_WIDTH_SPACE: Final = "\u200b"

LegendPlace: TypeAlias = Literal["best", "lower right"]
"""Where a legend stands within its axes, as matplotlib calls it."""

PANELS_IN_A_ROW: Final = 3
"""Axes side by side whose letters can still be read where a figure is as wide as a page."""

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

    with mpl.rc_context({"svg.hashsalt": "fleetplan"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH, category=UserWarning)
        metadata = _UNDATED.get(path.suffix)
        drawn = BytesIO()
        figure.savefig(drawn, format=path.suffix[1:], bbox_inches="tight", metadata=metadata)
    return write_whole(path, drawn.getvalue())


def new_figure(panels: int, width: float = 5.2, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes side by side, in rows of at most `PANELS_IN_A_ROW`, without a window.

    Parameters
    ----------
    panels : int
        How many axes it has.
    width, height : float
        Of one of them. [in]
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    columns = min(panels, PANELS_IN_A_ROW)
    rows = -(-panels // columns)
    figure = NewFigure(figsize=(width * columns, height * rows), dpi=120)
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[panels:]:
        unused.remove()
    return figure, axes[:panels]


def drawn_name(text: str) -> str:
    """Return text that somebody chose as a drawing shows it as it is: no formula, and no hidden label."""
    plain = text.replace("$", r"\$")
    return f"{_ZERO_WIDTH_SPACE}{plain}" if plain.startswith(_MARK_OF_HIDDEN) else plain


def add_legend(
    axes: Axes, place: LegendPlace = "best", font_size: float | str = 7, framed: bool = False
) -> None:
    """Explain the colours of axes; nothing where nothing is drawn.

    Parameters
    ----------
    axes : Axes
        With labels from `drawn_name`, where they hold names that somebody chose.
    place : LegendPlace
        Where it stands.
    font_size : float or str
        In points, or in matplotlib's words.
    framed : bool
        Whether it has a frame.
    """
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc=place, fontsize=font_size, frameon=framed)
