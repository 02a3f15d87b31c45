"""Progress bar of measurements."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.microbench.points import Measurement, Point
from fleetplan.perfmodel.microbench.session import MeasuringProgress


class MeasureProgress(MeasuringProgress):
    """Shows a bar that grows with newly required points, or plain lines without a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("measuring", total=0)
        self._total = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, style="dim", markup=False, highlight=False)

    def planned(self, points: int) -> None:
        """Add to the number of remaining points."""
        self._total += points
        self._bar.update(self._task, total=self._total)
        if points and not self._console.is_terminal:
            self.say(f"{counted(points, 'point')} to measure")

    def begins(self, next_point: Point) -> None:
        """Show the label of a new point."""
        self._bar.update(self._task, description=next_point.label)

    def ends(self, measurement: Measurement | None, reason: str) -> None:
        """Count a point as measured, or as left out for a reason."""
        self._bar.advance(self._task)
