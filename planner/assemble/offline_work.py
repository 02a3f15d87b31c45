"""From raw solver values to the work of offline services: when it arises, and when it is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fleetplan.fleet.units import SECONDS_PER_HOUR
from fleetplan.planner.assemble.row_place import row_moment
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import OfflineWork
from fleetplan.planner.problem import Problem


def offline_work(
    problem: Problem, solution: Solution, unmet: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int, int], float]:
    """Work by (cell in which it arises, cell in which it is done, class), scaled to what arises.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Solver values, which are rounded up.
    unmet : Mapping[tuple[int, int], float]
        What stays undone by (cell, class). [requests/s]

    Returns
    -------
    dict[tuple[int, int, int], float]
        In requests a day, headroom not included.
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
    return found


def offline_rows(problem: Problem, put_off: Mapping[tuple[int, int, int], float]) -> tuple[OfflineWork, ...]:
    """One row for each moment in which work arises and each in which it is done."""
    rows = []
    for (i, j, k), per_day in sorted(put_off.items()):
        arising, done = problem.cells[i], problem.cells[j]
        rows.append(
            OfflineWork(
                **row_moment(problem, done.moment),
                arises_in=problem.moments[arising.moment].slice,
                region=arising.region,
                service=arising.service,
                request_class=problem.services[arising.service].classes[k].name,
                requests_per_day=per_day,
            )
        )
    return tuple(rows)
