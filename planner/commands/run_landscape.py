"""Run `plan landscape`: evaluate configurations, then print, write and draw them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from fleetplan.perfmodel.landscape import REASON_TEXTS, GridBlock, framework_problem, tasks_of
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.planner.commands.terminal import say_written
from fleetplan.planner.landscape.answer import LandscapeAnswer, answer, block_table, filtered, point_of_row
from fleetplan.planner.landscape.explain import explain
from fleetplan.planner.landscape.files import row_writer
from fleetplan.planner.landscape.menu import inference_menu
from fleetplan.planner.landscape.question import Question
from fleetplan.planner.landscape.waterfall import waterfall
from fleetplan.planner.report.landscape_console import print_answer, print_explanation, print_rows


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output files of a landscape.

    Attributes
    ----------
    csv, parquet : Path or None
        Files for all rows, with the reason for each exclusion.
    plots : Path or None
        Folder for the figures.
    plot_format : str
        svg or png.
    condition : str or None
        Condition on the columns that selects rows to show and write.
    usable_only : bool
        Whether to leave excluded rows out of the files.
    explain_row : int or None
        Row to explain instead of the overview.
    menu : bool
        Whether to print the inference menu instead of the overview.
    """

    csv: Path | None = None
    parquet: Path | None = None
    plots: Path | None = None
    plot_format: str = "svg"
    condition: str | None = None
    usable_only: bool = False
    explain_row: int | None = None
    menu: bool = False


def run_landscape(question: Question, outputs: Outputs, console: Console, errors: Console) -> None:
    """Answer a question and produce the outputs.

    Raises
    ------
    InputError
        A file cannot be written, a condition is invalid, or a row does not exist.
    """
    if outputs.explain_row is not None:
        print_row(question, outputs.explain_row, console)
        return
    if outputs.menu:
        print_rows("inference menu", inference_menu(question), console)
        return
    with _files(question, outputs) as on_block, _progress(question, errors) as advance:

        def both(block: GridBlock) -> None:
            on_block(block)
            advance(block)

        found = answer(question, both)
    print_answer(found, outputs.condition, console)
    for path in (outputs.csv, outputs.parquet):
        if path is not None:
            say_written(errors, path)
    if outputs.plots is not None:
        _draw(found, outputs, errors)


def print_row(question: Question, row: int, console: Console) -> None:
    """Print the explanation of one row of the search space."""
    point, reason = point_of_row(question, row)
    option = question.space.options[int(point.option[0])]
    layout, batch = point.layout[0], int(point.batch[0])
    request = question.space.requests[int(point.request[0])]
    phase, architecture = str(point.phase[0]), option.evaluator.architecture
    taken = explain(option, phase, layout, batch, request)
    problem = framework_problem(option.framework, architecture, layout, phase, option.setting)
    text = problem or REASON_TEXTS.get(reason, "")
    state = f"excluded: {reason}: {text}" if reason else "usable"
    title = f"row {row}: {phase} on {option.hardware}, {Configuration(layout, batch).label} ({state})"
    print_explanation(title, taken, waterfall(question, point), console)


def _draw(found: LandscapeAnswer, outputs: Outputs, errors: Console) -> None:
    from fleetplan.planner.landscape.plots import write_plots

    assert outputs.plots is not None
    for path in write_plots(found, outputs.plots, outputs.plot_format):
        errors.print(f"drawn to {path}", style="dim", markup=False)


@contextlib.contextmanager
def _files(question: Question, outputs: Outputs) -> Iterator[Callable[[GridBlock], None]]:
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(row_writer(path, columnar))
            for path, columnar in ((outputs.csv, False), (outputs.parquet, True))
            if path is not None
        ]

        def write(block: GridBlock) -> None:
            if writers:
                table = filtered(block_table(block, question, outputs.usable_only), outputs.condition)
                for writer in writers:
                    writer.write(table)

        yield write


class _Speed(ProgressColumn):
    """Configurations per second, once known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} configurations/s")


@contextlib.contextmanager
def _progress(question: Question, errors: Console) -> Iterator[Callable[[GridBlock], None]]:
    """Show a progress bar with configurations per second, only on a terminal."""
    total = sum(task.size for task in tasks_of(question.space))
    bar = Progress(
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} configurations"),
        BarColumn(),
        _Speed(),
        TimeElapsedColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
    with bar:
        running = bar.add_task("", total=total)
        yield lambda block: bar.advance(running, block.excluded.size)
