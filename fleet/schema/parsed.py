"""Validate a document into blocks, with every mistake of the file in one list."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fleetplan.fleet.document import Document, KeyPath
from fleetplan.fleet.document.composer import NO_BREAK_SPACE, NO_BREAK_SPACE_HINT
from fleetplan.fleet.document.number_hints import number_hint, without_thousands
from fleetplan.fleet.errors import Issue, names_hint
from fleetplan.fleet.inventory.periods import name_of_period
from fleetplan.fleet.schema.finance import CURRENCY_PATTERN
from fleetplan.fleet.schema.fleet import FleetSpec
from fleetplan.fleet.schema.known_keys import allowed_keys, places_of
from fleetplan.fleet.schema.quantities import GROWTH_EXAMPLES
from fleetplan.fleet.schema.supply import OfferSpec, PoolSpec
from fleetplan.fleet.schema.values import AS_OF_PATTERN, QUARTER_PATTERN, TAG_MARK

# Blocks with independent items: broken items are set aside and the rest is still checked.
_BLOCKS: Final = ("regions", "hardware", "pools", "offers", "services")

_WANTED: Final[Mapping[str, str]] = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}

_PATTERNS: Final[Mapping[str, str]] = {
    QUARTER_PATTERN: "a quarter such as 2025Q3 or FY26-Q2, or a month such as 2025-07",
    AS_OF_PATTERN: "a year, a month or a day, such as 2026, 2026-08 or 2026-08-14",
    CURRENCY_PATTERN: "three capital letters such as EUR",
}
"""Texts with a pattern of their own; all others are names."""

_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


_WHOLE_PERCENT: Final = 100
"""What is 1 if a share is given in per cent."""

_NUMBERS: Final = frozenset(("float_type", "int_type"))

_THOUSANDS: Final = re.compile(r"\d{3}")
"""What is a key of its own where thousands have a comma: `{input_tokens: 1,024}`."""

_DECIMALS: Final = re.compile(r"\d{1,2}( .*)?")
"""What is a key of its own where decimals have a comma: `{demand: 2,5 M requests/day}`."""

# pydantic's mark of an error in the key of a mapping, not in its value.
_KEY_MARK: Final = "[key]"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The valid part of a fleet file.

    Attributes
    ----------
    spec : FleetSpec or None
        The file without broken blocks and items; None if too little remains.
    positions : Mapping[str, Sequence[int]]
        For each list, the positions of the items of `spec` in the file.
    issues : tuple[Issue, ...]
        Mistakes in the rest.
    """

    spec: FleetSpec | None
    positions: Mapping[str, Sequence[int]]
    issues: tuple[Issue, ...]


def parse(document: Document) -> Parsed:
    """Return the valid blocks of a fleet file, and the issues of the others."""
    plain = document.root.plain()
    assert isinstance(plain, dict), "a document is a mapping"
    try:
        return Parsed(FleetSpec.model_validate(plain), _all_positions(plain), ())
    except ValidationError as error:
        details = error.errors(include_url=False)
    issues = tuple(_issue(document, detail) for detail in details)
    locations = [_location(detail) for detail in details]
    # Without a valid horizon, period names could only be guessed.
    if any(location[:1] == ("horizon",) for location in locations):
        return Parsed(None, {}, issues)
    return _without_broken(plain, locations, issues)


def mistakes_of(kind: Literal["pool", "offer"], block: Mapping[str, object]) -> tuple[str, ...]:
    """Return the mistakes of a single pool or offer, each with its key."""
    spec = PoolSpec if kind == "pool" else OfferSpec
    try:
        spec.model_validate(block)
    except ValidationError as error:
        return tuple(_mistake(detail) for detail in error.errors(include_url=False))
    return ()


def _mistake(detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in _location(detail))
    message, hint = _message(detail)
    return f"{key}: {message}{f'; {hint}' if hint else ''}"


def _without_broken(
    plain: dict[str, object], locations: Sequence[KeyPath], issues: tuple[Issue, ...]
) -> Parsed:
    """Return the valid rest after removing first broken keys, then items, then blocks."""
    broken: set[KeyPath] = set()
    for depth in (3, 2, 1):
        broken |= {location[: depth if location[0] in _BLOCKS else 1] for location in locations if location}
        kept, positions = _pruned(plain, broken)
        try:
            spec = FleetSpec.model_validate({"services": [], **kept, "version": 1})
        except ValidationError as error:
            found = [_location(detail) for detail in error.errors(include_url=False)]
            locations = [_in_file(location, positions) for location in found]
        else:
            return Parsed(spec, positions, issues)
    return Parsed(None, {}, issues)


def _pruned(
    plain: Mapping[str, object], broken: Collection[KeyPath]
) -> tuple[dict[str, object], dict[str, list[int]]]:
    """Return the file without its broken parts, and the original positions of the remaining items."""
    kept: dict[str, object] = {}
    positions: dict[str, list[int]] = {}
    for key, block in plain.items():
        if (key,) in broken:
            continue
        kept[key] = block
        if key in _BLOCKS and isinstance(block, list):
            positions[key] = [i for i in range(len(block)) if (key, i) not in broken]
            kept[key] = [_without_keys((key, i), block[i], broken) for i in positions[key]]
        elif key in _BLOCKS and isinstance(block, dict):
            kept[key] = {
                name: _without_keys((key, name), item, broken)
                for name, item in block.items()
                if (key, name) not in broken
            }
    return kept, positions


def _without_keys(above: KeyPath, item: object, broken: Collection[KeyPath]) -> object:
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if (*above, key) not in broken}


def _in_file(location: KeyPath, positions: Mapping[str, Sequence[int]]) -> KeyPath:
    """Translate a location in the reduced file to the original file."""
    if len(location) > 1 and isinstance(location[1], int):
        return (location[0], positions[str(location[0])][location[1]], *location[2:])
    return location


def _all_positions(plain: Mapping[str, object]) -> dict[str, list[int]]:
    return {key: list(range(len(block))) for key, block in plain.items() if isinstance(block, list)}


def _location(detail: ErrorDetails) -> KeyPath:
    parts = tuple(part for part in detail["loc"] if not (isinstance(part, str) and part.startswith(TAG_MARK)))
    return parts[:-1] if _is_of_key(detail) else parts


def _is_of_key(detail: ErrorDetails) -> bool:
    """Whether a mapping's key is wrong, not its value; an unknown key may be named like the mark."""
    return detail["loc"][-1:] == (_KEY_MARK,) and detail["type"] != "extra_forbidden"


def _issue(document: Document, detail: ErrorDetails) -> Issue:
    location = _location(detail)
    kind = detail["type"]
    if kind == "extra_forbidden":
        key = str(location[-1])
        if NO_BREAK_SPACE in key:
            return document.issue(location, "unknown key", NO_BREAK_SPACE_HINT, at_key=True)
        if _THOUSANDS.fullmatch(key):
            return document.issue(location, "unknown key", "thousands have no comma", at_key=True)
        if _DECIMALS.fullmatch(key):
            return document.issue(location, "unknown key", "decimals have a point, not a comma", at_key=True)
        hints = [names_hint(key, allowed_keys(location[:-1]))]
        if places := places_of(key, location[:-1]):
            hints.append(f"see {' and '.join(places)}")
        return document.issue(location, "unknown key", "; ".join(hints), at_key=True)
    if kind == "missing":
        return document.issue(location, "is missing")
    message, hint = _message(detail)
    node = document.node(location)
    if node is not None and node.written and not hint:
        hint = without_thousands(node.written)
    return document.issue(location, message, hint, at_key=_is_of_key(detail))


def _message(detail: ErrorDetails) -> tuple[str, str]:  # noqa: PLR0911 - one return a kind of mistake
    kind, context, value = detail["type"], detail.get("ctx", {}), _shown(detail["input"])
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {value}", _wanted_hint(detail)
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        given = detail["input"]
        is_percentage = words in ("at most", "less than") and context[key] == 1 < given <= _WHOLE_PERCENT
        hint = f"write {given / _WHOLE_PERCENT:g} for {given:g} %" if is_percentage else ""
        return f"must be {words} {_number(context[key])}, not {value}", hint
    if kind == "multiple_of":
        return f"must be a multiple of {_number(context['multiple_of'])}, not {value}", ""
    if kind == "literal_error":
        given = detail["input"]
        allowed = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        if given in allowed:
            return f"must not be {value}", f"write {given} without quotes"
        if allowed == ["any"] and isinstance(given, str):
            return f"must not be {value}", f"write any, or a list such as [{given}]"
        return f"must not be {value}", names_hint(given if isinstance(given, str) else value, allowed)
    if kind in ("too_short", "string_too_short"):
        least, given = context["min_length"], context.get("actual_length")
        return "must not be empty" if least == 1 else f"needs {least} entries at least, not {given}", ""
    if kind == "string_pattern_mismatch":
        if context["pattern"] in _PATTERNS:
            return f"must be {_PATTERNS[context['pattern']]}, not {value}", ""
        meant = (
            name_of_period(str(detail["input"])) if _location(detail)[:2] == ("horizon", "periods") else None
        )
        hint = "names contain no blanks, commas, brackets or bars" if meant is None else f"write {meant}"
        return f"is not a name: {value}", hint
    return detail["msg"], ""


def _wanted_hint(detail: ErrorDetails) -> str:
    """Return a hint for a value of the wrong type."""
    kind, given = detail["type"], detail["input"]
    if kind in _NUMBERS and isinstance(given, str):
        return number_hint(given)
    if kind == "list_type" and isinstance(given, str):
        return f"write [{given}]"
    if kind == "string_type" and _location(detail)[-1:] == ("growth",):
        return GROWTH_EXAMPLES
    return ""


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return repr(value)


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
