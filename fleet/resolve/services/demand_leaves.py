"""Read the figures of a demand: one figure, or a nested mapping by region, period, class and slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.document.number_hints import is_plain
from fleetplan.fleet.errors import names_hint
from fleetplan.fleet.inventory.demand import Estimate
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.quantities import EXAMPLES, Quantity, meant_quantity, quantity, scaled_number
from fleetplan.fleet.schema.values import LARGEST_COUNT, LEAST_REQUESTS_PER_S, MOST_REQUESTS_PER_S
from fleetplan.fleet.units import HOURS_PER_DAY, SECONDS_PER_HOUR

_ESTIMATE: Final[tuple[Estimate, ...]] = ("low", "mid", "high")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One figure of the demand with its region, period, class and slice; None means all.

    Attributes
    ----------
    key_path : KeyPath
        Its path.
    figures : Mapping[Estimate, Quantity]
        Figures by estimate; a single figure is `mid`.
    """

    key_path: KeyPath
    figures: Mapping[Estimate, Quantity]
    region: str | None = None
    period: str | None = None
    request_class: str | None = None
    slice: str | None = None

    def figure(self, estimate: Estimate) -> Quantity:
        """Return one figure of an estimate; `mid` if it is the only one."""
        return self.figures.get(estimate, self.figures["mid"])


def demand_leaves(
    context: Context, key_path: KeyPath, demand: object, class_names: Sequence[str]
) -> list[Leaf]:
    """Return the figures of a demand tree; its levels are recognised by their keys.

    Parameters
    ----------
    context : Context
        Has regions and periods; receives issues.
    key_path : KeyPath
        The key `demand`.
    demand : object
        A number, a quantity, an estimate {low, mid, high} or a mapping.
    class_names : Sequence[str]
        Request classes; empty for a service without classes.
    """
    levels = {
        "region": context.region_names,
        "period": context.stated,
        "request_class": tuple(class_names),
        "slice": tuple(part.name for part in context.slices),
    }
    return _leaves(context, Leaf(key_path, {"mid": Quantity(0.0)}), demand, levels)


def _leaves(context: Context, above: Leaf, demand: object, levels: Mapping[str, Sequence[str]]) -> list[Leaf]:
    if not isinstance(demand, Mapping):
        figure = _figure(context, above.key_path, demand)
        return [] if figure is None else [replace(above, figures={"mid": figure})]
    if not demand:
        context.error(above.key_path, "must not be empty")
        return []
    level = _level_of(list(demand), levels)
    if level is None:
        return _estimate_or_unknown(context, above, demand, levels)
    below = {name: names for name, names in levels.items() if name != level}
    found: list[Leaf] = []
    for key, value in demand.items():
        here = replace(above, key_path=(*above.key_path, key), **{level: key})
        if context.check_name(here.key_path, level.replace("_", " "), key, levels[level], at_key=True):
            found += _leaves(context, here, value, below)
    return found


def _level_of(keys: Sequence[str], levels: Mapping[str, Sequence[str]]) -> str | None:
    """Return the level that knows most of the keys; None if no level knows any."""
    counts = {level: sum(key in names for key in keys) for level, names in levels.items()}
    best = max(counts, key=lambda level: counts[level], default=None)
    return best if best is not None and counts[best] > 0 else None


def _estimate_or_unknown(
    context: Context, above: Leaf, demand: Mapping[str, object], levels: Mapping[str, Sequence[str]]
) -> list[Leaf]:
    if set(demand) & set(_ESTIMATE):
        return _estimate(context, above, demand)
    allowed = [name for names in levels.values() for name in names]
    for key in demand:
        kinds = " or ".join(level.replace("_", " ") for level, names in levels.items() if names)
        message = f"{key!r} is no {kinds}" if kinds else "must be a number"
        context.error((*above.key_path, key), message, names_hint(key, allowed), at_key=True)
    return []


def _estimate(context: Context, above: Leaf, demand: Mapping[str, object]) -> list[Leaf]:
    for key in demand:
        context.check_name((*above.key_path, key), "estimate", key, _ESTIMATE, at_key=True)
    figures: dict[Estimate, Quantity] = {}
    for key in _ESTIMATE:
        figure = _figure(context, (*above.key_path, key), demand[key]) if key in demand else None
        if figure is not None:
            figures[key] = figure
    if "mid" not in demand:
        context.error((*above.key_path, "mid"), "is missing", "an estimate is {low, mid, high}")
        return []
    if len({(each.total, each.counted) for each in figures.values()}) > 1:
        context.error(above.key_path, "low, mid and high have different units", "give all in one unit")
    elif sorted(amounts := [each.amount for each in figures.values()]) != amounts:
        context.error(above.key_path, "must increase from low to mid to high")
    return [replace(above, figures=figures)] if "mid" in figures else []


def _figure(context: Context, key_path: KeyPath, value: object) -> Quantity | None:
    """Parse a figure: a number in the unit of its key, or a quantity with its own unit."""
    per_day = "requests_per_day" in key_path
    scaled = scaled_number(value) if isinstance(value, str) else None
    if isinstance(value, str) and scaled is None:
        return _stated_quantity(context, key_path, value, per_day=per_day)
    value = value if scaled is None else scaled
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = "nothing" if value is None else "a list" if isinstance(value, list) else str(value).lower()
        per = "a day" if per_day else "per second"
        context.error(key_path, f"must be requests {per}, not {shown}", EXAMPLES)
        return None
    seconds, unit = (HOURS_PER_DAY * SECONDS_PER_HOUR, "requests/day") if per_day else (1.0, "requests/s")
    least, most = LEAST_REQUESTS_PER_S * seconds, MOST_REQUESTS_PER_S * seconds
    if value != 0 and not least <= value <= most:
        context.error(key_path, f"must be 0, or from {least:g} to {most:g} {unit}, not {value:g}")
        return None
    return Quantity(float(value), per_day)


def _stated_quantity(context: Context, key_path: KeyPath, text: str, *, per_day: bool) -> Quantity | None:
    if (found := quantity(text)) is None:
        meant = meant_quantity(text)
        hint = EXAMPLES if meant is None else f"did you mean {meant!r}?"
        if is_plain(text):
            hint = "leave out the quotes"
        context.error(key_path, f"is not a quantity of demand: {text!r}", hint)
    elif per_day and not found.total:
        context.error(key_path, "must be a total by day, week or month: offline work has no peak")
    elif found.amount > MOST_REQUESTS_PER_S * HOURS_PER_DAY * SECONDS_PER_HOUR * LARGEST_COUNT:
        context.error(key_path, f"is more than any fleet serves: {text!r}")
    else:
        return found
    return None
