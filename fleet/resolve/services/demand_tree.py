"""Demand as a number or a nested mapping, spread over every region, period and class, case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.errors import names_hint
from fleetplan.fleet.inventory import Slice
from fleetplan.fleet.inventory.demand import Estimate
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.values import LEAST_REQUESTS_PER_S, MOST_REQUESTS_PER_S
from fleetplan.fleet.units import HOURS_PER_DAY, SECONDS_PER_HOUR

_ESTIMATE: Final[tuple[Estimate, ...]] = ("low", "mid", "high")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One figure of the demand, and which region, period, class and slice it is for; None is every one.

    Attributes
    ----------
    key_path : KeyPath
        Where it stands.
    figures : Mapping[Estimate, float]
        What is given: `mid` where it is one number.
    """

    key_path: KeyPath
    figures: Mapping[Estimate, float]
    region: str | None = None
    period: str | None = None
    request_class: str | None = None
    slice: str | None = None

    def figure(self, estimate: Estimate) -> float:
        """Return one figure of an estimate; the middle where only that is given."""
        return self.figures.get(estimate, self.figures["mid"])


def demand_leaves(
    context: Context, key_path: KeyPath, demand: object, class_names: Sequence[str]
) -> list[Leaf]:
    """Return the numbers of a demand tree; a level of it is recognised by its keys.

    Parameters
    ----------
    context : Context
        Regions and periods, and where issues go.
    key_path : KeyPath
        The key `demand`.
    demand : object
        A number, an estimate {low, mid, high} or a mapping.
    class_names : Sequence[str]
        The request classes; empty where the service names none.
    """
    levels = {
        "region": context.region_names,
        "period": context.periods,
        "request_class": tuple(class_names),
        "slice": tuple(part.name for part in context.slices),
    }
    return _leaves(context, Leaf(key_path, {"mid": 0.0}), demand, levels)


def _leaves(context: Context, above: Leaf, demand: object, levels: Mapping[str, Sequence[str]]) -> list[Leaf]:
    if not isinstance(demand, Mapping):
        number = _requests_per_s(context, above.key_path, demand)
        return [] if number is None else [replace(above, figures={"mid": number})]
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
    """Return the level that knows most of the keys; None where no level knows any."""
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
        message = f"{key!r} is no {kinds}" if kinds else "a number was expected here"
        context.error((*above.key_path, key), message, names_hint(key, allowed), at_key=True)
    return []


def _estimate(context: Context, above: Leaf, demand: Mapping[str, object]) -> list[Leaf]:
    for key in demand:
        context.check_name((*above.key_path, key), "estimate", key, _ESTIMATE, at_key=True)
    figures: dict[Estimate, float] = {}
    for key in _ESTIMATE:
        number = _requests_per_s(context, (*above.key_path, key), demand[key]) if key in demand else None
        if number is not None:
            figures[key] = number
    if "mid" not in demand:
        context.error((*above.key_path, "mid"), "is missing", "an estimate is {low, mid, high}")
        return []
    if list(figures.values()) != sorted(figures.values()):
        context.error(above.key_path, "must rise from low over mid to high")
    return [replace(above, figures=figures)] if "mid" in figures else []


def _requests_per_s(context: Context, key_path: KeyPath, value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = "nothing" if value is None else "a list" if isinstance(value, list) else repr(value)
        context.error(key_path, f"must be requests per second, not {shown}")
        return None
    per_day = "requests_per_day" in key_path
    seconds, unit = (HOURS_PER_DAY * SECONDS_PER_HOUR, "requests/day") if per_day else (1.0, "requests/s")
    least, most = LEAST_REQUESTS_PER_S * seconds, MOST_REQUESTS_PER_S * seconds
    if value != 0 and not least <= value <= most:
        context.error(key_path, f"must be 0, or from {least:g} to {most:g} {unit}, not {value:g}")
        return None
    return float(value)


@dataclass(frozen=True, slots=True)
class DemandSplit:
    """How a number without a class, and one without a slice, is spread.

    Attributes
    ----------
    class_names : tuple[str, ...]
        The request classes, at least one.
    shares : Mapping[str, float] or None
        Share of each class; None where only the demand itself can say.
    slice_ratios : Mapping[str, float] or None
        Demand of each slice over the number; 1 for those left out; None where the file says nothing.
    per_day : bool
        Whether the numbers are requests a day, spread over it in these ratios, or requests per second.
    """

    class_names: tuple[str, ...]
    shares: Mapping[str, float] | None
    slice_ratios: Mapping[str, float] | None = None
    per_day: bool = False


def spread_demand(
    context: Context,
    key_path: KeyPath,
    leaves: Sequence[Leaf],
    split: DemandSplit,
    case: tuple[Slice | None, Estimate],
) -> dict[tuple[str, str, str], float]:
    """Return the demand of one case by (region, period, class), every combination present, in 1/s.

    A number without a period holds in every period. Periods after the last one that is given repeat it,
    those before the first have no demand, and both are warned about. Regions and classes that a mapping
    leaves out have no demand.

    Parameters
    ----------
    context : Context
        Regions and periods, and where issues go.
    key_path : KeyPath
        The key `demand`.
    leaves : Sequence[Leaf]
        From `demand_leaves`.
    split : DemandSplit
        Classes and slices.
    case : tuple[Slice or None, Estimate]
        The slice, and the figure of an estimate.
    """
    part, estimate = case
    given: dict[tuple[str, str], dict[str, float]] = {}
    for leaf in leaves:
        if leaf.slice is not None and (part is None or leaf.slice != part.name):
            continue
        region = _region_of(context, leaf)
        number = leaf.figure(estimate) * _slice_ratio(context, leaf, split, part)
        parts = _class_parts(context, leaf, number, split)
        if region is None:
            continue
        for name, requests_per_s in parts.items():
            for period in context.periods if leaf.period is None else (leaf.period,):
                given.setdefault((region, name), {})[period] = requests_per_s
    _warn_of_periods(context, key_path, given.values())
    return {
        (region, period, name): value
        for region in context.region_names
        for name in split.class_names
        for period, value in _carried(context.periods, given.get((region, name), {})).items()
    }


def _slice_ratio(context: Context, leaf: Leaf, split: DemandSplit, part: Slice | None) -> float:
    """Return the rate of a slice over the number that is given."""
    ratios = {each.name: (split.slice_ratios or {}).get(each.name, 1.0) for each in context.slices}
    if part is None:
        return 1 / (HOURS_PER_DAY * SECONDS_PER_HOUR) if split.per_day else 1.0
    if leaf.slice is not None:
        if split.slice_ratios is not None:
            message = "is given by slice, and demand_by_slice as well"
            context.error(leaf.key_path, message, "keep one of the two")
        return 1 / (part.hours * SECONDS_PER_HOUR) if split.per_day else 1.0
    if not split.per_day:
        return ratios[part.name]
    hours = sum(ratios[each.name] * each.hours for each in context.slices)
    if hours == 0:
        context.error(leaf.key_path, "arises in no slice: demand_by_slice is 0 in all of them")
        return 0.0
    return ratios[part.name] / (hours * SECONDS_PER_HOUR)


def _region_of(context: Context, leaf: Leaf) -> str | None:
    if leaf.region is not None:
        return leaf.region
    if len(context.region_names) == 1:
        return context.region_names[0]
    hint = f"give it by region: {', '.join(context.region_names)}"
    context.error(leaf.key_path, "it is not said for which region this demand is", hint)
    return None


def _class_parts(context: Context, leaf: Leaf, requests_per_s: float, split: DemandSplit) -> dict[str, float]:
    if leaf.request_class is not None:
        return {leaf.request_class: requests_per_s}
    if len(split.class_names) == 1:
        return {split.class_names[0]: requests_per_s}
    if split.shares is not None:
        return {name: requests_per_s * share for name, share in split.shares.items()}
    names = ", ".join(split.class_names)
    hint = f"give it by class ({names}), or give every class a share"
    context.error(leaf.key_path, "it is not said how this demand is split over the classes", hint)
    return {}


def _carried(periods: Sequence[str], given: Mapping[str, float]) -> dict[str, float]:
    last = 0.0
    carried = {}
    for period in periods:
        last = given.get(period, last)
        carried[period] = last
    return carried


def _warn_of_periods(context: Context, key_path: KeyPath, series: Iterable[Mapping[str, float]]) -> None:
    periods = context.periods
    patterns = {tuple(period in given for period in periods) for given in series}
    for present in sorted(patterns):
        first = present.index(True)
        missing = [period for period, here in zip(periods[first:], present[first:], strict=True) if not here]
        if first > 0:
            context.warn(key_path, f"none is given before {periods[first]}: planned as 0 until then")
        if missing:
            context.warn(key_path, f"none is given for {', '.join(missing)}: the period before is repeated")
