"""Figures as SVG in a page, with the colours and fonts of the page and unique element names."""

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
"""Function that draws on the axes of a figure."""

SERIES_COLOURS: Final = 12
"""Number of colours in the style sheet, `--c0` to `--c11`."""

LONGEST_NAME: Final = 36
"""Maximum length of a name in a figure. [letters]"""

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
"""Placeholder colours for variables of the style sheet that differ between light and dark mode."""

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
    # A fixed position; otherwise matplotlib measures every label to find one.
    "axes.titley": 1.0,
}
"""matplotlib style: no math in names with a dollar sign, and text in the font of the page."""

_NO_METADATA: Final = {"Date": None, "Creator": None, "Format": None, "Type": None}


def series(index: int) -> str:
    """Return the colour of a series, the same in figures and tables."""
    return f"#0b0b{index % SERIES_COLOURS:02x}"


def short(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name shortened to fit above a figure; the tables show it in full."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


@dataclass(frozen=True, slots=True)
class Frame:
    """Size of a figure and the margins around its axes.

    An automatic layout of matplotlib measures every label twice, which takes most of the drawing time.

    Attributes
    ----------
    width_in, height_in : float
        Size at 96 pixels per inch; a narrower page scales it down.
    left_in, right_in, top_in, bottom_in : float
        Margins for ticks, labels and the title.
    """

    width_in: float
    height_in: float
    left_in: float = 0.68
    right_in: float = 0.08
    top_in: float = 0.24
    bottom_in: float = 0.44


def thousands(value: float) -> str:
    """Return the label of an axis tick, with thousands separators and without an exponent."""
    return f"{value:,.10g}"


def draw(paint: Painter, label: str, frame: Frame) -> Markup:
    """Return a figure as an element of a page.

    Parameters
    ----------
    paint : callable
        Function that draws on the axes.
    label : str
        Description for readers who cannot see the figure.
    frame : Frame
        Size and margins of the figure.
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
        # Fixed like the position of the title: axis labels go into the margins.
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
    """Return the figure with a prefix on each element name, so that no two figures on a page share one."""
    text = re.sub(r'\bid="', f'id="{prefix}-', str(figure))
    text = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", text)
    return Markup(text)
