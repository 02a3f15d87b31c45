"""The iterations of an engine, one after the other."""

from __future__ import annotations

from math import inf, sqrt
from typing import Final

from fleetplan.perfmodel.replay.compiled.batches import (
    arrive,
    begins_to_run,
    found_tokens,
    keep_session,
    send,
    stops_running,
    waits_first,
)
from fleetplan.perfmodel.replay.compiled.inner import inner
from fleetplan.perfmodel.replay.engine_state import NOBODY, BatchRules, PoolState, Records
from fleetplan.perfmodel.serving import PROMPT_GRAIN_TOKENS

RAN: Final = 0
"""Engines did all that was asked for."""

PAUSED: Final = 1
"""They did as many iterations as they were allowed to, and go on when they are asked again."""

TOO_LONG: Final = 2
"""A request is longer than the cache; the `fault` of its engine says which."""

OUTGROWN: Final = 3
"""A request outgrew the cache while it ran alone; the `fault` of its engine says which."""


@inner
def _attention_ms(position: int, steps: Records) -> float:
    """Time of a prompt up to a token, interpolated linearly."""
    block, rest = position // PROMPT_GRAIN_TOKENS, position % PROMPT_GRAIN_TOKENS
    found = steps[block].prompt_ms
    if rest:
        found += rest / PROMPT_GRAIN_TOKENS * (steps[block + 1].prompt_ms - found)
    return float(found)


@inner
def _unlimited_ms(position: float, steps: Records) -> float:
    """Part of it that attends to all earlier tokens."""
    block = int(position) // PROMPT_GRAIN_TOKENS
    rest = position / PROMPT_GRAIN_TOKENS - block
    found = steps[block].unlimited_ms
    if rest:
        found += rest * (steps[block + 1].unlimited_ms - found)
    return float(found)


@inner
def _first_chunk_ms(before: int, taken: int, steps: Records) -> float:
    """Attention over the first chunk of a prompt after a cached prefix."""
    pairs = float(before) * taken + taken * (taken + 1.0) / 2.0
    whole = (sqrt(1.0 + 8.0 * pairs) - 1.0) / 2.0
    launches = steps[1].prompt_ms - steps[1].unlimited_ms
    spared = max(0.0, _attention_ms(before, steps) - _unlimited_ms(before, steps) - launches)
    after = before + taken
    limited = _attention_ms(after, steps) - _unlimited_ms(after, steps) - spared
    return float(limited + _unlimited_ms(whole, steps))


@inner
def _chunk_ms(before: int, taken: int, begun: bool, rules: BatchRules, steps: Records) -> float:
    """Attention over a chunk of a prompt; of its first one, as `StepCosts.after_prefix_ms`."""
    if before and not begun:
        computed = _first_chunk_ms(before, taken, steps)
    else:
        spared = _attention_ms(before, steps) if before else 0.0
        computed = _attention_ms(before + taken, steps) - spared
    least = steps[0].prompt_ms + rules.read_ms_per_token * before
    return float(max(computed, least) + rules.rebuilt_ms_per_token * before)


@inner
def _iteration_ms(e: int, pool: PoolState) -> tuple[float, float]:
    """Return the time of n iterations of the running sequences as n (first + second n)."""
    running = pool.engines[e].running
    step = pool.steps[running]
    slope_ms = step.decode_ms_per_context_token
    growth_ms = slope_ms * running / 2
    return step.token_ms + step.decode_ms + slope_ms * pool.engines[e].context - growth_ms, growth_ms


@inner
def _next_end_ms(e: int, pool: PoolState) -> float:
    """Return the end of the next sequence if nothing arrives before; now if something waits or ends."""
    own = pool.engines[e]
    if own.running == 0 or own.waiting_first != NOBODY:
        return float(own.now_ms)
    steps = pool.requests[pool.ends[e, 0]].last_step - own.step
    if steps <= 0:
        return float(own.now_ms)
    each_ms, growth_ms = _iteration_ms(e, pool)
    return float(own.now_ms + steps * (each_ms + growth_ms * steps))


@inner
def _preempt(e: int, pool: PoolState) -> int:
    """Take the cache of the sequence that was admitted last; it computes all of it again."""
    own, victim = pool.engines[e], pool.engines[e].newest
    if own.running == 1 and own.left == 0:
        own.fault = victim
        return OUTGROWN
    lost = pool.requests[victim]
    lost.again = lost.output_tokens - (lost.last_step - own.step)
    stops_running(e, victim, pool)
    size = lost.prefix_tokens + lost.new_tokens + lost.again
    own.context -= size
    own.held -= size
    waits_first(e, victim, pool)
    lost.preemptions += 1
    return RAN


@inner
def _admit(e: int, total: int, others: int, rules: BatchRules, pool: PoolState) -> bool:
    """Give the first waiting request its cache of so many tokens, if there is room beside the others."""
    own = pool.engines[e]
    # Every sequence of this iteration, this one too, gains a token at its end.
    if own.held + total + others + 1 > rules.kv_tokens:
        return False
    i = own.waiting_first
    mine = pool.requests[i]
    is_new = mine.again == 0
    hit = mine.prefix_tokens
    if is_new:
        hit += found_tokens(e, i, pool)
    own.left = 0 if rules.prefilled and is_new else max(1, total - hit)
    own.held += total
    if mine.start_ms == inf:
        mine.start_ms = own.now_ms
        mine.engine = e
    mine.computed_tokens += own.left
    return True


@inner
def _computes_prompts(e: int, rules: BatchRules, pool: PoolState) -> int:
    """Run an iteration with waiting prompts, in the order of their arrival, cut where the budget ends.

    Returns `PAUSED` where none of them has room; nothing has run then.
    """
    own, requests = pool.engines[e], pool.requests
    first, done, tokens, attention_ms = own.waiting_first, 0, 0, 0.0
    most = rules.sequences - own.running
    room = rules.iteration_tokens - (0 if rules.prompts_apart else own.running)
    while own.waiting_first != NOBODY and room > 0 and done < most:
        i = own.waiting_first
        total = requests[i].prefix_tokens + requests[i].new_tokens + requests[i].again
        begun = own.left > 0
        if not begun and not _admit(e, total, own.running + done, rules, pool):
            if own.held == 0:
                own.fault = i
                return TOO_LONG
            break
        left = own.left
        taken = min(left, room)
        if taken:
            before = total - left
            attention_ms += _chunk_ms(before, taken, begun, rules, pool.steps)
            tokens += taken
            room -= taken
        own.left = left - taken
        if left > taken:
            break
        own.waiting_first = requests[i].follower
        done += 1
    if tokens == 0 and done == 0:
        return PAUSED
    _iterate(e, first, done, tokens, attention_ms, rules, pool)
    return RAN


@inner
def _iterate(
    e: int, first: int, done: int, tokens: int, attention_ms: float, rules: BatchRules, pool: PoolState
) -> None:
    """Run one iteration with tokens of prompts, of which it ends some: one, and those that followed it."""
    own = pool.engines[e]
    decoding = 0 if rules.prompts_apart else own.running
    if tokens:
        took_ms = pool.steps[tokens + decoding].token_ms + attention_ms
        if decoding:
            beside = pool.steps[decoding]
            took_ms += beside.decode_ms + beside.decode_ms_per_context_token * own.context
        own.now_ms += max(took_ms, rules.prompt_floor_ms)
        if decoding:
            own.step += 1
            own.context += decoding
            own.held += decoding
    i = first
    for _ in range(done):
        ended = pool.requests[i]
        # Computing a prompt, also again, ends with a token.
        made = 1 + ended.again
        if ended.first_ms == inf:
            ended.first_ms = own.now_ms
        ended.again = 0
        own.context += ended.prefix_tokens + ended.new_tokens + made
        ended.last_step = own.step + ended.output_tokens - made
        begins_to_run(e, i, pool)
        i = ended.follower
    own.held += done


@inner
def _generate(e: int, until: float, rules: BatchRules, pool: PoolState) -> None:
    """Run iterations without prompts: to the next end or arrival, to a full cache, or past `until`."""
    own, requests = pool.engines[e], pool.requests
    to_end = requests[pool.ends[e, 0]].last_step - own.step
    steps = min(to_end, (rules.kv_tokens - own.held) // own.running)
    each_ms, growth_ms = _iteration_ms(e, pool)
    took_ms = steps * (each_ms + growth_ms * steps)
    target = until
    if own.pending_first != NOBODY and own.waiting_first == NOBODY:
        target = min(target, requests[own.pending_first].arrival_ms)
    if own.now_ms + took_ms > target:
        gap = target - own.now_ms
        exact = 2 * gap / (each_ms + sqrt(each_ms * each_ms + 4 * growth_ms * gap))
        fewer = int(exact)
        if fewer < exact or fewer == 0:
            fewer += 1
        if fewer < steps:
            steps = fewer
            took_ms = steps * (each_ms + growth_ms * steps)
    own.now_ms += took_ms
    own.step += steps
    own.context += steps * own.running
    own.held += steps * own.running


@inner
def _finish(e: int, rules: BatchRules, pool: PoolState) -> None:
    """Take the sequences off that have their last token; in a closed loop others follow them."""
    own, requests = pool.engines[e], pool.requests
    while own.running and requests[pool.ends[e, 0]].last_step <= own.step:
        i = pool.ends[e, 0]
        stops_running(e, i, pool)
        ended = requests[i]
        ended.finish_ms = own.now_ms
        size = ended.prefix_tokens + ended.new_tokens + ended.output_tokens
        own.context -= size
        own.held -= size
        own.unfinished -= 1
        if rules.session_tokens:
            keep_session(e, i, rules.session_tokens, pool)
        if own.released:
            own.released -= 1
            follower = requests.size - 1 - own.released
            requests[follower].arrival_ms = own.now_ms + rules.turnaround_ms
            send(e, follower, pool)


@inner
def advance(e: int, until: float, most: int, rules: BatchRules, pool: PoolState) -> int:
    """Run every iteration of an engine that starts before a time, in at most so many turns."""
    own = pool.engines[e]
    for _ in range(most):
        if own.now_ms > until:
            # Whoever asks meanwhile must not see yet what this run ends.
            own.next_end_ms = _next_end_ms(e, pool)
            return RAN
        _finish(e, rules, pool)
        arrive(e, pool)
        waits = own.waiting_first != NOBODY
        if own.running == 0 and not waits:
            first = own.pending_first
            if first == NOBODY or pool.requests[first].arrival_ms >= until:
                own.next_end_ms = inf
                return RAN
            own.now_ms = pool.requests[first].arrival_ms
        elif own.now_ms >= until:
            own.next_end_ms = _next_end_ms(e, pool)
            return RAN
        elif rules.kv_tokens - own.held < own.running:
            status = _preempt(e, pool)
            if status != RAN:
                return status
        else:
            status = _computes_prompts(e, rules, pool) if waits else PAUSED
            if status == TOO_LONG:
                return status
            if status == PAUSED:
                _generate(e, until, rules, pool)
    return PAUSED
