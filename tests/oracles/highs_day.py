"""Rules within a day for the HiGHS model: offline work, and changes of replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import TYPE_CHECKING

from fleetplan.planner.problem import Problem

if TYPE_CHECKING:
    from tests.oracles.highs import _Milp


def add_work(program: _Milp, problem: Problem) -> None:
    """Work flows from the slice in which it arises to those in which it may be done."""
    for k in range(max((len(cell.requests_per_s) for cell in problem.cells), default=0)):
        into: dict[int, dict[Hashable, float]] = defaultdict(dict)
        for i, cell in enumerate(problem.cells):
            service = problem.services[cell.service]
            if service.offline is None or k >= len(cell.requests_per_s):
                continue
            out: dict[Hashable, float] = {}
            for j, other in enumerate(problem.cells):
                here = (cell.service, cell.region, problem.moments[cell.moment].day_label)
                there = (other.service, other.region, problem.moments[other.moment].day_label)
                if (
                    here == there
                    and _wait(problem, cell.moment, other.moment) <= service.offline.deadline_hours
                ):
                    program.column(("flow", i, j, k), integer=False, upper=float("inf"))
                    out["flow", i, j, k] = -1.0
                    into[j]["flow", i, j, k] = 1.0
            hours = problem.moments[cell.moment].hours
            program.at_most(out, -cell.requests_per_s[k] * (1 + service.headroom) * hours)
        for j, terms in into.items():
            hours = problem.moments[problem.cells[j].moment].hours
            program.at_most({**terms, ("worked", j, k): -hours}, 0.0)


def _wait(problem: Problem, arises: int, done: int) -> float:
    """The longer of the waits of the first and of the last request. [h]"""
    if arises == done:
        return 0.0
    first = waited = 0.0
    m = arises
    while m != done:
        first += problem.moments[m].hours
        following = [n for n, other in enumerate(problem.moments) if other.slice_before == m]
        m = following[0]
        waited += problem.moments[m].hours
    return max(first, waited)


def add_tides(program: _Milp, problem: Problem) -> None:
    """Charge replicas that start between slices, and limit them by the pool."""
    tidal = problem.fleet.policy.tidal
    for m, moment in enumerate(problem.moments):
        if moment.slice_before is None:
            continue
        worth = (1 + problem.fleet.finance.discount_rate_per_year) ** (-(moment.period + 1) / 4)
        days = 2190 / 24 * moment.probability * worth
        for p, pool in enumerate(problem.pools):
            switched: dict[Hashable, float] = {}
            for c, candidate in enumerate(problem.candidates):
                if candidate.hardware != pool.hardware:
                    continue
                size = candidate.accelerators
                program.column(("tide", c, p, m), integer=False, usd=tidal.usd_per_accelerator * size * days)
                switched["tide", c, p, m] = float(size)
                program.at_most(
                    {
                        ("replicas", c, p, m): 1.0,
                        ("replicas", c, p, moment.slice_before): -1.0,
                        ("tide", c, p, m): -1.0,
                    },
                    0.0,
                )
            share = tidal.max_share_per_pool * pool.accelerators_per_unit
            for a, acquisition in enumerate(pool.acquisitions):
                for ordered in range(len(problem.periods)):
                    if acquisition.serves(ordered, moment.period):
                        switched["acquired", p, a, ordered] = -share
            for left in range(moment.period + 1):
                switched["retired", p, left] = share
            program.at_most(switched, share * pool.existing_units)
