"""Caches of sessions kept between requests: which tier holds them, and how long they take to load.

Sessions fill the tiers in the given order, and a request is as likely to belong to one as to another, so
a tier serves hits in proportion to the sessions that it holds. Sessions that no tier has room for are
lost, and their requests compute the whole prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fleetplan.fleet.inventory import KvTier, PersistentKv
from fleetplan.fleet.units import BYTES_PER_GIB, BYTES_PER_MS_OF_GB_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.techniques.record import LARGEST, SMALLEST, Technique, number

ROOMY_GIB: Final = 1e9
"""Room of the tier of a case: its hit ratio is that of sessions which are kept. [GiB]"""


@dataclass(frozen=True, slots=True)
class TierHits:
    """Hits of one tier, each of shape (n_configs,).

    Attributes
    ----------
    hit_ratio : FloatArray
        Share of all requests whose session it holds.
    load_ms : FloatArray
        Time to bring a micro-batch of sessions into HBM. [ms]
    """

    hit_ratio: FloatArray
    load_ms: FloatArray


def tier_hits(
    persistent: PersistentKv, session_gib: FloatArray, sequences: IntArray, accelerators: FloatArray
) -> list[TierHits]:
    """Return the hits of every tier, fastest first.

    Parameters
    ----------
    persistent : PersistentKv
        Sessions to keep, and the tiers.
    session_gib : FloatArray
        Cache of one session over all layers. [GiB]
    sequences : IntArray
        Prompts of one rank that are loaded together.
    accelerators : FloatArray
        Accelerators that load the cache of one rank's prompts, each a part.
    """
    held = held_sessions(persistent, session_gib)
    loaded_bytes = sequences * session_gib * BYTES_PER_GIB / accelerators
    hits = []
    for tier, sessions in zip(persistent.tiers, held, strict=True):
        hit_ratio = persistent.hit_ratio * sessions / persistent.sessions_per_accelerator
        speed = np.inf if tier.gb_per_s is None else tier.gb_per_s * BYTES_PER_MS_OF_GB_PER_S
        hits.append(TierHits(hit_ratio, loaded_bytes / speed))
    return hits


def held_sessions(persistent: PersistentKv, session_gib: FloatArray) -> list[FloatArray]:
    """Return the sessions per accelerator in each tier, in the order of the tiers."""
    waiting = np.full(np.shape(session_gib), persistent.sessions_per_accelerator)
    held = []
    for tier in persistent.tiers:
        # A session without a cache takes no room.
        room = np.where(session_gib > 0, tier.gib_per_accelerator / np.maximum(session_gib, 1e-12), np.inf)
        here = np.minimum(waiting, room)
        waiting = waiting - here
        held.append(here)
    return held


def resident_gib(persistent: PersistentKv | None, session_gib: FloatArray) -> FloatArray:
    """Return the HBM that sessions occupy between their requests, per accelerator. [GiB]."""
    taken = np.zeros(np.shape(session_gib))
    if persistent is None:
        return taken
    for tier, sessions in zip(persistent.tiers, held_sessions(persistent, session_gib), strict=True):
        if tier.gb_per_s is None:
            taken = taken + sessions * session_gib
    return taken


def _switched(values: Mapping[str, Any]) -> dict[str, Any]:
    if "session_hit_ratio" not in values:
        return {}
    tier = KvTier("dram", ROOMY_GIB, values["session_gb_per_s"])
    return {"persistent_kv": PersistentKv(values["session_hit_ratio"], 1.0, (tier,))}


_WITH_PROMPT: Final = frozenset({"prefill", "static"})

SESSION_CACHE: Final = Technique(
    {
        "session_hit_ratio": number(0, 1, _WITH_PROMPT, "session_gb_per_s", "prefix_tokens"),
        "session_gb_per_s": number(SMALLEST, LARGEST, _WITH_PROMPT, "session_hit_ratio"),
    },
    _switched,
)
"""The record of the technique."""
