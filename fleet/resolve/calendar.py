"""Resolve the periods of the horizon, and check dates and durations against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory.periods import (
    MONTHS_OF,
    Calendar,
    FiscalYear,
    is_like_a_date,
    kind_of_name,
    name_of_period,
)
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.horizon import MOST_EXTENSION_QUARTERS, HorizonSpec
from fleetplan.fleet.schema.supply import OfferSpec

_HERE: KeyPath = ("horizon", "periods")


def calendar_of(spec: HorizonSpec | None) -> Calendar:
    """Return the calendar of a horizon; `check_periods` notes its mistakes."""
    if spec is None:
        return Calendar()
    kinds = {kind_of_name(name) for name in spec.periods}
    fiscal = spec.fiscal_year
    return Calendar(
        months=MONTHS_OF[spec.period or ("month" if kinds == {"month"} else "quarter")],
        fiscal=None if fiscal is None else FiscalYear(fiscal.first_month, fiscal.named_after),
        names_fiscal=kinds == {"fiscal quarter"},
    )


def check_periods(context: Context, spec: HorizonSpec | None) -> None:
    """Note duplicate periods, gaps, mixed kinds, and names without a date."""
    if spec is None:
        return
    kinds = [kind_of_name(name) for name in spec.periods]
    for i, (name, kind) in enumerate(zip(spec.periods, kinds, strict=True)):
        here = (*_HERE, i)
        if name in spec.periods[:i]:
            context.error(here, f"the period {name!r} is given twice")
            return
        if is_like_a_date(name):
            # A name without a date would count as a quarter, which the author may not mean.
            hint = f"write {name_of_period(name) or '2027Q1, 2027-01 or FY27-Q1'}"
            context.error(here, f"{name} is neither a quarter nor a month", hint)
            return
        if kind != kinds[0]:
            said = " and ".join(
                f"{each} ({_said(of)})" for each, of in ((spec.periods[0], kinds[0]), (name, kind))
            )
            context.error(here, f"periods are of one kind, not {said}")
            return
        if kind == "fiscal quarter" and spec.fiscal_year is None:
            hint = "give horizon.fiscal_year, such as {first_month: 2}"
            context.error(here, f"the start of the fiscal year of {name} is missing", hint)
            return
        if kind is not None and spec.period is not None and not kind.endswith(spec.period):
            context.error(("horizon", "period"), f"is {spec.period}, and {name} is a {kind}", "leave it out")
            return
    gap = context.calendar.gap(context.periods)
    if gap is not None:
        position, expected = gap
        message = f"{context.periods[position]} does not follow {context.periods[position - 1]}"
        context.error((*_HERE, position), message, f"the next {context.calendar.kind} is {expected}")


def _said(kind: str | None) -> str:
    return "a name without a date" if kind is None else f"a {kind}"


def periods_of_extension(
    context: Context, extend: int | Literal["terms"] | None, offers: Sequence[OfferSpec]
) -> int:
    """Return the number of periods that an extension of the horizon adds.

    Parameters
    ----------
    context : Context
        The stated periods, and where issues go.
    extend : int, "terms" or None
        As the file writes it.
    offers : Sequence[OfferSpec]
        As they are written.
    """
    if extend is None:
        return 0
    if extend != "terms":
        return periods_of_quarters(context, extend)
    ends = [_last_order(context, offer) + _term_periods(context, offer) for offer in offers]
    added = max(ends, default=0) - len(context.periods)
    if added <= 0:
        message = "adds nothing: no term that can be rented within the periods ends after them"
        context.warn(("horizon", "extend_quarters"), message)
        return 0
    most = periods_of_quarters(context, MOST_EXTENSION_QUARTERS)
    if added > most:
        message = f"the longest term ends {added} periods after the last one, and {most} can be added"
        context.error(("horizon", "extend_quarters"), message, "a number of quarters")
        return 0
    return added


def _term_periods(context: Context, offer: OfferSpec) -> int:
    """Return the term of an offer, 0 for none; invalid ones are noted with the offers."""
    if offer.term_quarters is not None:
        return periods_of_quarters(context, offer.term_quarters)
    return -(-(offer.term_months or 0) // context.calendar.months)


def _last_order(context: Context, offer: OfferSpec) -> int:
    """Return the index of the last stated period in which an offer can be rented."""
    most = offer.max_hosts if offer.per == "host" else offer.max_accelerators
    if not isinstance(most, Mapping):
        return 0 if most == 0 else len(context.periods) - 1
    return max((q for q, period in enumerate(context.periods) if most.get(period, 0) > 0), default=0)


def period_index(context: Context, key_path: KeyPath, name: str | None) -> int | None:
    """Return the number of the period that begins at a date, since the year 0; note a date that begins none.

    Parameters
    ----------
    context : Context
        The calendar, and where issues go.
    key_path : KeyPath
        The date.
    name : str or None
        A quarter, month or fiscal quarter; None is none.
    """
    if name is None:
        return None
    calendar = context.calendar
    month, index = calendar.first_month(name), calendar.index(name)
    if month is None:
        hint = "give horizon.fiscal_year, such as {first_month: 2}"
        context.error(key_path, f"the start of the fiscal year of {name} is missing", hint)
    elif index is None:
        around = calendar.around(month)
        hint = f"{calendar.name(around)} or {calendar.name(around + 1)}"
        context.error(key_path, f"{name} begins within a {calendar.kind}", hint)
    return index


def periods_of_quarters(context: Context, quarters: int) -> int:
    """Convert quarters to periods."""
    return quarters * context.calendar.per_quarter


def stated_periods(
    context: Context, key_path: KeyPath, key: str, quarters: int | None, months: int | None, *, up: bool
) -> int | None:
    """Return a duration in periods, given in quarters or months. [periods]

    Parameters
    ----------
    context : Context
        The calendar, and where issues go.
    key_path : KeyPath
        The block.
    key : str
        Name of the key without its unit, such as `term`.
    quarters, months : int or None
        Values of the file.
    up : bool
        Whether to round months up to whole periods; otherwise they must be whole periods.
    """
    if months is None:
        return None if quarters is None else periods_of_quarters(context, quarters)
    here = (*key_path, f"{key}_months")
    if quarters:
        context.error(here, f"and {key}_quarters are both given", "keep one of the two")
    length = context.calendar.months
    if months % length and not up:
        lower = months // length * length
        allowed = " or ".join(str(each) for each in (lower, lower + length) if each)
        context.error(here, f"{months} months are no whole {context.calendar.kind}s", f"{allowed} months")
    return -(-months // length)
