"""The time of a step by what takes it and by the evidence that it rests on; several of them as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import (
    ByteArray,
    FloatArray,
    IntArray,
    Provenance,
)

LABEL_SHARE: Final = 0.10
"""A number is called by its weakest kind of evidence that holds at least this share of its time."""

NO_DETAIL: Final = ""
"""The name in a breakdown that was not made."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The time of one step for an array of configurations.

    Attributes
    ----------
    latency_ms : FloatArray
        Time of a pass over all pipeline stages, shape (n_configs,); infinite if it cannot run. [ms]
    by_provenance_ms : FloatArray
        The same time by `Provenance`, shape (4, n_configs). [ms]
    names : tuple[str, ...]
        Names of operators, and of the overhead of the layers.
    breakdown_ms : FloatArray
        The same time by name, shape (n_names, n_configs). [ms]
    """

    latency_ms: FloatArray
    by_provenance_ms: FloatArray
    names: tuple[str, ...]
    breakdown_ms: FloatArray

    @classmethod
    def without_detail(cls, latency_ms: FloatArray) -> StepTimes:
        """Return the times only: shares are NaN and the bottleneck has no name, in shapes that broadcast."""
        small = (1,) * latency_ms.ndim
        nothing = np.full((len(Provenance), *small), np.nan)
        return cls(latency_ms, nothing, (NO_DETAIL,), np.zeros((1, *small)))

    def part(self, rows: slice | IntArray) -> StepTimes:
        """Return the times of some of the configurations."""
        return StepTimes(
            self.latency_ms[rows], self.by_provenance_ms[:, rows], self.names, self.breakdown_ms[:, rows]
        )

    @property
    def bottleneck(self) -> IntArray:
        """Position in `names` of the bottleneck, shape (n_configs,)."""
        largest: IntArray = np.argmax(self.breakdown_ms, axis=0).astype(np.int64)
        return largest


def with_wait(times: StepTimes, wait_ms: FloatArray, name: str) -> StepTimes:
    """Return the times with a wait after them; it rests on a stated figure, as the roofline does."""
    if not np.any(wait_ms):
        return times
    latency = times.latency_ms + wait_ms
    if times.names == (NO_DETAIL,):
        return StepTimes.without_detail(latency)
    by_provenance = times.by_provenance_ms.copy()
    by_provenance[Provenance.ROOFLINE] += wait_ms
    breakdown = np.vstack([times.breakdown_ms, np.broadcast_to(wait_ms, latency.shape)])
    return StepTimes(latency, by_provenance, (*times.names, name), breakdown)


def alike_named(parts: list[StepTimes]) -> list[StepTimes]:
    """Return the times of all `parts` with the same names: zero for names that a part did not have."""
    # A part without, say, any pipeline does not name its operators.
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    return [
        part
        if part.names == names
        else StepTimes(part.latency_ms, part.by_provenance_ms, names, breakdown_of(part, names))
        for part in parts
    ]


def concatenated_times(parts: list[StepTimes]) -> StepTimes:
    """Return the times of all `parts`, one after the other."""
    if len(parts) == 1:
        return parts[0]
    alike = alike_named(parts)
    return StepTimes(
        np.concatenate([part.latency_ms for part in alike]),
        np.concatenate([part.by_provenance_ms for part in alike], axis=1),
        alike[0].names,
        np.concatenate([part.breakdown_ms for part in alike], axis=1),
    )


def breakdown_of(times: StepTimes, names: tuple[str, ...]) -> FloatArray:
    """Return the breakdown by `names`, shape (n_names, n_configs); zero for names it does not have. [ms]."""
    block = np.zeros((len(names), times.latency_ms.size))
    for row, name in enumerate(times.names):
        block[names.index(name)] = times.breakdown_ms[row]
    return block


def provenance_shares(by_provenance_ms: FloatArray) -> FloatArray:
    """Return the share of the time by `Provenance`, shape (4, n_configs); each column adds up to one.

    Zero in all rows where the time is not finite.
    """
    total = by_provenance_ms.sum(axis=0)
    usable = np.isfinite(total) & (total > 0)
    shares: FloatArray = np.where(usable, by_provenance_ms, 0.0) / np.where(usable, total, 1.0)
    return shares


def weakest_provenance(shares: FloatArray) -> ByteArray:
    """Find the weakest `Provenance` that holds at least `LABEL_SHARE` of the time, shape (n_configs,)."""
    holds = shares >= LABEL_SHARE
    weakest_first = holds[::-1]
    found = len(Provenance) - 1 - np.argmax(weakest_first, axis=0)
    return np.where(holds.any(axis=0), found, int(Provenance.ROOFLINE)).astype(np.uint8)
