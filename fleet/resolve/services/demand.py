"""Resolve the demand of services by slice and scenario: own, offline, or caused by other services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import (
    Demand,
    DemandCase,
    DemandKey,
    DemandRates,
    DemandScenario,
    Service,
    Slice,
    demand_cases,
)
from fleetplan.fleet.inventory.demand import SIGNIFICANT_DIGITS
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.day_shapes import FLAT, DayShape, shape_of_slices
from fleetplan.fleet.resolve.services.demand_leaves import Leaf, demand_leaves
from fleetplan.fleet.resolve.services.demand_spread import DemandSplit, spread_demand
from fleetplan.fleet.resolve.services.following import followed_demand, followed_paths
from fleetplan.fleet.resolve.slices_and_scenarios import check_slices
from fleetplan.fleet.schema.fleet import RequestClassSpec, ServiceSpec
from fleetplan.fleet.schema.quantities import GROWTH_EXAMPLES, growth_per_period
from fleetplan.fleet.tables import SINGLE_CLASS

# Tolerance of the sum of a service's class shares: three of 0.333 are valid.
SHARE_TOLERANCE: Final = 2e-3

Classes = Mapping[str, RequestClassSpec | None]
"""Request classes by name, with their blocks in the file."""


def service_demand(
    context: Context,
    key_path: KeyPath,
    spec: ServiceSpec,
    classes: Classes,
    leaders: tuple[Service, ...],
) -> Demand | None:
    """Return the demand of a service; None if it has mistakes (noted).

    Parameters
    ----------
    context : Context
        Has regions, periods, slices and scenarios; receives issues.
    key_path : KeyPath
        The service.
    spec : ServiceSpec
        Its block.
    classes : Mapping[str, RequestClassSpec or None]
        Its request classes.
    leaders : tuple[Service, ...]
        The services that it follows.
    """
    _check_slices(context, key_path, spec)
    own = (spec.demand is not None) + (spec.offline is not None) + (spec.follows is not None)
    if own != 1:
        context.error(key_path, "needs exactly one of demand, follows, offline")
        return None
    cases: dict[DemandCase, DemandRates] = {}
    for part, scenario in demand_cases(context.slices, context.scenarios):
        if leaders:
            demand = _followed(context, key_path, spec, classes, leaders, (part, scenario))
        else:
            demand = _own(context, key_path, spec, classes, (part, scenario))
        if demand is None:
            return None
        names = (None if part is None else part.name, None if scenario is None else scenario.name)
        ratio = 1.0 if scenario is None else scenario.ratio_of(spec.name, bool(leaders))
        cases[names] = {key: rate * ratio for key, rate in demand.items()}
        if names != (None, None):
            cases[names] = {
                key: float(f"{rate:.{SIGNIFICANT_DIGITS}g}") for key, rate in cases[names].items()
            }
    return Demand.of_cases(cases)


def _check_slices(context: Context, key_path: KeyPath, spec: ServiceSpec) -> None:
    """Note mistakes in the shape of the day and in growth."""
    here = (*key_path, "demand_by_slice")
    if isinstance(spec.demand_by_slice, str):
        context.check_name(here, "shape of the day", spec.demand_by_slice, tuple(context.day_shapes))
    elif spec.demand_by_slice is not None:
        check_slices(context, here, spec.demand_by_slice)
    if spec.follows is None:
        return
    for key, what in (("demand_by_slice", "shape"), ("growth", "growth")):
        if getattr(spec, key) is not None:
            message = f"has no effect on a follower: the followed service has its own {what}"
            leaders = ", ".join(each.service for each in spec.leaders)
            context.error((*key_path, key), message, f"give it for {leaders}")


def _followed(
    context: Context,
    key_path: KeyPath,
    spec: ServiceSpec,
    classes: Classes,
    leaders: tuple[Service, ...],
    case: tuple[Slice | None, DemandScenario | None],
) -> DemandRates | None:
    """Return the sum of the demand that requests of other services cause in one case."""
    part, scenario = case
    names = (None if part is None else part.name, None if scenario is None else scenario.name)
    shares = _shares(context, key_path, classes, ())
    total: dict[DemandKey, float] = {}
    for (here, each), leader in zip(followed_paths(key_path, spec), leaders, strict=True):
        if leader.offline is not None:
            message = f"{leader.name} is offline, so the time of its requests is unknown"
            context.error((*here, "service"), message)
            return None
        demand = followed_demand(context, here, each, (leader, names), shares, tuple(classes))
        if demand is None:
            return None
        for key, rate in demand.items():
            total[key] = total.get(key, 0.0) + rate
    return total


def _own(
    context: Context,
    key_path: KeyPath,
    spec: ServiceSpec,
    classes: Classes,
    case: tuple[Slice | None, DemandScenario | None],
) -> DemandRates:
    """Return the demand of the file for one case; for offline work, the rate at which it arises."""
    here, tree = (*key_path, "demand"), spec.demand
    if spec.offline is not None:
        here, tree = (*key_path, "offline", "requests_per_day"), spec.offline.requests_per_day
    # `all` is the internal name of a single class; the file does not contain it.
    names = tuple(classes)
    named = () if names == (SINGLE_CLASS,) else names
    leaves = demand_leaves(context, here, tree, named)
    split = DemandSplit(
        {
            name: None if each is None else (each.input_tokens, each.output_tokens)
            for name, each in classes.items()
        },
        _shares(context, key_path, classes, leaves),
        _shape(context, spec),
        spec.demand_by_slice is not None,
        spec.offline is not None,
        _growth(context, key_path, spec),
    )
    part, scenario = case
    estimate = "mid" if scenario is None else scenario.estimate
    return spread_demand(context, here, leaves, split, (part, estimate))


def _shape(context: Context, spec: ServiceSpec) -> DayShape:
    """Return the course of demand over the day; its mistakes have been noted."""
    if spec.demand_by_slice is None:
        return FLAT
    if isinstance(spec.demand_by_slice, str):
        return context.day_shapes.get(spec.demand_by_slice, FLAT)
    return shape_of_slices(context.region_names, context.slices, spec.demand_by_slice)


def _growth(context: Context, key_path: KeyPath, spec: ServiceSpec) -> dict[str, float]:
    """Return the growth factor per period, by region."""
    here = (*key_path, "growth")
    if spec.growth is None:
        return {}
    once = isinstance(spec.growth, str)
    stated = dict.fromkeys(context.region_names, spec.growth) if isinstance(spec.growth, str) else spec.growth
    found: dict[str, float] = {}
    for region, text in stated.items():
        place = here if once else (*here, region)
        if once or context.check_name(place, "region", region, context.region_names, at_key=True):
            ratio = growth_per_period(text, context.calendar.months)
            if ratio is None:
                context.error(place, f"is not a growth: {text!r}", GROWTH_EXAMPLES)
            else:
                found[region] = ratio
    return found


def _shares(
    context: Context, key_path: KeyPath, classes: Classes, leaves: Sequence[Leaf]
) -> dict[str, float] | None:
    """Return how to split demand without a class; None if demand names classes or no shares are known."""
    given = {
        name: spec.share for name, spec in classes.items() if spec is not None and spec.share is not None
    }
    if not given:
        return None
    here = (*key_path, "workload", "classes")
    if any(leaf.request_class is not None for leaf in leaves):
        context.error(here, "shares are given, and the demand by class as well", "keep one of the two")
        return None
    missing = [name for name in classes if name not in given]
    if missing:
        context.error(here, f"has no share for {', '.join(missing)}", "every class needs one, or none has")
        # Any split: that the demand has none is said.
        return dict.fromkeys(classes, 1 / len(classes))
    total = sum(given.values())
    if abs(total - 1) > SHARE_TOLERANCE:
        context.error(here, f"the shares add up to {total:g}, not 1")
    if total == 0:
        return dict.fromkeys(classes, 1 / len(classes))
    return {name: share / total for name, share in given.items()}
