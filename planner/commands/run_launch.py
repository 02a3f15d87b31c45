"""`plan export`: checks what is asked, writes the files, says what they leave out."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together
from fleetplan.planner.export.launch.commands import FRAMEWORKS
from fleetplan.planner.export.launch.files import FORMATS
from fleetplan.planner.plan import Plan


def run_export(
    plan: Plan, form: str, folder: Path, period: str | None, framework: str | None, errors: Console
) -> None:
    """Write the files of a format.

    Parameters
    ----------
    plan : Plan
        What to export.
    form : str
        A name of `FORMATS`.
    folder : Path
        Created if it does not exist.
    period, framework : str or None
        As far as the format has them.
    errors : Console
        Told what was written and what was not.

    Raises
    ------
    InputError
        No such format, period or framework; an option that the format does not have; nothing to write.
    """
    if form not in FORMATS:
        raise _wrong("--as", f"there is no format {form!r}", names_hint(form, tuple(FORMATS)))
    chosen = FORMATS[form]
    if period is not None and not chosen.by_period:
        raise _wrong("--period", f"{form} is of the whole horizon")
    if period is not None and period not in plan.periods:
        raise _wrong("--period", f"there is no {period!r}", names_hint(period, plan.periods))
    if framework is not None and not chosen.by_framework:
        raise _wrong("--framework", f"{form} takes each service's own")
    if framework is not None and framework not in FRAMEWORKS:
        raise _wrong("--framework", f"there is no {framework!r}", names_hint(framework, FRAMEWORKS))
    exported = chosen.write(plan, period, framework)
    for each in exported.refused:
        row = each.placement
        text = (
            f"left out: {row.service} {row.phase} {row.config} on {row.hardware} in {row.pool}: {each.reason}"
        )
        errors.print(text, style="yellow", markup=False)
    try:
        with written_together(folder) as parts:
            for name, content in exported.files.items():
                write_whole(parts / name, content)
    except FileNotWrittenError as error:
        raise _wrong("--out", f"{folder} cannot be written: {error.strerror}") from error
    for name in exported.files:
        errors.print(f"written to {folder / name}", style="dim", markup=False)
    if not exported.files:
        raise _wrong("--as", f"{form} can hold none of the placements")


def _wrong(option: str, message: str, hint: str = "") -> InputError:
    return InputError([Issue("command line", 0, 0, option, message, hint)])
