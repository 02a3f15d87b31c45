"""Latency of one engine of continuous batching under open load, without running a simulation.

With x arrivals an iteration, I prompt tokens and O generated tokens a request and a budget of b tokens an
iteration, B = x (O - 1) sequences run. A share phi of the iterations carries prompts, p = x I / phi tokens
each::

    phi = min(1, max(1 - exp(-x), x I / (b - B)))
    TPOT = phi t_mixed(p, B) + (1 - phi) t_decode(B)

which is solved with x = rate * TPOT. Where prompts run apart phi is 1 - exp(-x): all that wait are computed
before the next iteration that generates. A request meets no prompt of its own while it generates, but those
that came behind it while its own was computed as well: the TPOT that counts is with x + rate D / (O - 1)
arrivals an iteration, D = t_prompt(I) + rp W. A request that arrives waits for the rest of the iteration that
it falls into, of length L, and its prompt then runs together with those that arrived within the same one::

    E[TTFT] = ca2^0.11 (E[L / 2 + t_prompt(I (1 + K))] + rp W)
    K(L) = 2 m(L / 2),   m(s) = sum over j of gammainc(j / ca2, rate s / ca2)
    rp = rate I t_mixed(e) / e,   W = ca2 rp / (2 (1 - rp)) (I / e) t_mixed(e),   e = b - B

m counts the renewals of gamma-distributed times between arrivals with the squared coefficient of variation
ca2 (Poisson: 1, and m(s) = rate s). Percentiles are that mean times a factor. The exponents and the factors
were fitted to `fleetplan.perfmodel.replay`; `benchmarks/queueing.py` prints what they are off by. They hold
up to rp = 0.6. Above 0.8 they mean nothing: use the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving.iteration_times import IterationTimes

BURST_EXPONENTS: Final = {None: 0.11, 0.95: 0.28, 0.99: 0.33}
"""By how much ca2 lengthens the mean, and percentiles, of TTFT."""

PERCENTILE_FACTORS: Final = {0.95: (1.35, 1.4), 0.99: (1.6, 2.4)}
"""Percentile over mean of TTFT at rp = 0, and its growth with rp."""

_ROUNDS: Final = 60
"""Steps of the fixed point, each halfway: it has settled to 1e-6 after 30 of them."""

_MOST_RENEWALS: Final = 64
"""Terms of m(s): the arrivals within half an iteration are fewer."""


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """An engine under a rate of arrivals, each array of shape (n,).

    Attributes
    ----------
    sequences : FloatArray
        Mean number that run.
    tpot_ms, ttft_ms : FloatArray
        Means. [ms]
    prompt_share : FloatArray
        rp: time for prompts over all time, if iterations were full of them.
    burstiness : float
        ca2: squared coefficient of variation of the times between arrivals.
    """

    sequences: FloatArray
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    prompt_share: FloatArray
    burstiness: float

    def ttft_percentile_ms(self, share: float) -> FloatArray:
        """Return the TTFT that `share` of the requests, 0.95 or 0.99, do not exceed. [ms]."""
        start, growth = PERCENTILE_FACTORS[share]
        bursts = self.burstiness ** (BURST_EXPONENTS[share] - BURST_EXPONENTS[None])
        found: FloatArray = self.ttft_ms * (start + growth * self.prompt_share) * bursts
        return found


def open_loop(times: IterationTimes, requests_per_ms: FloatArray, burstiness: float = 1.0) -> OpenLoop:
    """Return the latency of one engine.

    Parameters
    ----------
    times : IterationTimes
        Engine and requests.
    requests_per_ms : FloatArray
        Arrivals at the engine, shape (n,). [1/ms]
    burstiness : float
        Squared coefficient of variation of the times between them.
    """
    prompt, steps = times.lengths.computed_tokens, times.lengths.decode_iterations * times.lengths.samples
    iteration = times.decode_ms(np.ones_like(requests_per_ms))
    for _ in range(_ROUNDS):
        arrivals = requests_per_ms * iteration
        sequences = np.minimum(arrivals * steps, times.most_sequences)
        carrying, taken = _prompts(times, arrivals, sequences)
        mixed, plain = times.cycle_ms(taken, sequences), times.decode_ms(sequences)
        iteration = (iteration + times.mean_ms(carrying, taken, sequences)) / 2
    in_mixed = carrying * mixed / (carrying * mixed + (1 - carrying) * plain)
    first = in_mixed * _after_ms(times, mixed, requests_per_ms, burstiness, sequences)
    first += (1 - in_mixed) * _after_ms(times, plain, requests_per_ms, burstiness, sequences)
    # A request that finds the engine idle waits for no scheduled iteration.
    busy = np.minimum(1.0, sequences + requests_per_ms * iteration)
    admission_ms = busy * times.admission.wait_iterations(requests_per_ms * iteration) * iteration
    room = times.cycle_room(sequences)
    full_ms = times.cycle_ms(room, sequences)
    share = requests_per_ms * prompt * full_ms / room
    bounded = np.minimum(share, 0.999)
    wait = burstiness * bounded / (2 * (1 - bounded)) * prompt / room * full_ms
    ttft = burstiness ** BURST_EXPONENTS[None] * (first + bounded * wait) + admission_ms
    behind_ms = times.prompts_ms(prompt + np.zeros_like(share), sequences) + bounded * wait
    met, sequences = _iteration_met(times, requests_per_ms, iteration, behind_ms)
    return OpenLoop(sequences, met / times.lengths.tokens_per_step, ttft, share, burstiness)


def _iteration_met(
    times: IterationTimes, requests_per_ms: FloatArray, mean_ms: FloatArray, behind_ms: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean iteration of a request that generates, and sequences that do so. [ms].

    Prompts of those that arrive while it generates are computed meanwhile, and so are those that came behind
    it while its own was computed. An engine that nobody generates on has no iteration that counts.
    """
    steps = times.lengths.decode_iterations + np.zeros_like(mean_ms)
    behind = requests_per_ms * behind_ms / np.maximum(steps, 1.0)
    found = mean_ms
    for _ in range(_ROUNDS):
        sequences = np.minimum(requests_per_ms * found * steps * times.lengths.samples, times.most_sequences)
        arrivals = requests_per_ms * found + behind
        if not times.admission.prompts_apart:
            arrivals = np.minimum(arrivals, times.cycle_room(sequences) / times.lengths.computed_tokens)
        peers = _prompts(times, requests_per_ms * found, sequences)
        found = (found + times.mean_ms(*_prompts(times, arrivals, sequences), sequences, peers=peers)) / 2
    return found, sequences


def _prompts(
    times: IterationTimes, arrivals: FloatArray, sequences: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the share of iterations that carry prompts, and tokens of prompts in each of them."""
    joint, tokens = times.admission.joint_iterations, arrivals * times.lengths.computed_tokens
    filled = 0.0 if times.admission.prompts_apart else tokens / times.cycle_room(sequences)
    carrying = np.minimum(1.0, np.maximum(-np.expm1(-arrivals * joint) / joint, filled))
    return carrying, tokens / np.maximum(carrying, 1e-12)


def _after_ms(
    times: IterationTimes,
    iteration_ms: FloatArray,
    requests_per_ms: FloatArray,
    burstiness: float,
    sequences: FloatArray,
) -> FloatArray:
    """Return the mean TTFT of a request that arrives within an iteration of the given length. [ms]."""
    together = 1 + 2 * renewals(requests_per_ms * iteration_ms / 2, burstiness)
    return iteration_ms / 2 + times.prompts_ms(times.lengths.computed_tokens * together, sequences)


def renewals(expected: FloatArray, burstiness: float) -> FloatArray:
    """Return mean number of arrivals that follow one within a time in which `expected` arrive on average."""
    if burstiness == 1.0:
        return expected
    # It parses its own docstrings: a tenth of a start that most fleets need not wait for.
    from scipy.special import gammainc  # noqa: PLC0415

    terms = np.arange(1, _MOST_RENEWALS + 1)[:, None] / burstiness
    found: FloatArray = gammainc(terms, expected / burstiness).sum(axis=0)
    return found
