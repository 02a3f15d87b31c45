"""Who runs, who waits and what is kept: the heaps and linked lists of an engine."""

from __future__ import annotations

from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.replay.compiled.inner import inner
from fleetplan.perfmodel.replay.engine_state import NOBODY, PoolState, Records

# Heaps of the ends of running sequences ---------------------------------------------------------------------


@inner
def _settle(ends: IntArray, size: int, at: int, requests: Records) -> None:
    """Move the member at a place of a heap up or down to where it belongs; equal ends go by their numbers."""
    i = ends[at]
    step = requests[i].last_step
    while at > 0:
        parent = (at - 1) // 2
        above = ends[parent]
        other = requests[above].last_step
        if other < step or (other == step and above < i):
            break
        ends[at] = above
        requests[above].place = at
        at = parent
    while 2 * at + 1 < size:
        child = 2 * at + 1
        below = ends[child]
        other = requests[below].last_step
        if child + 1 < size:
            second = ends[child + 1]
            its = requests[second].last_step
            if its < other or (its == other and second < below):
                child, below, other = child + 1, second, its
        if step < other or (step == other and i < below):
            break
        ends[at] = below
        requests[below].place = at
        at = child
    ends[at] = i
    requests[i].place = at


@inner
def begins_to_run(e: int, i: int, pool: PoolState) -> None:
    """Put a sequence into the batch, as the one that was admitted last."""
    own, requests, ends = pool.engines[e], pool.requests, pool.ends[e]
    size = own.running
    ends[size] = i
    own.running = size + 1
    _settle(ends, size + 1, size, requests)
    newest = own.newest
    requests[i].older, requests[i].newer = newest, NOBODY
    if newest != NOBODY:
        requests[newest].newer = i
    own.newest = i


@inner
def stops_running(e: int, i: int, pool: PoolState) -> None:
    """Take a sequence out of the batch."""
    own, requests, ends = pool.engines[e], pool.requests, pool.ends[e]
    size = own.running - 1
    at, last = requests[i].place, ends[size]
    own.running = size
    if last != i:
        ends[at] = last
        _settle(ends, size, at, requests)
    older, newer = requests[i].older, requests[i].newer
    if older != NOBODY:
        requests[older].newer = newer
    if newer != NOBODY:
        requests[newer].older = older
    else:
        own.newest = older


# Sessions ---------------------------------------------------------------------------------------------------


@inner
def _forget_session(e: int, session: int, pool: PoolState) -> int:
    """Take a session off the list of those that are kept; return its tokens."""
    own, sessions = pool.engines[e], pool.sessions
    tokens, before, after = sessions[session].tokens, sessions[session].before, sessions[session].after
    if before != NOBODY:
        sessions[before].after = after
    else:
        own.oldest = after
    if after != NOBODY:
        sessions[after].before = before
    else:
        own.latest = before
    sessions[session].tokens = 0
    own.kept_tokens -= tokens
    return int(tokens)


@inner
def found_tokens(e: int, i: int, pool: PoolState) -> int:
    """Return the tokens of the prompt of a request that its session left, at least one token short of all."""
    session = pool.requests[i].session
    if session == NOBODY or pool.sessions[session].tokens == 0:
        return 0
    return int(min(_forget_session(e, session, pool), pool.requests[i].new_tokens - 1))


@inner
def keep_session(e: int, i: int, limit: int, pool: PoolState) -> None:
    """Keep the cache of an ended request for the next one of its session; the oldest are given up."""
    own, sessions, session = pool.engines[e], pool.sessions, pool.requests[i].session
    if session == NOBODY:
        return
    if sessions[session].tokens:
        _forget_session(e, session, pool)
    latest = own.latest
    sessions[session].before, sessions[session].after = latest, NOBODY
    if latest != NOBODY:
        sessions[latest].after = session
    else:
        own.oldest = session
    own.latest = session
    tokens = pool.requests[i].new_tokens + pool.requests[i].output_tokens
    sessions[session].tokens = tokens
    own.kept_tokens += tokens
    while own.kept_tokens > limit:
        _forget_session(e, own.oldest, pool)


# Queues -----------------------------------------------------------------------------------------------------


@inner
def send(e: int, i: int, pool: PoolState) -> None:
    """Put a request on its way to an engine, after those that are on theirs."""
    own, requests = pool.engines[e], pool.requests
    requests[i].follower = NOBODY
    if own.pending_first != NOBODY:
        requests[own.pending_last].follower = i
    else:
        own.pending_first = i
    own.pending_last = i
    own.unfinished += 1


@inner
def arrive(e: int, pool: PoolState) -> None:
    """Queue the requests that have arrived."""
    own, requests = pool.engines[e], pool.requests
    while own.pending_first != NOBODY and requests[own.pending_first].arrival_ms <= own.now_ms:
        i = own.pending_first
        own.pending_first = requests[i].follower
        requests[i].follower = NOBODY
        if own.waiting_first != NOBODY:
            requests[own.waiting_last].follower = i
        else:
            own.waiting_first = i
        own.waiting_last = i


@inner
def waits_first(e: int, i: int, pool: PoolState) -> None:
    """Queue a request before all others, but behind a started prompt, whose tokens stay."""
    own, requests = pool.engines[e], pool.requests
    first = own.waiting_first
    if own.left:
        requests[i].follower = requests[first].follower
        requests[first].follower = i
    else:
        requests[i].follower = first
        own.waiting_first = i
    if requests[i].follower == NOBODY:
        own.waiting_last = i


@inner
def least_loaded(i: int, pool: PoolState) -> int:
    """Return the engine with the fewest unfinished requests, or that of the request's session."""
    engines, session = pool.engines, pool.requests[i].session
    if session != NOBODY and pool.sessions[session].home != NOBODY:
        return int(pool.sessions[session].home)
    chosen = 0
    for e in range(engines.size):
        if engines[e].unfinished < engines[chosen].unfinished:
            chosen = e
    if session != NOBODY:
        pool.sessions[session].home = chosen
    return chosen
