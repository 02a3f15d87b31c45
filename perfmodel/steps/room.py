"""The longest sequence whose cache a layout has memory for."""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps.memory import kv_gib_per_sequence, memory_use
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape

LONGEST_TRIED_TOKENS: Final = 2**22
"""Longer ones are not asked for: no published config allows as many positions. [tokens]"""


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
        middle = (low + high + 1) // 2
        step = middle if step_tokens is None else step_tokens
        fits = sequence_fits(architecture, dtypes, accelerator, layout, middle, step, beside_gib)
        low, high = (middle, high) if fits else (low, middle - 1)
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
    one = np.ones(1, dtype=np.int64)
    layouts = Layouts.of([layout])
    shape = StepShape(layouts, one, step_tokens * one, 0 * one, 0 * one, 0 * one)
    use = memory_use(architecture, dtypes, accelerator, shape, one, 0 * one)
    cache = float(kv_gib_per_sequence(architecture, dtypes, layouts, cached_tokens * one)[0])
    return float(use.without_kv_gib[0]) + beside_gib + cache <= use.capacity_gib
