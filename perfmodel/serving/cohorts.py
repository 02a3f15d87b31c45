"""Closed loops of equal requests: clients whose requests start together also end together.

Symbols: c clients; I new prompt tokens and O generated tokens of a request; b the token budget of an
iteration.

**Prompts apart.** A framework that computes all waiting prompts before it decodes further (SGLang) gives all
clients of an engine their first tokens in one burst. They decode side by side and end in the same iteration,
so the next burst has all of them again. With P the time of the c I / b iterations of a burst, D that of O - 1
iterations of c sequences, and k the groups in which prompts end, one by one or by iteration::

    k    = min(c, ceil(c I / b))
    TTFT = P (k + 1) / (2 k)
    TPOT = (D + P (k - 1) / (2 k)) / (O - 1)
    rate = c / (P + D + time outside the engine)

No prompt interrupts decoding: between the first two tokens of a request, only the rest of its own burst runs.
Attention-DP ranks stay in step without waiting, because their bursts begin together.

**Mixed iterations.** If prompts share iterations with decoding (vLLM, TensorRT-LLM), the prompts that fill an
iteration end together from then on. These k groups follow each other, an iteration apart. The next request of
a group arrives while the iteration of the following group runs, waits for its end and takes one of its own;
after the last group, an iteration without prompts runs. With s the sequences that generate meanwhile::

    k    = c I / (b - s) > 1,    s = c (1 - 1/k)
    TTFT = t_mixed(b - s) (2 - 1/k) + t_decode / k

If one iteration has room for all prompts, the engine is idle after it. The first client starts alone, and the
others follow together::

    TTFT = (t_decode + t_mixed(I)) / c + (1 - 1/c) (t_mixed(I) + t_mixed((c - 1) I))

Time outside the engine runs during the iteration that is waited for. The order of the prompts does not change
the work: the rate is that of requests of different lengths, and TPOT follows by Little's law, between an
iteration without prompts and a full one.

Requests of different lengths end one by one. `fleetplan.perfmodel.serving.closed` has their formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving.closed import NOTHING_OUTSIDE, ClosedLoop, Outside
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.short_answers import closed_loop_of_any_length

LoopFormulas: TypeAlias = Callable[[IterationTimes, FloatArray, FloatArray | None, Outside], ClosedLoop]
"""Formulas of a closed loop."""


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


def mixed_cohort_loop(
    times: IterationTimes,
    clients: FloatArray,
    rounds: FloatArray | None = None,
    outside: Outside = NOTHING_OUTSIDE,
) -> ClosedLoop:
    """Return the latency of one engine whose clients follow each other in groups.

    Parameters
    ----------
    times, clients, rounds, outside
        As in `fleetplan.perfmodel.serving.closed.closed_loop`.
    """
    found = closed_loop_of_any_length(times, clients, rounds, outside)
    lengths, none = times.lengths, np.zeros_like(clients)
    prompt, steps = lengths.computed_tokens + none, lengths.decode_iterations + none
    beside = _beside_a_group(times, clients, prompt)
    room = times.prompt_room(beside)
    full = times.mixed_ms(room, beside)
    decode = times.decode_ms(np.minimum(clients * lengths.samples, times.most_sequences))
    alone = times.mixed_ms(prompt, none)
    others = 1 - 1 / clients

    def wait(iteration_ms: FloatArray) -> FloatArray:
        return np.maximum(0.0, iteration_ms - outside.request_ms)

    last = 1 / np.maximum(1.0, clients * prompt / room)
    following = full * np.maximum(1.0, prompt / room) + (1 - last) * wait(full) + last * wait(decode)
    rest = times.mixed_ms(np.maximum(1.0, (clients - 1) * prompt), np.minimum(1.0, clients - 1))
    first = alone + np.minimum(1.0, clients - 1) * wait(decode)
    idle = (1 - others) * first + others * (wait(alone) + rest)
    ttft = np.where(clients * prompt > room, following, idle) + found.admission_ms
    ttft = np.where(clients > 1, ttft, found.steady_ttft_ms)
    # Little's law: clients that neither generate nor are outside wait for the first token.
    inside = clients / found.requests_per_ms - outside.request_ms
    least = np.minimum(decode, found.iteration_ms)
    most = np.maximum(full, found.iteration_ms)
    generating = np.where(steps > 0, (inside - ttft) / np.where(steps > 0, steps, 1.0), found.iteration_ms)
    iteration = np.clip(generating, least, most)
    return replace(
        found,
        iteration_ms=iteration,
        tpot_ms=iteration / lengths.tokens_per_step,
        steady_ttft_ms=inside - steps * iteration,
    )


def _beside_a_group(times: IterationTimes, clients: FloatArray, prompt: FloatArray) -> FloatArray:
    """Return the sequences that generate while an iteration has the prompts of a group.

    With s of them, c - s clients have their prompts in the iteration: (c - s) I = b - s, unless all fit.
    """
    samples = times.lengths.samples
    spare = np.maximum(0.0, clients * prompt - times.iteration_tokens) / np.maximum(1.0, prompt - samples)
    found: FloatArray = np.minimum(np.minimum(clients, spare) * samples, times.most_sequences)
    return found
