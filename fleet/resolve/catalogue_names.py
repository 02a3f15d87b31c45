"""Translate hardware names of a fleet file to the catalogue's names."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.catalog.hardware_names import instance_type
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema import FleetSpec

_SpecT = TypeVar("_SpecT", bound=BaseModel)


def with_catalogue_names(context: Context, spec: FleetSpec) -> FleetSpec:
    """Return the blocks with names of drivers, labels and clouds translated; unknown names stay.

    Names in the block `hardware` take precedence. It is an error if a pool or offer names a machine with more
    or fewer accelerators than a host of its part.
    """
    named = {
        "pools": [each.hardware for each in spec.pools],
        "offers": [each.hardware for each in spec.offers],
    }
    for block, names in named.items():
        for index, name in enumerate(names):
            _check_machine(context, (block, index, "hardware"), name, spec)

    def renamed(block: _SpecT, *keys: str) -> _SpecT:
        given = {key: getattr(block, key) for key in keys}
        return block.model_copy(
            update={key: context.hardware_name(name) for key, name in given.items() if name is not None}
        )

    policy, pairs = spec.policy, spec.policy.kv_pairs
    if isinstance(pairs, list):
        pairs = [renamed(pair, "prefill", "decode") for pair in pairs]
        policy = policy.model_copy(update={"kv_pairs": pairs})
    services = [
        each
        if each.hardware is None
        else each.model_copy(update={"hardware": [context.hardware_name(name) for name in each.hardware]})
        for each in spec.services
    ]
    return spec.model_copy(
        update={
            "policy": policy,
            "hardware": {name: renamed(each, "like") for name, each in spec.hardware.items()},
            "pools": [renamed(each, "hardware") for each in spec.pools],
            "offers": [renamed(each, "hardware") for each in spec.offers],
            "services": services,
        }
    )


def _check_machine(context: Context, key_path: KeyPath, name: str, spec: FleetSpec) -> None:
    machine = None if name in spec.hardware else instance_type(name)
    if machine is None:
        return
    own = spec.hardware.get(machine.hardware)
    host = accelerators()[machine.hardware].accelerators_per_host
    if own is not None and own.accelerators_per_host is not None:
        host = own.accelerators_per_host
    if machine.accelerators != host:
        part, each = machine.hardware, machine.accelerators
        kind = f"{part}-x{each}"
        hint = f"name {kind}, with `hardware: {{{kind}: {{like: {part}, accelerators_per_host: {each}}}}}`"
        context.error(key_path, f"{machine.name} has {each} {part}, a host of them {host}", hint)
