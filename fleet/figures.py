"""Format figures for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

LEAST_WHOLE = 999.5
"""Smallest figure without a fraction; three digits of it would be written as 1e+03."""

LEAST_USD = 0.005
"""Smallest amount that is not shown as zero. [USD]"""


class DisplayCurrency(Protocol):
    """A currency with its exchange rate."""

    @property
    def code(self) -> str:
        """ISO 4217."""

    @property
    def usd_per_unit(self) -> float:
        """USD per unit. [USD]"""

    @property
    def as_of(self) -> str:
        """Date of the rate."""

    @property
    def source(self) -> str:
        """Source of the rate."""


@dataclass(frozen=True, slots=True)
class _Dollar:
    code: str = "USD"
    usd_per_unit: float = 1.0
    as_of: str = ""
    source: str = ""


USD: Final[DisplayCurrency] = _Dollar()

_SHOWN: ContextVar[DisplayCurrency] = ContextVar("shown", default=USD)


@contextmanager
def shown_in(currency: DisplayCurrency | None) -> Iterator[None]:
    """Show amounts in a currency within a block; None is USD.

    A report states the rate once. Computations stay in USD.
    """
    token = _SHOWN.set(currency or USD)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def currency_code() -> str:
    """Return the code of the shown currency, for the head of a column."""
    return _SHOWN.get().code


def in_shown(usd: float) -> float:
    """Convert an amount to the shown currency."""
    return usd / _SHOWN.get().usd_per_unit


def rate_text(currency: DisplayCurrency) -> str:
    """Format the rate of a currency with its date and source."""
    return (
        f"1 {currency.code} = {currency.usd_per_unit:.6g} USD ({currency.as_of}, {currency.source}); "
        "prices and computations in USD"
    )


def money(usd: float, digits: int = 4) -> str:
    """Format an amount of USD with significant digits in the shown currency.

    Examples: $412, $8.61 k, -$12.3 M, and EUR 8.61 k within `shown_in`.
    """
    code = currency_code()
    symbol = "$" if code == USD.code else f"{code} "
    amount = in_shown(usd)
    sign, size_shown = "-" if amount < 0 else "", abs(amount)
    for size, unit in ((1e9, " B"), (1e6, " M"), (1e3, " k")):
        if size_shown >= size:
            return f"{sign}{symbol}{size_shown / size:.{digits}g}{unit}"
    # Less than half a cent is the rounding of a sum.
    return f"{sign}{symbol}{size_shown:.{digits}g}" if abs(usd) >= LEAST_USD else f"{symbol}0"


def signed_money(usd: float) -> str:
    """Format a difference of USD with its sign: +$412, -$8.61 k; a rounding error is $0."""
    text = money(abs(usd))
    return text if abs(usd) < LEAST_USD else f"{'-' if usd < 0 else '+'}{text}"


def money_range(least_usd: float, most_usd: float, signed: bool = False) -> str:
    """Format a range of amounts: `$1.1 k to $1.2 k`, or one amount if both look equal."""
    write = signed_money if signed else money
    least, most = write(least_usd), write(most_usd)
    return most if least == most else f"{least} to {most}"


def figure(value: float, digits: int = 4) -> str:
    """Format a figure: with thousands separators, and with significant digits below a thousand."""
    whole = value == round(value) or abs(value) >= LEAST_WHOLE
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


PROVEN_GAP = 5e-5
"""Largest gap in unmet demand that is shown as none: HiGHS computes to a fraction of it."""


def how_sure_unmet(priority: int, gap: float) -> str:
    """Describe whether the unmet demand of a priority is proven minimal."""
    if gap < PROVEN_GAP:
        return f"priority {priority}: proven, no plan leaves less unmet"
    if gap > 1 - PROVEN_GAP:
        return f"priority {priority}: unproven, another plan may leave less unmet"
    return f"priority {priority}: another plan may leave up to {percent(gap)} less unmet"


def how_sure_all_unmet(gap: float) -> str:
    """Describe the same for all priorities, with the largest of their gaps."""
    if gap < PROVEN_GAP:
        return "proven least"
    return "least unproven" if gap > 1 - PROVEN_GAP else f"another plan may leave up to {percent(gap)} less"


def percent(ratio: float) -> str:
    """Format a ratio in per cent, small ones with more digits."""
    return f"{ratio:.2%}" if abs(ratio) < 0.1 else f"{ratio:.0%}"


def span(periods: Sequence[str]) -> str:
    """Format a range of periods: `2027Q1 to 2027Q4`."""
    return periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"


_SINGULAR_VERBS: Final = {"are": "is", "were": "was", "have": "has", "do": "does"}


def counted(count: float, noun: str, verb: str = "") -> str:
    """Format a count with its noun: `1 host`, `2 hosts`, `1,200 smaller changes`.

    Parameters
    ----------
    count : float
        Count; a fraction has four significant digits.
    noun : str
        Singular noun phrase, whose last word changes in the plural.
    verb : str
        Plural verb after the noun: `start` gives `1 accelerator starts`.
    """
    number = f"{count:,.0f}" if count == round(count) else f"{count:.4g}"
    words = [number, noun if count == 1 else plural(noun)]
    return " ".join([*words, agreeing(count, verb)] if verb else words)


def agreeing(count: float, verb: str) -> str:
    """Inflect a verb by count: `are` for two, `is` for one; `verb` is the plural form."""
    return _SINGULAR_VERBS.get(verb, f"{verb}s") if count == 1 else verb


def plural(noun: str) -> str:
    """Return the plural of a noun, or of a phrase that ends with one."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"
