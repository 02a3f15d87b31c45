"""Check that the fleet file has the figures that an objective needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Hardware, Service
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema import FleetSpec


def first_objective(context: Context, spec: FleetSpec, demand_is_uncertain: bool) -> str:
    """Return the objective ahead of cost; least regret is about cost and overrides any other.

    Parameters
    ----------
    context : Context
        Receives warnings.
    spec : FleetSpec
        The file.
    demand_is_uncertain : bool
        Whether the file has demand scenarios that differ.
    """
    regrets = spec.uncertainty is not None and spec.uncertainty.objective == "least-regret"
    if not (regrets and demand_is_uncertain) or spec.objective == "tco":
        return spec.objective
    context.warn(("objective",), f"{spec.objective} has no effect: least-regret minimises cost")
    return "tco"


def check_objective(
    context: Context, spec: FleetSpec, hardware: Mapping[str, Hardware], services: Sequence[Service]
) -> None:
    """Note an issue for every missing figure of the objective.

    Parameters
    ----------
    context : Context
        Receives issues.
    spec : FleetSpec
        The file.
    hardware : Mapping[str, Hardware]
        Every kind that pools, offers and services name.
    services : Sequence[Service]
        The valid services.
    """
    if spec.objective == "served":
        return
    for i, service in enumerate(spec.services):
        if service.served_weight is not None:
            context.warn(("services", i, "served_weight"), "has no effect: the objective is not `served`")
    if spec.objective in ("energy", "carbon"):
        _check_regions(context, spec)
        _check_power(context, spec, hardware, services)


def _check_regions(context: Context, spec: FleetSpec) -> None:
    if spec.regions is None:
        context.error(("objective",), "needs the block regions", "with the PUE of each")
        return
    for name, region in spec.regions.items():
        here: KeyPath = ("regions", name)
        message = f"is required for the objective {spec.objective}"
        if region.pue is None:
            context.error((*here, "pue"), message, "such as 1.15")
        if spec.objective == "carbon" and region.grid_kg_co2_per_kwh is None:
            context.error((*here, "grid_kg_co2_per_kwh"), message, "such as 0.35")


def _check_power(
    context: Context, spec: FleetSpec, hardware: Mapping[str, Hardware], services: Sequence[Service]
) -> None:
    supplied = {pool.hardware for pool in spec.pools} | {offer.hardware for offer in spec.offers}
    without = [
        name for name, part in hardware.items() if part.power_w_per_accelerator is None and name in supplied
    ]
    for name in without:
        unknown = [service.name for service in services if _power_is_unknown(service, name)]
        if unknown:
            message = f"{name} has no power figure, for {', '.join(unknown)}, and the objective counts it"
            context.error(("objective",), message, f"give hardware.{name}.all_in_w")


def _power_is_unknown(service: Service, name: str) -> bool:
    """Whether a service may run on the hardware without stating its power."""
    if service.allowed_hardware is not None and name not in service.allowed_hardware:
        return False
    if service.engines is None:
        return True
    rows = service.engines
    return bool(rows.loc[rows["hardware"] == name, "power_kw"].isna().any())
