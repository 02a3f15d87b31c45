"""Hints for texts that are not numbers: a percentage, a price with its currency, a decimal comma."""

from __future__ import annotations

import re
from typing import Final

GROUPS_APART: Final = r"(?<=\d)[ \u00a0\u2007\u2009\u202f'\u2019_](?=\d{3}(?!\d))"
"""Thousands separators: a space, a thin or no-break space, or an apostrophe."""

_PLAIN: Final = re.compile(r"-?\d+(\.\d+)?")
_DASHES: Final = tuple("\u2010\u2011\u2012\u2013\u2014\u2212")
"""Hyphens, dashes and the minus sign that word processors and spreadsheets write."""
_PERCENTAGE: Final = re.compile(r"-?\d+(\.\d+)?\s?%")
_COMMA: Final = re.compile(r"-?\d+(,\d+)+(\.\d+)?|-?\d+(\.\d{3})*,\d+")
_WITH_UNIT: Final = re.compile(r"[^\w\s-]?\s?-?\d+(\.\d+)?\s?[^\d\s,]+|[^\w\s-]\s?\d+(\.\d+)?")
"""Such as `500 W`, `2.5 USD` and `$2.50`."""


_DECIMAL_COMMA: Final = re.compile(r"\d+,(\d{1,2}|\d{4,})|\d{1,3}(\.\d{3})+,\d+")
_POINTS: Final = re.compile(r"\d{1,3}(\.\d{3}){2,}")
_POINT: Final = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")


def is_plain(text: str) -> bool:
    """Return whether a text is a number in quotes."""
    return _PLAIN.fullmatch(text.strip()) is not None


def decimal_comma(text: str) -> bool:
    """Return whether a number has a decimal comma; before three digits, it may separate thousands."""
    return _DECIMAL_COMMA.fullmatch(text) is not None


def points_between_thousands(text: str) -> bool:
    """Return whether a number has several points, which then separate thousands."""
    return _POINTS.fullmatch(text) is not None


def point_between_thousands(text: str) -> bool:
    """Return whether a number has one point before three digits, which may separate thousands."""
    return _POINT.fullmatch(text) is not None


def without_thousands(text: str) -> str:
    """Return how to write a number whose point separates thousands."""
    return f"write {text.replace('.', '')} if the point parts thousands"


def number_hint(given: str) -> str:
    """Return how to write a text as a number; empty if it resembles none."""
    text = given.strip()
    together = re.sub(GROUPS_APART, "", text)
    if together != text and _PLAIN.fullmatch(together):
        return f"write {together}"
    if _PLAIN.fullmatch(text):
        return "leave out the quotes"
    if text[:1] in _DASHES and _PLAIN.fullmatch(text[1:].strip()):
        return f"write -{text[1:].strip()}, with a plain hyphen"
    if _PERCENTAGE.fullmatch(text):
        return f"write {float(text.rstrip('%')) / 100:g} for {text}"
    if _COMMA.fullmatch(text):
        return "decimals have a point, and thousands no comma"
    return "write the number alone; the name of the key has its unit" if _WITH_UNIT.fullmatch(text) else ""
