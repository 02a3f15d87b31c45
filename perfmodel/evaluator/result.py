"""Result of a phase of serving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.steps import MemoryUse, provenance_shares


class Engines(NamedTuple):
    """Mean load of the engines of closed loops, each array of shape (n_configs,).

    Attributes
    ----------
    sequences : FloatArray
        Sequences that generate on a rank in a micro-batch.
    starts : FloatArray
        Requests that start an iteration there.
    """

    sequences: FloatArray
    starts: FloatArray


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """Result of a phase, each array of shape (n_configs,) unless said otherwise.

    Attributes
    ----------
    latency_ms : FloatArray
        One step: the prefill pass, the decode pass with its drafts, or the mean iteration. [ms]
    ttft_ms, tpot_ms : FloatArray
        Mean time to first token without network and KV transfer, and per output token; NaN if the
        phase has none. [ms]
    requests_per_s : FloatArray
        Rate of one replica. [1/s]
    by_provenance_ms : FloatArray
        Time by `Provenance`, shape (4, n_configs). [ms]
    bottleneck : IntArray
        Operator that takes most of the time, as a position in `names`.
    names : tuple[str, ...]
        Operators.
    memory : MemoryUse
        Memory of the fullest accelerator.
    engines : Engines or None
        Load of the engines of closed loops; None without a solved loop.
    """

    latency_ms: FloatArray
    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s: FloatArray
    by_provenance_ms: FloatArray
    bottleneck: IntArray
    names: tuple[str, ...]
    memory: MemoryUse
    engines: Engines | None = None

    @property
    def shares(self) -> FloatArray:
        """Share of the time by `Provenance`, shape (4, n_configs)."""
        return provenance_shares(self.by_provenance_ms)
