"""Write a forecast into a fleet file: the demand of its services, and scenario probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fleetplan.fleet.document import Document, KeyPath, YamlText
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.forecast.estimates import Estimate, Forecast, ForecastRun
from fleetplan.planner.forecast.history import History

SCENARIOS: Final[tuple[Mapping[str, object], ...]] = (
    {"name": "low", "probability": 0.3, "estimate": "low"},
    {"name": "expected", "probability": 0.4, "estimate": "mid"},
    {"name": "high", "probability": 0.3, "estimate": "high"},
)
"""Probabilities of the 10th, 50th and 90th percentile (the extended Swanson-Megill approximation: Keefer and
Bodily, Management Science 29(5), 1983).
"""

_SCALES: Final = ((1e12, " T"), (1e9, " B"), (1e6, " M"), (1e3, " k"), (0.0, ""))


def with_forecast(document: Document, text: str, fleet: Fleet, run: ForecastRun, source: str) -> str:
    """Return a fleet file with the forecast demand; everything else, including comments, is unchanged.

    Parameters
    ----------
    document : Document
        The file with its imports.
    text : str
        Text of the file.
    fleet : Fleet
        Resolved fleet.
    run : ForecastRun
        Forecasts of the demand.
    source : str
        Name of the history, for a comment.

    Raises
    ------
    InputError
        A service takes its demand from another one, or from an imported file.
    """
    by_service: dict[str, list[Forecast]] = {}
    for each in run.forecasts:
        by_service.setdefault(each.history.service, []).append(each)
    edited = YamlText(text)
    issues: list[Issue] = []
    names = [service.name for service in fleet.services]
    for name, forecasts in by_service.items():
        key_path = _demand_path(document, fleet, name, forecasts[0], issues)
        place = document.place(("services", names.index(name), "name"))
        if key_path is not None and place.file != str(document.path):
            issues.append(
                Issue(place.file, place.line, place.column, f"services.{name}", "is in an imported file",
                      "forecast that file, or state its demand in this one")
            )  # fmt: skip
        elif key_path is not None:
            edited.put(
                key_path, _demand(forecasts), [line for each in forecasts for line in said(each, source)]
            )
    if issues:
        raise InputError(issues)
    if not document.root.child("uncertainty"):
        edited.put(("uncertainty",), {"scenarios": [dict(each) for each in SCENARIOS]})
    return edited.changed()


def _demand_path(
    document: Document, fleet: Fleet, name: str, forecast: Forecast, issues: list[Issue]
) -> KeyPath | None:
    """Return the key path of a service's demand; note an issue and return None if it declares none."""
    position, service = next((k, each) for k, each in enumerate(fleet.services) if each.name == name)
    here = ("services", position)
    if service.follows is not None:
        message = f"{name} has the demand of {service.follows.names}"
        issues.append(
            document.issue((*here, "follows"), message, f"give the history of {service.follows.names}")
        )
    elif service.offline is None:
        return ("services", name, "demand")
    elif forecast.history.total:
        return ("services", name, "offline", "requests_per_day")
    else:
        message = "is offline: its history is a total, not a rate"
        issues.append(
            document.issue((*here, "offline"), message, "use requests or tokens instead of requests_per_s")
        )
    return None


def _demand(forecasts: Sequence[Forecast]) -> object:
    by_region = {
        each.history.region: {estimate.period: _figures(each, estimate) for estimate in each.estimates}
        for each in forecasts
    }
    return by_region.get(None, by_region)


def _figures(forecast: Forecast, estimate: Estimate) -> object:
    if estimate.low == estimate.high:
        return _quantity(forecast, estimate.mid)
    return {name: _quantity(forecast, getattr(estimate, name)) for name in ("low", "mid", "high")}


def _quantity(forecast: Forecast, value: float) -> object:
    history = forecast.history
    return value if history.counted == "requests" and not history.total else amount(history, value)


def amount(history: History, value: float) -> str:
    """Return a demand in the syntax of a fleet file: `589.3 k requests/day`."""
    scale, letter = next(pair for pair in _SCALES if value >= pair[0])
    return f"{value / (scale or 1):.4g}{letter} {history.counted}/{'day' if history.total else 's'}"


def said(forecast: Forecast, source: str) -> tuple[str, str]:
    """Return the basis of a forecast and its backtest error, as text."""
    history = forecast.history
    season = "a yearly season" if forecast.seasonal else "no season: less than two years"
    region = "" if history.region is None else f"{history.region}: "
    basis = (
        f"{region}{Path(source).name}, {counted(history.values.size, history.step)}, "
        f"{forecast.growth_per_quarter:+.1%} a quarter, {season};"
    )
    if forecast.error is None or forecast.naive_error is None:
        return basis, "too short to test"
    return basis, (
        f"median error one quarter ahead {forecast.error:.1%}, if the last quarter is repeated "
        f"{forecast.naive_error:.1%}"
    )
