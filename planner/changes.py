"""What changes from one period to the next: replicas that start, end, or wait idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fleetplan.planner.objective import started_usd
from fleetplan.planner.plan import Transition
from fleetplan.planner.problem import Problem
from fleetplan.planner.variables import ReplicaKey


def replicas_before(problem: Problem, replicas: Mapping[ReplicaKey, int], key: ReplicaKey) -> int | None:
    """Replicas of a candidate in a pool in the period before; None where nothing is known of it."""
    c, p, q = key
    if q > 0:
        return replicas.get((c, p, q - 1), 0)
    return None if problem.running_before is None else problem.running_before.get((c, p), 0)


def started_replicas(problem: Problem, replicas: Mapping[ReplicaKey, int], key: ReplicaKey) -> int:
    """Replicas that did not run in the period before; 0 where nothing is known of it."""
    before = replicas_before(problem, replicas, key)
    return 0 if before is None else max(0, replicas.get(key, 0) - before)


def with_idle_replicas(
    problem: Problem, needed: Mapping[ReplicaKey, int], solved: Mapping[ReplicaKey, int]
) -> dict[ReplicaKey, int]:
    """Replicas that carry traffic, and those of the solver that bridge the time between two such periods.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    needed, solved : Mapping[ReplicaKey, int]
        Replicas that the traffic fills, and those that the solver runs, which are at least as many.

    Returns
    -------
    dict[ReplicaKey, int]
        The fewest with no more starts than in `solved`.
    """
    n_periods = len(problem.periods)
    rows: dict[tuple[int, int], None] = dict.fromkeys((c, p) for c, p, _ in needed)
    kept: dict[ReplicaKey, int] = {}
    for c, p in rows:
        # A replica bridges a period if it runs there for the solver, and is needed before and after.
        from_before = _running_first(problem, solved, c, p)
        since: dict[int, int] = defaultdict(int)
        for q in range(n_periods):
            from_before = min(solved.get((c, p, q), 0), max(needed.get((c, p, q), 0), from_before))
            since[q] = from_before
        until = 0
        for q in reversed(range(n_periods)):
            until = min(solved.get((c, p, q), 0), max(needed.get((c, p, q), 0), until))
            count = max(needed.get((c, p, q), 0), min(since[q], until))
            if count:
                kept[c, p, q] = count
    return kept


def _running_first(problem: Problem, solved: Mapping[ReplicaKey, int], c: int, p: int) -> int:
    """Replicas that the first period may run without a start: all of them where no plan is in force."""
    if problem.running_before is None:
        return solved.get((c, p, 0), 0)
    return problem.running_before.get((c, p), 0)


def transitions(problem: Problem, replicas: Mapping[ReplicaKey, int]) -> tuple[Transition, ...]:
    """Every change of the number of replicas, by period; the first period only against a plan in force."""
    rows: dict[tuple[int, int], None] = dict.fromkeys(problem.running_before or {})
    rows |= dict.fromkeys((c, p) for c, p, _ in replicas)
    found = []
    for q, period in enumerate(problem.periods):
        for c, p in sorted(rows):
            before = replicas_before(problem, replicas, (c, p, q))
            count = replicas.get((c, p, q), 0)
            if before is None or before == count:
                continue
            candidate, pool = problem.candidates[c], problem.pools[p]
            found.append(
                Transition(
                    period=period,
                    region=pool.region,
                    pool=pool.name,
                    service=candidate.service,
                    phase=candidate.phase.value,
                    hardware=candidate.hardware,
                    config=candidate.config,
                    replicas_before=before,
                    replicas=count,
                    accelerators=(count - before) * candidate.accelerators,
                    usd=max(0, count - before) * started_usd(problem, (c, p, q)),
                )
            )
    return tuple(found)
