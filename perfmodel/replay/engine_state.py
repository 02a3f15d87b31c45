"""Limits, requests, state and log of engines, as arrays for compiled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.serving import PROMPT_GRAIN_TOKENS, Requests, StepCosts
from fleetplan.perfmodel.serving.requests import NO_SESSION

Records: TypeAlias = NDArray[Any]
"""An array of records, whose fields are attributes of its members in compiled loops."""

NOBODY: Final = -1
"""In place of a request or session: there is none."""


def _record(fields: list[tuple[str, str]]) -> np.dtype[Any]:
    """Return the type of a record with these fields."""
    return np.dtype((np.record, fields))


ENGINE: Final = _record(
    [
        ("now_ms", "f8"),  # time of the engine
        (
            "next_end_ms",
            "f8",
        ),  # when its next sequence ends if nothing arrives before; infinite where it is idle
        ("step", "i8"),  # iterations that generated tokens
        ("running", "i8"),  # running sequences
        ("context", "i8"),  # tokens of their contexts
        ("held", "i8"),  # tokens of the cache that are taken
        ("left", "i8"),  # tokens of the first waiting prompt still to be computed; 0 where it was not begun
        ("unfinished", "i8"),  # requests that were sent to it and have not ended
        ("released", "i8"),  # in a closed loop, requests that still follow when another ends: the last ones
        ("pending_first", "i8"),  # requests on their way, in the order of their arrival
        ("pending_last", "i8"),
        ("waiting_first", "i8"),  # requests that have arrived and are not admitted
        ("waiting_last", "i8"),
        ("newest", "i8"),  # the running sequence that was admitted last
        ("kept_tokens", "i8"),  # tokens of the sessions that it keeps
        ("oldest", "i8"),  # the sessions that it keeps, by their last use
        ("latest", "i8"),
        ("fault", "i8"),  # the request that it could not serve
    ]
)
"""State of an engine. Queues and lists are linked: it has their ends, their members what follows them."""

REQUEST: Final = _record(
    [
        ("arrival_ms", "f8"),
        ("start_ms", "f8"),
        ("first_ms", "f8"),
        ("finish_ms", "f8"),
        ("new_tokens", "i8"),
        ("prefix_tokens", "i8"),
        ("output_tokens", "i8"),
        ("session", "i8"),  # numbered from 0
        ("computed_tokens", "i8"),
        ("preemptions", "i8"),
        ("engine", "i8"),
        ("follower", "i8"),  # the next one of its queue
        ("place", "i8"),  # in the heap of ends
        ("older", "i8"),  # the running sequences that were admitted before and after it
        ("newer", "i8"),
        ("last_step", "i8"),  # iteration of its last token, while it runs
        ("again", "i8"),  # tokens that it had generated when it lost its cache; 0 where it has its cache
    ]
)
"""A request: lengths, log and place. It is in one queue or in one batch."""

SESSION: Final = _record(
    [
        ("tokens", "i8"),  # that are kept of it
        ("before", "i8"),  # those that were used before and after it
        ("after", "i8"),
        ("home", "i8"),  # its engine
    ]
)
"""A session, and what its engine keeps of it."""

STEP: Final = _record(
    [
        *(("token_ms", "f8"), ("decode_ms", "f8"), ("decode_ms_per_context_token", "f8")),
        *(("prompt_ms", "f8"), ("unlimited_ms", "f8")),
    ]
)
"""`StepCosts` at one position of its tables; infinite beyond the end of the shorter ones. [ms]"""


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
        Whether prompts run in separate iterations, as in SGLang.
    session_tokens : int
        Tokens of ended sessions that are kept beside the cache of running sequences; the oldest go first.
        [tokens]
    """

    sequences: int
    iteration_tokens: int
    kv_tokens: int
    prompts_apart: bool = False
    session_tokens: int = 0


class BatchRules(NamedTuple):
    """`EngineLimits` and what else no engine changes, as compiled loops take them.

    `prefilled` says that prompts were computed elsewhere, so that engines only generate; `turnaround_ms` is
    the time from the end of a request to the arrival of the one that follows it in a closed loop.
    """

    sequences: int
    iteration_tokens: int
    kv_tokens: int
    prompts_apart: bool
    session_tokens: int
    prefilled: bool
    turnaround_ms: float
    prompt_floor_ms: float
    rebuilt_ms_per_token: float
    read_ms_per_token: float


class PoolState(NamedTuple):
    """Engines and all that they work with, as arrays.

    Attributes
    ----------
    engines, requests, sessions, steps : Records
        Records of type `ENGINE`, `REQUEST`, `SESSION` and `STEP`.
    ends : IntArray
        By engine, a heap of the running sequences by the iteration of their last token, shape (n_engines,
        sequences).
    """

    engines: Records
    requests: Records
    sessions: Records
    steps: Records
    ends: IntArray

    @classmethod
    def idle(cls, count: int, limits: EngineLimits, requests: Requests, costs: StepCosts) -> PoolState:
        """Return idle engines, and requests that are not sent yet.

        Raises
        ------
        ValueError
            Iterations within the limits, or requests, that the costs do not reach.
        """
        records = _records(requests)
        lengths = requests.prefix_tokens + requests.input_tokens + requests.output_tokens
        longest = int(lengths.max(initial=0))
        places = max(1, min(limits.sequences, len(requests)))
        blocks = -(-longest // PROMPT_GRAIN_TOKENS)
        reached = (costs.most_sequences, costs.most_tokens, len(costs.prompt_ms) - 1)
        if any(
            most < asked
            for most, asked in zip(reached, (places, limits.iteration_tokens, blocks), strict=True)
        ):
            raise ValueError(f"costs reach {reached} sequences, tokens and blocks of prompts, not {limits}")
        sessions = _linked(SESSION, int(records["session"].max(initial=NOBODY)) + 1)
        engines = _linked(ENGINE, count)
        engines["next_end_ms"] = np.inf
        tables = {name: getattr(costs, name) for name in STEP.names or ()}
        tables["unlimited_ms"] = costs.unlimited_ms or (0.0,) * len(costs.prompt_ms)
        steps = np.full(max(map(len, tables.values())), np.inf, dtype=STEP)
        for name, table in tables.items():
            steps[name][: len(table)] = table
        return cls(engines, records, sessions, steps, np.zeros((count, places), dtype=np.int64))


_LINKS: Final = frozenset(
    (
        *("pending_first", "pending_last", "waiting_first", "waiting_last", "newest", "oldest", "latest"),
        *("fault", "session", "engine", "follower", "older", "newer", "before", "after", "home"),
    )
)
"""Fields that name a request, a session or an engine."""


def _linked(kind: np.dtype[Any], count: int) -> Records:
    """Return records without links."""
    found = np.zeros(count, dtype=kind)
    for name in _LINKS.intersection(kind.names or ()):
        found[name] = NOBODY
    return found


def _records(requests: Requests) -> Records:
    found = _linked(REQUEST, len(requests))
    found["arrival_ms"] = requests.arrival_ms
    for name in ("start_ms", "first_ms", "finish_ms"):
        found[name] = np.inf
    found["new_tokens"] = requests.input_tokens
    found["prefix_tokens"] = requests.prefix_tokens
    found["output_tokens"] = requests.output_tokens
    named = np.flatnonzero(requests.sessions != NO_SESSION)
    found["session"][named] = np.unique(requests.sessions[named], return_inverse=True)[1]
    return found


@dataclass(frozen=True, slots=True)
class RequestLog:
    """Log of a simulation, arrays of shape (n_requests,).

    Attributes
    ----------
    arrival_ms, start_ms, first_ms, finish_ms : FloatArray
        Arrival at the engine, start of its first iteration, first token, last token; infinite if in the
        future. [ms]
    computed_tokens : IntArray
        Prompt tokens that were computed, again after a preemption. [tokens]
    preemptions : IntArray
        Number of preemptions.
    engine : IntArray
        Engine that served it.
    """

    arrival_ms: FloatArray
    start_ms: FloatArray
    first_ms: FloatArray
    finish_ms: FloatArray
    computed_tokens: IntArray
    preemptions: IntArray
    engine: IntArray

    @classmethod
    def of(cls, records: Records) -> RequestLog:
        """Return what records of `REQUEST` say by now."""
        return cls(**{name: np.ascontiguousarray(records[name]) for name in cls.__dataclass_fields__})
