"""Pools of equal replicas: continuous batching behind a router, and prompts alone behind one queue."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace
from typing import Literal, TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits, RequestLog
from fleetplan.perfmodel.serving import PROMPT_GRAIN_TOKENS, Requests, StepCosts

Router: TypeAlias = Literal["random", "round-robin", "least-loaded"]
"""Routers: random, round robin, or to the engine with the fewest unfinished requests."""


def run_engines(
    costs: StepCosts,
    limits: EngineLimits,
    requests: Requests,
    engines: int,
    router: Router,
    seed: int,
    prefilled: bool = False,
) -> RequestLog:
    """Serve requests by `engines` equal engines of continuous batching.

    Parameters
    ----------
    costs, limits
        Limits of each engine.
    requests : Requests
        Requests.
    engines : int
        Their number: replicas times attention-DP ranks times pipeline stages.
    router : Router
        Router. Requests of a session follow its first one with any router.
    seed : int
        Seed of the random router.
    prefilled : bool
        Whether prompts were computed elsewhere.
    """
    pool = PoolRun(costs, limits, requests, engines, prefilled=prefilled)
    if router == "least-loaded" and engines > 1:
        pool.send_to_least_loaded()
    else:
        target = _dealt(requests, engines, router, seed)
        for number in range(engines):
            pool.send(number, np.flatnonzero(target == number))
    pool.run()
    return pool.log


def _dealt(requests: Requests, engines: int, router: Router, seed: int) -> np.ndarray:
    """Return the engine of each request, shape (n_requests,)."""
    count = len(requests)
    if router == "random":
        target = np.random.default_rng(seed).integers(0, engines, count)
    else:
        target = np.arange(count) % engines
    if requests.session.size:
        with_session = np.flatnonzero(requests.session >= 0)
        _, first, of_session = np.unique(
            requests.session[with_session], return_index=True, return_inverse=True
        )
        target[with_session] = target[with_session][first][of_session]
    return target


@dataclass(frozen=True, slots=True)
class PrefillPool:
    """Equal replicas that compute prompts alone, behind one queue.

    Attributes
    ----------
    costs : StepCosts
        Limits of one attention-DP rank.
    replicas : int
        Their number.
    batch : int
        Most prompts of a rank that are computed together.
    ranks : int
        Attention-DP ranks of a replica.
    stages : int
        Pipeline stages: a replica takes the next batch when the first stage is free.
    chunk_tokens : int
        Most prompt tokens of an iteration of a rank. [tokens]
    pipelined : bool
        Whether chunks of a prompt follow each other through the stages (`PIPELINED_CHUNKS`).
    transfer_ms_per_token : float
        Time that the links of a rank need for the cache of one prompt token. [ms]
    way_ms : float
        Time on the way to decode beside that, which no link is busy with. [ms]
    """

    costs: StepCosts
    replicas: int
    batch: int
    ranks: int
    stages: int
    chunk_tokens: int
    transfer_ms_per_token: float
    way_ms: float = 0.0
    pipelined: bool = False


@dataclass(frozen=True, slots=True)
class PrefillTimes:
    """Times at which prompts are computed and handed over, each array of shape (n_requests,). [ms].

    Attributes
    ----------
    start_ms, computed_ms, arrived_ms : FloatArray
        Start and end of the computation, and when the cache has arrived at decode. [ms]
    busy_ms : float
        Time that first stages were taken, all replicas together. [ms]
    """

    start_ms: FloatArray
    computed_ms: FloatArray
    arrived_ms: FloatArray
    busy_ms: float


def run_prefill(pool: PrefillPool, requests: Requests) -> PrefillTimes:
    """Compute prompts in the order of their arrival, each batch by the replica that is free first."""
    count = len(requests)
    arrival = requests.arrival_ms.tolist()
    tokens = requests.input_tokens.tolist()
    attention = attention_ms(pool.costs, requests).tolist()
    sending = ((requests.input_tokens + requests.prefix_tokens) * pool.transfer_ms_per_token).tolist()
    start, computed, arrived = [0.0] * count, [0.0] * count, [0.0] * count
    free = [(0.0, number) for number in range(pool.replicas)]
    link_free = [0.0] * pool.replicas
    longest = _longest_chunk_ms(pool, requests).tolist()
    most, busy_ms, i = pool.batch * pool.ranks, 0.0, 0
    while i < count:
        ready, number = free[0]
        begin = arrival[i] if arrival[i] > ready else ready
        end = i + 1
        while end < count and end - i < most and arrival[end] <= begin:
            end += 1
        took = _batch_ms(pool, tokens[i:end], attention[i:end])
        taken = took / pool.stages
        if pool.pipelined:
            # The last chunk leaves the other stages after the time of the longest one in each of them.
            took = taken + (1.0 - 1.0 / pool.stages) * min(took, max(longest[i:end]))
        busy_ms += taken
        heapreplace(free, (begin + taken, number))
        link = max(begin + took, link_free[number])
        for each in range(i, end):
            start[each], computed[each] = begin, begin + took
            link += sending[each] / pool.ranks
            arrived[each] = link + pool.way_ms
        link_free[number] = link
        i = end
    return PrefillTimes(np.array(start), np.array(computed), np.array(arrived), busy_ms)


def _longest_chunk_ms(pool: PrefillPool, requests: Requests) -> FloatArray:
    """Return the time of the last full chunk of each prompt on its own, shape (n_requests,). [ms]."""
    table = np.array(pool.costs.prompt_ms)
    points = PROMPT_GRAIN_TOKENS * np.arange(table.size)
    chunk = np.minimum(requests.input_tokens, pool.chunk_tokens)
    end = requests.prefix_tokens + requests.input_tokens // chunk * chunk
    attention = np.interp(end, points, table) - np.interp(end - chunk, points, table)
    found: FloatArray = attention + np.array(pool.costs.token_ms)[chunk]
    return found


def attention_ms(costs: StepCosts, requests: Requests) -> FloatArray:
    """Return the time of attention over each prompt, cached prefix included, shape (n_requests,). [ms]."""
    table = np.array(costs.prompt_ms)
    points = PROMPT_GRAIN_TOKENS * np.arange(table.size)
    unlimited = np.array(costs.unlimited_ms) if costs.unlimited_ms else 0.0 * table
    limited = table - unlimited
    prompt, prefix = requests.input_tokens.astype(np.float64), requests.prefix_tokens.astype(np.float64)
    # As `StepCosts.after_prefix_ms`.
    whole = (np.sqrt(1.0 + 8.0 * (prompt * prefix + prompt * (prompt + 1.0) / 2.0)) - 1.0) / 2.0
    spared = np.maximum(0.0, np.interp(prefix, points, limited) - limited[1])
    after = np.interp(prefix + prompt, points, limited) - spared + np.interp(whole, points, unlimited)
    least = table[0] + costs.read_ms_per_token * prefix
    found: FloatArray = np.maximum(after, least)
    return found + costs.rebuilt_ms_per_token * requests.prefix_tokens


def _batch_ms(pool: PrefillPool, tokens: list[int], attention: list[float]) -> float:
    """Return time of a batch: that of the rank with the most tokens; prompts are dealt to ranks in turn."""
    if pool.ranks == 1:
        return _rank_ms(pool, sum(tokens), sum(attention))
    return max(
        _rank_ms(pool, sum(tokens[rank :: pool.ranks]), sum(attention[rank :: pool.ranks]))
        for rank in range(min(pool.ranks, len(tokens)))
    )


def _rank_ms(pool: PrefillPool, tokens: int, attention: float) -> float:
    whole, rest = divmod(tokens, pool.chunk_tokens)
    token_ms = pool.costs.token_ms
    took_ms = whole * token_ms[pool.chunk_tokens] + (token_ms[rest] if rest else 0.0) + attention
    return max(took_ms, (whole + bool(rest)) * pool.costs.prompt_floor_ms)
