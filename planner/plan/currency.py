"""Convert the amounts of a plan to the currency of its report; plan.json itself is in USD."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from fleetplan.fleet.inventory import Currency
from fleetplan.planner.plan.document import Plan
from fleetplan.planner.plan.inputs import CurrencyInput, PriceInput
from fleetplan.planner.plan.record import Record

_RecordT = TypeVar("_RecordT", bound=Record)

AS_STATED: Final = (CurrencyInput, PriceInput)
"""Records that keep the values of the fleet file: the rate, and prices with their own units."""


def currency_of(plan: Plan) -> Currency | None:
    """Return the currency of the plan's report, or None for USD."""
    stated = None if plan.inputs is None else plan.inputs.currency
    return None if stated is None else Currency(**stated.model_dump())


def rate_row(currency: Currency) -> PriceInput:
    """Return the exchange rate as a row of the prices."""
    return PriceInput(
        name=f"rate of {currency.code}",
        subject="report",
        value=currency.usd_per_unit,
        unit=f"USD a {currency.code}",
        source=currency.source,
        as_of=currency.as_of,
    )


def in_currency(plan: Plan, currency: Currency) -> Plan:
    """Return the plan with every amount in another currency; amounts are the fields named after USD."""
    return _converted(plan, currency.usd_per_unit)


def is_amount(name: str) -> bool:
    """Return whether a field or a column holds money: `usd`, `idle_usd`, `usd_by_kind.rent`."""
    return "usd" in name.split(".", maxsplit=1)[0].split("_")


def titled(name: str, code: str) -> str:
    """Return the name of a field or column with a currency instead of USD: `idle_eur`, `eur_by_kind.rent`.

    Parameters
    ----------
    name : str
        Name in plan.json.
    code : str
        ISO 4217 code.
    """
    if not is_amount(name):
        return name
    first, dot, rest = name.partition(".")
    words = (code.lower() if word == "usd" else word for word in first.split("_"))
    return "_".join(words) + dot + rest


def _converted(row: _RecordT, usd_per_unit: float) -> _RecordT:
    changed: dict[str, Any] = {}
    for name in type(row).model_fields:
        value = getattr(row, name)
        if is_amount(name):
            changed[name] = _divided(value, usd_per_unit)
        elif isinstance(value, Record) and not isinstance(value, AS_STATED):
            changed[name] = _converted(value, usd_per_unit)
        elif isinstance(value, tuple):
            changed[name] = tuple(
                _converted(each, usd_per_unit)
                if isinstance(each, Record) and not isinstance(each, AS_STATED)
                else each
                for each in value
            )
    if isinstance(row, Plan):
        changed["cost_breakdown"] = _divided(row.cost_breakdown, usd_per_unit)
    return row.model_copy(update=changed)


def _divided(value: Any, usd_per_unit: float) -> Any:
    if isinstance(value, dict):
        return {key: _divided(each, usd_per_unit) for key, each in value.items()}
    return None if value is None else value / usd_per_unit
