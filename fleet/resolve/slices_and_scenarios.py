"""Resolve the slices of the day and the demand scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import DemandScenario, Service, Slice
from fleetplan.fleet.inventory.demand import DEFAULT_PROBABILITY
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.day_shapes import (
    FLAT,
    DayShape,
    day_shares,
    of_kinds,
    ratios_of_hours,
    ratios_of_slices,
    shape_of_slices,
    step_of_hour,
)
from fleetplan.fleet.schema.demand import DayShapeSpec, DemandScenarioSpec, SliceSpec, UncertaintySpec
from fleetplan.fleet.schema.supply import RegionSpec
from fleetplan.fleet.units import HOURS_PER_DAY

# Tolerance of the sum of probabilities: thirds rounded to three digits.
PROBABILITY_TOLERANCE: Final = 2e-3


def resolve_slices(
    context: Context,
    specs: Sequence[SliceSpec] | None,
    day_kinds: Mapping[str, int] | None,
    service_classes: Sequence[str],
) -> tuple[Slice, ...]:
    """Return the slices of each kind of day; mistakes go to the context.

    Parameters
    ----------
    context : Context
        Has regions and periods, whose names must differ from those of slices.
    specs : Sequence[SliceSpec] or None
        As they are written.
    day_kinds : Mapping[str, int] or None
        Days of each kind; None if all days are alike.
    service_classes : Sequence[str]
        Names of request classes of all services, which must differ from those of slices.
    """
    if specs is None and day_kinds is None:
        return ()
    here: KeyPath = ("horizon", "slices")
    specs = specs or ()
    taken = {
        **dict.fromkeys(service_classes, "request class"),
        **dict.fromkeys(context.region_names, "region"),
        **dict.fromkeys(context.periods, "period"),
    }
    names = [spec.name for spec in specs]
    for i, name in enumerate(names):
        if name in names[:i]:
            context.error((*here, i, "name"), f"the name {name!r} is given twice in slices")
        elif name in taken:
            context.error((*here, i, "name"), f"there is a {taken[name]} of the same name {name!r}")
    hours = sum(spec.hours for spec in specs)
    if specs and hours != HOURS_PER_DAY:
        context.error(here, f"the hours add up to {hours:g}, not {HOURS_PER_DAY:g}")
    parts = [(spec.name, spec.hours) for spec in specs]
    if day_kinds is None:
        return tuple(Slice(name, hours) for name, hours in parts)
    for kind in day_kinds:
        if kind in taken:
            context.error(
                ("horizon", "day_kinds", kind), f"there is a {taken[kind]} of the same name", at_key=True
            )
    week = sum(day_kinds.values())
    return tuple(
        Slice(f"{kind}-{name}" if name else kind, length, kind, Fraction(days, week))
        for kind, days in day_kinds.items()
        for name, length in parts or [("", HOURS_PER_DAY)]
    )


def resolve_day_shapes(
    context: Context,
    specs: Mapping[str, DayShapeSpec],
    regions: Mapping[str, RegionSpec] | None,
    first_slice_utc_hour: float,
) -> dict[str, DayShape]:
    """Return the named shapes of the file; mistakes go to the context.

    Parameters
    ----------
    context : Context
        Has regions and slices; receives issues.
    specs : Mapping[str, DayShapeSpec]
        As they are written.
    regions : Mapping[str, RegionSpec] or None
        Regions, for their local times.
    first_slice_utc_hour : float
        Start of the first slice of the day. [h UTC]
    """
    found = {
        name: _shape(context, ("day_shapes", name), spec, regions or {}, first_slice_utc_hour)
        for name, spec in specs.items()
        if spec.by_day_kind is None
    }
    for name, spec in specs.items():
        if spec.by_day_kind is not None:
            found[name] = _by_day_kind(context, ("day_shapes", name), spec, found)
    return found


def _by_day_kind(
    context: Context, key_path: KeyPath, spec: DayShapeSpec, shapes: Mapping[str, DayShape]
) -> DayShape:
    """Combine one shape per kind of day; these must not vary by kind of day themselves."""
    here, named = (*key_path, "by_day_kind"), spec.by_day_kind or {}
    if any(value is not None for value in (spec.by_slice, spec.by_region, spec.by_local_hour)):
        context.error(key_path, f"needs exactly one of {', '.join(DayShapeSpec.model_fields)}")
    kinds = [kind for kind in dict.fromkeys(part.day_kind for part in context.slices) if kind is not None]
    if not kinds:
        context.error(here, "all days are alike", "give horizon.day_kinds, such as {weekday: 5, weekend: 2}")
        return FLAT
    for kind, shape in named.items():
        if context.check_name((*here, kind), "kind of day", kind, kinds, at_key=True):
            context.check_name((*here, kind), "shape of the day", shape, tuple(shapes))
    missing = [kind for kind in kinds if kind not in named]
    if missing:
        context.error(here, f"has no shape for {', '.join(missing)}", "give every kind of day")
    return of_kinds([shapes.get(named.get(kind, ""), FLAT) for kind in kinds], context.region_names)


def _shape(
    context: Context,
    key_path: KeyPath,
    spec: DayShapeSpec,
    regions: Mapping[str, RegionSpec],
    first_slice_utc_hour: float,
) -> DayShape:
    given = {"by_slice": spec.by_slice, "by_region": spec.by_region, "by_local_hour": spec.by_local_hour}
    if sum(value is not None for value in given.values()) != 1:
        context.error(key_path, f"needs exactly one of {', '.join(DayShapeSpec.model_fields)}")
    elif spec.by_local_hour is not None:
        return _by_local_hour(context, key_path, spec.by_local_hour, regions, first_slice_utc_hour)
    elif spec.by_slice is not None:
        check_slices(context, (*key_path, "by_slice"), spec.by_slice)
        return shape_of_slices(context.region_names, context.slices, spec.by_slice)
    elif spec.by_region is not None:
        return _by_region(context, (*key_path, "by_region"), spec.by_region)
    return FLAT


def check_slices(context: Context, key_path: KeyPath, ratios: Mapping[str, float]) -> None:
    """Note mistakes in the names of slices."""
    names = [part.name for part in context.slices]
    if not names:
        context.error(key_path, "the day has no slices", "give horizon.slices")
        return
    for name in ratios:
        context.check_name((*key_path, name), "slice", name, names, at_key=True)


def _by_region(context: Context, key_path: KeyPath, ratios: Mapping[str, Mapping[str, float]]) -> DayShape:
    for region, by_slice in ratios.items():
        if context.check_name((*key_path, region), "region", region, context.region_names, at_key=True):
            check_slices(context, (*key_path, region), by_slice)
    missing = [name for name in context.region_names if name not in ratios]
    if missing:
        context.error(key_path, f"has no shape for {', '.join(missing)}", "give every region")
    return DayShape({region: ratios_of_slices(context.slices, each) for region, each in ratios.items()})


def _by_local_hour(
    context: Context,
    key_path: KeyPath,
    ratios: Mapping[str, float],
    regions: Mapping[str, RegionSpec],
    first_slice_utc_hour: float,
) -> DayShape:
    here = (*key_path, "by_local_hour")
    steps: dict[int, float] = {}
    for hour, ratio in ratios.items():
        step = step_of_hour(hour)
        if step is None:
            message = f"must be an hour of the day in quarters, from 0 to 23.75, not {hour!r}"
            context.error((*here, hour), message, at_key=True)
        elif step in steps:
            context.error((*here, hour), f"the hour {hour} is given twice", at_key=True)
        else:
            steps[step] = ratio
    offsets = {name: spec.utc_offset_hours for name, spec in regions.items()}
    missing = [name for name in context.region_names if offsets.get(name) is None]
    # Of an offset that cannot be read that is said.
    written = context.document.root.child("regions")
    unsaid = [
        name
        for name in missing
        if written is None or "utc_offset_hours" not in written.entries[name].node.entries
    ]
    if unsaid:
        hint = f"give regions.{unsaid[0]}.utc_offset_hours"
        context.error(here, f"the local time is unknown in {', '.join(unsaid)}", hint)
    if missing or not steps:
        return FLAT
    return DayShape(
        {
            name: ratios_of_hours(steps, first_slice_utc_hour + (hours or 0.0))
            * len(day_shares(context.slices))
            for name, hours in offsets.items()
        }
    )


def resolve_scenarios(
    context: Context, spec: UncertaintySpec | None, service_names: Sequence[str]
) -> tuple[DemandScenario, ...]:
    """Return the demand scenarios; those of estimates if the file names none.

    Parameters
    ----------
    context : Context
        Receives issues.
    spec : UncertaintySpec or None
        As it is written.
    service_names : Sequence[str]
        Names of all services in the file.
    """
    if spec is None or spec.scenarios is None:
        return tuple(
            DemandScenario(name, probability, name) for name, probability in DEFAULT_PROBABILITY.items()
        )
    here: KeyPath = ("uncertainty", "scenarios")
    names = [each.name for each in spec.scenarios]
    for i, name in enumerate(names):
        if name in names[:i]:
            context.error((*here, i, "name"), f"the name {name!r} is given twice in scenarios")
    total = sum(each.probability for each in spec.scenarios)
    if abs(total - 1) > PROBABILITY_TOLERANCE:
        context.error(here, f"the probabilities add up to {total:g}, not 1")
        return ()
    return tuple(
        _scenario(context, (*here, i), each, total, service_names) for i, each in enumerate(spec.scenarios)
    )


def _scenario(
    context: Context, key_path: KeyPath, spec: DemandScenarioSpec, total: float, service_names: Sequence[str]
) -> DemandScenario:
    probability = spec.probability / total
    if not isinstance(spec.demand_ratio, Mapping):
        return DemandScenario(spec.name, probability, spec.estimate, float(spec.demand_ratio))
    for name in spec.demand_ratio:
        here = (*key_path, "demand_ratio", name)
        context.check_name(here, "service", name, service_names, at_key=True)
    return DemandScenario(spec.name, probability, spec.estimate, 1.0, dict(spec.demand_ratio))


def scenarios_that_differ(
    context: Context, spec: UncertaintySpec | None, services: Sequence[Service]
) -> tuple[DemandScenario, ...]:
    """Return the demand scenarios; none if all demand is equal in all of them."""
    scenarios = context.scenarios
    if not scenarios or any(each.demand.differs_by_scenario for each in services):
        return scenarios
    if spec is not None:
        context.warn(("uncertainty",), "has no effect: demand is the same in every scenario")
    return ()
