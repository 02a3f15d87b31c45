"""Run `plan forecast`: read the history, write the fleet file, and print the forecast."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import read_text
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.resolve import build_fleet
from fleetplan.planner.commands.fleet_file import write_fleet_file
from fleetplan.planner.commands.terminal import console, echo_json, progress, say_written
from fleetplan.planner.forecast import (
    ForecastRun,
    History,
    amount,
    forecast_demand,
    history_of_rates,
    read_history,
    with_forecast,
)
from fleetplan.planner.importing.demand import DemandOptions, observed_rates
from fleetplan.planner.importing.prometheus import (
    Monitoring,
    answers_of,
    parse_answers,
    queries,
    system_metrics,
    without_login,
)


def run_forecast(
    history: str,
    monitoring: Monitoring,
    fleet_file: Path,
    out: Path,
    *,
    force: bool,
    as_json: bool,
    errors: Console,
) -> None:
    """Write a fleet file with the demand of the forecast, and print the forecast.

    The history is a CSV file, or with a monitored system the URL of a server or a folder.

    Raises
    ------
    InputError
        The history or the fleet is unusable, or the output file exists.
    """
    document = read_document(fleet_file)
    fleet = build_fleet(document)
    histories = _histories(history, monitoring, fleet)
    run = forecast_demand(
        histories,
        fleet.periods,
        fleet.calendar,
        progress(errors),
    )
    without = [each.name for each in fleet.services if each.name not in {h.service for h in histories}]
    own = [each.name for each in fleet.services if each.name in without and each.follows is None]
    if own:
        errors.print(f"no history, demand unchanged: {', '.join(own)}", style="yellow", markup=False)
    text = with_forecast(document, read_text(fleet_file), fleet, run, without_login(history)[0])
    write_fleet_file(out, text, over=force)
    if as_json:
        echo_json(json.dumps(_as_json(run), indent=2))
    else:
        _print(run, console())
    say_written(errors, out)


def _histories(history: str, monitoring: Monitoring, fleet: Fleet) -> list[History]:
    services = [each.name for each in fleet.services]
    regions = [each.name for each in fleet.regions]
    if monitoring.system is None:
        return read_history(Path(history), services, regions, _only_regions(fleet))
    wanted = {
        name: query
        for name, query in queries(monitoring.system, monitoring.region_label, monitoring.step_s).items()
        if name == "requests"
    }
    texts = answers_of(history, wanted, monitoring.days, monitoring.step_s, monitoring.token_file)
    place, _ = without_login(history)
    options = DemandOptions(
        system_metrics(monitoring.system)["service"], monitoring.region_label, None, 100.0, 1, place
    )
    rates = observed_rates(parse_answers(texts, place), options)
    known = [row for row in rates if row[0] in services and (row[1] is None or row[1] in regions)]
    if not known:
        seen = ", ".join(dict.fromkeys(row[0] for row in rates))
        message = f"has no service of the fleet; it has {seen}"
        raise InputError([Issue(place, 0, 0, "requests", message, f"the fleet has {', '.join(services)}")])
    return history_of_rates(known, place)


def _only_regions(fleet: Fleet) -> dict[str, str]:
    """Return the region of each service that has demand in only one region."""
    asked = {
        each.name: {region for (region, _, _), rate in each.demand.peak.items() if rate}
        for each in fleet.services
    }
    return {name: min(regions) for name, regions in asked.items() if len(regions) == 1}


def _as_json(run: ForecastRun) -> dict[str, object]:
    return {
        "coverage": run.coverage,
        "forecasts": [
            {
                "service": each.history.service,
                "region": each.history.region,
                "counted": each.history.counted,
                "per": "day" if each.history.total else "s",
                "growth_per_quarter": each.growth_per_quarter,
                "seasonal": each.seasonal,
                "error": each.error,
                "naive_error": each.naive_error,
                "estimates": {e.period: {"low": e.low, "mid": e.mid, "high": e.high} for e in each.estimates},
            }
            for each in run.forecasts
        ],
    }


def _print(run: ForecastRun, to: Console) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("service", overflow="fold")
    table.add_column("region", overflow="fold")
    for name in ("period", "low", "expected", "high"):
        table.add_column(name, justify="left" if name == "period" else "right")
    for name in ("growth a quarter", "error", "error if unchanged"):
        table.add_column(name, justify="right")
    for each in run.forecasts:
        history = each.history
        for position, e in enumerate(each.estimates):
            head = (escape(history.service), escape(history.region or "")) if position == 0 else ("", "")
            tail = (f"{each.growth_per_quarter:+.1%}", _share(each.error), _share(each.naive_error))
            figures = (amount(history, value) for value in (e.low, e.mid, e.high))
            table.add_row(*head, e.period, *figures, *(tail if position == 0 else ("", "", "")))
    to.print(table)
    lines = [
        "Demand refers to the busiest day of a period. Errors are medians of past forecasts one quarter "
        "ahead; 'error if unchanged' assumes the demand of the previous quarter."
    ]
    if any(not each.history.busiest_days for each in run.forecasts):
        lines.append("The history has no daily data: demand refers to the busiest week or month.")
    if run.coverage is not None:
        lines.append(
            f"{run.coverage:.0%} of past quarters were between the model's low and high (target: 80 %). "
            "Low and high are widened to cover four in five past forecast errors."
        )
    else:
        lines.append("The history is too short to test the forecast.")
    to.print("\n".join(lines), markup=False)


def _share(value: float | None) -> str:
    return "not tested" if value is None else f"{value:.1%}"
