"""Periods of the horizon: quarters, months or fiscal quarters in order, or one unnamed period.

All periods of a fleet have the same length. Every month has a twelfth of 8,760 hours, so that twelve months
cost as much as four quarters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, TypeAlias

from fleetplan.fleet.units import HOURS_PER_MONTH, MONTHS_PER_QUARTER, MONTHS_PER_YEAR, SECONDS_PER_HOUR

PeriodKind: TypeAlias = Literal["quarter", "month"]

# The only period of a file without a horizon.
DEFAULT_PERIOD: Final = "now"

MONTHS_OF: Final[dict[PeriodKind, int]] = {"quarter": MONTHS_PER_QUARTER, "month": 1}
"""Length of a period. [months]"""

_QUARTER: Final = re.compile(r"(\d{4})Q([1-4])")
_MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_FISCAL_QUARTER: Final = re.compile(r"FY(\d{2})-Q([1-4])")
_DATE_LIKE: Final = re.compile(
    r"\+?(19|20)\d\d([-/.]?[QHMW]?\d{1,2}([-/.]\d{1,2})?)?|FY(\d\d){1,2}[-/.]?(Q?\d{1,2})?", re.IGNORECASE
)
"""Names of parts of a year in other tools: 2027-Q1, 2027H1, 2027-13."""
_SPELLINGS: Final = (
    (re.compile(r"(?P<year>\d{4})[-/. ]?Q-?(?P<part>[1-4])", re.IGNORECASE), "{year}Q{part}"),
    (re.compile(r"Q(?P<part>[1-4])[-/. ]?(?P<year>\d{4})", re.IGNORECASE), "{year}Q{part}"),
    (re.compile(r"(?P<year>(19|20)\d\d)[-/.](?P<part>[1-9]|1[0-2]|0[1-9])([-/.]0?1)?"), "{year}-{part:0>2}"),
    (re.compile(r"(?P<part>[1-9]|1[0-2]|0[1-9])[-/.](?P<year>(19|20)\d\d)"), "{year}-{part:0>2}"),
    (
        re.compile(r"FY ?(\d\d)?(?P<year>\d\d)[-/. ]?Q-?(?P<part>[1-4])", re.IGNORECASE),
        "FY{year}-Q{part}",
    ),
)
"""How else people write periods, and the name of the period that they mean."""
_CENTURY: Final = 2000
"""FY27 is a fiscal year of 2027."""


@dataclass(frozen=True, slots=True)
class FiscalYear:
    """Start of the fiscal year, and the calendar year in its name.

    Attributes
    ----------
    first_month : int
        First month, 1 to 12.
    named_after : {"end", "start"}
        Whether FY27 ends or begins in 2027.
    """

    first_month: int
    named_after: Literal["end", "start"] = "end"

    @property
    def years_ahead(self) -> int:
        """Years from the calendar year of its start to the year in its name."""
        return 1 if self.named_after == "end" and self.first_month > 1 else 0


@dataclass(frozen=True, slots=True)
class Calendar:
    """Length and names of the periods of a fleet.

    Attributes
    ----------
    months : int
        Length of a period: 3 for quarters and for periods without a date, 1 for months. [months]
    fiscal : FiscalYear or None
        Fiscal year; None if the file states none.
    names_fiscal : bool
        Whether periods are named FY27-Q3.
    """

    months: int = MONTHS_PER_QUARTER
    fiscal: FiscalYear | None = None
    names_fiscal: bool = False

    @property
    def kind(self) -> PeriodKind:
        """Noun for a period: quarter or month."""
        return "quarter" if self.months == MONTHS_PER_QUARTER else "month"

    @property
    def hours(self) -> float:
        """Hours of a period. [h]"""
        return HOURS_PER_MONTH * self.months

    @property
    def seconds(self) -> float:
        """Seconds of a period. [s]"""
        return self.hours * SECONDS_PER_HOUR

    @property
    def per_year(self) -> float:
        """Periods of a year."""
        return MONTHS_PER_YEAR / self.months

    @property
    def quarters(self) -> float:
        """Length of a period. [quarters]"""
        return self.months / MONTHS_PER_QUARTER

    @property
    def per_quarter(self) -> int:
        """Periods of a quarter."""
        return MONTHS_PER_QUARTER // self.months

    def first_month(self, name: str) -> int | None:
        """Return the months since the year 0 at which a quarter or month begins; None without a date."""
        if (match := _MONTH.fullmatch(name)) is not None:
            return int(match[1]) * MONTHS_PER_YEAR + int(match[2]) - 1
        if (match := _QUARTER.fullmatch(name)) is not None:
            return int(match[1]) * MONTHS_PER_YEAR + (int(match[2]) - 1) * MONTHS_PER_QUARTER
        if (match := _FISCAL_QUARTER.fullmatch(name)) is not None and self.fiscal is not None:
            year = _CENTURY + int(match[1]) - self.fiscal.years_ahead
            within = self.fiscal.first_month - 1 + (int(match[2]) - 1) * MONTHS_PER_QUARTER
            return year * MONTHS_PER_YEAR + within
        return None

    def index(self, name: str) -> int | None:
        """Return the periods since the year 0 at which a name begins.

        None without a date, or if it begins within a period.
        """
        month = self.first_month(name)
        if month is None or (month - self._offset) % self.months:
            return None
        return self.around(month)

    def name(self, index: int) -> str:
        """Return the name of a period by its number since the year 0."""
        month = index * self.months + self._offset
        if self.kind == "month":
            return f"{month // MONTHS_PER_YEAR}-{month % MONTHS_PER_YEAR + 1:02}"
        if not self.names_fiscal or self.fiscal is None:
            return f"{month // MONTHS_PER_YEAR}Q{month % MONTHS_PER_YEAR // MONTHS_PER_QUARTER + 1}"
        year, within = divmod(month - self.fiscal.first_month + 1, MONTHS_PER_YEAR)
        named = (year + self.fiscal.years_ahead) % 100
        return f"FY{named:02}-Q{within // MONTHS_PER_QUARTER + 1}"

    def after(self, periods: Sequence[str], count: int) -> str:
        """Return the name of the nth period after the last one, such as now+1 for names without dates."""
        last = self.index(periods[-1])
        return f"{periods[-1]}+{count}" if last is None else self.name(last + count)

    def dates(self, name: str) -> tuple[date, date] | None:
        """Return the first day of a period and the day after its last day; None without a date."""
        month = self.first_month(name)
        if month is None:
            return None
        first, after = (
            date(each // MONTHS_PER_YEAR, each % MONTHS_PER_YEAR + 1, 1)
            for each in (month, month + self.months)
        )
        return first, after

    def period_of(self, day: date) -> str:
        """Return the period of a day."""
        return self.name(self.around(day.year * MONTHS_PER_YEAR + day.month - 1))

    def around(self, month: int) -> int:
        """Return the index of the period of a month since the year 0."""
        return (month - self._offset) // self.months

    def gap(self, periods: Sequence[str]) -> tuple[int, str] | None:
        """Return the position of the first period that does not follow its predecessor, and the expected one.

        None if all periods are consecutive, or not all names have dates.
        """
        indices = [self.index(period) for period in periods]
        for position, (before, here) in enumerate(itertools.pairwise(indices), start=1):
            if before is None or here is None:
                return None
            if here != before + 1:
                return position, self.name(before + 1)
        return None

    @property
    def _offset(self) -> int:
        """Months from the start of a calendar quarter to that of a fiscal one."""
        if not self.names_fiscal or self.fiscal is None:
            return 0
        return (self.fiscal.first_month - 1) % self.months


QUARTERS: Final = Calendar()
"""Quarters of the calendar."""


def kind_of_name(name: str) -> Literal["quarter", "month", "fiscal quarter"] | None:
    """Parse a name; None for a name without a date."""
    if _MONTH.fullmatch(name):
        return "month"
    if _QUARTER.fullmatch(name):
        return "quarter"
    return "fiscal quarter" if _FISCAL_QUARTER.fullmatch(name) else None


def is_like_a_date(name: str) -> bool:
    """Return whether a name without a date was probably meant as a period with one."""
    return kind_of_name(name) is None and _DATE_LIKE.fullmatch(name) is not None


def name_of_period(text: str) -> str | None:
    """Return the name of the period that a text means in another spelling; None if it means none."""
    for spelling, name in _SPELLINGS:
        if (found := spelling.fullmatch(text)) is not None:
            return name.format(**found.groupdict())
    return None
