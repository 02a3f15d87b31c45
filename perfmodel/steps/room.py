"""The longest sequence whose cache a layout has memory for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps.memory import kv_gib_per_sequence, memory_use
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape
from fleetplan.perfmodel.steps.state_slots import StateSlots

LONGEST_TRIED_TOKENS: Final = 2**22
"""Longest sequence: no published config allows more positions. [tokens]"""

TRIED_AT_ONCE: Final = 64
"""Lengths that are tried together: one takes as long as all of them."""


@dataclass(frozen=True, slots=True)
class SequenceTokens:
    """Tokens of a sequence, or of several, each alone.

    Attributes
    ----------
    cached : int or IntArray
        All of it. [tokens]
    step : int or IntArray
        New ones of the largest step. [tokens]
    """

    cached: int | IntArray
    step: int | IntArray


def longest_sequence_tokens(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    accelerator: Accelerator,
    layout: Parallelism,
    step_tokens: int | None,
    beside_gib: float = 0.0,
    slots: StateSlots | None = None,
) -> int:
    """Return the most tokens of one sequence that a rank of a replica can cache. [tokens].

    Parameters
    ----------
    architecture, dtypes, accelerator
        Model, data types, and accelerator.
    layout : Parallelism
        Layout of the replica.
    step_tokens : int or None
        New tokens of the largest step, whose activations need room; None is the whole sequence. [tokens]
    beside_gib : float
        Other memory of an accelerator, such as a draft's. [GiB]
    slots : StateSlots or None
        Slots of the framework for recurrent states; None if they share the memory of the cache.

    Returns
    -------
    int
        0 if weights and activations leave no room.
    """
    low, high = 0, LONGEST_TRIED_TOKENS
    while low < high:
        tried = np.linspace(low + 1, high, min(TRIED_AT_ONCE, high - low)).astype(np.int64)
        steps = tried if step_tokens is None else np.full_like(tried, step_tokens)
        tokens = SequenceTokens(tried, steps)
        fits = _fit(architecture, dtypes, accelerator, layout, tokens, beside_gib, slots)
        fitting = len(tried) if fits.all() else int(np.argmin(fits))
        high = high if fitting == len(tried) else int(tried[fitting]) - 1
        low = int(tried[fitting - 1]) if fitting else low
    return low


def sequence_fits(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    accelerator: Accelerator,
    layout: Parallelism,
    tokens: SequenceTokens,
    beside_gib: float = 0.0,
    slots: StateSlots | None = None,
) -> bool:
    """Return whether a rank has memory for the cache of one sequence beside weights and activations.

    Parameters
    ----------
    architecture, dtypes, accelerator, layout, beside_gib, slots
        As `longest_sequence_tokens` has them.
    tokens : SequenceTokens
        Tokens of the sequence.
    """
    return bool(_fit(architecture, dtypes, accelerator, layout, tokens, beside_gib, slots)[0])


def _fit(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    accelerator: Accelerator,
    layout: Parallelism,
    tokens: SequenceTokens,
    beside_gib: float,
    slots: StateSlots | None,
) -> NDArray[np.bool_]:
    """Apply `sequence_fits` to several sequences, each alone."""
    cached, step = np.atleast_1d(tokens.cached), np.atleast_1d(tokens.step)
    one, layouts = np.ones_like(cached), Layouts.of([layout] * len(cached))
    shape = StepShape(layouts, one, step, 0 * one, 0 * one, 0 * one)
    use = memory_use(architecture, dtypes, accelerator, shape, one, 0 * one)
    cache = kv_gib_per_sequence(architecture, dtypes, layouts, cached, slots is None)
    if slots is not None:
        cache = slots.with_tokens_gib(cache)
    fits: NDArray[np.bool_] = use.without_kv_gib + beside_gib + cache <= use.capacity_gib
    return fits
