"""Run `plan export`: check the options, write the files, and list omissions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together
from fleetplan.planner.commands.terminal import say_written
from fleetplan.planner.export.launch.commands import FRAMEWORKS
from fleetplan.planner.export.launch.files import FORMATS, ExportOptions
from fleetplan.planner.plan import Plan

LEFT_SHOWN: Final = 5
"""Maximum number of files from an earlier export that are named."""


def asked_of(period: str | None, framework: str | None, locations: Sequence[str]) -> ExportOptions:
    """Return the options of an export as one record.

    Raises
    ------
    InputError
        A location is not written as REGION=LOCATION.
    """
    by_region = {}
    for text in locations:
        region, parted, place = text.partition("=")
        if not (parted and region and place):
            raise _wrong("--location", f"{text!r} is not REGION=LOCATION", "as in us-east=us-east4")
        by_region[region] = place
    return ExportOptions(period, framework, by_region)


def run_export(plan: Plan, form: str, folder: Path, asked: ExportOptions, errors: Console) -> None:
    """Write the files of a format.

    Parameters
    ----------
    plan : Plan
        Plan to export.
    form : str
        A name in `FORMATS`.
    folder : Path
        Output folder; created if it does not exist.
    asked : ExportOptions
        Options; the format must support those that are set.
    errors : Console
        Console for written files and omissions.

    Raises
    ------
    InputError
        The format, period, framework or region does not exist; the format does not have an option; or there
        is nothing to write.
    """
    if form not in FORMATS:
        raise _wrong("--as", f"there is no format {form!r}", names_hint(form, tuple(FORMATS)))
    _check(plan, form, asked)
    exported = FORMATS[form].write(plan, asked)
    for each in exported.refused:
        errors.print(f"left out: {each.label}: {each.reason}", style="yellow", markup=False)
    if not exported.files:
        raise _wrong("--as", f"{form} cannot express any part of the plan")
    try:
        with written_together(folder) as parts:
            for name, content in exported.files.items():
                write_whole(parts / name, content)
    except FileNotWrittenError as error:
        raise _wrong("--out", f"{folder} cannot be written: {error.strerror}") from error
    for name in exported.files:
        say_written(errors, folder / name)
    left = _left_from_before(folder, exported.files)
    if left:
        shown = ", ".join(left[:LEFT_SHOWN])
        more = f" and {len(left) - LEFT_SHOWN} more" if len(left) > LEFT_SHOWN else ""
        said = f"{folder} also contains files of an earlier export: {shown}{more}"
        errors.print(said, style="yellow", markup=False)


def _left_from_before(folder: Path, written: Collection[str]) -> list[str]:
    """Return older files of the same kinds in the folder, which a user might apply with the new ones."""
    kinds = {Path(name).suffix for name in written}
    return sorted(each.name for each in folder.iterdir() if each.suffix in kinds and each.name not in written)


def _check(plan: Plan, form: str, asked: ExportOptions) -> None:
    """Refuse options that the format does not have, and unknown values."""
    chosen, period, framework = FORMATS[form], asked.period, asked.framework
    if period is not None and not chosen.by_period:
        raise _wrong("--period", f"{form} covers the whole horizon")
    if period is not None and period not in plan.periods:
        raise _wrong("--period", f"there is no {period!r}", names_hint(period, plan.periods))
    if framework is not None and not chosen.by_framework:
        raise _wrong("--framework", f"{form} uses the framework of each service")
    if framework is not None and framework not in FRAMEWORKS:
        raise _wrong("--framework", f"there is no {framework!r}", names_hint(framework, FRAMEWORKS))
    if asked.locations and not chosen.by_location:
        raise _wrong("--location", f"{form} has no locations")
    regions = tuple(dict.fromkeys(use.region for use in plan.pools))
    for region in asked.locations:
        if region not in regions:
            raise _wrong("--location", f"the plan has no region {region!r}", names_hint(region, regions))


def _wrong(option: str, message: str, hint: str = "") -> InputError:
    return InputError([Issue("command line", 0, 0, option, message, hint)])
