"""Read the history of demand by service and region from a table or from rates, as its busiest days."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.document.text_tables import TextRow, read_text_table
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.schema.quantities import Counted

Step = Literal["week", "month"]

VALUES: Final[dict[str, tuple[Counted, bool]]] = {
    "requests_per_s": ("requests", False),
    "requests": ("requests", True),
    "tokens": ("tokens", True),
    "input_tokens": ("input tokens", True),
    "output_tokens": ("output tokens", True),
}
"""Value columns of a history: the counted unit, and whether the value is a total or a peak rate."""

PEAK_PERCENTILE: Final = 99.0
"""Percentile of the rates within a day that counts as its peak, as in `plan import prometheus`. [%]"""

_FEWEST_DAYS: Final = 5
"""Minimum number of days with data for a week to count."""

_DAYS: Final = {"day": 1.5, "week": 8.0, "month": 32.0}
"""Maximum usual time between rows, by kind of row. [days]"""

_MONTH: Final = len("2027-01")


@dataclass(frozen=True, slots=True)
class History:
    """Demand of one service in one region.

    Attributes
    ----------
    service : str
        Name of the service in the fleet file.
    region : str or None
        None if the history names no region.
    counted : str
        requests, tokens, input tokens or output tokens.
    total : bool
        Whether values are totals of a day instead of peak rates.
    step : {"week", "month"}
        Length of a step.
    first : date
        First day of the first step.
    values : FloatArray
        Busiest day of each step, shape (n_steps,); NaN for gaps. [requests/s or requests/day]
    busiest_days : bool
        Whether values are busiest days; otherwise, without daily data, they are mean days.
    """

    service: str
    region: str | None
    counted: Counted
    total: bool
    step: Step
    first: date
    values: NDArray[np.float64]
    busiest_days: bool

    @property
    def label(self) -> str:
        """Service and region, for messages."""
        return self.service if self.region is None else f"{self.service} in {self.region}"

    def starts(self, n_steps: int) -> list[date]:
        """Return the first days of a number of steps."""
        if self.step == "week":
            return [self.first + timedelta(weeks=k) for k in range(n_steps)]
        months = self.first.year * 12 + self.first.month - 1
        return [date((months + k) // 12, (months + k) % 12 + 1, 1) for k in range(n_steps)]


def read_history(
    path: Path, services: Sequence[str], regions: Sequence[str], only_regions: Mapping[str, str]
) -> list[History]:
    """Return the history in a table: date, service, region if a service has several, and one value.

    Parameters
    ----------
    path : Path
        CSV file. Dates are days, times or months (2027-01-31, 2027-01-31T12:00, 2027-01). The value column is
        one of `VALUES`; rows with equal date, service and region are added.
    services, regions : Sequence[str]
        Names in the fleet.
    only_regions : Mapping[str, str]
        Region of each service with demand in only one region; its rows need no region.

    Raises
    ------
    InputError
        Lists every unusable line.
    """
    allowed = ("date", "service", "region", *VALUES)
    table = read_text_table(path, allowed, ("date", "service"))
    given = [name for name in VALUES if name in table.columns]
    if len(given) != 1:
        said = (
            "needs a column of values" if not given else f"has several columns of values: {', '.join(given)}"
        )
        raise InputError([Issue(str(path), 1, 1, "", said, f"one of {', '.join(VALUES)}")])
    # The history of a fleet with one region needs no region.
    several = len(regions) > 1
    unplaced: set[str] = set()
    found: dict[tuple[str, str | None], dict[datetime, float]] = defaultdict(lambda: defaultdict(float))
    for row in table.rows:
        when = _time(row)
        service = row.name("service", "service", services)
        region = row.name("region", "region", regions)
        value = row.number(given[0])
        for column in ("date", "service", given[0]):
            if column not in row.cells:
                row.note(column, "is missing")
        if several and service is not None and "region" not in row.cells:
            region = only_regions.get(service)
            if region is None and "region" in table.columns:
                row.note("region", f"is missing: {service} has several")
            elif region is None:
                unplaced.add(service)
        if when is not None and service is not None and value is not None:
            found[service, region][when] += value
    table.require_valid()
    if unplaced:
        message = f"is a required column: {', '.join(sorted(unplaced))} may have several"
        raise InputError([Issue(str(path), 1, 1, "region", message)])
    counted, total = VALUES[given[0]]
    return [
        _history(key, list(times.items()), (counted, total), str(path))
        for key, times in sorted(found.items())
    ]


def history_of_rates(
    rates: Iterable[tuple[str, str | None, NDArray[np.float64], NDArray[np.float64]]], source: str
) -> list[History]:
    """Return the history in monitored rates.

    Parameters
    ----------
    rates : Iterable of (service, region, time_s, requests_per_s)
        Times since 1970 [s] and rates [requests/s], both of shape (n_points,).
    source : str
        Name of the source, for messages.
    """
    return [
        _history(
            (service, region),
            [
                (datetime.fromtimestamp(second, UTC).replace(tzinfo=None), value)
                for second, value in zip(time_s.tolist(), per_s.tolist(), strict=True)
            ],
            ("requests", False),
            source,
        )
        for service, region, time_s, per_s in rates
    ]


def _time(row: TextRow) -> datetime | None:
    written = row.cells.get("date", "")
    try:
        found = datetime.fromisoformat(f"{written}-01" if len(written) == _MONTH else written)
    except ValueError:
        if written:
            row.note("date", f"is not a date: {written!r}", "2027-01-31, 2027-01-31T12:00 or 2027-01")
        return None
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found


def _history(
    key: tuple[str, str | None],
    points: list[tuple[datetime, float]],
    what: tuple[Counted, bool],
    source: str,
) -> History:
    counted, total = what
    points.sort()
    times = [time for time, _ in points]
    gaps = [(after - before) / timedelta(days=1) for before, after in itertools.pairwise(times)]
    usual = float(np.median(gaps)) if gaps else 0.0
    of = next((name for name, longest in _DAYS.items() if usual <= longest), None)
    label = key[0] if key[1] is None else f"{key[0]} in {key[1]}"
    if of is None:
        message = f"{label}: rows are {usual:.0f} days apart"
        raise InputError([Issue(source, 0, 0, "date", message, "give days, weeks or months")])
    by_day: dict[date, list[float]] = defaultdict(list)
    for time, value in points:
        by_day[time.date()].append(value)
    within = {day: sum(rates) if total else _peak(rates) for day, rates in by_day.items()}
    step: Step = "month" if of == "month" else "week"
    by_step: dict[date, list[float]] = defaultdict(list)
    for day, value in within.items():
        start = day.replace(day=1) if step == "month" else day - timedelta(days=day.weekday())
        length = 1.0 if of == "day" or not total else _length(start, step)
        by_step[start].append(value / length)
    first = min(by_step)
    bare = History(key[0], key[1], counted, total, step, first, np.zeros(0), of == "day")
    starts = _until(bare, max(by_step))
    fewest = _FEWEST_DAYS if of == "day" else 1
    # A day without any demand is an outage or precedes the launch, so it is not demand.
    values = np.array(
        [
            max(by_step[start])
            if len(by_step.get(start, ())) >= fewest and max(by_step[start]) > 0
            else np.nan
            for start in starts
        ]
    )
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        raise InputError([Issue(source, 0, 0, "", f"{label}: no whole week or month with demand")])
    kept = values[known[0] : known[-1] + 1]
    return History(key[0], key[1], counted, total, step, starts[known[0]], kept, of == "day")


def _peak(rates: Sequence[float]) -> float:
    return float(np.percentile(rates, PEAK_PERCENTILE))


def _length(start: date, step: Step) -> float:
    if step == "week":
        return 7.0
    return float(((start.replace(day=28) + timedelta(days=4)).replace(day=1) - start).days)


def _until(history: History, last: date) -> list[date]:
    longest = (last - history.first).days // 7 + 1
    return [start for start in history.starts(longest + 1) if start <= last]
