"""Run `plan import prometheus`: query a server or read saved answers, and write the demand of services."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.fleet.input_files import is_file
from fleetplan.fleet.units import HOURS_PER_DAY
from fleetplan.planner.commands.shared import hardware_option
from fleetplan.planner.commands.terminal import say_written
from fleetplan.planner.export.new_file import write_new, write_new_files
from fleetplan.planner.importing.demand import (
    DemandOptions,
    demand_fragment,
    lengths_text,
    observed_services,
)
from fleetplan.planner.importing.fragments import file_date
from fleetplan.planner.importing.power_files import readings_of
from fleetplan.planner.importing.power_readings import QUERIES, power_fragment
from fleetplan.planner.importing.prometheus import (
    answers_of,
    measured_queries,
    parse_answers,
    queries,
    system_metrics,
    without_login,
)
from fleetplan.planner.importing.records import text_of_file

FRAGMENT_NAME = "demand.yaml"


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """Options of the command."""

    source: str
    system: str
    days: float
    step_s: int
    percentile: float
    slices: int
    region_label: str | None
    region: str | None
    token_file: Path | None = None


def print_queries(asked: PrometheusOptions, console: Console) -> None:
    """Print the range queries with the names of their files.

    Raises
    ------
    InputError
        The system does not exist.
    """
    wanted = (asked.system, asked.region_label, asked.step_s)
    for name, query in (queries(*wanted) | measured_queries(*wanted)).items():
        console.print(f"{name}.json: {query}", markup=False, highlight=False, soft_wrap=True)


def run_prometheus(
    asked: PrometheusOptions, out: Path | None, save: Path | None, force: bool, errors: Console
) -> None:
    """Write the fragment of a fleet file and the lengths of its services into a folder.

    Raises
    ------
    InputError
        The server does not answer, answers are unreadable, or no service has requests.
    """
    if out is None:
        raise InputError([Issue("--out", 0, 0, "", "is missing", "a folder, or --queries")])
    if HOURS_PER_DAY % asked.slices:
        message = f"{asked.slices} slices are not a whole number of hours"
        raise InputError([Issue("--slices", 0, 0, "", message, "1, 2, 3, 4, 6, 8, 12 or 24")])
    wanted = queries(asked.system, asked.region_label, asked.step_s)
    texts = answers_of(asked.source, wanted, asked.days, asked.step_s, asked.token_file)
    source, _ = without_login(asked.source)
    answers = parse_answers(texts, source)
    options = DemandOptions(
        system_metrics(asked.system)["service"],
        asked.region_label,
        asked.region,
        asked.percentile,
        asked.slices,
        source,
    )
    services = observed_services(answers, options)
    written = {FRAGMENT_NAME: demand_fragment(services, options)}
    written |= {f"{each.name}-lengths.csv": text for each in services if (text := lengths_text(each))}
    write_new_files(out, written, over=force)
    if save is not None:
        write_new_files(save, {f"{name}.json": text for name, text in texts.items()}, over=force)
    if any(each.unread for each in services):
        says = f"slices without a reading have no demand: {out / FRAGMENT_NAME} names them"
        errors.print(says, style="yellow", markup=False)
    errors.print(
        f"{counted(len(services), 'service')} taken; written to {out / FRAGMENT_NAME}",
        style="dim",
        markup=False,
    )


def run_dcgm(
    source: str,
    out: Path,
    days: float,
    step_s: int,
    token_file: Path | None,
    hardware: str | None,
    errors: Console,
) -> None:
    """Write the power of hardware from readings.

    Raises
    ------
    InputError
        The server does not answer, answers are unreadable, or no power can be derived.
    """
    shown, _ = without_login(source)
    if is_file(Path(source)):
        kind = None if hardware is None else hardware_option(hardware)
        answers = readings_of(text_of_file(Path(source)), shown, kind)
    else:
        texts = answers_of(source, QUERIES, days, step_s, token_file, "power")
        answers = parse_answers(texts, shown)
    as_of = file_date(Path(source)) if Path(source).exists() else datetime.now(UTC).date().isoformat()
    text, left_out = power_fragment(answers, shown, as_of)
    for line in left_out:
        errors.print(f"left out: {line}", style="yellow", markup=False)
    write_new(out, text, over=True)
    say_written(errors, out)
