"""Changes between periods or slices: replicas that start, end, or stay idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fleetplan.planner.assemble.row_place import row_place
from fleetplan.planner.formulation import ReplicaKey, started_usd, switched_usd
from fleetplan.planner.plan import Transition
from fleetplan.planner.problem import Problem


def replicas_before(problem: Problem, replicas: Mapping[ReplicaKey, int], key: ReplicaKey) -> int | None:
    """Return the replicas of a candidate in a pool in the previous moment; None if unknown."""
    c, p, m = key
    earlier = problem.moments[m].before
    if earlier is not None:
        return replicas.get((c, p, earlier), 0)
    return (
        None
        if problem.running_before is None
        else problem.running_before.get((c, p, problem.moments[m].slice), 0)
    )


def started_replicas(problem: Problem, replicas: Mapping[ReplicaKey, int], key: ReplicaKey) -> int:
    """Return the replicas that did not run in the previous moment; 0 if that is unknown."""
    before = replicas_before(problem, replicas, key)
    return 0 if before is None else max(0, replicas.get(key, 0) - before)


def with_idle_replicas(
    problem: Problem, needed: Mapping[ReplicaKey, int], solved: Mapping[ReplicaKey, int]
) -> dict[ReplicaKey, int]:
    """Return the replicas that carry traffic, plus idle ones that avoid a start.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    needed, solved : Mapping[ReplicaKey, int]
        Replicas needed for the traffic, and replicas in the solver's solution (at least as many).

    Returns
    -------
    dict[ReplicaKey, int]
        The fewest replicas with no more starts than in `solved`. If starts within a day cost money, all
        solver replicas of each useful candidate and pool: dropping an idle replica in one slice moves a start
        to another.
    """
    if problem.counts_tides:
        useful = {(c, p) for c, p, _ in needed}
        return {key: count for key, count in solved.items() if key[:2] in useful}
    rows: dict[tuple[int, int], None] = dict.fromkeys((c, p) for c, p, _ in needed)
    kept: dict[ReplicaKey, int] = {}
    for c, p in rows:
        for chain in _chains(problem):
            kept.update(_bridged(problem, needed, solved, (c, p), chain))
    return kept


def _chains(problem: Problem) -> list[list[int]]:
    """Return lists of moments with the same slice and demand scenario, in the order of the periods."""
    chains: dict[int, list[int]] = {}
    first: dict[int, int] = {}
    for m, moment in enumerate(problem.moments):
        first[m] = m if moment.before is None else first[moment.before]
        chains.setdefault(first[m], []).append(m)
    return list(chains.values())


def _bridged(
    problem: Problem,
    needed: Mapping[ReplicaKey, int],
    solved: Mapping[ReplicaKey, int],
    place: tuple[int, int],
    chain: list[int],
) -> dict[ReplicaKey, int]:
    """Return the fewest replicas of a candidate in a pool along one chain of moments."""
    c, p = place
    # A replica bridges a moment if the solver runs it there and it is needed before and after.
    from_before = _running_first(problem, solved, (c, p, chain[0]))
    since: dict[int, int] = defaultdict(int)
    for m in chain:
        from_before = min(solved.get((c, p, m), 0), max(needed.get((c, p, m), 0), from_before))
        since[m] = from_before
    kept: dict[ReplicaKey, int] = {}
    until = 0
    for m in reversed(chain):
        until = min(solved.get((c, p, m), 0), max(needed.get((c, p, m), 0), until))
        count = max(needed.get((c, p, m), 0), min(since[m], until))
        if count:
            kept[c, p, m] = count
    return kept


def _running_first(problem: Problem, solved: Mapping[ReplicaKey, int], key: ReplicaKey) -> int:
    """Return the replicas that a first moment can run without a start: all, unless a plan is in force."""
    if problem.running_before is None:
        return solved.get(key, 0)
    return problem.running_before.get((*key[:2], problem.moments[key[2]].slice), 0)


def transitions(problem: Problem, replicas: Mapping[ReplicaKey, int]) -> tuple[Transition, ...]:
    """Return every change in replicas by moment; a first moment is only compared with a plan in force."""
    rows: dict[tuple[int, int], None] = dict.fromkeys((c, p) for c, p, _ in problem.running_before or {})
    rows |= dict.fromkeys((c, p) for c, p, _ in replicas)
    found = []
    for m in range(len(problem.moments)):
        for c, p in sorted(rows):
            key = (c, p, m)
            before, count = replicas_before(problem, replicas, key), replicas.get(key, 0)
            if before is not None and before != count:
                usd = max(0, count - before) * started_usd(problem, key)
                found.append(_transition(problem, key, before, count, usd))
    return tuple(found)


def switched_replicas(problem: Problem, replicas: Mapping[ReplicaKey, int], key: ReplicaKey) -> int:
    """Return the replicas that did not run in the previous slice; 0 without slices."""
    c, p, m = key
    earlier = problem.moments[m].slice_before
    return 0 if earlier is None else max(0, replicas.get(key, 0) - replicas.get((c, p, earlier), 0))


def tides(problem: Problem, replicas: Mapping[ReplicaKey, int]) -> tuple[Transition, ...]:
    """Return every change in replicas from one slice of the day to the next."""
    rows = dict.fromkeys((c, p) for c, p, _ in replicas)
    found = []
    for m, moment in enumerate(problem.moments):
        for c, p in sorted(rows) if moment.slice_before is not None else ():
            key = (c, p, m)
            before, count = replicas.get((c, p, moment.slice_before or 0), 0), replicas.get(key, 0)
            if before != count:
                usd = switched_replicas(problem, replicas, key) * switched_usd(problem, key)
                found.append(_transition(problem, key, before, count, usd))
    return tuple(found)


def _transition(problem: Problem, key: ReplicaKey, before: int, count: int, usd: float) -> Transition:
    """Return the row of one change in replicas."""
    c, p, m = key
    return Transition(
        **row_place(problem, c, p, m),
        replicas_before=before,
        replicas=count,
        accelerators=(count - before) * problem.candidates[c].accelerators,
        usd=usd,
    )
