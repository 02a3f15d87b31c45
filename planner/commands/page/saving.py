"""Save results of the page: a scenario in the fleet file, and files of a plan."""

from __future__ import annotations

import io
import re
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fleetplan.fleet.document import YamlText, read_document
from fleetplan.fleet.errors import InputError, names_hint
from fleetplan.fleet.input_files import read_text
from fleetplan.planner.commands.fleet_file import write_fleet_file
from fleetplan.planner.commands.page.changes import mistake
from fleetplan.planner.commands.page.session import KeptPlan
from fleetplan.planner.export.files import write_plan
from fleetplan.planner.export.launch.files import FORMATS, ExportOptions
from fleetplan.planner.plan import PLAN_FILE, Infeasible, Plan
from fleetplan.planner.report.html.page import REPORT_FILE, infeasible_page, report_page
from fleetplan.scenarios.difference import difference
from fleetplan.scenarios.expand import expand

SCENARIO_NAME: Final = re.compile(r"[^\s,\[\]|]+")

_ONE_AT_A_TIME: Final = threading.Lock()
"""Prevents two browsers that save at the same time from overwriting each other's scenario."""


def save_scenario(path: Path, kept: KeptPlan, name: str) -> None:
    """Write the changes of a plan into the fleet file as a scenario; the rest of the file stays the same.

    Parameters
    ----------
    path : Path
        Path of the fleet file.
    kept : KeptPlan
        Plan with the changes.
    name : str
        New name of the scenario.

    Raises
    ------
    InputError
        The name is taken or invalid, nothing was changed, or the file cannot be written.
    """
    if SCENARIO_NAME.fullmatch(name) is None:
        raise mistake(
            "name", f"{name!r} is not a valid name", "use one word without blanks, commas, brackets and bars"
        )
    with _ONE_AT_A_TIME:
        document = read_document(path)
        if document.node(("scenarios", name)) is not None:
            raise InputError(
                [
                    document.issue(
                        ("scenarios", name), f"there is already a scenario {name!r}", "choose another name"
                    )
                ]
            )
        changed = difference(document.root, expand(document, kept.scenarios, kept.assignments).root)
        if not changed:
            raise mistake("name", "nothing was changed for this plan", "plan a change first")
        text = YamlText(read_text(path))
        comment = [" ".join(f"plan serve: {kept.title}".split())]
        try:
            text.put(("scenarios", name), changed, comment)
        except KeyError:
            text.put(("scenarios",), {name: changed}, comment)
        write_fleet_file(path, text.changed(), over=True, scenarios=[name])


@dataclass(frozen=True, slots=True)
class Download:
    """A file of a plan.

    Attributes
    ----------
    name : str
        Name of the file, without a folder.
    content : bytes
        Content of the file.
    """

    name: str
    content: bytes


OWN_FORMS: Final = {
    "report": "report (HTML)",
    "json": "plan (JSON)",
    "tables": "all tables (CSV)",
}
"""Files of every plan with their labels, in addition to the formats of `plan export`."""


def report_of(outcome: Plan | Infeasible) -> str:
    """Return the report of a plan, without frontiers."""
    return infeasible_page(outcome) if isinstance(outcome, Infeasible) else report_page(outcome)


def download(kept: KeptPlan, form: str) -> Download:
    """Return a file of a plan; several files form an archive.

    Parameters
    ----------
    kept : KeptPlan
        Plan of the page.
    form : str
        A name in `OWN_FORMS`, or a format of `plan export`.

    Raises
    ------
    InputError
        The format does not exist, or cannot express any part of the plan.
    """
    files = _own_files(kept.outcome, form) if form in OWN_FORMS else _exported(kept.outcome, form)
    if len(files) == 1:
        return Download(*next(iter(files.items())))
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return Download(f"{form}.zip", held.getvalue())


def _own_files(outcome: Plan | Infeasible, form: str) -> Mapping[str, bytes]:
    if form == "report":
        return {REPORT_FILE: report_of(outcome).encode()}
    with TemporaryDirectory(prefix="fleetplan-") as folder:
        written = {path.name: path.read_bytes() for path in write_plan(outcome, Path(folder))}
    return written if form == "tables" else {PLAN_FILE: written[PLAN_FILE]}


def _exported(outcome: Plan | Infeasible, form: str) -> Mapping[str, bytes]:
    if form not in FORMATS:
        raise mistake("export", f"there is no format {form!r}", names_hint(form, (*OWN_FORMS, *FORMATS)))
    if isinstance(outcome, Infeasible):
        raise mistake("export", "the fleet cannot be served, so there is no plan to export")
    exported = FORMATS[form].write(outcome, ExportOptions())
    left_out = [f"{each.label}: {each.reason}" for each in exported.refused]
    if not exported.files:
        raise mistake("export", f"{form} cannot express any part of the plan", "; ".join(left_out))
    note = {"left-out.txt": ("\n".join(left_out) + "\n").encode()} if left_out else {}
    return {**exported.files, **note}
