"""Queues in front of replicas: which share of their capacity pools may use within latency limits.

In: service times, their variability and latency limits. Out: `CapacityLine`s, straight lines below what pools
of any size sustain. Entry points: `capacity_lines`, `prefill_loads`, `decode_loads`, `prompt_spread`.

The names load when they are used: the planner reads `CapacityLine` everywhere, and SciPy takes longer to
import than the rest of a planning problem.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fleetplan.perfmodel.queueing.capacity import SojournLimit, capacity_lines
    from fleetplan.perfmodel.queueing.capacity_line import CapacityLine
    from fleetplan.perfmodel.queueing.phase_pools import (
        POOL_SIZES,
        PrefillServers,
        decode_loads,
        prefill_loads,
        prefill_shares,
    )
    from fleetplan.perfmodel.queueing.prompt_variation import prompt_spread

__all__ = [
    "POOL_SIZES",
    "CapacityLine",
    "PrefillServers",
    "SojournLimit",
    "capacity_lines",
    "decode_loads",
    "prefill_loads",
    "prefill_shares",
    "prompt_spread",
]

_MODULES: Final = {
    "capacity": ("SojournLimit", "capacity_lines"),
    "capacity_line": ("CapacityLine",),
    "phase_pools": ("POOL_SIZES", "PrefillServers", "decode_loads", "prefill_loads", "prefill_shares"),
    "prompt_variation": ("prompt_spread",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
