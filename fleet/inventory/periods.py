"""Periods of the horizon: quarters such as 2027Q1, in order, or one unnamed period."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from datetime import date
from typing import Final

from fleetplan.fleet.units import MONTHS_PER_QUARTER, QUARTERS_PER_YEAR

# The one period of a file without a horizon.
DEFAULT_PERIOD: Final = "now"

_QUARTER: Final = re.compile(r"(\d{4})Q([1-4])")


def quarter_index(period: str) -> int | None:
    """Return the quarters since the year 0 of a name such as 2027Q1, or None for any other name."""
    match = _QUARTER.fullmatch(period)
    return None if match is None else int(match[1]) * 4 + int(match[2]) - 1


def quarter_name(index: int) -> str:
    """Return the name of the quarter that many quarters since the year 0."""
    return f"{index // 4}Q{index % 4 + 1}"


def quarter_after(periods: Sequence[str], quarters: int) -> str:
    """Return the name of the quarter so many after the last period, such as now+1 without quarters."""
    last = quarter_index(periods[-1])
    return f"{periods[-1]}+{quarters}" if last is None else quarter_name(last + quarters)


def quarter_dates(period: str) -> tuple[date, date] | None:
    """Return the first day of a quarter and the day after its last; None for any other name."""
    index = quarter_index(period)
    if index is None:
        return None
    first, after = (
        date(each // QUARTERS_PER_YEAR, each % QUARTERS_PER_YEAR * MONTHS_PER_QUARTER + 1, 1)
        for each in (index, index + 1)
    )
    return first, after


def quarter_of(day: date) -> str:
    """Return the quarter that a day lies in."""
    return quarter_name(day.year * QUARTERS_PER_YEAR + (day.month - 1) // MONTHS_PER_QUARTER)


def gap_in_quarters(periods: Sequence[str]) -> tuple[int, str] | None:
    """Return the position of the first period that does not follow the one before, and the one expected.

    None where every period is the quarter after the one before, or where not all names are quarters.
    """
    indices = [quarter_index(period) for period in periods]
    for position, (before, here) in enumerate(itertools.pairwise(indices), start=1):
        if before is None or here is None:
            return None
        if here != before + 1:
            return position, quarter_name(before + 1)
    return None
