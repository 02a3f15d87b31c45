"""Command line: thin, lazily imported, and clear about whose mistake an error is.

Exit codes: 0 a plan was found, 1 a bug of ours, 2 bad usage or input, 3 proven infeasible, 4 a limit was
reached before the gap, 5 plans differ (`plan diff --exit-code`). stdout carries only the result; progress and
warnings go to stderr.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.models import CommandInfo, TyperInfo

from fleetplan.fleet.input_files import is_file
from fleetplan.fleet.printable import printable
from fleetplan.planner.commands.calibrate import calibrate_measurements
from fleetplan.planner.commands.check import check, verify
from fleetplan.planner.commands.explain import explain
from fleetplan.planner.commands.export import dump, export, report
from fleetplan.planner.commands.forecast import forecast
from fleetplan.planner.commands.importing import import_app
from fleetplan.planner.commands.invalid_values import say_allowed
from fleetplan.planner.commands.landscape import landscape
from fleetplan.planner.commands.merge import merge
from fleetplan.planner.commands.new import new_fleet_file, print_schema
from fleetplan.planner.commands.optables import optables_app
from fleetplan.planner.commands.predict import predict
from fleetplan.planner.commands.questions import compare, diff_plans
from fleetplan.planner.commands.replay import replay
from fleetplan.planner.commands.serve import serve
from fleetplan.planner.commands.shared import ExitCode
from fleetplan.planner.commands.solve import solve
from fleetplan.planner.commands.sweep import sweep
from fleetplan.planner.commands.track import track
from fleetplan.planner.commands.what_if import alternatives, pareto, stress


@contextmanager
def _told() -> Iterator[None]:
    """Report Ctrl-C, and the allowed values of a wrong option, in our words."""
    try:
        yield
    except typer.BadParameter as error:
        say_allowed(error)
        raise
    except KeyboardInterrupt as interrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(ExitCode.LIMIT) from interrupt


class _Commands(TyperGroup):
    """Group of all commands; Ctrl-C without a result exits like a reached limit."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _told():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _told():
            return super().invoke(ctx)


app = typer.Typer(
    name="plan",
    cls=_Commands,
    help="The cheapest accelerator fleet that serves every LLM within its latency targets. "
    "'plan FLEET.yaml' is short for 'plan solve FLEET.yaml'.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_versions(asked: bool) -> None:
    """Print the versions that a bug report needs, and exit."""
    if not asked:
        return
    from fleetplan.fleet.packages import installed_versions

    system = f"Python {platform.python_version()}, {platform.platform(terse=True)}"
    libraries = [f"{name} {number}" for name, number in installed_versions().items()]
    typer.echo("\n".join([*libraries, system]))
    raise typer.Exit


@app.callback()
def plan(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_tell_versions,
            is_eager=True,
            help="Show the versions that answers depend on and exit.",
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


app.add_typer(optables_app)
app.add_typer(import_app)
app.command("solve")(solve)
app.command("check")(check)
app.command("verify")(verify)
app.command("predict")(predict)
app.command("landscape")(landscape)
app.command("diff")(diff_plans)
app.command("compare")(compare)
app.command("explain")(explain)
app.command("sweep")(sweep)
app.command("stress")(stress)
app.command("alternatives")(alternatives)
app.command("pareto")(pareto)
app.command("replay")(replay)
app.command("forecast")(forecast)
app.command("track")(track)
app.command("merge")(merge)
app.command("calibrate")(calibrate_measurements)
app.command("serve")(serve)
app.command("report")(report)
app.command("export")(export)
app.command("dump")(dump)
app.command("new")(new_fleet_file)
app.command("schema")(print_schema)


def _named(info: CommandInfo | TyperInfo) -> str:
    """Return the name of a command or of a group."""
    if isinstance(info, TyperInfo):
        return str(info.name or (info.typer_instance and info.typer_instance.info.name))
    return str(info.name or (info.callback and info.callback.__name__))


def _names() -> set[str]:
    return {*map(_named, app.registered_commands), *map(_named, app.registered_groups)}


def _with_command(arguments: list[str]) -> list[str]:
    """Expand `plan FLEET.yaml` to `plan solve FLEET.yaml`."""
    if arguments and not arguments[0].startswith("-"):
        first = Path(arguments[0])
        if first.name not in _names() and (first.suffix.lower() in {".yaml", ".yml"} or is_file(first)):
            return ["solve", *arguments]
    return arguments


@cache
def _program(name: str | None = None) -> Callable[..., Any]:
    """Build one command, or all: reading all options takes as long as a short command.

    Parameters
    ----------
    name : str, optional
        Name of the only command needed.
    """
    if name is None:
        return get_command(app)
    alone = copy(app)
    alone.registered_commands = [each for each in app.registered_commands if _named(each) == name]
    alone.registered_groups = [each for each in app.registered_groups if _named(each) == name]
    return get_command(alone)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code.

    A user's mistake, or a file that cannot be written, prints its message and exits with 2; a limit reached
    before an answer exits with 4; unexpected errors keep their traceback and exit with 1.
    """
    from fleetplan.fleet.errors import InputError, LimitReachedError
    from fleetplan.fleet.files import FileNotWrittenError

    asked = _with_command(sys.argv[1:] if arguments is None else arguments)
    known = bool(asked) and asked[0] in _names()
    try:
        _program(asked[0] if known else None)(args=asked)
    except (InputError, FileNotWrittenError) as error:
        _end(error, ExitCode.BAD_INPUT)
    except LimitReachedError as error:
        _end(error, ExitCode.LIMIT)


def _end(error: Exception, code: ExitCode) -> None:
    sys.stderr.write(f"{printable(str(error))}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
