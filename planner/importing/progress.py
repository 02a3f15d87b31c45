"""Shows how much of a large file has been read: one line that changes, on a terminal alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from fleetplan.fleet.document.records import Watcher


@contextmanager
def reading(path: Path, console: Console) -> Iterator[Watcher | None]:
    """Give what takes shares of a file from 0 to 1; None where nobody watches.

    Parameters
    ----------
    path : Path
        What is read, for the line.
    console : Console
        Where it is shown.
    """
    if not console.is_terminal:
        yield None
        return
    shown = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*shown, console=console, transient=True) as progress:
        task = progress.add_task(f"reading {escape(path.name)}", total=1.0)
        yield lambda share: progress.update(task, completed=share)
