"""Figures without a window, written reproducibly to files."""

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
"""Suffixes of figure files."""

_NO_GLYPH: Final = "Glyph .* missing from font"
"""Warning for names in scripts without glyphs in the font: they are drawn as boxes."""

_MARK_OF_HIDDEN: Final = "_"
"""First character of labels that legends hide."""

_ZERO_WIDTH_SPACE: Final = "\u200b"

LegendPlace: TypeAlias = Literal["best", "lower right"]
"""Position of a legend in its axes, in matplotlib's terms."""

PANELS_IN_A_ROW: Final = 3
"""Largest number of axes per row that keeps text readable at page width."""

_UNDATED: Final = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""Metadata that omits the date of a figure."""


def save(figure: Figure, path: Path) -> Path:
    """Write a figure to a file in the format of its suffix; equal figures give equal files.

    Parameters
    ----------
    figure : Figure
        The figure.
    path : Path
        Ends in one of `PLOT_SUFFIXES`; missing folders are created.

    Raises
    ------
    FileNotWrittenError
        If it cannot be written; an older file then stays.
    """
    import matplotlib as mpl  # noqa: PLC0415  (a quarter of a second, and few commands draw)

    with mpl.rc_context({"svg.hashsalt": "fleetplan"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH, category=UserWarning)
        metadata = _UNDATED.get(path.suffix)
        drawn = BytesIO()
        figure.savefig(drawn, format=path.suffix[1:], bbox_inches="tight", metadata=metadata)
    return write_whole(path, drawn.getvalue())


def new_figure(panels: int, width: float = 5.2, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes in rows of at most `PANELS_IN_A_ROW`, without a window.

    Parameters
    ----------
    panels : int
        Number of axes.
    width, height : float
        Size of one of them. [in]
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
    """Escape user text for a figure: no formula, and no hidden label."""
    plain = text.replace("$", r"\$")
    return f"{_ZERO_WIDTH_SPACE}{plain}" if plain.startswith(_MARK_OF_HIDDEN) else plain


def add_legend(
    axes: Axes, place: LegendPlace = "best", font_size: float | str = 7, framed: bool = False
) -> None:
    """Add a legend to axes, if they have labels.

    Parameters
    ----------
    axes : Axes
        Axes whose labels come from `drawn_name` if they contain user text.
    place : LegendPlace
        Position.
    font_size : float or str
        Size in points, or in matplotlib's words.
    framed : bool
        Whether to draw a frame.
    """
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc=place, fontsize=font_size, frameon=framed)
