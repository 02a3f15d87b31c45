"""Latency of one engine of continuous batching under open load, in closed form.

Symbols::

    rate      arrivals at the engine                                        [1/ms]
    x         arrivals per iteration
    I, O      new prompt tokens and generated tokens of a request           [tokens]
    b         token budget of an iteration                                  [tokens]
    B         generating sequences
    phi       share of iterations that carry prompts, p tokens each
    ca2       squared coefficient of variation of interarrival times; 1 is Poisson
    t_mixed   time of an iteration with p prompt tokens and B sequences     [ms]
    t_decode  time of an iteration with B sequences alone                   [ms]
    t_prompt  time from a prompt's first iteration to its first token       [ms]

**TPOT** is the fixed point of x = rate TPOT::

    B    = x (O - 1)
    phi  = min(1, max(1 - exp(-x), x I / (b - B))),   p = x I / phi
    TPOT = phi t_mixed(p, B) + (1 - phi) t_decode(B)

If prompts run apart from decoding, phi = 1 - exp(-x), because all waiting prompts run before the next decode
iteration. A generating request meets the prompts that arrive during its generation and those that arrived
behind it during its own prompt, so its TPOT is that at x + rate D / (O - 1) arrivals per iteration, with
D = t_prompt(I) + rp W.

**TTFT**: a request waits for the rest of the current iteration, of length L. Its prompt then runs together
with those that arrived during that iteration, and behind a queue of prompts::

    E[TTFT] = ca2^0.11 (E[L / 2 + t_prompt(I (1 + K))] + rp W)
    K(L)    = 2 m(L / 2),   m(s) = sum over j of gammainc(j / ca2, rate s / ca2)
    rp      = rate I t_mixed(e) / e
    W       = ca2 rp / (2 (1 - rp)) (I / e) t_mixed(e),   e = b - B

m counts the renewals of gamma-distributed interarrival times (m(s) = rate s for Poisson arrivals), rp is the
utilisation by prompts, e the prompt budget beside B sequences. Percentiles are the mean times a factor.

Source: the structure follows M/G/1 queues; the exponents and factors were fitted to
`fleetplan.perfmodel.replay`, and `benchmarks/queueing.py` prints their errors. The formulas are valid up to
rp = 0.6. Above rp = 0.8, use the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving.iteration_times import IterationTimes

BURST_EXPONENTS: Final = {None: 0.11, 0.95: 0.28, 0.99: 0.33}
"""Exponent of ca2 in the mean of TTFT, and in its percentiles."""

PERCENTILE_FACTORS: Final = {0.95: (1.35, 1.4), 0.99: (1.6, 2.4)}
"""Ratio of percentile to mean TTFT at rp = 0, and its slope in rp."""

_ROUNDS: Final = 60
"""Damped steps of the fixed point, each by half; 30 of them converge to 1e-6."""

_MOST_RENEWALS: Final = 64
"""Terms of m(s), more than the arrivals within half an iteration."""


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Steady state of engines under open load, each array of shape (n,).

    Attributes
    ----------
    sequences : FloatArray
        Mean number of generating sequences.
    tpot_ms, ttft_ms : FloatArray
        Means. [ms]
    prompt_share : FloatArray
        rp: utilisation by prompts, if every iteration that carries prompts is full of them.
    burstiness : float
        ca2: squared coefficient of variation of the times between arrivals.
    """

    sequences: FloatArray
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    prompt_share: FloatArray
    burstiness: float

    def ttft_percentile_ms(self, share: float) -> FloatArray:
        """Return the TTFT that `share` of the requests, 0.95 or 0.99, do not exceed. [ms]"""
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
        Squared coefficient of variation of the interarrival times.
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
    """Return the mean iteration that a generating request meets [ms], and the generating sequences.

    Such a request meets the prompts that arrive during its generation, and those that arrived behind it
    during its own prompt. The result has no meaning for an engine without generating requests.
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
    """Return phi, the share of iterations that carry prompts, and the prompt tokens of each of them."""
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
    """Return the mean TTFT of a request that arrives during an iteration of the given length. [ms]"""
    together = 1 + 2 * renewals(requests_per_ms * iteration_ms / 2, burstiness)
    return iteration_ms / 2 + times.prompts_ms(times.lengths.computed_tokens * together, sequences)


def renewals(expected: FloatArray, burstiness: float) -> FloatArray:
    """Return the mean number of arrivals after an arrival, in a time with `expected` arrivals on average."""
    if burstiness == 1.0:
        return expected
    # SciPy takes a tenth of the start to import, and most fleets do not need it.
    from scipy.special import gammainc  # noqa: PLC0415

    terms = np.arange(1, _MOST_RENEWALS + 1)[:, None] / burstiness
    found: FloatArray = gammainc(terms, expected / burstiness).sum(axis=0)
    return found
