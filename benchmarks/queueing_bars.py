"""Cells of closed forms against the simulator, and the bars that they are held to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from math import inf
from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.queueing import SojournLimit
from fleetplan.perfmodel.queueing.batching import open_loop
from fleetplan.perfmodel.queueing.capacity import utilisation_within
from fleetplan.perfmodel.queueing.pool import Variability, sojourn_mean, sojourn_percentile
from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.replay.pools import run_engines
from fleetplan.perfmodel.serving import (
    Range,
    Requests,
    StepCosts,
    StepGrids,
    renewal_times_ms,
    step_costs,
    step_grids,
)
from fleetplan.perfmodel.serving.closed import closed_loop
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths

AMPLE_KV: Final = 10**9
"""Tokens of cache that no cell fills: limited caches are the simulator's own tests."""

LONGEST: Final = 16_384
"""Tokens of the longest request of a cell."""


@dataclass(frozen=True, slots=True)
class QueueingBar:
    """Errors of one kind against what is asked for.

    Attributes
    ----------
    name : str
        What is compared.
    errors : FloatArray
        Signed relative errors.
    median_limit, p90_limit : float
        Largest median and 90th percentile of their absolute values. [%]
    """

    name: str
    errors: FloatArray
    median_limit: float
    p90_limit: float

    @property
    def met(self) -> bool:
        """Whether both limits are kept."""
        return self.median <= self.median_limit and self.p90 <= self.p90_limit

    @property
    def median(self) -> float:
        """Median of the absolute errors. [%]"""
        return float(np.median(np.abs(self.errors)) * 100)

    @property
    def p90(self) -> float:
        """90th percentile of the absolute errors. [%]"""
        return float(np.percentile(np.abs(self.errors), 90) * 100)

    def __str__(self) -> str:
        reached = f"{self.name:52s} {self.errors.size:5d} cells  {self.median:5.1f} / {self.p90:5.1f} %"
        if self.median_limit == inf:
            return f"{reached}   no bar"
        verdict = "met" if self.met else "MISSED"
        return f"{reached}   bar {self.median_limit:g} / {self.p90_limit:g}   {verdict}"


def simulated_pool(
    servers: int, utilisation: float, variability: Variability, count: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Sojourn and service times of a pool behind one queue, in mean service times, warm-up left out.

    Times between arrivals and service times are scaled to their nominal means. Without that, 600,000 requests
    at a utilisation of 0.95 give the mean of M/M/1, which is known, wrong by 10 %.
    """
    random = np.random.default_rng(seed)
    between = 1.0 / (utilisation * servers)
    arrivals = renewal_times_ms(1e3 / between, float(variability.arrivals), count, random)
    arrivals *= between * count / arrivals[-1]
    spread = float(variability.service)
    if spread == 0:
        service = np.ones(count)
        ends = _ends_of_equal(arrivals, servers)
    else:
        service = random.gamma(1 / spread, spread, count)
        service /= service.mean()
        ends = _ends(arrivals, service, servers)
    counted = slice(count // 10, None)
    return ends[counted] - arrivals[counted], service[counted]


def _ends(arrivals: FloatArray, service: FloatArray, servers: int) -> FloatArray:
    """When each request ends: the server that is free first takes the next, [n]."""
    free, ends = [0.0] * servers, [0.0] * arrivals.size
    for i, (arrival, time) in enumerate(zip(arrivals.tolist(), service.tolist(), strict=True)):
        begin = max(arrival, free[0])
        ends[i] = begin + time
        heapreplace(free, ends[i])
    return np.array(ends)


def _ends_of_equal(arrivals: FloatArray, servers: int) -> FloatArray:
    """When each request of one mean service time ends, [n]: servers are then taken in turn (Lindley)."""
    rows = -(-arrivals.size // servers)
    padded = np.concatenate([arrivals, np.full(rows * servers - arrivals.size, np.inf)])
    turns = padded.reshape(rows, servers)
    # The end of a turn is one later than the larger of its arrival and the end of the turn before.
    step = np.arange(rows)[:, None]
    ends: FloatArray = np.maximum.accumulate(turns - step, axis=0) + step + 1.0
    return ends.ravel()[: arrivals.size]


def pool_bars(seed: int, quick: bool) -> list[QueueingBar]:
    """Means and percentiles of pools against simulations of them."""
    errors: list[tuple[float, float, float]] = []
    sizes = (1, 4, 16) if quick else (1, 2, 4, 8, 16, 32, 64)
    loads = (0.3, 0.7, 0.9) if quick else (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
    for arrivals in (1.0, 2.0, 4.0):
        for service in (0.0, 0.25, 1.0):
            variability = Variability(arrivals, service)
            for servers in sizes:
                for load in loads:
                    # Long waits are rare and come in runs: the busier, the more requests it takes.
                    count = int((20_000 if quick else 30_000) / (1 - load))
                    errors.append(_pool_errors(servers, load, variability, count, seed))
    table = np.array(errors)
    return [
        QueueingBar("pool of n servers, mean TTFT", table[:, 0], 1.0, 5.0),
        QueueingBar("pool of n servers, p95", table[:, 1], 3.0, 10.0),
        QueueingBar("pool of n servers, p99", table[:, 2], 5.5, 18.0),
    ]


def _pool_errors(
    servers: int, load: float, variability: Variability, count: int, seed: int
) -> tuple[float, float, float]:
    sojourn, service = simulated_pool(servers, load, variability, count, seed)
    size, share = np.array([float(servers)]), np.array([load])
    found = [sojourn_mean(size, share, variability)[0] / sojourn.mean() - 1]
    for percentile in (0.95, 0.99):
        own = float(np.quantile(service, percentile))
        formula = sojourn_percentile(size, share, variability, percentile, own)[0]
        found.append(formula / np.quantile(sojourn, percentile) - 1)
    return float(found[0]), float(found[1]), float(found[2])


def capacity_cells(seed: int, quick: bool) -> tuple[int, int, float]:
    """Cells, over-promises and mean slack of the capacity function, by bisecting simulations."""
    promised, over, slack = 0, 0, []
    sizes = (1, 4, 16) if quick else (1, 2, 4, 8, 16, 32, 64)
    for burstiness in (1.0, 2.0, 4.0):
        for percentile in (0.95, 0.99):
            for service_times in (2.0, 3.0, 5.0):
                limit = SojournLimit(service_times, percentile)
                for servers in sizes:
                    variability = Variability(burstiness, 0.0)
                    found = float(utilisation_within(np.array([float(servers)]), variability, limit)[0])
                    real = _simulated_utilisation(servers, variability, limit, seed, quick)
                    promised += 1
                    over += found > real
                    slack.append(real - found)
    return promised, over, float(np.mean(slack))


def _simulated_utilisation(
    servers: int, variability: Variability, limit: SojournLimit, seed: int, quick: bool
) -> float:
    low, high = 0.0, 1.0
    for _ in range(8):
        middle = (low + high) / 2
        count = min(int((15_000 if quick else 25_000) / (1.02 - middle)), 200_000)
        sojourn, _ = simulated_pool(servers, middle, variability, count, seed)
        kept = np.quantile(sojourn, limit.share or 0.5) <= limit.service_times
        low, high = (middle, high) if kept else (low, middle)
    return low


def engine_tables(quick: bool) -> Iterator[tuple[int, StepCosts, StepGrids]]:
    """Token budgets with step costs, and their grids, of Llama-3.3-70B on H100 that a cell runs on."""
    evaluator = build_evaluator(
        "llama3.3-70b", accelerators()["H100-SXM"], "vllm", Precision("fp8", "fp8"), Path()
    )
    for tp in (4,) if quick else (2, 4, 8):
        for budget in (2048, 8192):
            layout = Parallelism(1, tp, 1, tp, 1)
            reach = Range(512, budget, LONGEST)
            yield budget, step_costs(evaluator, layout, reach), step_grids(evaluator, [layout], reach)


def drawn(nominal: tuple[int, int], times: FloatArray, seed: int) -> Requests:
    """Requests with lengths from 0.8 to 1.0 of the nominal ones, as public benchmarks draw them."""
    random = np.random.default_rng(seed)
    count = times.size
    inputs, outputs = (random.integers(int(0.8 * length), length + 1, count) for length in nominal)
    return Requests(times, inputs, np.zeros(count, dtype=np.int64), outputs)


def open_bars(seed: int, quick: bool) -> list[QueueingBar]:
    """Continuous batching under open load, up to prompts in 0.6 of the time."""
    errors: dict[float, list[list[float]]] = {1.0: [], 4.0: []}
    for budget, costs, grids in engine_tables(quick):
        for nominal in ((1024, 1024), (1024, 128), (4096, 256), (8192, 1024)):
            times = IterationTimes(grids, Lengths(0.9 * nominal[0], 0, 0.9 * nominal[1]), budget)
            room_ms = float(times.mixed_ms(np.array([budget - 64.0]), np.array([64.0]))[0])
            for burstiness, found in errors.items():
                for share in (0.1, 0.3, 0.5, 0.6):
                    rate = share / (room_ms / (budget - 64) * 0.9 * nominal[0])
                    cell = _open_cell(costs, times, rate, burstiness, nominal, seed)
                    if cell is not None:
                        found.append(cell)
    poisson, bursty = np.array(errors[1.0]), np.array(errors[4.0])
    return [
        QueueingBar("continuous batching, Poisson, mean TTFT", poisson[:, 0], 5.0, 12.0),
        QueueingBar("continuous batching, Poisson, p95", poisson[:, 1], 6.0, 15.0),
        QueueingBar("continuous batching, Poisson, p99", poisson[:, 2], 7.0, 20.0),
        QueueingBar("continuous batching, ca2 = 4, mean TTFT", bursty[:, 0], 6.0, 15.0),
        QueueingBar("continuous batching, ca2 = 4, p99", bursty[:, 2], 16.0, 33.0),
    ]


def _open_cell(
    costs: StepCosts,
    times: IterationTimes,
    rate_per_ms: float,
    burstiness: float,
    nominal: tuple[int, int],
    seed: int,
) -> list[float] | None:
    """Errors of mean, p95 and p99; None beyond the range of the formulas or of the batch."""
    formula = open_loop(times, np.array([rate_per_ms]), burstiness)
    if formula.prompt_share[0] > 0.61 or formula.sequences[0] > 480:
        return None
    count = 8000
    arrivals = renewal_times_ms(1e3 * rate_per_ms, burstiness, count, np.random.default_rng(seed))
    requests = drawn(nominal, arrivals, seed)
    limits = EngineLimits(512, times.iteration_tokens, AMPLE_KV)
    log = run_engines(costs, limits, requests, 1, "random", seed)
    ttft = (log.first_ms - arrivals)[count // 5 :]
    found = [formula.ttft_ms[0] / ttft.mean() - 1]
    for share in (0.95, 0.99):
        found.append(formula.ttft_percentile_ms(share)[0] / np.quantile(ttft, share) - 1)
    return [float(value) for value in found]


def simulated_closed(
    costs: StepCosts, limits: EngineLimits, requests: Requests, clients: int, turnaround_ms: float
) -> tuple[FloatArray, FloatArray]:
    """TTFT and TPOT of each request of a closed loop of so many clients. [ms]"""
    released = len(requests) - clients
    driven = PoolRun(costs, limits, requests, released=released, turnaround_ms=turnaround_ms)
    driven.send(0, np.arange(clients))
    driven.run()
    log, tokens = driven.log, np.maximum(1, requests.output_tokens - 1)
    return log.first_ms - log.arrival_ms, (log.finish_ms - log.first_ms) / tokens


def closed_bars(seed: int, quick: bool) -> list[QueueingBar]:
    """Closed loops of ten rounds against the simulator."""
    rounds, errors = 10, []
    clients_of: Sequence[int] = (4, 64) if quick else (1, 4, 16, 64, 128, 256)
    for budget, costs, grids in engine_tables(quick):
        for nominal in ((1024, 1024), (1024, 8192), (8192, 1024), (4096, 256)):
            times = IterationTimes(grids, Lengths(0.9 * nominal[0], 0, 0.9 * nominal[1]), budget)
            for clients in clients_of:
                formula = closed_loop(times, np.array([float(clients)]), np.array([float(rounds)]))
                requests = drawn(nominal, np.zeros(clients * rounds), seed)
                limits = EngineLimits(512, budget, AMPLE_KV)
                # A follower just misses the iteration that starts as its predecessor ends.
                ttft, tpot = simulated_closed(costs, limits, requests, clients, 0.1)
                errors.append(
                    (formula.mean_ttft_ms[0] / ttft.mean() - 1, formula.tpot_ms[0] / tpot.mean() - 1)
                )
    table = np.array(errors)
    return [
        QueueingBar("closed loop, mean TTFT", table[:, 0], 5.0, 17.0),
        QueueingBar("closed loop, TPOT", table[:, 1], 3.0, 8.0),
    ]
