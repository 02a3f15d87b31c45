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

from collections import deque
from collections.abc import Generator
from heapq import heapify, heappop, heappush
from math import inf, sqrt

from fleetplan.perfmodel.interruption import checkpoint
from fleetplan.perfmodel.replay.engine_state import (
    EngineLimits,
    EngineState,
    KeptSessions,
    RequestLengths,
    RequestLog,
)
from fleetplan.perfmodel.serving import StepCosts

_ID_BITS = 32
_ID_MASK = (1 << _ID_BITS) - 1


def engine(
    costs: StepCosts, limits: EngineLimits, work: RequestLengths, log: RequestLog, state: EngineState
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
    WorkInterruptedError
        The time of an interruptible simulation is over.
    """
    arrival, pending = log.arrival_ms, state.pending
    run = _Run(costs, limits, work, log, state)
    until = yield inf
    while True:
        while pending and arrival[pending[0]] <= run.now:
            run.waiting.append(pending.popleft())
        if not run.running and not run.waiting:
            if pending and arrival[pending[0]] < until:
                run.now = arrival[pending[0]]
            else:
                until = yield inf
        elif run.now >= until:
            until = yield run.next_end_ms()
        elif limits.kv_tokens - run.held < run.running:
            run.preempt()
        else:
            if not (run.waiting and run.computes_prompts()):
                run.generate(until)
            while run.now > until:
                # Whoever asks meanwhile must not see yet what this run ends.
                until = yield run.next_end_ms()
            if run.ends and run.ends[0] >> _ID_BITS <= run.step:
                checkpoint()
                run.finish()


class _Run:
    """The batch of an engine, and what happens to it.

    Attributes
    ----------
    waiting : deque[int]
        Requests that have arrived and are not admitted.
    last_step : dict[int, int]
        Iteration of the last token of each running sequence.
    ends : list[int]
        Heap of (iteration of the last token, request) as one number. It holds every running sequence and has
        one of them on top; below may be some that ended or lost their cache.
    admitted : list[int]
        Requests in the order of their admission, ended ones included; only for preemption.
    again : dict[int, int]
        Tokens that a preempted request had generated.
    now : float
        [ms]
    step : int
        Iterations that generated tokens.
    running, context, held : int
        Running sequences, the tokens of their contexts, and the tokens of the cache that are taken.
    left : int
        Tokens of the first waiting prompt that are still to be computed; 0 where it was not begun.
    """

    __slots__ = (
        "admitted",
        "again",
        "context",
        "costs",
        "ends",
        "held",
        "last_step",
        "left",
        "limits",
        "log",
        "now",
        "running",
        "sessions",
        "state",
        "step",
        "waiting",
        "work",
    )

    def __init__(
        self,
        costs: StepCosts,
        limits: EngineLimits,
        work: RequestLengths,
        log: RequestLog,
        state: EngineState,
    ) -> None:
        self.costs, self.limits, self.work, self.log, self.state = costs, limits, work, log, state
        self.sessions = KeptSessions(limits.session_tokens, work)
        self.waiting: deque[int] = deque()
        self.ends: list[int] = []
        self.last_step: dict[int, int] = {}
        self.admitted: list[int] = []
        self.again: dict[int, int] = {}
        self.now = 0.0
        self.step = self.running = self.context = self.held = self.left = 0

    def next_end_ms(self) -> float:
        """When the next sequence ends if nothing arrives before; now where something waits or ends."""
        if not self.running or self.waiting:
            return self.now
        steps = (self.ends[0] >> _ID_BITS) - self.step
        if steps <= 0:
            return self.now
        each_ms, growth_ms = self._iteration_ms()
        return self.now + steps * (each_ms + growth_ms * steps)

    def _iteration_ms(self) -> tuple[float, float]:
        """Time of n iterations of the running sequences as n (first + second n)."""
        costs, running = self.costs, self.running
        slope_ms = costs.decode_ms_per_context_token[running]
        growth_ms = slope_ms * running / 2
        each_ms = costs.token_ms[running] + costs.decode_ms[running] + slope_ms * self.context - growth_ms
        return each_ms, growth_ms

    def preempt(self) -> None:
        """Take the cache of the sequence that was admitted last; it computes all of it again."""
        work, log = self.work, self.log
        while log.finish_ms[self.admitted[-1]] != inf:
            self.admitted.pop()
        victim = self.admitted.pop()
        if self.running == 1 and not self.left:
            cache = self.limits.kv_tokens
            raise ValueError(f"request {victim} grows beyond the cache of {cache} tokens")
        made = work.output_tokens[victim] - (self.last_step.pop(victim) - self.step)
        self._drop_left_ends()
        self.again[victim] = made
        size = work.prefix_tokens[victim] + work.new_tokens[victim] + made
        self.running -= 1
        self.context -= size
        self.held -= size
        if self.left:
            # The prompt that was begun stays first, so that its tokens are not lost.
            self.waiting.insert(1, victim)
        else:
            self.waiting.appendleft(victim)
        log.preemptions[victim] += 1

    def _drop_left_ends(self) -> None:
        """Take ends of sequences that have ended or lost their cache off the top of the heap."""
        ends, last_step = self.ends, self.last_step
        while ends and last_step.get(ends[0] & _ID_MASK) != ends[0] >> _ID_BITS:
            heappop(ends)
        if len(ends) > 4 * self.limits.sequences:
            ends[:] = [last << _ID_BITS | i for i, last in last_step.items()]
            heapify(ends)

    def computes_prompts(self) -> bool:
        """Run an iteration with waiting prompts, in the order of their arrival, cut where the budget ends.

        False where none of them has room; nothing has run then.
        """
        done: list[int] = []
        tokens, attention_ms, limits, waiting = 0, 0.0, self.limits, self.waiting
        new, prefix, again = self.work.new_tokens, self.work.prefix_tokens, self.again
        costs, most = self.costs, limits.sequences - self.running
        room = limits.iteration_tokens - (0 if limits.prompts_apart else self.running)
        while waiting and room > 0 and len(done) < most:
            i = waiting[0]
            total = prefix[i] + new[i] + again.get(i, 0)
            begun = self.left > 0
            if not begun and not self._admit(i, total, self.running + len(done)):
                break
            left = self.left
            taken = left if left <= room else room
            if taken:
                before = total - left
                attention_ms += costs.attention_ms(before + taken)
                attention_ms -= costs.attention_ms(before) if begun else costs.saved_ms(before)
                tokens += taken
                room -= taken
            self.left = left = left - taken
            if left:
                break
            waiting.popleft()
            done.append(i)
        if not tokens and not done:
            return False
        self._iterate(done, tokens, attention_ms)
        return True

    def _admit(self, i: int, total: int, others: int) -> bool:
        """Give a request its cache of so many tokens, if there is room beside the others."""
        log, cache = self.log, self.limits.kv_tokens
        # Every sequence of this iteration, this one too, gains a token at its end.
        if self.held + total + others + 1 > cache:
            if not self.held:
                raise ValueError(f"request {i} of {total} tokens is longer than the cache of {cache}")
            return False
        is_new = i not in self.again
        hit = self.work.prefix_tokens[i] + (self.sessions.found(i) if is_new else 0)
        self.left = 0 if self.work.prefilled and is_new else max(1, total - hit)
        self.held += total
        if log.start_ms[i] == inf:
            log.start_ms[i] = self.now
            log.engine[i] = self.state.number
        log.computed_tokens[i] += self.left
        return True

    def _iterate(self, done: list[int], tokens: int, attention_ms: float) -> None:
        """Run one iteration with tokens of prompts, of which it ends some."""
        costs, work = self.costs, self.work
        decoding = 0 if self.limits.prompts_apart else self.running
        if tokens:
            took_ms = costs.token_ms[tokens + decoding] + attention_ms
            if decoding:
                slope_ms = costs.decode_ms_per_context_token[decoding]
                took_ms += costs.decode_ms[decoding] + slope_ms * self.context
            self.now += max(took_ms, costs.prompt_floor_ms)
            if decoding:
                self.step += 1
                self.context += decoding
                self.held += decoding
        new, prefix, output, first = (
            work.new_tokens,
            work.prefix_tokens,
            work.output_tokens,
            self.log.first_ms,
        )
        again, ends, last_step = self.again, self.ends, self.last_step
        step, context = self.step, self.context
        for i in done:
            # Computing a prompt, also again, ends with a token.
            made = 1
            if i in again:
                made += again.pop(i)
            else:
                first[i] = self.now
            context += prefix[i] + new[i] + made
            last_step[i] = last = step + output[i] - made
            heappush(ends, last << _ID_BITS | i)
        self.context = context
        self.running += len(done)
        self.held += len(done)
        self.admitted += done

    def generate(self, until: float) -> None:
        """Run iterations without prompts: to the next end or arrival, to a full cache, or past `until`."""
        running, pending, arrival = self.running, self.state.pending, self.log.arrival_ms
        if not running:
            # Nothing runs and nothing was admitted: what waits has no room beside a begun prompt.
            raise AssertionError("an engine with work did nothing")
        steps = min((self.ends[0] >> _ID_BITS) - self.step, (self.limits.kv_tokens - self.held) // running)
        each_ms, growth_ms = self._iteration_ms()
        took_ms = steps * (each_ms + growth_ms * steps)
        target = until
        if pending and not self.waiting and arrival[pending[0]] < until:
            target = arrival[pending[0]]
        if self.now + took_ms > target:
            gap = target - self.now
            exact = 2 * gap / (each_ms + sqrt(each_ms * each_ms + 4 * growth_ms * gap))
            fewer = int(exact)
            if fewer < exact or not fewer:
                fewer += 1
            if fewer < steps:
                steps = fewer
                took_ms = steps * (each_ms + growth_ms * steps)
        self.now += took_ms
        self.step += steps
        self.context += steps * running
        self.held += steps * running

    def finish(self) -> None:
        """Take the sequences off that have their last token; in a closed loop others follow them."""
        ends, step, log, state = self.ends, self.step, self.log, self.state
        new, prefix, output = self.work.new_tokens, self.work.prefix_tokens, self.work.output_tokens
        last_step, keeps_sessions = self.last_step, self.limits.session_tokens > 0
        while ends and ends[0] >> _ID_BITS <= step:
            end = heappop(ends)
            i = end & _ID_MASK
            if last_step.get(i) != end >> _ID_BITS:
                continue
            del last_step[i]
            log.finish_ms[i] = self.now
            size = prefix[i] + new[i] + output[i]
            self.running -= 1
            self.context -= size
            self.held -= size
            state.unfinished -= 1
            if keeps_sessions:
                self.sessions.keep(i)
            if state.released:
                state.released -= 1
                follower = len(log.arrival_ms) - 1 - state.released
                log.arrival_ms[follower] = self.now + state.turnaround_ms
                state.pending.append(follower)
                state.unfinished += 1
        self._drop_left_ends()
        if len(self.admitted) > 4 * self.limits.sequences:
            finish, again = log.finish_ms, self.again
            self.admitted = [i for i in self.admitted if finish[i] == inf and i not in again]
