"""Closed loops of equal requests whose prompts run separately: they stay synchronised.

Where a framework computes all prompts that wait before it generates on (SGLang), all clients of an engine get
their first tokens in one burst, generate side by side, and end at the same iteration, so that the next burst
begins with all of them again. With c clients, prompts of I tokens in a budget of b and O generated tokens, a
round is a burst of c I / b iterations, which take P, and O - 1 iterations of c sequences, D. Prompts end one
by one or, where an iteration holds several, in as many groups as iterations: k = min(c, ceil(c I / b))::

    TTFT = P (k + 1) / (2 k)
    TPOT = (D + P (k - 1) / (2 k)) / (O - 1)
    rate = c / (P + D + time outside the engine)

No prompt interrupts the iterations that generate: only the rest of its own burst comes between the first two
tokens of a request. Attention-DP ranks stay in step without waiting, because their bursts begin together.

Requests of unlike lengths end one by one; theirs are the loops of `fleetplan.perfmodel.serving.closed`, and
so are those of frameworks that mix prompts with generation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving.closed import NOTHING_OUTSIDE, ClosedLoop, Outside
from fleetplan.perfmodel.serving.iteration_times import IterationTimes

LoopFormulas: TypeAlias = Callable[[IterationTimes, FloatArray, FloatArray | None, Outside], ClosedLoop]
"""Formulas of the loops of engines: these or those of `closed_loop`."""


def cohort_loop(
    times: IterationTimes,
    clients: FloatArray,
    rounds: FloatArray | None = None,
    outside: Outside = NOTHING_OUTSIDE,
) -> ClosedLoop:
    """Return the latency of one engine, whose clients are all in the same place of their requests.

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
