"""Closed loops of equal requests whose prompts run apart from decoding: the clients stay synchronised.

A framework that computes all waiting prompts before it decodes further (SGLang) gives all clients of an
engine their first tokens in one burst. They decode side by side and end in the same iteration, so the next
burst has all of them again.

Symbols: c clients; I new prompt tokens and O generated tokens of a request; b the token budget of an
iteration; P the time of the c I / b iterations of a burst; D the time of O - 1 iterations of c sequences;
k the groups in which prompts end, one by one or by iteration::

    k    = min(c, ceil(c I / b))
    TTFT = P (k + 1) / (2 k)
    TPOT = (D + P (k - 1) / (2 k)) / (O - 1)
    rate = c / (P + D + time outside the engine)

No prompt interrupts decoding: between the first two tokens of a request, only the rest of its own burst runs.
Attention-DP ranks stay in step without waiting, because their bursts begin together.

Requests of different lengths end one by one. `fleetplan.perfmodel.serving.closed` has their formulas, and
those of frameworks that mix prompts with decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving.closed import NOTHING_OUTSIDE, ClosedLoop, Outside
from fleetplan.perfmodel.serving.iteration_times import IterationTimes

LoopFormulas: TypeAlias = Callable[[IterationTimes, FloatArray, FloatArray | None, Outside], ClosedLoop]
"""Formulas of a closed loop: `cohort_loop` or `closed_loop`."""


def cohort_loop(
    times: IterationTimes,
    clients: FloatArray,
    rounds: FloatArray | None = None,
    outside: Outside = NOTHING_OUTSIDE,
) -> ClosedLoop:
    """Return the latency of one engine whose clients are synchronised.

    Parameters
    ----------
    times, clients, rounds, outside
        As in `fleetplan.perfmodel.serving.closed.closed_loop`; every round has the same burst.
    """
    lengths = times.lengths
    none = np.zeros_like(clients)
    tokens = clients * lengths.computed_tokens
    iterations = np.maximum(1.0, np.ceil(tokens / times.prompt_room(none)))
    groups = np.maximum(1.0, np.minimum(clients, iterations))
    prompts_ms = times.mixed_ms(tokens, none)
    first_ms = prompts_ms * (groups + 1) / (2 * groups)
    sequences = np.minimum(clients * lengths.samples, times.most_sequences)
    steps = lengths.decode_iterations + none
    decode_ms = times.decode_ms(sequences)
    # Requests for one token generate nothing after the burst.
    rest_ms = np.where(steps > 0, (prompts_ms - first_ms) / np.where(steps > 0, steps, 1.0), 0.0)
    iteration_ms = decode_ms + rest_ms
    return ClosedLoop(
        sequences=sequences,
        starts=clients / (iterations + steps),
        iteration_ms=iteration_ms,
        tpot_ms=iteration_ms / lengths.tokens_per_step,
        steady_ttft_ms=first_ms,
        burst_ttft_ms=first_ms,
        admission_ms=none,
        requests_per_ms=clients / (prompts_ms + steps * decode_ms + outside.request_ms),
        rounds=np.full_like(clients, np.nan) if rounds is None else rounds,
    )
