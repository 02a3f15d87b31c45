"""Figures as they are shown, with the rounding that their text admits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

UNITS: Final = {"": 1.0, " k": 1e3, " M": 1e6, " B": 1e9}

RELATIVE: Final = 1e-9
"""Of sums of rows that are computed in another order."""

CENT: Final = 0.005
"""Amounts below are shown as zero. [USD]"""


@dataclass(frozen=True)
class Money:
    """The currency of what is shown: its code, and USD a unit."""

    code: str = "USD"
    usd_per_unit: float = 1.0

    def differs(self, text: str, usd: float, digits: int = 4) -> bool:
        """Return whether a shown amount is not this number of dollars."""
        symbol = r"\$" if self.code == "USD" else f"{self.code} "
        found = re.fullmatch(rf"([-+]?){symbol}([0-9.e+]+)( [kMB])?", text.replace("\u00a0", " ").strip())
        if found is None:
            return True
        size = float(found[2]) * UNITS[found[3] or ""]
        slack = (
            _half_step(float(found[2]), digits) * UNITS[found[3] or ""] if size else CENT / self.usd_per_unit
        )
        amount = usd / self.usd_per_unit
        shown = -size if found[1] == "-" else size
        return abs(shown - amount) > slack * (1 + 1e-6) + RELATIVE * abs(amount)


def _half_step(shown: float, digits: int) -> float:
    """Return half of the last digit."""
    return 0.5 * 10.0 ** (math.floor(math.log10(abs(shown))) - digits + 1) if shown else 0.0


def figure_differs(text: str, value: float, digits: int = 4) -> bool:
    """Return whether a shown number differs: an integer from 1,000, else by significant digits."""
    try:
        shown = float(text.replace(",", ""))
    except ValueError:
        return True
    slack = max(_half_step(shown, digits), 0.5 if abs(shown) >= 999 else 0.0)
    return abs(shown - value) > slack * (1 + 1e-6) + RELATIVE * abs(value)


def percent_differs(text: str, ratio: float) -> bool:
    """Return whether a shown percentage is another ratio."""
    found = re.fullmatch(r"(-?[0-9]+)(\.[0-9]+)?%", text.strip())
    if found is None:
        return True
    slack = 0.5 * 10.0 ** -max(len(found[2] or "") - 1, 0) / 100
    return abs(float(text.strip()[:-1]) / 100 - ratio) > slack * (1 + 1e-6) + RELATIVE


def other(one: float, two: float) -> bool:
    """Return whether two sums differ by more than the order of their terms."""
    return abs(one - two) > RELATIVE * max(abs(one), abs(two)) + 1e-6


def unequal(place: str, shown: object, expected: object) -> Iterator[str]:
    """Yield a message if the shown text is not exactly the expected one."""
    if shown != expected:
        yield f"{place}: {shown!r} is shown, the plan has {expected!r}"
