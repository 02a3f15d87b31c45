"""Capacity of pools of prefill replicas and of decode replicas within latency limits under load.

A prefill replica with PP pipeline stages accepts its next batch when its first stage is free. It is a server
with service time T / PP for a batch that takes T. The wait for a batch assumes the time of a full batch.

A decode replica is as many servers as it has slots. TPOT already applies to a full batch, so the limit is the
share of requests that find no free slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import LatencyLimit
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.queueing.capacity import SojournLimit, utilisation_within, utilisation_without_wait
from fleetplan.perfmodel.queueing.pool import Variability
from fleetplan.perfmodel.queueing.prompt_variation import PromptSpread

POOL_SIZES: Final[IntArray] = np.array(
    [
        *range(1, 18),
        24,
        25,
        32,
        33,
        48,
        49,
        64,
        65,
        96,
        97,
        128,
        129,
        192,
        193,
        256,
        257,
        512,
        513,
        1024,
        1025,
    ]
)
"""Replicas of the pools whose capacity is computed: all small ones, then pairs of neighbours."""

DECODE_PART: Final = 0.2
"""Part of the requests that may miss a limit which waits for a place in decode may use up; waits for prefill
have the rest. Places are many and their waits rare, so a small part costs little."""

MEAN_DECODE_CHANCE: Final = 0.01
"""Share of requests that may wait for a place in decode where a mean is limited: a hundredth of such waits,
which last about as long as a token, does not show in a mean."""


@dataclass(frozen=True, slots=True)
class PrefillServers:
    """Prefill replicas as servers, each array of shape (n_configs,).

    Attributes
    ----------
    pass_ms : FloatArray
        Time of a full batch of prompts of mean length through all stages. [ms]
    stages : IntArray
        Pipeline stages.
    prompts : IntArray
        Prompts of a full batch, over all ranks.
    after_ms : FloatArray
        Part of TTFT after the computation: the transfer of the KV cache. [ms]
    spread : PromptSpread
        Squared coefficient of variation of the times of single prompts.
    """

    pass_ms: FloatArray
    stages: IntArray
    prompts: IntArray
    after_ms: FloatArray
    spread: PromptSpread


def prefill_loads(
    servers: PrefillServers, limits: Sequence[LatencyLimit], outside_ms: float, burstiness: float
) -> FloatArray:
    """Return the load of pools of `POOL_SIZES` replicas, in fully used replicas, shape (n_configs, n).

    Parameters
    ----------
    servers : PrefillServers
        The configurations.
    limits : Sequence[LatencyLimit]
        On TTFT; without limits, a pool may be fully used.
    outside_ms : float
        Part of TTFT outside inference. [ms]
    burstiness : float
        Squared coefficient of variation of the interarrival times.
    """
    sizes = POOL_SIZES.astype(np.float64)[None, :]
    mean_ms = servers.pass_ms * servers.spread.mean
    taken_ms = mean_ms / servers.stages
    # The lengths of the prompts of a batch even out.
    variability = Variability(burstiness, _column(servers.spread.variation / servers.prompts))
    # A busy pool counts what a batch of mean length takes.
    loads = np.broadcast_to(sizes / _column(servers.spread.mean), (servers.pass_ms.size, sizes.size))
    for limit in limits:
        left_ms = limit.limit_ms - outside_ms - servers.after_ms - (mean_ms - taken_ms)
        share = limit.share if limit.share is None else 1 - (1 - limit.share) * (1 - DECODE_PART)
        widest = np.ones_like(taken_ms) if share is None else servers.spread.percentiles[share]
        excess = (widest - 1) * servers.stages / np.sqrt(servers.prompts)
        sojourn = SojournLimit(_column(left_ms / taken_ms), share, _column(1 + excess))
        utilisation = utilisation_within(sizes, variability, sojourn)
        loads = np.minimum(loads, utilisation * sizes / _column(servers.spread.mean))
    found: FloatArray = loads
    return found


def prefill_shares(limits: Sequence[LatencyLimit]) -> list[float]:
    """Return the percentiles of prompt times that `prefill_loads` needs for `limits`."""
    shares = {1 - (1 - limit.share) * (1 - DECODE_PART) for limit in limits if limit.share is not None}
    return sorted(shares)


def decode_loads(
    places: IntArray, limits: Sequence[LatencyLimit], burstiness: float, output_variation: float
) -> FloatArray:
    """Return the load of pools of `POOL_SIZES` replicas, in replicas with full batches, shape (n_configs, n).

    Parameters
    ----------
    places : IntArray
        Sequences of a replica, over all ranks and stages, shape (n_configs,).
    limits : Sequence[LatencyLimit]
        On TTFT: a wait for a slot delays the first token.
    burstiness : float
        Squared coefficient of variation of the interarrival times.
    output_variation : float
        Squared coefficient of variation of the generated tokens.
    """
    sizes = POOL_SIZES.astype(np.float64)[None, :]
    if not limits:
        return np.broadcast_to(sizes, (places.size, sizes.size)).copy()
    chance = min(
        MEAN_DECODE_CHANCE if limit.share is None else (1 - limit.share) * DECODE_PART for limit in limits
    )
    # Thousands of configurations have some dozens of batch sizes.
    different, which = np.unique(places, return_inverse=True)
    servers = sizes * _column(different.astype(np.float64))
    variability = Variability(burstiness, output_variation)
    found: FloatArray = (sizes * utilisation_without_wait(servers, variability, chance))[which]
    return found


def _column(values: FloatArray) -> FloatArray:
    return np.asarray(values)[:, None]
