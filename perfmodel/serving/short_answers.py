"""Closed loops of requests with few generated tokens.

The formulas of `fleetplan.perfmodel.serving.closed` assume that one iteration follows the other. If requests
generate one token, the engine computes prompts only, and is idle at times if requests spend time T outside
it. It then serves the prompts in turn, each for S. An arriving prompt finds the queue that c - 1 clients
leave (arrival theorem, in Schweitzer's approximation), with half of the current prompt done. Its sojourn time
is::

    R = S + S (c - 1) (R - S / 2) / (R + T)

The rate is at most one prompt per S.

A request for fewer tokens needs part of the work of one for more tokens, so its rate is at least as high.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.serving.closed import NOTHING_OUTSIDE, ClosedLoop, Outside, closed_loop
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import some_numbers

_LONGER: Final = (1.0, 2.0, 4.0, 8.0)
"""Decode iterations of longer requests to compare with; beyond them, the formulas are monotonic."""


def closed_loop_of_any_length(
    times: IterationTimes,
    clients: FloatArray,
    rounds: FloatArray | None = None,
    outside: Outside = NOTHING_OUTSIDE,
) -> ClosedLoop:
    """Return the latency of one engine whose requests may generate few tokens.

    Parameters
    ----------
    times, clients, rounds, outside
        As in `fleetplan.perfmodel.serving.closed.closed_loop`.
    """
    found = closed_loop(times, clients, rounds, outside)
    steps = np.broadcast_to(times.lengths.decode_iterations, clients.shape)
    rate = found.requests_per_ms.copy()
    # Ranks of attention data parallelism wait for each other's prompts: theirs are not served in turn.
    single = np.flatnonzero((steps <= 0) & (times.grids.ranks[times.layouts] <= 1))
    if single.size:
        rate[single] = np.maximum(rate[single], _single_rate(times, clients, outside, single))
    for longer in _LONGER:
        rows = np.flatnonzero(steps < longer)
        if rows.size:
            rate[rows] = np.maximum(rate[rows], _longer_rate(times, clients, outside, rows, longer))
    # Little's law: requests that neither generate nor are outside wait for the first token.
    waiting = clients / rate - steps * found.iteration_ms - outside.request_ms
    ttft = np.where(rate > found.requests_per_ms, waiting, found.steady_ttft_ms)
    return replace(found, requests_per_ms=rate, steady_ttft_ms=ttft)


def _single_rate(times: IterationTimes, clients: FloatArray, outside: Outside, rows: IntArray) -> FloatArray:
    """Return the rate of the loads in `rows`, whose requests generate one token. [1/ms]"""
    own, inside, outside_ms = times.take(rows), clients[rows], some_numbers(outside.request_ms, rows)
    none = np.zeros_like(inside)
    prompt = own.lengths.computed_tokens + none
    alone_ms = own.prompts_ms(prompt, none)
    half, idle = (inside * alone_ms - outside_ms) / 2, alone_ms * outside_ms
    busy = alone_ms**2 * (inside - 1) / 2
    stay_ms = half + np.sqrt(np.maximum(0.0, half**2 - busy + idle))
    room = own.cycle_room(none)
    full = np.minimum(1.0 / alone_ms, room / prompt / own.prompts_ms(room, none))
    rate: FloatArray = np.minimum(inside / (np.maximum(stay_ms, alone_ms) + outside_ms), full)
    return rate


def _longer_rate(
    times: IterationTimes, clients: FloatArray, outside: Outside, rows: IntArray, steps: float
) -> FloatArray:
    """Return the rate of the loads in `rows` with `steps` decode iterations per request. [1/ms]"""
    own = times.take(rows)
    output_tokens = np.full(rows.shape, 1.0 + steps * own.lengths.tokens_per_step)
    longer = replace(own, lengths=replace(own.lengths, output_tokens=output_tokens))
    away = Outside(some_numbers(outside.request_ms, rows), some_numbers(outside.apart_ms, rows))
    return closed_loop(longer, clients[rows], None, away).requests_per_ms
