"""Parse the axes of a grid from `--grid KEY=VALUE,VALUE`.

services.chat.slo.ttft_ms=200,300,400      any key of the fleet file, with list items by name and YAML values
scenario=base,growth                       scenarios of the file; `base` is the unchanged file
demand=0.8,1,1.25    demand.chat=1,1.5     factor on the demand of all services or of one
price=0.9,1          price.H200-SXM=0.8,1  factor on the price of all offers, of one hardware or of one offer
slo.chat=0.8,1                             factor on the latency limits of a service
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.catalog.hardware_names import hardware_called
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.schema import FleetSpec
from fleetplan.planner.questions import fleet_edits

SCENARIO: Final = "scenario"
BASE: Final = "base"
ASSIGNED: Final = "--set"
"""Prefix that the fleet file reader uses for assignments."""

RATIO_AXES: Final = ("demand", "price", "slo")
"""Axes with values relative to the fleet file."""


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """One key of a grid and its values.

    Attributes
    ----------
    key : str
        Key as given by the user.
    values : tuple[str, ...]
        Distinct values as given by the user.
    """

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One point of a grid.

    Attributes
    ----------
    values : tuple[tuple[str, str], ...]
        Key and value of every axis.
    """

    values: tuple[tuple[str, str], ...]

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Scenarios of the fleet file to apply."""
        return tuple(value for key, value in self.values if key == SCENARIO and value != BASE)

    @property
    def assignments(self) -> tuple[str, ...]:
        """Assignments to apply after the scenarios."""
        return tuple(
            f"{key}={value}" for key, value in self.values if key != SCENARIO and not _ratio_axis(key)
        )

    @property
    def text(self) -> str:
        """Description of the point in one line."""
        return ", ".join(f"{key}={value}" for key, value in self.values)

    def told(self, issues: Iterable[Issue]) -> Iterator[Issue]:
        """Yield issues of the point's assignments with the name of their axis."""
        labels = {f"{ASSIGNED} {each}": f"--grid {each}" for each in self.assignments}
        for issue in issues:
            yield replace(issue, path=labels.get(issue.path, issue.path))

    def edit(self, fleet: Fleet) -> Fleet:
        """Return the fleet with the ratios of the point applied.

        Raises
        ------
        InputError
            An axis names something that the fleet does not have.
        """
        for key, value in self.values:
            if _ratio_axis(key):
                fleet = _ratio_edit(key, value)(fleet)
        return fleet


def read_axes(texts: Sequence[str]) -> tuple[SweepAxis, ...]:
    """Return the axes of a grid.

    Raises
    ------
    InputError
        An axis has no values, or a key occurs twice.
    """
    axes: list[SweepAxis] = []
    issues = []
    for text in texts:
        key, equals, rest = text.partition("=")
        values = tuple(dict.fromkeys(each.strip() for each in split_values(rest)))
        if not equals or not key.strip() or not all(values):
            hint = "such as services.chat.slo.ttft_ms=200,300 or demand.chat=0.8,1,1.25"
            issues.append(Issue(f"--grid {text}", 0, 0, "", "must be key=value,value", hint))
        elif key.strip() in {axis.key for axis in axes}:
            issues.append(Issue(f"--grid {text}", 0, 0, "", f"the axis {key.strip()!r} is given twice"))
        else:
            axes.append(SweepAxis(key.strip(), values))
    if issues:
        raise InputError(issues)
    return tuple(axes)


def require_keys(axes: Sequence[SweepAxis]) -> None:
    """Raise an error for axes that are neither keys of fleet files nor special axes.

    Raises
    ------
    InputError
        Lists the allowed keys and the nearest match.
    """
    known = (*RATIO_AXES, SCENARIO, *FleetSpec.model_fields)
    issues = []
    for axis in axes:
        first = axis.key.partition(".")[0]
        if first not in known:
            label = f"--grid {axis.key}={','.join(axis.values)}"
            issues.append(Issue(label, 0, 0, "", f"there is no axis {first!r}", names_hint(first, known)))
    if issues:
        raise InputError(issues)


def split_values(text: str) -> list[str]:
    """Return the values of an axis; commas within brackets and quotes are part of a value."""
    found, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        if character == "," and not depth and not quote:
            found.append("")
        else:
            found[-1] += character
    return found


def grid_points(axes: Sequence[SweepAxis]) -> tuple[SweepPoint, ...]:
    """Return every combination of the values; the last axis varies fastest."""
    keys = [axis.key for axis in axes]
    combinations = itertools.product(*(axis.values for axis in axes))
    return tuple(SweepPoint(tuple(zip(keys, values, strict=True))) for values in combinations)


def _ratio_axis(key: str) -> bool:
    return key.partition(".")[0] in RATIO_AXES


def _ratio_edit(key: str, value: str) -> Callable[[Fleet], Fleet]:
    kind, _, name = key.partition(".")
    label = f"--grid {key}={value}"
    try:
        ratio = float(value)
    except ValueError:
        ratio = -1.0
    if not 0 < ratio < float("inf"):
        raise InputError([Issue(label, 0, 0, "", f"{value!r} is not a ratio above 0")])
    readers = {"demand": _demand, "price": _price, "slo": _latency}
    return lambda fleet: readers[kind](fleet, name, ratio, label)


def _demand(fleet: Fleet, name: str, ratio: float, label: str) -> Fleet:
    services = [service.name for service in fleet.services]
    if name and name not in services:
        raise _unknown(label, f"there is no service {name!r}", name, services)
    return fleet_edits.demand_scaled(fleet, ratio, name or None)


def _price(fleet: Fleet, name: str, ratio: float, label: str) -> Fleet:
    part = hardware_called(name, [offer.hardware for offer in fleet.offers])
    offers = {offer.name for offer in fleet.offers if name in ("", offer.name) or part == offer.hardware}
    if not fleet.offers:
        hint = "give offers whose price can change, or leave out the axis"
        raise InputError([Issue(label, 0, 0, "", "the fleet has no offers", hint)])
    if not offers:
        names = [offer.hardware for offer in fleet.offers] + [offer.name for offer in fleet.offers]
        raise _unknown(label, f"no offer is or brings {name!r}", name, list(dict.fromkeys(names)))
    return fleet_edits.price_scaled(fleet, ratio, frozenset(offers))


def _latency(fleet: Fleet, name: str, ratio: float, label: str) -> Fleet:
    services = [service.name for service in fleet.services]
    if name and name not in services:
        raise _unknown(label, f"there is no service {name!r}", name, services)
    return fleet_edits.latency_limits_scaled(fleet, ratio, name or None)


def _unknown(label: str, message: str, name: str, known: Sequence[str]) -> InputError:
    return InputError([Issue(label, 0, 0, "", message, names_hint(name, tuple(known)))])
