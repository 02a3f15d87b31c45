"""Open loops of replicas: the formulas of one engine (`batching`) within the limits of batch and cache."""

from __future__ import annotations

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.queueing import batching
from fleetplan.perfmodel.serving import Load, SteadyState
from fleetplan.perfmodel.serving.replica_loops import (
    EngineStates,
    by_reach,
    closed_engines,
    no_states,
    places_of,
    steady_state,
)


def open_loop(evaluator: Evaluator, load: Load, requests_per_s: FloatArray) -> SteadyState:
    """Return the latency of replicas under a given rate of Poisson arrivals.

    A rate above that of a closed loop with a full batch and cache is not sustained; the result then describes
    that closed loop.

    Parameters
    ----------
    evaluator, load
        As in `closed_loop`.
    requests_per_s : FloatArray
        Arrivals at one replica, shape (n_configs,). [1/s]
    """
    per_ms = requests_per_s / MS_PER_S / load.engines
    ample = load.places.astype(np.float64)
    places, fits = places_of(evaluator, load, ample)
    largest = closed_engines(evaluator, load, places, places, None)
    sustained = per_ms <= largest.requests_per_ms
    found = no_states(per_ms.size)
    for rows, prompts in by_reach(evaluator, load):
        times = prompts.times
        opened = batching.open_loop(times, np.minimum(per_ms, largest.requests_per_ms)[rows])
        found.sequences[rows] = opened.sequences
        found.starts[rows] = per_ms[rows] * opened.tpot_ms * times.lengths.tokens_per_step
        found.tpot_ms[rows] = opened.tpot_ms
        found.ttft_ms[rows] = opened.ttft_ms + load.front_end_ms[rows] + prompts.load_ms
        found.requests_per_ms[rows] = per_ms[rows]
    chosen = EngineStates(
        *(
            np.where(sustained, getattr(found, name), getattr(largest, name))
            for name in EngineStates.__dataclass_fields__
        )
    )
    return steady_state(evaluator, load, chosen, fits, sustained)
