"""One engine of continuous batching, as a coroutine that jumps over runs of decode-only iterations.

Between two changes of its batch an engine repeats the same iteration with one more token of context in each
sequence: n of them take n t + a n (n-1) / 2. A run ends with the first sequence that does, with the next
arrival, or where the cache is full, so that the work of a simulation grows with the requests and not with
their tokens.

Rules, those of vLLM: an iteration gives every running sequence a token and fills its token budget with the
prompts that wait, in the order of their arrival, cut where the budget ends. A prompt is admitted when its
cache fits. Where the cache is full, the sequence that was admitted last loses its cache, and computes prompt
and generated tokens again, before all that wait. SGLang runs prompts in iterations of their own.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Generator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf, sqrt

from fleetplan.perfmodel.serving import Requests, StepCosts
from fleetplan.perfmodel.serving.requests import NO_SESSION

_ID_BITS = 32
_ID_MASK = (1 << _ID_BITS) - 1
_GRAIN_BITS = 4  # log2 of PROMPT_GRAIN_TOKENS


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What bounds the batch of an engine.

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
class Log:
    """What a simulation notes of each request, as lists in the order of the requests. [ms].

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
    def of(cls, requests: Requests) -> Log:
        """Return the log of requests of which nothing is known but their arrival."""
        n = len(requests)
        never = [inf] * n
        return cls(requests.arrival_ms.tolist(), never[:], never[:], never[:], [0] * n, [0] * n, [-1] * n)


@dataclass(frozen=True, slots=True)
class Work:
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
    def of(cls, requests: Requests, prefilled: bool = False) -> Work:
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
    """What an engine shares with whoever drives it.

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


def engine(
    costs: StepCosts, limits: EngineLimits, work: Work, log: Log, state: EngineState
) -> Generator[float, float, None]:
    """Run an engine: send it a time, and it runs every iteration that starts before that.

    Yields
    ------
    float
        When its next sequence ends, if nothing arrives before; infinite where it is idle. [ms]

    Raises
    ------
    ValueError
        A request is longer than the cache.
    """
    token_ms, decode_ms, slope_ms = costs.token_ms, costs.decode_ms, costs.decode_ms_per_context_token
    prompt_ms = costs.prompt_ms
    most, budget, cache, apart = (
        limits.sequences,
        limits.iteration_tokens,
        limits.kv_tokens,
        limits.prompts_apart,
    )
    new, prefix, output, prefilled = work.new_tokens, work.prefix_tokens, work.output_tokens, work.prefilled
    arrival, start, first, finish = log.arrival_ms, log.start_ms, log.first_ms, log.finish_ms
    pending, number = state.pending, state.number
    waiting: deque[int] = deque()
    ends: list[int] = []  # heap of (iteration of the last token, request)
    admitted: list[int] = []  # in order, ended ones included; only for preemption
    again: dict[int, int] = {}  # tokens that a preempted request had generated
    sessions = _Sessions(limits.session_tokens, work)
    now = 0.0
    step = running = context = held = 0
    left = 0  # tokens of the first waiting prompt that are still to be computed; 0: it was not begun
    until = yield inf
    while True:
        while pending and arrival[pending[0]] <= now:
            waiting.append(pending.popleft())
        if not running and not waiting:
            if pending and arrival[pending[0]] < until:
                now = arrival[pending[0]]
                continue
            until = yield inf
            continue
        if now >= until:
            next_end = now
            if running and not waiting:
                steps = (ends[0] >> _ID_BITS) - step
                growth = slope_ms[running] * running / 2
                each_ms = token_ms[running] + decode_ms[running] + slope_ms[running] * context - growth
                next_end += steps * (each_ms + growth * steps)
            until = yield next_end
            continue
        if cache - held < running:
            victim = _last(admitted, finish)
            if running == 1 and not left:
                raise ValueError(f"request {victim} grows beyond the cache of {cache} tokens")
            position = next(k for k, each in enumerate(ends) if each & _ID_MASK == victim)
            made = output[victim] - ((ends[position] >> _ID_BITS) - step)
            ends[position] = ends[-1]
            ends.pop()
            heapify(ends)
            again[victim] = made
            size = prefix[victim] + new[victim] + made
            running -= 1
            context -= size
            held -= size
            if left:
                # The prompt that was begun stays first, so that its tokens are not lost.
                waiting.insert(1, victim)
            else:
                waiting.appendleft(victim)
            log.preemptions[victim] += 1
            continue
        done: list[int] = []
        tokens, attention, room = 0, 0.0, budget if apart else budget - running
        while waiting and room > 0 and running + len(done) < most:
            i = waiting[0]
            total = prefix[i] + new[i] + again.get(i, 0)
            if not left:
                # Every sequence of this iteration, this one too, gains a token at its end.
                if held + total + running + len(done) + 1 > cache:
                    if not held:
                        raise ValueError(f"request {i} of {total} tokens is longer than the cache of {cache}")
                    break
                hit = prefix[i] + sessions.found(i) if i not in again else prefix[i]
                left = 0 if prefilled and i not in again else max(1, total - hit)
                held += total
                if start[i] == inf:
                    start[i] = now
                    log.engine[i] = number
                log.computed_tokens[i] += left
            taken = left if left <= room else room
            if taken:
                before = total - left
                attention += prompt_ms[(before + taken) >> _GRAIN_BITS] - prompt_ms[before >> _GRAIN_BITS]
                tokens += taken
                room -= taken
            left -= taken
            if left:
                break
            waiting.popleft()
            done.append(i)
        if tokens or done:
            decoding = 0 if apart else running
            if tokens:
                now += token_ms[tokens + decoding] + attention
                if decoding:
                    now += decode_ms[decoding] + slope_ms[decoding] * context
                    step += 1
                    context += decoding
                    held += decoding
            for i in done:
                # Computing a prompt, also again, ends with a token.
                made = again.pop(i, 0) + 1
                if made == 1:
                    first[i] = now
                running += 1
                held += 1
                context += prefix[i] + new[i] + made
                heappush(ends, step + output[i] - made << _ID_BITS | i)
                admitted.append(i)
        else:
            if not running:
                # Nothing runs and nothing was admitted: what waits has no room beside a begun prompt.
                raise AssertionError("an engine with work did nothing")
            steps = (ends[0] >> _ID_BITS) - step
            fitting = (cache - held) // running
            steps = min(steps, fitting)
            growth = slope_ms[running] * running / 2
            each_ms = token_ms[running] + decode_ms[running] + slope_ms[running] * context - growth
            took = steps * (each_ms + growth * steps)
            target = until
            if pending and not waiting and arrival[pending[0]] < until:
                target = arrival[pending[0]]
            if now + took > target:
                gap = target - now
                exact = 2 * gap / (each_ms + sqrt(each_ms * each_ms + 4 * growth * gap))
                fewer = int(exact)
                if fewer < exact or not fewer:
                    fewer += 1
                if fewer < steps:
                    steps = fewer
                    took = steps * (each_ms + growth * steps)
            now += took
            step += steps
            context += steps * running
            held += steps * running
        while now > until:
            # Whoever asks meanwhile must not see yet what this run ends.
            next_end = now
            if not waiting and ends[0] >> _ID_BITS > step:
                steps = (ends[0] >> _ID_BITS) - step
                growth = slope_ms[running] * running / 2
                each_ms = token_ms[running] + decode_ms[running] + slope_ms[running] * context - growth
                next_end += steps * (each_ms + growth * steps)
            until = yield next_end
        while ends and ends[0] >> _ID_BITS <= step:
            i = heappop(ends) & _ID_MASK
            finish[i] = now
            size = prefix[i] + new[i] + output[i]
            running -= 1
            context -= size
            held -= size
            state.unfinished -= 1
            sessions.keep(i)
            if state.released:
                state.released -= 1
                follower = len(arrival) - 1 - state.released
                arrival[follower] = now + state.turnaround_ms
                pending.append(follower)
                state.unfinished += 1
        if len(admitted) > 4 * most:
            admitted = [i for i in admitted if finish[i] == inf and i not in again]


def _last(admitted: list[int], finish: list[float]) -> int:
    """Take the running request that was admitted last off the list."""
    while finish[admitted[-1]] != inf:
        admitted.pop()
    return admitted.pop()


class _Sessions:
    """Caches of ended requests that the next request of their session finds, the oldest given up first."""

    __slots__ = ("kept", "limit", "tokens", "work")

    def __init__(self, limit: int, work: Work) -> None:
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
