"""Progress lines: dimmed on a terminal, plain otherwise."""

import io

from rich.console import Console

from fleetplan.planner.commands.terminal import progress

LINE = "evaluating [red]s1[/red]\x1b " + "of a long name " * 20


def said(*, watched: bool) -> str:
    file = io.StringIO()
    progress(Console(file=file, force_terminal=watched, width=80, highlight=False))(LINE)
    return file.getvalue()


def test_a_line_that_nobody_watches_is_one_line_and_steers_nothing() -> None:
    assert said(watched=False) == LINE.replace("\x1b", "\\x1b") + "\n"


def test_a_line_in_a_terminal_is_dimmed_and_fits_into_it() -> None:
    lines = said(watched=True).splitlines()
    assert len(lines) > 1
    assert lines[0].startswith("\x1b[2mevaluating [red]s1[/red]")
