"""Figures as SVG inside a page: colours and fonts of the page, names that no other figure has."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Painter: TypeAlias = "Callable[[Axes], None]"
"""What draws on the axes of a figure."""

SERIES_COLOURS: Final = 12
"""Colours of the style sheet, `--c0` to `--c11`."""

LONGEST_NAME: Final = 36
"""Letters of a name in a figure."""

INK: Final = "#0a0a01"
QUIET: Final = "#0a0a02"
GRID: Final = "#0a0a03"
PAPER: Final = "#0a0a04"
LIMIT: Final = "#0a0a05"
GAIN: Final = "#0a0a06"
LOSS: Final = "#0a0a07"

_VARIABLES: Final = {
    INK: "--ink",
    QUIET: "--quiet",
    GRID: "--rule",
    PAPER: "--paper",
    LIMIT: "--alarm",
    GAIN: "--good",
    LOSS: "--bad",
}
"""Colours that stand for variables of the style sheet: they differ between light and dark."""

_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fleetplan",
    "text.parse_math": False,
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": GRID,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": QUIET,
    "ytick.labelcolor": QUIET,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.minor.size": 0,
    # A place of its own: matplotlib would measure every label to find one.
    "axes.titley": 1.0,
}
"""Names with a dollar sign are names, not mathematics; text stays text in the font of the page."""

_NO_METADATA: Final = {"Date": None, "Creator": None, "Format": None, "Type": None}


def series(index: int) -> str:
    """Colour of a series, the same in figures and tables."""
    return f"#0b0b{index % SERIES_COLOURS:02x}"


def short(name: str, most: int = LONGEST_NAME) -> str:
    """A name that fits above a figure, or in so many letters; the tables have it whole."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


@dataclass(frozen=True, slots=True)
class Frame:
    """Size of a figure and the room beside its axes.

    A layout that matplotlib finds itself measures every label twice, most of the time that a figure takes.

    Attributes
    ----------
    width_in, height_in : float
        Size at 96 pixels an inch; a narrower page shrinks it.
    left_in, right_in, top_in, bottom_in : float
        Room for ticks, labels and the title.
    """

    width_in: float
    height_in: float
    left_in: float = 0.68
    right_in: float = 0.08
    top_in: float = 0.24
    bottom_in: float = 0.44


def thousands(value: float) -> str:
    """A tick of an axis: thousands apart, no exponent."""
    return f"{value:,.10g}"


def draw(paint: Painter, label: str, frame: Frame) -> Markup:
    """Return a figure as an element of a page.

    Parameters
    ----------
    paint : callable
        Draws on the axes.
    label : str
        What it shows, for those who do not see it.
    frame : Frame
        Its size and margins.
    """
    import matplotlib as mpl  # noqa: PLC0415  (a quarter of a second, and only a report with figures draws)
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        figure = NewFigure(figsize=(frame.width_in, frame.height_in))
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.subplots()
        axes.patch.set_visible(False)
        figure.subplots_adjust(
            left=frame.left_in / frame.width_in,
            right=1 - frame.right_in / frame.width_in,
            top=1 - frame.top_in / frame.height_in,
            bottom=frame.bottom_in / frame.height_in,
        )
        # As the place of the title: labels of axes stand in the margins.
        axes.xaxis.set_label_coords(0.5, 0.12 / frame.height_in, figure.transFigure)
        axes.yaxis.set_label_coords(0.17 / frame.width_in, 0.5, figure.transFigure)
        paint(axes)
        return _element(figure, label)


def _element(figure: Figure, label: str) -> Markup:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata=_NO_METADATA)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    text = re.sub(r"#0b0b([0-9a-f]{2})", lambda found: f"var(--c{int(found[1], 16)})", text)
    head = Markup('<svg class="figure" role="img" aria-label="{}"').format(label)
    # matplotlib escapes every text of a figure.
    return Markup(text.replace("<svg", str(head), 1))


def unique_names(figure: Markup, prefix: str) -> Markup:
    """Return the figure with a prefix on each of its names, so that two figures on a page share none."""
    text = re.sub(r'\bid="', f'id="{prefix}-', str(figure))
    text = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", text)
    return Markup(text)
