"""Limits of an engine, the state that it shares with its driver, and its log of requests."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from math import inf

from fleetplan.perfmodel.serving import Requests
from fleetplan.perfmodel.serving.requests import NO_SESSION


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Limits of the batch of an engine.

    Attributes
    ----------
    sequences : int
        Most running sequences.
    iteration_tokens : int
        Most tokens of an iteration, generated ones included. [tokens]
    kv_tokens : int
        Tokens that the cache holds. [tokens]
    prompts_apart : bool
        Whether prompts run in iterations of their own, as in SGLang.
    session_tokens : int
        Tokens of ended sessions that are kept beside the cache of running sequences; the oldest go first.
        [tokens]
    """

    sequences: int
    iteration_tokens: int
    kv_tokens: int
    prompts_apart: bool = False
    session_tokens: int = 0


@dataclass(slots=True)
class RequestLog:
    """Log of a simulation, as lists in the order of the requests. [ms].

    Attributes
    ----------
    arrival_ms, start_ms, first_ms, finish_ms : list[float]
        Arrival at the engine, start of its first iteration, first token, last token.
    computed_tokens : list[int]
        Prompt tokens that were computed, again after a preemption. [tokens]
    preemptions : list[int]
        How often it lost its cache.
    engine : list[int]
        Which engine served it.
    """

    arrival_ms: list[float]
    start_ms: list[float]
    first_ms: list[float]
    finish_ms: list[float]
    computed_tokens: list[int]
    preemptions: list[int]
    engine: list[int]

    @classmethod
    def of(cls, requests: Requests) -> RequestLog:
        """Return the log of requests of which nothing is known but their arrival."""
        n = len(requests)
        never = [inf] * n
        return cls(requests.arrival_ms.tolist(), never[:], never[:], never[:], [0] * n, [0] * n, [-1] * n)


@dataclass(frozen=True, slots=True)
class RequestLengths:
    """Lengths of all requests of a simulation as lists, which all of its engines share.

    Attributes
    ----------
    new_tokens, prefix_tokens, output_tokens, session : list[int]
        As in `Requests`.
    prefilled : bool
        Whether the prompts are computed elsewhere, so that engines only generate.
    """

    new_tokens: list[int]
    prefix_tokens: list[int]
    output_tokens: list[int]
    session: list[int]
    prefilled: bool = False

    @classmethod
    def of(cls, requests: Requests, prefilled: bool = False) -> RequestLengths:
        """Return the lengths of `requests`."""
        return cls(
            requests.input_tokens.tolist(),
            requests.prefix_tokens.tolist(),
            requests.output_tokens.tolist(),
            requests.sessions.tolist(),
            prefilled,
        )


@dataclass(slots=True)
class EngineState:
    """State that an engine shares with its driver.

    Attributes
    ----------
    number : int
        Its place among the engines, as the log names it.
    pending : deque[int]
        Requests on their way, in the order of their arrival.
    unfinished : int
        Requests that were sent to it and have not ended.
    released : int
        In a closed loop, requests that still follow when another ends; they are those with the highest
        numbers.
    turnaround_ms : float
        From the end of a request to the arrival of the one that follows it. [ms]
    """

    number: int = 0
    pending: deque[int] = field(default_factory=deque)
    unfinished: int = 0
    released: int = 0
    turnaround_ms: float = 0.0


class KeptSessions:
    """Caches of ended requests that the next request of their session finds, the oldest given up first."""

    __slots__ = ("kept", "limit", "tokens", "work")

    def __init__(self, limit: int, work: RequestLengths) -> None:
        self.limit = limit
        self.work = work
        self.kept: OrderedDict[int, int] = OrderedDict()
        self.tokens = 0

    def found(self, request: int) -> int:
        """Tokens of the prompt of `request` that its session left, at least one token short of all."""
        session = self.work.session[request]
        if session == NO_SESSION or session not in self.kept:
            return 0
        tokens = self.kept.pop(session)
        self.tokens -= tokens
        return min(tokens, self.work.new_tokens[request] - 1)

    def keep(self, request: int) -> None:
        """Keep the cache of an ended request for the next one of its session."""
        work, session = self.work, self.work.session[request]
        if session == NO_SESSION or not self.limit:
            return
        tokens = work.new_tokens[request] + work.output_tokens[request]
        self.tokens += tokens - self.kept.pop(session, 0)
        self.kept[session] = tokens
        while self.tokens > self.limit:
            self.tokens -= self.kept.popitem(last=False)[1]
