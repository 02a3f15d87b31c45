"""Changes from one period or slice to the next: replicas that start, end, or wait idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fleetplan.planner.assemble.row_place import row_place
from fleetplan.planner.formulation import ReplicaKey, started_usd, switched_usd
from fleetplan.planner.plan import Transition
from fleetplan.planner.problem import Problem


def replicas_before(problem: Problem, replicas: Mapping[ReplicaKey, int], key: ReplicaKey) -> int | None:
    """Replicas of a candidate in a pool in the moment before; None where nothing is known of it."""
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
    """Replicas that did not run in the moment before; 0 where nothing is known of it."""
    before = replicas_before(problem, replicas, key)
    return 0 if before is None else max(0, replicas.get(key, 0) - before)


def with_idle_replicas(
    problem: Problem, needed: Mapping[ReplicaKey, int], solved: Mapping[ReplicaKey, int]
) -> dict[ReplicaKey, int]:
    """Replicas that carry traffic, and those of the solver that wait for it.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    needed, solved : Mapping[ReplicaKey, int]
        Replicas that the traffic fills, and those that the solver runs, which are at least as many.

    Returns
    -------
    dict[ReplicaKey, int]
        The fewest with no more starts than in `solved`. Where what starts within a day counts, all that the
        solver runs of a candidate in a pool: dropping an idle replica in one slice moves a start to another.
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
    """Moments of the same slice and demand scenario, each list in the order of the periods."""
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
    """The fewest replicas of a candidate in a pool along one chain of moments."""
    c, p = place
    # A replica bridges a moment if it runs there for the solver, and is needed before and after.
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
    """Replicas that a first moment may run without a start: all of them where no plan is in force."""
    if problem.running_before is None:
        return solved.get(key, 0)
    return problem.running_before.get((*key[:2], problem.moments[key[2]].slice), 0)


def transitions(problem: Problem, replicas: Mapping[ReplicaKey, int]) -> tuple[Transition, ...]:
    """Every change of the number of replicas, by moment; a first moment only against a plan in force."""
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
    """Replicas that did not run in the slice before; 0 where the day is whole."""
    c, p, m = key
    earlier = problem.moments[m].slice_before
    return 0 if earlier is None else max(0, replicas.get(key, 0) - replicas.get((c, p, earlier), 0))


def tides(problem: Problem, replicas: Mapping[ReplicaKey, int]) -> tuple[Transition, ...]:
    """Every change of the number of replicas from one slice of the day to the next."""
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
    """One change of the number of replicas."""
    c, p, m = key
    return Transition(
        **row_place(problem, c, p, m),
        replicas_before=before,
        replicas=count,
        accelerators=(count - before) * problem.candidates[c].accelerators,
        usd=usd,
    )
