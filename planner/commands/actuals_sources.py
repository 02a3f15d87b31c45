"""Read the sources of `plan track`: tables, FOCUS bills and Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from fleetplan.fleet.document.records import open_table
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.commands.bill_actuals import TakenActuals, bill_actuals
from fleetplan.planner.commands.monitored_actuals import monitored_actuals
from fleetplan.planner.commands.run_import import named_regions, say_taken
from fleetplan.planner.forecast.history import PEAK_PERCENTILE
from fleetplan.planner.importing.demand import DemandOptions
from fleetplan.planner.importing.focus import FOCUS_COLUMNS
from fleetplan.planner.importing.progress import reading
from fleetplan.planner.importing.prometheus import (
    Monitoring,
    answers_of,
    measured_queries,
    parse_answers,
    system_metrics,
    without_login,
)
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.track import Actuals, GatheredActuals, read_actuals

_URLS: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class MeasuredSources:
    """Sources of measurements, and how to read them.

    Attributes
    ----------
    places : tuple[str, ...]
        Tables, bills, or (with a monitored system) server URLs and folders of saved answers.
    regions : tuple[str, ...]
        Region names for bills, as THEIRS=OURS.
    monitoring : Monitoring
        Options for reading servers and folders.
    """

    places: tuple[str, ...]
    regions: tuple[str, ...]
    monitoring: Monitoring


def actuals_of(sources: MeasuredSources, plan: Plan, errors: Console) -> Actuals:
    """Return the combined measurements of all sources.

    Raises
    ------
    InputError
        A source cannot be read, or has no data for the plan.
    """
    gathered = GatheredActuals()
    regions = named_regions(sources.regions)
    for place in sources.places:
        path = Path(place)
        if place.startswith(_URLS) or path.is_dir():
            found = _monitored(sources.monitoring, place, plan, gathered)
            _say(without_login(place)[0], "service", found, errors)
        elif _is_bill(path):
            _say(place, "row", _bill(path, regions, plan, gathered, errors), errors)
        else:
            for note in read_actuals(path, plan, gathered):
                errors.print(f"{place}: {note}", style="yellow", markup=False)
    return gathered.actuals(plan)


def _is_bill(path: Path) -> bool:
    try:
        with open_table(path) as table:
            return FOCUS_COLUMNS[0] in table.columns
    except InputError:
        # The reader of the table reports its errors later.
        return False


def _bill(
    path: Path, regions: Mapping[str, str], plan: Plan, into: GatheredActuals, errors: Console
) -> TakenActuals:
    with reading(path, errors) as watch, open_table(path, watch) as table:
        return bill_actuals(table, str(path), regions, plan, into)


def _monitored(how: Monitoring, place: str, plan: Plan, into: GatheredActuals) -> TakenActuals:
    shown, _ = without_login(place)
    if how.system is None:
        raise InputError(
            [Issue("--system", 0, 0, "", f"is missing: name the system whose metrics {shown} has")]
        )
    asked = measured_queries(how.system, how.region_label, how.step_s)
    texts = answers_of(place, asked, how.days, how.step_s, how.token_file)
    label = system_metrics(how.system)["service"]
    options = DemandOptions(label, how.region_label, None, PEAK_PERCENTILE, 1, shown)
    return monitored_actuals(parse_answers(texts, shown), options, plan, into)


def _say(place: str, counts: str, found: TakenActuals, errors: Console) -> None:
    for note in found.notes:
        errors.print(f"{place}: {note}", style="yellow", markup=False)
    say_taken(place, counts, found.taken, found.rejected, errors)
