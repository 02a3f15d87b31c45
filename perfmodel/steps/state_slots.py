"""The pool of slots in which a framework keeps recurrent states beside the cache of tokens.

SGLang splits the memory that weights leave once, when it starts: r / (1 + r) of it are slots of one state
each, the rest caches tokens. With a prefix cache a request needs several slots, of which it computes in one:
the others keep the state of its prefix and those that it leaves for later requests. So of a memory R

    sequences = min((r R / (1 + r) / state - 1) / S,  R / (1 + r) / tokens of a sequence)

run at once, and the memory that n of them need is the larger of both sides solved for R. One slot more pads
batches. Without a prefix cache a request has one slot, and a server that is told how many requests it runs
has as many: then states and tokens share the memory, as they do under other frameworks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.architecture import LinearAttention, LinearVariant, ModelArchitecture
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.steps.software_versions import AMD


@dataclass(frozen=True, slots=True)
class StateSlots:
    """Sizing rule of a framework's pool of states, from a month until a later row replaces it.

    Attributes
    ----------
    framework : str
        sglang.
    since : str
        Year and month (YYYY-MM) of the release.
    slots : int
        Slots of a request (S).
    pipeline_slots : int
        The same in a pipeline.
    memory_ratio : float
        Memory of the slots over that of the cache of tokens (r).
    overlaps_host : bool
        Whether the next step is made up while one runs.
    source : str
        Source.
    without_vendors : tuple[str, ...]
        Vendors of parts that it does not apply to.
    variants : tuple[LinearVariant, ...]
        Recurrences that it applies to; empty for all.
    """

    framework: str
    since: str
    slots: int
    pipeline_slots: int
    memory_ratio: float
    overlaps_host: bool
    source: str
    without_vendors: tuple[str, ...] = ()
    variants: tuple[LinearVariant, ...] = ()

    def of_request(self, pp: IntArray, verified_tokens: int) -> IntArray:
        """Return the slots of a request, shape (n_configs,).

        Parameters
        ----------
        pp : IntArray
            Pipeline stages.
        verified_tokens : int
            Tokens per sequence that a decode step computes; each keeps a state until it is accepted.
        """
        drafted = verified_tokens if verified_tokens > 1 else 0
        return np.where(pp > 1, self.pipeline_slots, self.slots) + drafted

    def with_slots_gib(self, state_gib: FloatArray, slots: IntArray) -> FloatArray:
        """Return the memory of slots and the cache of tokens beside them, shape (n_configs,). [GiB].

        Parameters
        ----------
        state_gib : FloatArray
            Size of a state on one accelerator. [GiB]
        slots : IntArray
            Slots of all running requests.
        """
        needed: FloatArray = (slots + 1) * state_gib * (1.0 + self.memory_ratio) / self.memory_ratio
        return needed

    def with_tokens_gib(self, tokens_gib: FloatArray) -> FloatArray:
        """Return the memory of a cache of tokens and the slots beside it, shape (n_configs,). [GiB]."""
        needed: FloatArray = tokens_gib * (1.0 + self.memory_ratio)
        return needed

    def most_slots(self, state_gib: FloatArray, room_gib: FloatArray) -> FloatArray:
        """Return the slots that so much memory of both has, shape (n_configs,).

        Parameters
        ----------
        state_gib, room_gib : FloatArray
            Size of a state on one accelerator, and the memory of slots and cache. [GiB]
        """
        share = self.memory_ratio / (1.0 + self.memory_ratio)
        found: FloatArray = np.maximum(0.0, np.floor(room_gib * share / state_gib) - 1.0)
        return found


_RATIO: Final = (
    "--mamba-full-memory-ratio is 0.9 by default (SGLang pull request 11679, October 2025); running requests "
    "are max_mamba_cache_size // slots a request, beside which the pool has one slot (resolve_max_num_reqs, "
    "_calculate_mamba_ratio and _handle_max_mamba_cache of mem_cache/kv_cache_configurator.py, July 2026)"
)
_GATED: Final = (LinearVariant.GATED_DELTA_NET, LinearVariant.KIMI_DELTA)

STATE_SLOTS: Final = (
    StateSlots(
        "sglang",
        "2025-11",
        3,
        3,
        0.9,
        False,
        "SGLang 0.5.4 (end of October 2025), pull request 11214: a prefix cache of states, three slots a "
        f"request, steps made up one by one (documentation of pull request 15337); {_RATIO}",
        variants=_GATED,
    ),
    StateSlots(
        "sglang",
        "2026-01",
        3,
        3,
        0.9,
        False,
        "SGLang pull request 13584 (November 2025): the same for Mamba-2 and all other recurrences; and on "
        "AMD still today (pull requests 29158 and 29965, July 2026: no_buffer)",
    ),
    StateSlots(
        "sglang",
        "2026-07",
        5,
        4,
        0.9,
        True,
        "SGLang pull request 28151 (19 June 2026): --mamba-radix-cache-strategy auto is extra_buffer, which "
        "adds two slots and overlaps the host again; a pipeline does not overlap it and adds one",
        without_vendors=(AMD,),
    ),
)
"""Every size that is known. Until October 2025 SGLang had no prefix cache for models with states."""

_NEWEST: Final = "9999-99"


def state_slots(
    framework: str,
    vendor: str,
    architecture: ModelArchitecture,
    software_date: str = "",
    prefix_cache: bool = True,
) -> StateSlots | None:
    """Return the slots of a server for recurrent states; None if they share the memory of the cache.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    vendor : str
        Vendor of the part.
    architecture : ModelArchitecture
        The model; one without recurrent states has no slots.
    software_date : str
        Year and month of the framework (YYYY-MM); empty for the newest.
    prefix_cache : bool
        Whether the server keeps prefixes for later requests.
    """
    attentions = (group.attention for group in architecture.groups)
    variants = {each.variant for each in attentions if isinstance(each, LinearAttention)}
    if not variants or not prefix_cache:
        return None
    known = [
        row
        for row in STATE_SLOTS
        if row.framework == framework
        and row.since <= (software_date or _NEWEST)
        and vendor not in row.without_vendors
        and (not row.variants or variants.issubset(row.variants))
    ]
    return max(known, key=lambda row: row.since, default=None)
