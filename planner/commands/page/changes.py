"""Turn edits on the page into assignments to keys of the fleet file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fleetplan.fleet.document import Document, Node, read_document
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.inventory import Fleet, Offer
from fleetplan.fleet.resolve import build_fleet
from fleetplan.planner.commands.page.form import Form, demand_key, form_of
from fleetplan.planner.commands.page.messages import Settings
from fleetplan.scenarios.expand import expand

EVERY: Final = ""
"""Key for all services or all offers."""

UNCHANGED: Final = "the file as it is"

DIGITS: Final = 10
"""Significant digits of a scaled number; further digits are rounding."""

_LEADING_NUMBER: Final = re.compile(r"\s*\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")

Ratio = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
Value = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Short = Annotated[str, Field(max_length=1000)]


class Changes(BaseModel):
    """All changes of a fleet file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: Short | None = None
    """Scenario of the file to which the changes are applied."""
    demand: dict[Short, Ratio] = Field(default_factory=dict)
    """Factor on the demand by service; the empty name multiplies all services in addition."""
    prices: dict[Short, Ratio] = Field(default_factory=dict)
    """Factor on the price by offer, with the same convention."""
    numbers: list[tuple[list[Short], Value]] = Field(default_factory=list, max_length=10_000)
    """Keys with their new values."""
    off: list[Short] = Field(default_factory=list, max_length=1000)
    """Excluded hardware."""
    other: list[Short] = Field(default_factory=list, max_length=1000)
    """Assignments as `key.path=value`, as in `plan solve --set`."""


@dataclass(frozen=True, slots=True)
class EditedFile:
    """A changed fleet file.

    Attributes
    ----------
    scenarios, assignments : tuple[str, ...]
        Scenarios and assignments to apply.
    title : str
        Description of the changes.
    """

    scenarios: tuple[str, ...]
    assignments: tuple[str, ...]
    title: str


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The present fleet file, with the values that the page can change.

    Attributes
    ----------
    document : Document
        Document with the scenario applied.
    fleet : Fleet
        Resolved fleet.
    form : Form
        Editable values.
    scenarios : tuple[str, ...]
        Names of the scenarios in the file.
    """

    document: Document
    fleet: Fleet
    form: Form
    scenarios: tuple[str, ...]


def open_file(settings: Settings, scenario: str | None) -> OpenFile:
    """Read the fleet file.

    Raises
    ------
    InputError
        Lists every mistake in the file.
    """
    read = read_document(settings.path)
    block = read.root.child("scenarios")
    document = expand(read, [] if scenario is None else [scenario], ())
    fleet = build_fleet(document)
    return OpenFile(document, fleet, form_of(document, fleet), () if block is None else tuple(block.entries))


def edited(changes: Changes, file: OpenFile) -> EditedFile:
    """Return a changed fleet file.

    Raises
    ------
    InputError
        A change refers to something that is not in the file.
    """
    found = [
        *_demand(changes.demand, file),
        *_prices(changes.prices, file),
        *_numbers(changes, file),
        *_hardware(changes.off, file),
    ]
    assignments = (*(f"{key}={json.dumps(value)}" for key, value in found), *changes.other)
    said = [
        *([] if changes.scenario is None else [f"scenario {changes.scenario}"]),
        *_said_ratios("demand", changes.demand),
        *_said_ratios("price", changes.prices),
        *_said_numbers(changes, file),
        *(f"without {name}" for name in changes.off),
        *changes.other,
    ]
    scenarios = () if changes.scenario is None else (changes.scenario,)
    return EditedFile(scenarios, assignments, ", ".join(said) or UNCHANGED)


def _said_ratios(what: str, ratios: Mapping[str, float]) -> Iterator[str]:
    for name, ratio in ratios.items():
        owner = what if name == EVERY else f"{what} of {name}"
        yield f"{owner} {100 * (ratio - 1):+.4g} %"


def _said_numbers(changes: Changes, file: OpenFile) -> Iterator[str]:
    for keys, value in changes.numbers:
        number = file.form.number(tuple(keys))
        if number is not None:
            owner = keys[1] if keys[0] != "budget" else "budget"
            yield f"{owner} {number.label} {value:g} {number.unit}".rstrip()


def _demand(ratios: Mapping[str, float], file: OpenFile) -> Iterator[tuple[str, object]]:
    names = tuple(each.name for each in file.form.demand)
    _require_known("demand", ratios, names)
    for position, row in enumerate(file.form.demand):
        ratio = ratios.get(EVERY, 1.0) * ratios.get(row.name, 1.0)
        key = demand_key(file.document, position)
        if ratio == 1.0 or key is None or row.fixed:
            continue
        node = file.document.node(("services", position, *key))
        assert node is not None, "demand_key found it"
        yield _key(file, ("services", row.name, *map(str, key))), scaled_figures(node.plain(), ratio)


def _prices(ratios: Mapping[str, float], file: OpenFile) -> Iterator[tuple[str, object]]:
    _require_known("prices", ratios, tuple(each.name for each in file.fleet.offers))
    for position, offer in enumerate(file.fleet.offers):
        ratio = ratios.get(EVERY, 1.0) * ratios.get(offer.name, 1.0)
        if ratio == 1.0:
            continue
        for key in ("capex_usd_per_host", "rent_usd_per_accelerator_hour"):
            node = file.document.node(("offers", position, key))
            if node is not None and node.value is not None:
                yield _key(file, ("offers", offer.name, key)), scaled_figures(node.plain(), ratio)
                break
        else:
            yield from _instead_of_price_book(offer, file, ratio)


def _instead_of_price_book(offer: Offer, file: OpenFile, ratio: float) -> Iterator[tuple[str, object]]:
    """Yield the assignments that replace a price-book price by an explicit price on the same terms."""
    rents = offer.rent_usd_per_accelerator_hour or ()
    by_period = {
        period: scaled_figures(usd, ratio) for period, usd in zip(file.fleet.periods, rents, strict=True)
    }
    usd = by_period if len(set(rents)) > 1 else scaled_figures(rents[0], ratio)
    yield _key(file, ("offers", offer.name, "price_book")), None
    yield _key(file, ("offers", offer.name, "rent_usd_per_accelerator_hour")), usd
    yield _key(file, ("offers", offer.name, "energy_included")), offer.energy_included


def _numbers(changes: Changes, file: OpenFile) -> Iterator[tuple[str, object]]:
    for keys, value in changes.numbers:
        number = file.form.number(tuple(keys))
        if number is None:
            raise mistake("numbers", f"the page changes no {'.'.join(keys)}", "reload the page")
        yield _key(file, tuple(keys)), int(value) if number.whole and value == int(value) else value


def _hardware(off: list[str], file: OpenFile) -> Iterator[tuple[str, object]]:
    supplied = tuple(each.name for each in file.form.hardware)
    _require_known("hardware", dict.fromkeys(off), supplied)
    if not off:
        return
    left = [name for name in supplied if name not in off]
    defaults = file.document.node(("service_defaults", "hardware"))
    allowed = None if defaults is None else _names(defaults)
    yield "service_defaults.hardware", [name for name in allowed or left if name in left]
    for position, service in enumerate(file.fleet.services):
        own = file.document.node(("services", position, "hardware"))
        if own is not None and own.items:
            yield _key(file, ("services", service.name, "hardware")), [n for n in _names(own) if n in left]


def _names(node: Node) -> list[str]:
    return [str(item.value) for item in node.items]


def scaled_figures(value: object, ratio: float) -> object:
    """Return a demand or price times a ratio: a number, a quantity as text, or a mapping of them."""
    if isinstance(value, Mapping):
        return {key: scaled_figures(each, ratio) for key, each in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _rounded(value * ratio)
    if isinstance(value, str) and (number := _LEADING_NUMBER.match(value)) is not None:
        figures = np.format_float_positional(_rounded(float(number[0]) * ratio), trim="-")
        return figures + value[number.end() :]
    return value


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _key(file: OpenFile, key_path: tuple[str, ...]) -> str:
    """Return a key path in the syntax of assignments; an item with `=` in its name is given by position."""
    block, *rest = key_path
    names = {
        "services": [service.name for service in file.fleet.services],
        "offers": [offer.name for offer in file.fleet.offers],
        "pools": [pool.name for pool in file.fleet.pools],
    }
    if block in names and "=" in rest[0]:
        rest[0] = str(names[block].index(rest[0]))
    return ".".join([block, *rest])


def _require_known(what: str, named: Mapping[str, object], known: tuple[str, ...]) -> None:
    for name in named:
        if name != EVERY and name not in known:
            raise mistake(what, f"there is no {name!r}", names_hint(name, known))


def mistake(key: str, message: str, hint: str = "") -> InputError:
    """Return the error of a request, with the key it refers to."""
    return InputError([Issue("the page", 0, 0, key, message, hint)])
