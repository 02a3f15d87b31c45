"""The requests of one service through all that serves it: routing, prefill, the hand-over, decode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.replay.deployed import DeployedEngine
from fleetplan.perfmodel.replay.engine_state import RequestLog
from fleetplan.perfmodel.replay.pools import PrefillPool, Router, run_engines, run_prefill
from fleetplan.perfmodel.serving import Requests


@dataclass(frozen=True, slots=True)
class PrefillGroup:
    """Replicas of one configuration that compute prompts.

    Attributes
    ----------
    label : str
        Name in outcomes.
    pool : PrefillPool
        The replicas.
    rates : tuple[float, ...]
        Planned traffic by class. [1/s]
    """

    label: str
    pool: PrefillPool
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EngineGroup:
    """Replicas of one configuration that generate, or that do both.

    Attributes
    ----------
    label : str
        Name in outcomes.
    engine : DeployedEngine
        Engine of one rank and micro-batch.
    engines : int
        Their number.
    rates : tuple[float, ...]
        Planned traffic by class. [1/s]
    """

    label: str
    engine: DeployedEngine
    engines: int
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Deployment:
    """Replicas that serve one service in one region.

    Attributes
    ----------
    aggregated, decode : tuple[EngineGroup, ...]
        Replicas of both phases, and of generation alone.
    prefill : tuple[PrefillGroup, ...]
        Replicas of prompts alone.
    """

    aggregated: tuple[EngineGroup, ...]
    prefill: tuple[PrefillGroup, ...]
    decode: tuple[EngineGroup, ...]


@dataclass(frozen=True, slots=True)
class GroupUse:
    """Use of one group of engines.

    Attributes
    ----------
    label, phase : str
        Group.
    requests : int
        Requests that it served.
    places : int
        Sequences that it can run, or replicas of prompts.
    arrival_ms, start_ms, finish_ms : FloatArray
        Times of its requests: arrival at the group, start, and end. [ms]
    """

    label: str
    phase: str
    requests: int
    places: int
    arrival_ms: FloatArray
    start_ms: FloatArray
    finish_ms: FloatArray


@dataclass(frozen=True, slots=True)
class ServiceRun:
    """Times of each request, arrays of shape (n_requests,).

    Attributes
    ----------
    requests : Requests
        They themselves.
    first_ms, finish_ms : FloatArray
        First and last token. [ms]
    preemptions : IntArray
        Number of preemptions.
    cached_tokens : IntArray
        Prompt tokens that were found in the cache of its session. [tokens]
    groups : tuple[GroupUse, ...]
        Groups that served them.
    first_group : IntArray
        First group of each request: position among the aggregated groups, then those of prefill.
    """

    requests: Requests
    first_ms: FloatArray
    finish_ms: FloatArray
    preemptions: IntArray
    cached_tokens: IntArray
    groups: tuple[GroupUse, ...]
    first_group: IntArray

    @property
    def ttft_ms(self) -> FloatArray:
        """Time to first token without the time outside inference. [ms]."""
        found: FloatArray = self.first_ms - self.requests.arrival_ms
        return found

    @property
    def tpot_ms(self) -> FloatArray:
        """Mean time per output token after the first; NaN for requests of one token. [ms]."""
        tokens = self.requests.output_tokens - 1
        found: FloatArray = (self.finish_ms - self.first_ms) / np.where(tokens > 0, tokens, np.nan)
        return found

    @property
    def latency_ms(self) -> FloatArray:
        """From arrival to the last token. [ms]."""
        found: FloatArray = self.finish_ms - self.requests.arrival_ms
        return found


def run_service(
    deployment: Deployment, requests: Requests, router: Router = "least-loaded", seed: int = 1
) -> ServiceRun:
    """Serve requests by a deployment.

    A request goes to the groups in proportion to the traffic that is planned for them, drawn by chance;
    within a group to the engine that `router` says. What is handed over waits for a place in decode.

    Parameters
    ----------
    deployment : Deployment
        At least aggregated replicas, or both of prefill and decode.
    requests : Requests
        Requests.
    router : Router
        Within groups of engines.
    seed : int
        Seed of the choice of groups.
    """
    count = len(requests)
    outcome = _Outcome.blank(count)
    random = np.random.default_rng(seed)
    first_stage: list[EngineGroup | PrefillGroup] = [*deployment.aggregated, *deployment.prefill]
    chosen = _drawn_groups([group.rates for group in first_stage], requests, random)
    handed: list[tuple[IntArray, FloatArray]] = []
    for position, group in enumerate(first_stage):
        rows = np.flatnonzero(chosen == position)
        part = requests.take(rows)
        if isinstance(group, EngineGroup):
            outcome.engines(group, "aggregated", rows, part, router, seed, prefilled=False)
            continue
        done = run_prefill(group.pool, part)
        outcome.prefilled(group, rows, part, done.start_ms, done.computed_ms)
        handed.append((rows, done.arrived_ms))
    if handed:
        _decode(deployment, requests, handed, outcome, router, seed, random)
    return outcome.run(requests, chosen)


def _decode(
    deployment: Deployment,
    requests: Requests,
    handed: Sequence[tuple[IntArray, FloatArray]],
    outcome: _Outcome,
    router: Router,
    seed: int,
    random: np.random.Generator,
) -> None:
    rows = np.concatenate([part for part, _ in handed])
    arrived = np.concatenate([times for _, times in handed])
    order = np.argsort(arrived, kind="stable")
    rows, arrived = rows[order], arrived[order]
    moved = Requests(
        arrived,
        requests.input_tokens[rows],
        requests.prefix_tokens[rows],
        requests.output_tokens[rows],
        request_class=requests.classes[rows],
    )
    chosen = _drawn_groups([group.rates for group in deployment.decode], moved, random)
    for position, group in enumerate(deployment.decode):
        own = np.flatnonzero(chosen == position)
        outcome.engines(group, "decode", rows[own], moved.take(own), router, seed, prefilled=True)


def _drawn_groups(
    rates: Sequence[tuple[float, ...]], requests: Requests, random: np.random.Generator
) -> IntArray:
    """Return the group of each request, drawn by the groups' shares of the traffic of its class.

    Raises
    ------
    ValueError
        Nothing is planned to serve a class that arrives.
    """
    table = np.array(rates, dtype=np.float64)
    chosen = np.zeros(len(requests), dtype=np.int64)
    for request_class in np.unique(requests.classes):
        rows = np.flatnonzero(requests.classes == request_class)
        shares = table[:, request_class] if table.size else np.zeros(0)
        if not shares.sum() > 0:
            raise ValueError(f"no replicas serve the requests of class {request_class}")
        chosen[rows] = random.choice(shares.size, size=rows.size, p=shares / shares.sum())
    return _session_groups(requests, chosen)


def _session_groups(requests: Requests, chosen: IntArray) -> IntArray:
    """Return the requests of a session follow the first of it."""
    with_session = np.flatnonzero(requests.sessions >= 0)
    if with_session.size:
        _, first, member = np.unique(requests.sessions[with_session], return_index=True, return_inverse=True)
        chosen[with_session] = chosen[with_session][first][member]
    return chosen


@dataclass(slots=True)
class _Outcome:
    first_ms: FloatArray
    finish_ms: FloatArray
    preemptions: IntArray
    cached_tokens: IntArray
    groups: list[GroupUse]

    @classmethod
    def blank(cls, count: int) -> _Outcome:
        none = np.zeros(count, dtype=np.int64)
        return cls(np.full(count, np.nan), np.full(count, np.nan), none, none.copy(), [])

    def prefilled(
        self, group: PrefillGroup, rows: IntArray, part: Requests, start: FloatArray, end: FloatArray
    ) -> None:
        use = GroupUse(group.label, "prefill", rows.size, group.pool.replicas, part.arrival_ms, start, end)
        self.groups.append(use)

    def engines(
        self,
        group: EngineGroup,
        phase: str,
        rows: IntArray,
        part: Requests,
        router: Router,
        seed: int,
        *,
        prefilled: bool,
    ) -> None:
        log = _engine_log(group, part, router, seed, prefilled)
        self.first_ms[rows], self.finish_ms[rows] = log.first_ms, log.finish_ms
        self.preemptions[rows] = log.preemptions
        if not prefilled:
            self.cached_tokens[rows] = np.maximum(0, part.input_tokens - log.computed_tokens)
        places = group.engines * group.engine.limits.sequences
        times = (part.arrival_ms, log.start_ms, log.finish_ms)
        self.groups.append(GroupUse(group.label, phase, rows.size, places, *times))

    def run(self, requests: Requests, first_group: IntArray) -> ServiceRun:
        return ServiceRun(
            requests=requests,
            first_ms=self.first_ms,
            finish_ms=self.finish_ms,
            preemptions=self.preemptions,
            cached_tokens=self.cached_tokens,
            groups=tuple(self.groups),
            first_group=first_group,
        )


def _engine_log(group: EngineGroup, part: Requests, router: Router, seed: int, prefilled: bool) -> RequestLog:
    steps = part
    if group.engine.tokens_per_step != 1.0:
        # If an iteration yields several tokens, a request takes fewer iterations.
        later = np.ceil((part.output_tokens - 1) / group.engine.tokens_per_step)
        steps = replace(part, output_tokens=1 + later.astype(np.int64))
    return run_engines(group.engine.costs, group.engine.limits, steps, group.engines, router, seed, prefilled)


def running_over_time(use: GroupUse, edges_ms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the requests of a group that wait and that run at some times, each of shape (n_times,)."""
    arrived = np.searchsorted(np.sort(use.arrival_ms), edges_ms, side="right")
    started = np.searchsorted(np.sort(use.start_ms), edges_ms, side="right")
    ended = np.searchsorted(np.sort(use.finish_ms), edges_ms, side="right")
    waiting: NDArray[np.float64] = (arrived - started).astype(np.float64)
    return waiting, (started - ended).astype(np.float64)
