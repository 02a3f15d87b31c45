"""Spread the figures of a demand over regions, periods and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Slice
from fleetplan.fleet.inventory.demand import SIGNIFICANT_DIGITS, Estimate
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.day_shapes import DayShape
from fleetplan.fleet.resolve.services.demand_leaves import Leaf
from fleetplan.fleet.schema.quantities import Counted, Quantity
from fleetplan.fleet.schema.values import LEAST_REQUESTS_PER_S, MOST_REQUESTS_PER_S
from fleetplan.fleet.units import HOURS_PER_DAY

_DEMAND_DEPTH: Final = len(("services", "name", "demand"))
"""Length of the path of a service's whole demand."""


@dataclass(frozen=True, slots=True)
class DemandSplit:
    """Rules for spreading a figure without a class, slice or period.

    Attributes
    ----------
    class_tokens : Mapping[str, tuple[int, int] or None]
        Input and output tokens of a request of each class, at least one; None if not stated.
    shares : Mapping[str, float] or None
        Share of each class; None if the demand must name classes.
    shape : DayShape
        Course of demand over the day.
    shape_is_given : bool
        Whether the file gives the shape.
    offline : bool
        Whether a slice takes the mean of the shape, or its peak.
    growth : Mapping[str, float]
        Growth factor per period after the last figure, by region; other regions repeat it.
    """

    class_tokens: Mapping[str, tuple[int, int] | None]
    shares: Mapping[str, float] | None
    shape: DayShape
    shape_is_given: bool
    offline: bool
    growth: Mapping[str, float]


def spread_demand(
    context: Context,
    key_path: KeyPath,
    leaves: Sequence[Leaf],
    split: DemandSplit,
    case: tuple[Slice | None, Estimate],
) -> dict[tuple[str, str, str], float]:
    """Return the demand of one case by (region, period, class), with all combinations. [1/s]

    A figure without a period applies to every period, or to the first one if there is growth. Periods after
    the last given one grow from it or repeat it; earlier ones have no demand. Without growth, both cases
    cause a warning. Regions and classes that a mapping omits have no demand.

    Parameters
    ----------
    context : Context
        Has regions and periods; receives issues.
    key_path : KeyPath
        The key `demand`.
    leaves : Sequence[Leaf]
        From `demand_leaves`.
    split : DemandSplit
        Rules for classes, slices and growth.
    case : tuple[Slice or None, Estimate]
        Slice, and figure of an estimate.
    """
    part, estimate = case
    given: dict[tuple[str, str], dict[str, float]] = {}
    for leaf in leaves:
        if leaf.slice is not None and (part is None or leaf.slice != part.name):
            continue
        region = _region_of(context, leaf)
        if region is None:
            continue
        figure = leaf.figure(estimate)
        per_s = figure.mean_per_s() * _slice_ratio(context, leaf, figure, split, (region, part))
        for name, requests_per_s in _class_parts(context, leaf, per_s, figure.counted, split).items():
            for period in _periods_of(context, leaf, region, split):
                given.setdefault((region, name), {})[period] = requests_per_s
    _warn_of_periods(context, key_path, given, split)
    return {
        (region, period, name): value
        for region in context.region_names
        for name in split.class_tokens
        for period, value in _carried(
            context.periods, given.get((region, name), {}), split.growth.get(region, 1.0)
        ).items()
    }


def _periods_of(context: Context, leaf: Leaf, region: str, split: DemandSplit) -> Sequence[str]:
    """Return the periods of a figure; with growth, a figure without a period is the base."""
    if leaf.period is not None:
        return (leaf.period,)
    return context.periods[:1] if region in split.growth else context.periods


def _slice_ratio(
    context: Context, leaf: Leaf, figure: Quantity, split: DemandSplit, where: tuple[str, Slice | None]
) -> float:
    """Return the ratio of a slice's rate to the given figure, or to the mean rate of a total."""
    region, part = where
    if leaf.slice is not None and part is not None:
        if split.shape_is_given:
            message = "is given by slice, and demand_by_slice as well"
            context.error(leaf.key_path, message, "keep one of the two")
        return HOURS_PER_DAY / part.hours if figure.total else 1.0
    within = split.shape.mean if split.offline else split.shape.peak
    ratio = within(region, context.slices, part)
    if not figure.total:
        return ratio
    if not split.offline and not split.shape_is_given:
        # For the whole service: it may state a figure for each region and period, all of them totals.
        message = "a total is spread evenly over the day; demand_by_slice states its peak"
        context.warn(leaf.key_path[:_DEMAND_DEPTH], message)
    mean = split.shape.mean(region, context.slices, None)
    if mean == 0:
        context.error(leaf.key_path, "arises in no slice: demand_by_slice is 0 in all of them")
        return 0.0
    return ratio / mean


def _region_of(context: Context, leaf: Leaf) -> str | None:
    if leaf.region is not None:
        return leaf.region
    if len(context.region_names) == 1:
        return context.region_names[0]
    hint = f"give it by region: {', '.join(context.region_names)}"
    context.error(leaf.key_path, "the region of this demand is missing", hint)
    return None


def _class_parts(
    context: Context, leaf: Leaf, per_s: float, counted: Counted, split: DemandSplit
) -> dict[str, float]:
    """Convert a rate of requests or tokens to requests of each class. [1/s]."""
    shares = split.shares
    if leaf.request_class is not None:
        shares = {leaf.request_class: 1.0}
    elif len(split.class_tokens) == 1:
        shares = dict.fromkeys(split.class_tokens, 1.0)
    if shares is None:
        names = ", ".join(split.class_tokens)
        hint = f"give it by class ({names}), or give every class a share"
        context.error(leaf.key_path, "the split of this demand over the classes is missing", hint)
        return {}
    tokens = _tokens_per_request(context, leaf, counted, split, shares)
    if tokens is None:
        return {}
    total = per_s / tokens
    if total != 0 and not LEAST_REQUESTS_PER_S <= total <= MOST_REQUESTS_PER_S:
        least, most = LEAST_REQUESTS_PER_S, MOST_REQUESTS_PER_S
        message = f"comes to {total:g} requests/s; it must be 0, or from {least:g} to {most:g}"
        context.error(leaf.key_path, message)
        return {}
    return {name: total * share for name, share in shares.items()}


def _tokens_per_request(
    context: Context, leaf: Leaf, counted: Counted, split: DemandSplit, shares: Mapping[str, float]
) -> float | None:
    """Return the counted units per request: 1 for requests; None with an issue."""
    if counted == "requests":
        return 1.0
    mean = 0.0
    for name, share in shares.items():
        lengths = split.class_tokens[name]
        if lengths is None:
            context.error(
                leaf.key_path, "counts tokens, but the service states no lengths", "give its workload"
            )
            return None
        input_tokens, output_tokens = lengths
        mean += share * (
            (counted != "output tokens") * input_tokens + (counted != "input tokens") * output_tokens
        )
    return mean


def _carried(periods: Sequence[str], given: Mapping[str, float], ratio: float) -> dict[str, float]:
    """Return the demand of every period, extended by growth after the last figure."""
    last = 0.0
    carried = {}
    for period in periods:
        last = given[period] if period in given else float(f"{last * ratio:.{SIGNIFICANT_DIGITS}g}")
        carried[period] = last
    return carried


def _warn_of_periods(
    context: Context,
    key_path: KeyPath,
    given: Mapping[tuple[str, str], Mapping[str, float]],
    split: DemandSplit,
) -> None:
    periods = context.stated
    patterns = {
        (tuple(period in series for period in periods), region in split.growth)
        for (region, _), series in given.items()
    }
    for present, grows in sorted(patterns):
        first = present.index(True)
        missing = [period for period, here in zip(periods[first:], present[first:], strict=True) if not here]
        if first > 0:
            context.warn(key_path, f"none is given before {periods[first]}: planned as 0 until then")
        if missing and not grows:
            context.warn(key_path, f"none is given for {', '.join(missing)}: the period before is repeated")
