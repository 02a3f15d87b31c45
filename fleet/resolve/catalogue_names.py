"""Hardware of a fleet file by the catalogue's names, whichever names the file uses."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema import FleetSpec

_SpecT = TypeVar("_SpecT", bound=BaseModel)


def with_catalogue_names(context: Context, spec: FleetSpec) -> FleetSpec:
    """Return the blocks with names of drivers, labels and clouds replaced; unknown names stay as they are.

    A name that the block `hardware` defines is the file's own, whatever others mean by it.
    """

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
