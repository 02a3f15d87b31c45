"""The longest sequence whose cache a layout has memory for."""

from __future__ import annotations

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

LONGEST_TRIED_TOKENS: Final = 2**22
"""Longer ones are not asked for: no published config allows as many positions. [tokens]"""

TRIED_AT_ONCE: Final = 64
"""Lengths that are tried together: one takes as long as all of them."""


def longest_sequence_tokens(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    accelerator: Accelerator,
    layout: Parallelism,
    step_tokens: int | None,
    beside_gib: float = 0.0,
) -> int:
    """Return the most tokens of one sequence that a rank of a replica can cache. [tokens].

    Parameters
    ----------
    architecture, dtypes, accelerator
        The model, its data types, and where it runs.
    layout : Parallelism
        How the replica is split.
    step_tokens : int or None
        New tokens of the largest step, whose activations need room; None is the whole sequence. [tokens]
    beside_gib : float
        Other memory of an accelerator, such as a draft's. [GiB]

    Returns
    -------
    int
        0 where weights and activations leave no room.
    """
    low, high = 0, LONGEST_TRIED_TOKENS
    while low < high:
        tried = np.linspace(low + 1, high, min(TRIED_AT_ONCE, high - low)).astype(np.int64)
        steps = tried if step_tokens is None else np.full_like(tried, step_tokens)
        fits = _fit(architecture, dtypes, accelerator, layout, tried, steps, beside_gib)
        fitting = len(tried) if fits.all() else int(np.argmin(fits))
        high = high if fitting == len(tried) else int(tried[fitting]) - 1
        low = int(tried[fitting - 1]) if fitting else low
    return low


def sequence_fits(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    accelerator: Accelerator,
    layout: Parallelism,
    cached_tokens: int,
    step_tokens: int,
    beside_gib: float = 0.0,
) -> bool:
    """Return whether a rank has memory for the cache of one sequence beside weights and activations.

    Parameters
    ----------
    architecture, dtypes, accelerator, layout, beside_gib
        As `longest_sequence_tokens` has them.
    cached_tokens : int
        Of the sequence. [tokens]
    step_tokens : int
        New tokens of the largest step. [tokens]
    """
    cached, step = np.array([cached_tokens]), np.array([step_tokens])
    return bool(_fit(architecture, dtypes, accelerator, layout, cached, step, beside_gib)[0])


def _fit(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    accelerator: Accelerator,
    layout: Parallelism,
    cached_tokens: IntArray,
    step_tokens: IntArray,
    beside_gib: float,
) -> NDArray[np.bool_]:
    """`sequence_fits` for several sequences, each alone."""
    one, layouts = np.ones_like(cached_tokens), Layouts.of([layout] * len(cached_tokens))
    shape = StepShape(layouts, one, step_tokens, 0 * one, 0 * one, 0 * one)
    use = memory_use(architecture, dtypes, accelerator, shape, one, 0 * one)
    cache = kv_gib_per_sequence(architecture, dtypes, layouts, cached_tokens)
    fits: NDArray[np.bool_] = use.without_kv_gib + beside_gib + cache <= use.capacity_gib
    return fits
