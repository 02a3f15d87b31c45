"""Latency of one engine in a closed loop, as benchmarks run it: each client sends when it is answered.

With c clients, N = m c requests, I prompt and O generated tokens and a budget of b tokens an iteration, a
request takes L = (O - 1) + s + 1 iterations, s = max(1, I / (b - B)) of them for its prompt, so x = c / L
requests start an iteration. The share phi of iterations with prompts and TPOT follow as in open loop. A
request then waits for the iteration that runs when it arrives, shares the next one with those that came with
it, and queues where prompts nearly fill the iterations::

    steady TTFT = TPOT (1 - 1/c) + t_mixed(min(b - B, I (1 + x (1 - 1/c)))) + q t_mixed
    q = r^2 / (2 (1 - r)) <= c I / (2 b)
    r = x I / (b - B)

All clients send their first request together: the j-th prompt of that burst is done after ceil(j I / b)
iterations, and the mean TTFT of the benchmark is burst / m + (1 - 1/m) steady. Where prompts alone fill every
iteration, B is what they feed, and by Little's law whoever does not decode waits.

An `Admission` adds the iterations that pass before a prompt is let in, whose arrivals then run together.
Where prompts run apart (SGLang), an iteration with prompts is one of prompts alone and one of decoding.

Lengths are taken to vary from request to request; with fixed lengths requests stay together in cohorts, which
`cohort_ttft_ms` describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.queueing.admission import Admission
from fleetplan.perfmodel.queueing.iteration_times import IterationTimes

_ROUNDS: Final = 60
"""Steps of the fixed point, each halfway."""

_LARGEST_SHARE: Final = 0.995
"""Keeps the queue of prompts finite next to saturation."""


EVERY_ITERATION: Final = Admission()
"""Prompts join the next iteration after their arrival."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A benchmark's outcome, each of shape (n,).

    Attributes
    ----------
    sequences : FloatArray
        That generate in the mean.
    tpot_ms : FloatArray
        Mean time per output token. [ms]
    steady_ttft_ms, burst_ttft_ms : FloatArray
        Mean TTFT of requests that follow others, and of those that are sent together at the start. [ms]
    admission_ms : FloatArray
        Part of the steady TTFT beyond the iteration that runs at the arrival and the prompt itself, for which
        prompts are not let in. [ms]
    rounds : FloatArray
        Requests of a client.
    """

    sequences: FloatArray
    tpot_ms: FloatArray
    steady_ttft_ms: FloatArray
    burst_ttft_ms: FloatArray
    admission_ms: FloatArray
    rounds: FloatArray

    @property
    def mean_ttft_ms(self) -> FloatArray:
        """Mean TTFT over all requests. [ms]."""
        found: FloatArray = self.burst_ttft_ms / self.rounds + (1 - 1 / self.rounds) * self.steady_ttft_ms
        return found


def closed_loop(
    times: IterationTimes, clients: FloatArray, rounds: FloatArray, admission: Admission = EVERY_ITERATION
) -> ClosedLoop:
    """Latency of one engine.

    Parameters
    ----------
    times : IterationTimes
        Of the engine and its requests.
    clients : FloatArray
        Requests in flight, shape (n,).
    rounds : FloatArray
        Requests of each client, at least one, shape (n,).
    admission : Admission
        How prompts are let in.
    """
    prompt, output = times.lengths.input_tokens, times.lengths.output_tokens
    sequences, starts = _settled(times, clients, admission)
    room = _prompt_room(times, sequences, admission)
    tokens = starts * prompt
    joint = admission.joint_iterations
    carrying = np.minimum(1.0, np.maximum(-np.expm1(-starts * joint) / joint, tokens / room))
    mixed = _mixed_ms(times, tokens / np.maximum(carrying, 1e-12), sequences, admission)
    tpot = carrying * mixed + (1 - carrying) * times.decode_ms(sequences)
    share = np.minimum(tokens / room, _LARGEST_SHARE)
    together = prompt * (1 + starts * joint * _others(clients))
    queue = np.minimum(share**2 / (2 * (1 - share)), clients * prompt / (2 * times.iteration_tokens))
    # A single client finds the engine idle.
    running_ms = tpot * _others(clients)
    admission_ms = running_ms * admission.wait_iterations(starts)
    steady = running_ms + admission_ms + _own_ms(times, together, sequences, admission) + queue * mixed
    # By Little's law whoever does not decode waits for the first token.
    waiting = clients * tpot / np.maximum(starts, 1e-12) - (output - 1) * tpot
    steady = np.where(tokens >= room * _LARGEST_SHARE, np.maximum(steady, waiting), steady)
    burst = _burst_ms(times, clients, admission)
    return ClosedLoop(sequences, tpot, steady, burst, admission_ms, rounds)


def _settled(
    times: IterationTimes, clients: FloatArray, admission: Admission
) -> tuple[FloatArray, FloatArray]:
    """Sequences that generate, and requests that start an iteration, in the mean."""
    prompt, output = times.lengths.input_tokens, times.lengths.output_tokens
    sequences, starts = clients * 0.9, clients / (output + 1)
    for _ in range(_ROUNDS):
        room = _prompt_room(times, sequences, admission)
        own = np.maximum(1.0, prompt / room)
        starts = clients / (output + own + _others(clients) * admission.wait_iterations(starts))
        bound = room / prompt
        settled = np.minimum(np.minimum(starts, bound) * (output - 1), times.costs.most_sequences)
        sequences = (sequences + settled) / 2
    return sequences, np.minimum(starts, bound)


def _others(clients: FloatArray) -> FloatArray:
    """Share of the clients that are not the one that sends."""
    found: FloatArray = 1 - 1 / clients
    return found


def _prompt_room(times: IterationTimes, sequences: FloatArray, admission: Admission) -> FloatArray:
    """Prompt tokens that fit into an iteration. [tokens]."""
    return times.prompt_room(np.zeros_like(sequences) if admission.prompts_apart else sequences)


def _mixed_ms(
    times: IterationTimes, tokens: FloatArray, sequences: FloatArray, admission: Admission
) -> FloatArray:
    """Time in which every sequence gains a token while prompts are computed. [ms]."""
    if admission.prompts_apart:
        return times.mixed_ms(tokens, np.zeros_like(sequences)) + times.decode_ms(sequences)
    return times.mixed_ms(tokens, sequences)


def _own_ms(
    times: IterationTimes, together: FloatArray, sequences: FloatArray, admission: Admission
) -> FloatArray:
    """Time from the start of a prompt's first iteration to its first token. [ms]."""
    prompt, room = times.lengths.input_tokens, _prompt_room(times, sequences, admission)
    tokens = np.where(prompt <= room, np.minimum(room, np.maximum(together, prompt)), prompt)
    return times.mixed_ms(tokens, np.zeros_like(sequences) if admission.prompts_apart else sequences)


def _burst_ms(times: IterationTimes, clients: FloatArray, admission: Admission) -> FloatArray:
    """Mean TTFT of `clients` prompts that are sent together, shape (n,). [ms]."""
    found = []
    for count in clients:
        done = np.arange(1, max(1, round(float(count))) + 1) * times.lengths.input_tokens
        steps = np.ceil(done / times.iteration_tokens)
        # Those whose prompt is done generate beside the prompts that follow.
        beside = np.minimum((steps - 1) * times.iteration_tokens / times.lengths.input_tokens, done.size)
        last = int(steps[-1])
        sizes = np.minimum(times.iteration_tokens, done[-1] - times.iteration_tokens * np.arange(last))
        running = np.interp(np.arange(1, last + 1), steps, beside)
        if admission.prompts_apart:
            running = np.zeros_like(running)
        ends = np.cumsum(times.mixed_ms(np.minimum(sizes, times.prompt_room(running)), running))
        found.append(float(ends[steps.astype(np.int64) - 1].mean()))
    return np.array(found)


def cohort_ttft_ms(
    times: IterationTimes, clients: FloatArray, admission: Admission = EVERY_ITERATION
) -> FloatArray:
    """Mean TTFT where requests of one fixed length run in cohorts that start and end together. [ms].

    Parameters
    ----------
    times : IterationTimes
        Of the engine and its requests.
    clients : FloatArray
        Requests in flight, shape (n,).
    admission : Admission
        How prompts are let in.
    """
    prompt = times.lengths.input_tokens
    cohort = np.minimum(clients, np.maximum(1.0, np.floor(times.iteration_tokens / prompt)))
    others = np.ceil(clients / cohort)
    mixed = _mixed_ms(times, cohort * prompt, clients - cohort, admission)
    own = _own_ms(times, cohort * prompt, clients - cohort, admission)
    waits = 1 + admission.wait_iterations(clients / times.lengths.output_tokens)
    found: FloatArray = own + waits * ((others - 1) * mixed + times.decode_ms(clients)) / others
    return found
