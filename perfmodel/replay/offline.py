"""Many requests at once and none to follow, as offline benchmarks and batch jobs run: a simulated makespan.

Batches fill as far as sequences, tokens and cache allow, equal requests end together, and the last ones run
in small batches. No formula covers all of that; the engine of `fleetplan.perfmodel.replay` takes some 10 ms
for a thousand requests. One engine is simulated; the others have as many requests, or one less.

The front end hands requests over one after the other. An engine that takes what has arrived whenever an
iteration ends serves the last request later if it is a little faster and just misses it. So the makespan is
that of requests that are all there, but never less than from the arrival of any request to the end of all
that follow it (`_makespan_ms`): each of these runs takes the same iterations whatever they last, so no
faster part takes longer. Over 720 random cases it lies 0.1 % below the engine that takes what has arrived
(5 cases in 100 lie more than 9 % below: the wait for the iteration that runs is left out), on GPUStack's
rows within 1 %. Mean latencies are those of that engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.replay.deployed import kv_token_capacity, most_sequences
from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits, RequestLog
from fleetplan.perfmodel.serving import (
    Load,
    Range,
    Requests,
    SteadyState,
    StepCosts,
    mean_iteration,
    step_costs,
)
from fleetplan.perfmodel.serving.replica_load import resident_memory
from fleetplan.perfmodel.techniques.speculative import tokens_per_step

MOST_REQUESTS: Final = 1_000_000
"""Requests of one engine up to which they are simulated."""

_SEED: Final = 1
"""Seed of the drawn lengths: the same case has the same result."""


class TooManyRequestsError(Exception):
    """More requests of one engine than are simulated."""


@dataclass(frozen=True, slots=True)
class _OfflineOutcome:
    """Requests of one engine: mean running requests, mean latencies, and end of the last one."""

    running: float
    ttft_ms: float
    tpot_ms: float
    makespan_ms: float
    fits: bool


def offline(
    evaluator: Evaluator, load: Load, requests: FloatArray, length_variation: float = 0.0
) -> SteadyState:
    """Serve requests that are all there at the start.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator.
    load : Load
        Mean lengths, parallelism and scheduling.
    requests : FloatArray
        Rate of one replica, shape (n_configs,).
    length_variation : float
        Squared coefficient of variation of prompt and output, which are gamma-distributed and independent; 0
        for equal requests.

    Raises
    ------
    TooManyRequestsError
        More than `MOST_REQUESTS` of one engine.
    """
    shares = np.maximum(1, np.ceil(requests / load.engines)).astype(np.int64)
    if shares.max() > MOST_REQUESTS:
        raise TooManyRequestsError(
            f"n_requests: {shares.max()} of one engine; up to {MOST_REQUESTS} are simulated"
        )
    costs: dict[tuple[int, ...], tuple[StepCosts, int]] = {}
    found = []
    for row, share in enumerate(shares.tolist()):
        found.append(_run(evaluator, load, row, share, length_variation, costs))
    running = np.array([each.running for each in found])
    makespan = np.array([each.makespan_ms for each in found])
    batch = np.maximum(1, np.rint(running)).astype(np.int64)
    # Requests that start an iteration, by Little's law.
    due = running / load.output_tokens * tokens_per_step(evaluator.techniques.speculative)
    return SteadyState(
        batch=batch,
        ttft_ms=np.array([each.ttft_ms for each in found]),
        tpot_ms=np.array([each.tpot_ms for each in found]),
        requests_per_s=requests / makespan * MS_PER_S,
        iteration=mean_iteration(evaluator, load, batch, due),
        memory=resident_memory(evaluator, load, batch),
        fits=np.array([each.fits for each in found]),
        sustained=np.ones(shares.shape, dtype=np.bool_),
    )


def _run(
    evaluator: Evaluator,
    load: Load,
    row: int,
    count: int,
    length_variation: float,
    known: dict[tuple[int, ...], tuple[StepCosts, int]],
) -> _OfflineOutcome:
    scheduling, layouts = load.scheduling, load.layouts
    degrees = tuple(int(getattr(layouts, name)[row]) for name in ("pp", "tp", "dp", "ffn_tp", "ep", "cp"))
    requests = _requests(evaluator, load, row, count, length_variation)
    longest = int((requests.prefix_tokens + requests.input_tokens + requests.output_tokens).max())
    parallelism = Parallelism(*degrees)
    wanted = min(int(load.places[row]), count)
    tokens = int(scheduling.rank_tokens(layouts.dp)[row])
    sequences = most_sequences(evaluator, parallelism, wanted, tokens)
    budget = max(tokens, sequences + 1)
    # Ranges in powers of two, so that cases of one layout share their tables.
    reach = Range(_power_of_two(sequences), budget, _power_of_two(longest))
    key = (*degrees, reach.sequences, reach.context_tokens)
    if key not in known:
        cache = kv_token_capacity(evaluator, parallelism, sequences, budget)
        known[key] = step_costs(evaluator, parallelism, reach), cache
    costs, cache = known[key]
    limits = EngineLimits(sequences, budget, max(cache, longest), scheduling.admission.prompts_apart)
    log = _served(costs, limits, requests)
    first, finish = log.first_ms, log.finish_ms
    later = requests.output_tokens > 1
    gained = tokens_per_step(evaluator.techniques.speculative)
    generated = gained * (requests.output_tokens[later] - 1)
    outside = float(load.front_end_ms[row] + (count - 1) * load.front_end_template_ms[row])
    return _OfflineOutcome(
        running=float((finish - log.start_ms).sum()) / float(finish.max()),
        ttft_ms=float(first.mean()) + outside,
        tpot_ms=float(((finish - first)[later] / generated).mean())
        if later.any()
        else costs.iteration_ms(0, 0, 1, 0),
        makespan_ms=_makespan_ms(costs, limits, requests, log) + outside,
        fits=longest <= cache,
    )


def _served(costs: StepCosts, limits: EngineLimits, requests: Requests) -> RequestLog:
    """Run one engine until the last request ends."""
    alone = PoolRun(costs, limits, requests)
    alone.send(0, np.arange(len(requests)))
    alone.run()
    return alone.log


def _makespan_ms(costs: StepCosts, limits: EngineLimits, requests: Requests, log: RequestLog) -> float:
    """Return the end of the last request, from the last one, the last half and so on, as if all were there.

    The first request finds an idle engine, so that the others begin after its prompt. `log` is that of the
    engine that takes what has arrived, which decides where all are there at the start.
    """
    if not requests.arrival_ms.any():
        return float(log.finish_ms.max())

    def of_the_last(count: int) -> RequestLog:
        last = requests.take(np.arange(len(requests) - count, len(requests)))
        return _served(costs, limits, replace(last, arrival_ms=np.zeros(count)))

    alone = replace(requests.take(np.arange(1)), arrival_ms=np.zeros(1))
    begun_ms = _served(costs, limits, alone).first_ms[0]
    found = [float(of_the_last(len(requests)).finish_ms.max())]
    count = len(requests) - 1
    while count:
        start_ms = max(begun_ms, float(requests.arrival_ms[-count]))
        found.append(start_ms + float(of_the_last(count).finish_ms.max()))
        count //= 2
    return max(found)


def _requests(evaluator: Evaluator, load: Load, row: int, count: int, length_variation: float) -> Requests:
    gained = tokens_per_step(evaluator.techniques.speculative)
    prefix = np.full(count, int(load.prefix_tokens[row]))
    means = float(load.input_tokens[row]), 1.0 + (float(load.output_tokens[row]) - 1.0) / gained
    if length_variation == 0.0:
        lengths = [np.full(count, max(1, round(mean))) for mean in means]
    else:
        random = np.random.default_rng(_SEED)
        lengths = [_drawn(mean, length_variation, count, random) for mean in means]
    # The front end hands them over one after the other.
    arrival_ms = float(load.front_end_prompt_ms[row]) * np.arange(count, dtype=np.float64)
    return Requests(arrival_ms, lengths[0], prefix, lengths[1])


def _drawn(mean: float, variation: float, count: int, random: np.random.Generator) -> IntArray:
    """Draw whole lengths of at least one token with a given mean, for any number of requests."""
    drawn = random.gamma(1 / variation, variation * mean, count)
    found: IntArray = np.maximum(1, np.rint(drawn * mean / drawn.mean())).astype(np.int64)
    return found


def _power_of_two(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()
