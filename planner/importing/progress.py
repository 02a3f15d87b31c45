"""Show the progress of reading a large file in one changing line, only on a terminal."""

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
    """Yield a function that takes the share of a file read so far, 0 to 1; None off a terminal.

    Parameters
    ----------
    path : Path
        File being read, for the line.
    console : Console
        Console for the line.
    """
    if not console.is_terminal:
        yield None
        return
    shown = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*shown, console=console, transient=True) as progress:
        task = progress.add_task(f"reading {escape(path.name)}", total=1.0)
        yield lambda share: progress.update(task, completed=share)
