"""Compare rows of a plan with the rows that the verifier computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import BaseModel

from fleetplan.fleet.figures import counted
from fleetplan.planner.verify.rounding import differs
from fleetplan.planner.verify.violations import Violation, misstated

FORMATS_WITHOUT_MODEL_UNMET: Final = ("1.0", "1.1", "1.2", "1.3", "1.4")
"""Formats of plan.json without the unmet demand of the solver's model."""

FORMATS_WITHOUT_PARTS: Final = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
"""Formats of plan.json without the parts of hardware and the batches of classes."""

FORMATS_WITHOUT_POWER_CAPS: Final = (*FORMATS_WITHOUT_PARTS, "1.7", "1.8")
"""Formats of plan.json without the power caps of hardware."""

FORMATS_WITHOUT_PERIOD_DATES: Final = ("1.0", "1.1", "1.2", "1.3")
"""Formats of plan.json without the dates of periods."""

FORMATS_WITHOUT_COMMITMENTS: Final = ("1.0", "1.1", "1.2")
"""Formats of plan.json without obligations after the horizon."""

OLDER_FORMATS: Final = ("1.0", "1.1")
"""Formats of plan.json without the charges of the solver's model and gaps of unmet demand."""

NUMBERS: Final = (int, float)

MONEY: Final = ("usd", "usd_by_kind", "usd_by_period")
"""Fields that are sums of money without an `_usd` suffix; large terms may cancel in them."""


def compared(
    family: str,
    stated: Sequence[BaseModel],
    expected: Sequence[BaseModel],
    key: Sequence[str],
    floor_usd: float = 0.0,
) -> Iterator[Violation]:
    """Yield violations for missing, extra or different rows, field by field.

    Parameters
    ----------
    family : str
        Family of the violations.
    stated, expected : Sequence[BaseModel]
        Rows of the plan, and expected rows, in any order.
    key : Sequence[str]
        Fields that identify a row.
    floor_usd : float
        Minimum tolerance of amounts of money. [USD]
    """
    known = {row_key(row, key): row for row in expected}
    found = {row_key(row, key): row for row in stated}
    for where in found:
        if where not in known:
            yield Violation(family, f"{label_of(where)}: no decision of the plan explains the row")
    yield from stated_twice(family, [row for row in stated if row_key(row, key) in known], key)
    for where in known:
        if where not in found:
            yield Violation(family, f"{label_of(where)}: the row is missing")
    for row in stated:
        if (right := known.get(row_key(row, key))) is not None:
            yield from fields_compared(family, label_of(row_key(row, key)), row, right, floor_usd)


def stated_twice(family: str, stated: Sequence[BaseModel], key: Sequence[str]) -> Iterator[Violation]:
    """Yield violations for duplicate rows; parameters as in `compared`."""
    for where, count in Counter(row_key(row, key) for row in stated).items():
        if count > 1:
            yield Violation(family, f"{label_of(where)}: the row appears {counted(count, 'time')}")


def fields_compared(
    family: str, label: str, stated: BaseModel, expected: BaseModel, floor_usd: float = 0.0
) -> Iterator[Violation]:
    """Yield violations for the fields of a record that differ from the expected ones.

    Parameters
    ----------
    family, label : str
        Family and label of the violations.
    stated, expected : BaseModel
        Records of the same type.
    floor_usd : float
        Minimum tolerance of amounts of money. [USD]
    """
    for name in type(expected).model_fields:
        one, other = getattr(stated, name), getattr(expected, name)
        # Most fields are identical; this test takes a tenth of the time.
        if type(one) is type(other) and not isinstance(one, Mapping) and one == other:
            continue
        is_money = name in MONEY or name.endswith("_usd")
        if not same(one, other, floor_usd if is_money else 0.0):
            yield Violation(family, misstated(f"{label}: {name}", one, other))


def same(one: object, other: object, floor: float = 0.0) -> bool:
    """Return whether values agree up to rounding; missing numbers of a mapping count as 0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, NUMBERS) and isinstance(other, NUMBERS):
        return not differs(one, other, floor)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(
            same(one.get(name, nothing), other.get(name, nothing), floor)
            for name in one.keys() | other.keys()
            for nothing in (_nothing(one, other, name),)
        )
    return one == other


def _nothing(one: Mapping[str, object], other: Mapping[str, object], name: str) -> object:
    """Return the value for a name that one of two mappings lacks."""
    value = one.get(name, other.get(name))
    return 0.0 if isinstance(value, NUMBERS) else {} if isinstance(value, Mapping) else None


def row_key(row: BaseModel, key: Sequence[str]) -> tuple[object, ...]:
    """Return the values of the fields that identify a row."""
    return tuple(getattr(row, name) for name in key)


def label_of(key: tuple[object, ...]) -> str:
    """Return the key of a row as words."""
    return " ".join(str(part) for part in key if part not in (None, ""))
