"""Parse quantities of demand: a rate at the peak, a total by day, week or month, tokens, or active users."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from fleetplan.fleet.document.number_hints import GROUPS_APART
from fleetplan.fleet.units import (
    HOURS_PER_DAY,
    HOURS_PER_MONTH,
    MONTHS_PER_QUARTER,
    MONTHS_PER_YEAR,
    SECONDS_PER_HOUR,
)

Counted: TypeAlias = Literal["requests", "tokens", "input tokens", "output tokens"]
"""Counted unit; tokens are new prompt tokens plus generated tokens."""

EXAMPLES: Final = "such as 120, 3.2 M requests/day, 40 k output tokens/s or 2 M users x 6 requests/day"
GROWTH_EXAMPLES: Final = "such as 10 %/quarter, 3 %/month or -5 %/year"

_SCALE: Final = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_SECONDS_PER_DAY: Final = HOURS_PER_DAY * SECONDS_PER_HOUR
_DAYS_PER_WEEK: Final = 7
_RATE_SECONDS: Final = {
    "second": 1.0,
    "s": 1.0,
    "minute": 60.0,
    "min": 60.0,
    "hour": SECONDS_PER_HOUR,
    "h": SECONDS_PER_HOUR,
}
_TOTAL_DAYS: Final = {
    "day": 1.0,
    "week": float(_DAYS_PER_WEEK),
    "month": HOURS_PER_MONTH / HOURS_PER_DAY,
}

_FIGURE: Final = r"(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_NUMBER: Final = rf"{_FIGURE}\s*([kMBT]?)"
_COUNTED: Final = "|".join(get_args(Counted))
_PER: Final = r"\s*(?:/|per)\s*"
QUANTITY_PATTERN: Final = (
    rf"^(?:{_NUMBER}\s*users?\s*[x*]\s*)?{_NUMBER}\s*(request|{_COUNTED})"
    rf"{_PER}({'|'.join((*_RATE_SECONDS, *_TOTAL_DAYS))})$"
)
SCALED_PATTERN: Final = rf"^{_FIGURE}\s*([kMBT])$"
"""A number in the unit of its key, such as 200 k."""
GROWTH_PATTERN: Final = rf"^([+-]?\d+(?:\.\d+)?)\s*%{_PER}(month|quarter|year)$"
_MOST_LETTERS: Final = 100
"""Longest misspelt quantity that is corrected, to bound the time for huge fields. [characters]"""

_SPELLINGS: Final = (
    (GROUPS_APART, ""),
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"(?<=\d),(?=\d)", "."),
    (r"\u00d7", "x"),
    (r"(?<=\d)\s*(k|thousand)\b", " k"),
    (r"(?<=\d)\s*(m|mn|mio|million)\b", " M"),
    (r"(?<=\d)\s*(b|bn|billion)\b", " B"),
    (r"\b(rps|qps)\b", "requests/s"),
    (r"\brpm\b", "requests/min"),
    (r"(?<=\d)\s*/|(?<= [kMBT])\s*/", " requests/"),
    (r"\b(reqs?|requests?|queries)\b", "requests"),
    (r"\b(toks?|tokens?)\b", "tokens"),
    (r"\s*(/|per)\s*(s|secs?|seconds?)\b", "/s"),
    (r"\s*(/|per)\s*(mins?|minutes?)\b", "/min"),
    (r"\s*(/|per)\s*(h|hrs?|hours?)\b", "/h"),
    (r"\s*(/|per)\s*(d|days?)\b", "/day"),
    (r"\s*(/|per)\s*(w|wk|weeks?)\b", "/week"),
    (r"\s*(/|per)\s*(mo|months?)\b", "/month"),
)
"""Spellings of people and other tools with those of the format, applied in this order."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of the demand.

    Attributes
    ----------
    amount : float
        Amount per second, or per day for a total. [1/s or 1/day]
    total : bool
        Whether it is a total of a day, which the shape of the day spreads, or a rate at the peak.
    counted : {"requests", "tokens", "input tokens", "output tokens"}
        Counted unit.
    """

    amount: float
    total: bool = False
    counted: Counted = "requests"

    def mean_per_s(self) -> float:
        """Return the rate at the peak, or the mean rate of a total. [1/s]."""
        return self.amount / _SECONDS_PER_DAY if self.total else self.amount


def quantity(text: str) -> Quantity | None:
    """Parse a quantity; None for other texts."""
    match = re.match(QUANTITY_PATTERN, text.strip())
    if match is None:
        return None
    users, users_scale, number, scale, counted, time = match.groups()
    amount = float(number) * _SCALE[scale] * (1.0 if users is None else float(users) * _SCALE[users_scale])
    unit = next(each for each in get_args(Counted) if each.startswith(counted))
    if time in _TOTAL_DAYS:
        return Quantity(amount / _TOTAL_DAYS[time], True, unit)
    return Quantity(amount / _RATE_SECONDS[time], False, unit)


def meant_quantity(text: str) -> str | None:
    """Return the format's spelling of a misspelt quantity; None if the text resembles none."""
    if len(text) > _MOST_LETTERS:
        return None
    meant = text.strip()
    for spelling, ours in _SPELLINGS:
        meant = re.sub(spelling, ours, meant, flags=re.IGNORECASE)
    told = quantity(meant) is not None or scaled_number(meant) is not None or re.fullmatch(_FIGURE, meant)
    return meant if meant != text and told else None


def scaled_number(text: str) -> float | None:
    """Parse a number with a scale, such as 200 k; None for other texts."""
    match = re.match(SCALED_PATTERN, text.strip())
    return None if match is None else float(match[1]) * _SCALE[match[2]]


def growth_per_period(text: str, months: int) -> float | None:
    """Return the growth factor per period of a length in months; None unless growth is above -100 %."""
    match = re.match(GROWTH_PATTERN, text.strip())
    if match is None:
        return None
    ratio = 1 + float(match[1]) / 100
    stated = {"month": 1, "quarter": MONTHS_PER_QUARTER, "year": MONTHS_PER_YEAR}[match[2]]
    return float(ratio ** (1 / (stated / months))) if ratio > 0 else None
