"""Latency of one engine in a closed loop: each client sends its next request when it has its answer.

Symbols::

    c, N      clients, and requests in total: N = m c
    I, O      new prompt tokens and generated tokens of a request           [tokens]
    b         token budget of an iteration                                  [tokens]
    B         generating sequences
    L         iterations of a request
    x = c / L requests that start per iteration (Little's law)
    s, q      iterations of a prompt, and iterations in the queue
    r         utilisation of the iterations by prompts
    phi       share of iterations that carry prompts, as in open loop
    t_mixed   time of an iteration with prompts                             [ms]

**Rate.** A request takes its decode iterations, those of its prompt, one for which it waits unless it is
alone, and the queue. Time outside the engine counts as iterations::

    L = (O - 1) + s + (1 - 1/c) + q,    s = max(1, I / (b - B))

**TPOT.** A generating request meets the prompts of others only. Of these,
x' = x (1 - 1/c) / (1 - r / c) start per iteration.

**TTFT.** A request waits for the current iteration, shares the next one with those that arrived meanwhile,
and queues if prompts nearly fill the iterations::

    steady TTFT = TPOT (1 - 1/c) + t_mixed(min(b - B, I (1 + x (1 - 1/c)))) + q t_mixed
    q = r^2 / (2 (1 - r)) <= c I / (2 b)
    r = x I / (b - B)

All clients send their first request together. The j-th prompt of that burst is done after ceil(j I / b)
iterations, and the mean TTFT of the benchmark is burst / m + (1 - 1/m) steady. If prompts fill every
iteration, their rate limits B, and by Little's law all clients that do not decode wait.

An `Admission` adds the iterations before a prompt is admitted; the arrivals of these iterations run together.
If prompts run apart (SGLang), all waiting prompts run before the next decode iteration: r = 0, and a request
waits for half of those that arrived with it if they exceed one iteration.

The formulas assume lengths that vary between requests. Equal requests stay together in cohorts
(`fleetplan.perfmodel.serving.cohorts`), whose TTFT may be several times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving.false_position import Brackets
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Numbers, some_numbers

_ROUNDS: Final = 60
"""Limit on the steps of false position; eight are usual."""

_CLOSE: Final = 1e-9
"""Tolerance of the number of clients, as a share of it."""

_LARGEST_SHARE: Final = 0.995
"""Largest utilisation in the formula of the prompt queue, which is infinite at 1."""

_SMALLEST_REST: Final = 1e-9
"""Least share of iterations without its own prompt, for a single client that requests one token."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Result of a benchmark, each array of shape (n,).

    Attributes
    ----------
    sequences : FloatArray
        Mean number of generating sequences.
    starts : FloatArray
        Mean number of requests that start per iteration.
    iteration_ms, tpot_ms : FloatArray
        Mean iteration, and mean time per output token. [ms]
    steady_ttft_ms, burst_ttft_ms : FloatArray
        Mean TTFT in the steady state, and of the initial burst. [ms]
    admission_ms : FloatArray
        Part of the steady TTFT by which admission delays a prompt after the iteration that runs at its
        arrival. [ms]
    requests_per_ms : FloatArray
        Rate in the steady state. [1/ms]
    rounds : FloatArray
        Requests per client.
    """

    sequences: FloatArray
    starts: FloatArray
    iteration_ms: FloatArray
    tpot_ms: FloatArray
    steady_ttft_ms: FloatArray
    burst_ttft_ms: FloatArray
    admission_ms: FloatArray
    requests_per_ms: FloatArray
    rounds: FloatArray

    @property
    def mean_ttft_ms(self) -> FloatArray:
        """Mean TTFT over all requests. [ms]"""
        found: FloatArray = self.burst_ttft_ms / self.rounds + (1 - 1 / self.rounds) * self.steady_ttft_ms
        return found


@dataclass(frozen=True, slots=True)
class Outside:
    """Time of a request outside the engine, not included in TTFT here. [ms]

    Attributes
    ----------
    request_ms, apart_ms : float or FloatArray
        Front-end time of a request alone, and between two prompts of a burst.
    """

    request_ms: Numbers = 0.0
    apart_ms: Numbers = 0.0


NOTHING_OUTSIDE: Final = Outside()


def closed_loop(
    times: IterationTimes,
    clients: FloatArray,
    rounds: FloatArray | None = None,
    outside: Outside = NOTHING_OUTSIDE,
) -> ClosedLoop:
    """Return the latency of one engine.

    Parameters
    ----------
    times : IterationTimes
        Engine and requests.
    clients : FloatArray
        Requests in flight, at least one, shape (n,).
    rounds : FloatArray, optional
        Requests per client, at least one, shape (n,); without them, the figures of the initial burst are
        NaN.
    outside : Outside
        Time of requests outside the engine.
    """
    outside_ms, lengths = outside.request_ms, times.lengths
    prompt, steps = lengths.computed_tokens, lengths.decode_iterations
    sequences, starts = _settled(times, clients, outside_ms)
    room = times.cycle_room(sequences)
    overall, mixed = _mean_iteration(times, starts, sequences)
    iteration = _iteration_met(times, clients, starts, sequences)
    together = prompt * (1 + starts * times.admission.joint_iterations * _others(clients))
    queue = _queued(times, clients, starts, sequences)
    # A single client finds the engine idle.
    running_ms = iteration * _others(clients)
    admission_ms = running_ms * times.admission.wait_iterations(starts)
    steady = running_ms + admission_ms + _own_ms(times, together, sequences) + queue * mixed
    decoding = steps * iteration
    alone = times.prompts_ms(prompt + np.zeros_like(clients), np.zeros_like(clients))
    # More clients have at least the rate of a single one.
    samples = np.full_like(clients, float(lengths.samples))
    single = 1.0 / (alone + steps * times.decode_ms(samples) + outside_ms)
    rate = np.maximum(clients / (steady + decoding + outside_ms), single)
    rate = np.minimum(rate, clients / (alone + decoding + outside_ms))
    # No more requests end than start, and iterations full of prompts limit the starts.
    full = room / prompt / times.prompts_ms(room, sequences)
    rate = np.minimum(rate, np.minimum(np.maximum(starts / overall, single), full))
    # Little's law: requests that do not decode wait for the first token.
    steady = clients / rate - decoding - outside_ms
    unknown = np.full_like(clients, np.nan)
    return ClosedLoop(
        sequences=sequences,
        starts=starts,
        iteration_ms=iteration,
        tpot_ms=iteration / lengths.tokens_per_step,
        steady_ttft_ms=steady,
        burst_ttft_ms=unknown if rounds is None else _burst_ms(times, clients, outside.apart_ms),
        admission_ms=admission_ms,
        requests_per_ms=rate,
        rounds=unknown if rounds is None else rounds,
    )


def _mean_iteration(
    times: IterationTimes, starts: FloatArray, sequences: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean iteration, and the mean iteration with prompts. [ms]"""
    carrying, taken = _prompts(times, starts, sequences)
    # Without generation, there are no iterations without prompts.
    plain = (1 - carrying) * np.minimum(1.0, sequences)
    return times.mean_ms(carrying / (carrying + plain), taken, sequences), times.cycle_ms(taken, sequences)


def _prompts(
    times: IterationTimes, starts: FloatArray, sequences: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return phi, the share of iterations that carry prompts, and the prompt tokens of each of them."""
    joint, tokens = times.admission.joint_iterations, starts * times.lengths.computed_tokens
    filled = _filled(times, starts, sequences)
    carrying = np.minimum(1.0, np.maximum(-np.expm1(-starts * joint) / joint, filled))
    return carrying, tokens / np.maximum(carrying, 1e-12)


def _filled(times: IterationTimes, starts: FloatArray, sequences: FloatArray) -> FloatArray:
    """Return the share of iterations that prompts fill; 0 if all waiting prompts run before the next."""
    if times.admission.prompts_apart:
        return np.zeros_like(starts)
    found: FloatArray = starts * times.lengths.computed_tokens / times.cycle_room(sequences)
    return found


def _iteration_met(
    times: IterationTimes, clients: FloatArray, starts: FloatArray, sequences: FloatArray
) -> FloatArray:
    """Return the mean iteration that a generating request meets. [ms]

    A request meets the prompts of others, never its own. If prompts fill the iterations, no other prompt runs
    during its own, so the others are denser in the remaining iterations. Peer ranks compute prompts at all
    times.
    """
    filled = np.minimum(1.0, _filled(times, starts, sequences))
    rest = np.maximum(1.0 - filled / clients, _SMALLEST_REST)
    met = _prompts(times, starts * _others(clients) / rest, sequences)
    return times.mean_ms(*met, sequences, peers=_prompts(times, starts, sequences))


def _settled(
    times: IterationTimes, clients: FloatArray, outside_ms: Numbers
) -> tuple[FloatArray, FloatArray]:
    """Return the mean number of generating sequences, and of requests that start per iteration.

    By Little's law, x requests per iteration keep x L clients busy, which increases with x. False position
    with halved weights (the Illinois algorithm) solves for x.
    """
    answer = _most_starts(times, clients)
    left = Brackets(
        np.arange(clients.size),
        np.zeros_like(clients),
        answer,
        -clients,
        _busy(times, clients, outside_ms, answer) - clients,
        np.zeros_like(clients),
    )
    # If clients still wait at the largest rate, it is the result.
    left = left.take(left.above > 0)
    for _ in range(_ROUNDS):
        if not left.rows.size:
            break
        rows = left.rows
        starts = left.low - left.below * (left.high - left.low) / (left.above - left.below)
        found = _busy(times.take(rows), clients[rows], some_numbers(outside_ms, rows), starts) - clients[rows]
        # A row converges once, so that its result does not depend on the other rows.
        answer[rows] = starts
        left = left.narrowed(starts, found).take(np.abs(found) > _CLOSE * clients[rows])
    return _generating(times, answer), answer


def _generating(times: IterationTimes, starts: FloatArray) -> FloatArray:
    """Number of generating sequences at a rate of requests per iteration."""
    lengths = times.lengths
    return np.minimum(starts * lengths.decode_iterations * lengths.samples, times.most_sequences)


def _most_starts(times: IterationTimes, clients: FloatArray) -> FloatArray:
    """Return the largest number of starts per iteration: prompts fill it, or all clients generate."""
    lengths, budget = times.lengths, times.iteration_tokens
    prompt, generated = lengths.computed_tokens, lengths.decode_iterations * lengths.samples
    found: FloatArray = clients / (lengths.decode_iterations + 1.0)
    if times.admission.prompts_apart:
        return found
    filled = budget / (prompt + generated)
    most = times.most_sequences
    filled = np.where(filled * generated > most, np.maximum(1.0, budget - most) / prompt, filled)
    return np.minimum(found, filled)


def _busy(times: IterationTimes, clients: FloatArray, outside_ms: Numbers, starts: FloatArray) -> FloatArray:
    """Return x L, the clients with a request in the system at `starts` requests per iteration."""
    sequences = _generating(times, starts)
    own = np.maximum(1.0, _filled(times, np.ones_like(starts), sequences))
    iteration, mixed = _mean_iteration(times, starts, sequences)
    waits = _others(clients) * (1 + times.admission.wait_iterations(starts)) + outside_ms / iteration
    waits = waits + _queued(times, clients, starts, sequences) * mixed / iteration
    found: FloatArray = starts * (times.lengths.decode_iterations + own + waits)
    return found


def _queued(
    times: IterationTimes, clients: FloatArray, starts: FloatArray, sequences: FloatArray
) -> FloatArray:
    """Return q, the iterations for which a prompt queues."""
    prompt = times.lengths.computed_tokens
    share = np.minimum(_filled(times, starts, sequences), _LARGEST_SHARE)
    queue = np.minimum(share**2 / (2 * (1 - share)), clients * prompt / (2 * times.iteration_tokens))
    found: FloatArray = queue * _others(clients)
    return found


def _others(clients: FloatArray) -> FloatArray:
    """Return 1 - 1/c, the share of the other clients."""
    found: FloatArray = 1 - 1 / clients
    return found


def _own_ms(times: IterationTimes, together: FloatArray, sequences: FloatArray) -> FloatArray:
    """Return the time from the start of a prompt's first iteration to its first token. [ms]"""
    prompt, room = times.lengths.computed_tokens, times.cycle_room(sequences)
    if times.admission.prompts_apart:
        # On average, half of those that arrived together are computed before it.
        return times.prompts_ms(np.where(together <= room, together, (prompt + together) / 2), sequences)
    tokens = np.where(prompt <= room, np.minimum(room, np.maximum(together, prompt)), prompt)
    return times.prompts_ms(tokens, sequences)


def _burst_ms(times: IterationTimes, clients: FloatArray, apart_ms: Numbers) -> FloatArray:
    """Return the mean TTFT of `clients` prompts that are sent together, shape (n,). [ms]"""
    prompts = np.broadcast_to(np.asarray(times.lengths.computed_tokens, dtype=np.float64), clients.shape)
    apart = np.broadcast_to(np.asarray(apart_ms, dtype=np.float64), clients.shape)
    found = []
    for position, (count, prompt) in enumerate(zip(clients.tolist(), prompts.tolist(), strict=True)):
        own = times.of(position)
        budget = float(own.iteration_tokens)
        done = np.arange(1, max(1, round(count)) + 1) * prompt
        steps = np.ceil(done / budget)
        # Sequences with a finished prompt generate beside the following prompts.
        beside = np.minimum((steps - 1) * budget / prompt, done.size)
        last = int(steps[-1])
        sizes = np.minimum(budget, done[-1] - budget * np.arange(last))
        running = np.interp(np.arange(1, last + 1), steps, beside)
        if times.admission.prompts_apart:
            running = np.zeros_like(running)
        ends = np.cumsum(own.mixed_ms(np.minimum(sizes, own.prompt_room(running)), running))
        # If the front end is slower than the engine, each prompt runs when it arrives.
        handed = apart[position] * np.arange(done.size) + float(
            own.prompts_ms(np.array([prompt]), np.zeros(1))[0]
        )
        found.append(float(np.maximum(ends[steps.astype(np.int64) - 1], handed).mean()))
    return np.array(found)
