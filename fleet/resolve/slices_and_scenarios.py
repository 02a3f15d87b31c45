"""The day and the uncertainty of a fleet file, resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import DemandScenario, Service, Slice
from fleetplan.fleet.inventory.demand import DEFAULT_PROBABILITY, same_in_every_scenario, without_scenarios
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.demand import DemandScenarioSpec, SliceSpec, UncertaintySpec
from fleetplan.fleet.units import HOURS_PER_DAY

# Probabilities as people round them: a third each, at three digits.
PROBABILITY_TOLERANCE: Final = 2e-3


def resolve_slices(
    context: Context, specs: Sequence[SliceSpec] | None, service_classes: Sequence[str]
) -> tuple[Slice, ...]:
    """Return the slices of a day; what is wrong with them goes to the context.

    Parameters
    ----------
    context : Context
        Regions and periods, whose names demand must tell from those of slices.
    specs : Sequence[SliceSpec] or None
        As they are written.
    service_classes : Sequence[str]
        Names of request classes of all services, for the same reason.
    """
    if specs is None:
        return ()
    here: KeyPath = ("horizon", "slices")
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
    if hours != HOURS_PER_DAY:
        context.error(here, f"the hours add up to {hours:g}, not {HOURS_PER_DAY:g}")
    return tuple(Slice(spec.name, spec.hours) for spec in specs)


def resolve_scenarios(
    context: Context, spec: UncertaintySpec | None, service_names: Sequence[str]
) -> tuple[DemandScenario, ...]:
    """Return the demand scenarios, those of estimates where the file names none.

    Parameters
    ----------
    context : Context
        Where issues go.
    spec : UncertaintySpec or None
        As it is written.
    service_names : Sequence[str]
        All that the file defines.
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
) -> tuple[tuple[DemandScenario, ...], tuple[Service, ...]]:
    """Return the demand scenarios and the services; without scenarios where demand is certain.

    Scenarios that the file does not ask for, and in which every demand is the same, are left out.
    """
    scenarios = context.scenarios
    if not scenarios or not all(same_in_every_scenario(each.demand_ratios, scenarios) for each in services):
        return scenarios, tuple(services)
    if spec is not None:
        context.warn(("uncertainty",), "has no effect: demand is the same in every scenario")
    certain = (
        replace(each, demand_ratios=without_scenarios(each.demand_ratios, scenarios)) for each in services
    )
    return (), tuple(certain)
