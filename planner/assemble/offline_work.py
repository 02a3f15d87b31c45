"""Work of offline services from solver values: the cells where it arises and where it is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fleetplan.fleet.units import SECONDS_PER_HOUR
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import OfflineWork
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.deferral import work_places


def offline_work(
    problem: Problem, solution: Solution, unmet: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int, int], float]:
    """Return work by (cell of origin, cell of execution, class), scaled to the arising demand.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Solver values, which are rounded up.
    unmet : Mapping[tuple[int, int], float]
        Work left undone by (cell, class). [requests/s]

    Returns
    -------
    dict[tuple[int, int, int], float]
        Work without headroom. [requests/day]
    """
    total: dict[tuple[int, int], int] = defaultdict(int)
    for (i, _, k), work in solution.put_off.items():
        total[i, k] += work
    found = {}
    for (i, j, k), work in solution.put_off.items():
        cell = problem.cells[i]
        rate = cell.requests_per_s[k] - unmet.get((i, k), 0.0)
        per_day = rate * problem.moments[cell.moment].hours * SECONDS_PER_HOUR
        if per_day > 0:
            found[i, j, k] = per_day * work / total[i, k]
    return _least_deferred(problem, found)


def _least_deferred(
    problem: Problem, work: dict[tuple[int, int, int], float]
) -> dict[tuple[int, int, int], float]:
    """Exchange work between cells so that less of it is deferred; the totals of each cell stay.

    Deferral is free, so a solution may defer day work to the night and as much night work to the day.
    """
    found = {key: per_day for key, per_day in work.items() if per_day > 0}
    for j, k in sorted({(j, k) for _, j, k in found}):
        for i in sorted(i for i, done, n in found if (done, n) == (j, k) and i != j):
            for target in sorted(t for source, t, n in found if (source, n) == (j, k) and t != j):
                moved = min(found.get((i, j, k), 0.0), found.get((j, target, k), 0.0))
                if moved > 0 and _is_in_time(problem, i, target):
                    _exchange(found, i, j, target, k, moved)
    return found


def _exchange(
    found: dict[tuple[int, int, int], float], i: int, j: int, target: int, k: int, moved: float
) -> None:
    """Swap work from i to j with work from j to a target, so that each is done in j and in the target."""
    for key in ((i, j, k), (j, target, k)):
        found[key] -= moved
        if found[key] <= 0:
            del found[key]
    for key in ((j, j, k), (i, target, k)):
        found[key] = found.get(key, 0.0) + moved


def _is_in_time(problem: Problem, arises_in: int, done_in: int) -> bool:
    arising, done = problem.cells[arises_in], problem.cells[done_in]
    offline = problem.services[arising.service].offline
    if offline is None:
        return False
    return done.moment in work_places(problem.moments, offline.deadline_hours)[arising.moment]


def offline_rows(problem: Problem, put_off: Mapping[tuple[int, int, int], float]) -> tuple[OfflineWork, ...]:
    """Return one row per pair of moments in which work arises and is done."""
    rows = []
    for (i, j, k), per_day in sorted(put_off.items()):
        arising, done = problem.cells[i], problem.cells[j]
        rows.append(
            OfflineWork(
                **problem.row_moment(done.moment),
                arises_in=problem.moments[arising.moment].slice,
                region=arising.region,
                service=arising.service,
                request_class=problem.services[arising.service].classes[k].name,
                requests_per_day=per_day,
            )
        )
    return tuple(rows)
