"""Optimum of a tiny fleet over periods, slices and demand scenarios, by trying everything.

Shares nothing with the model but the problem's data. Services have one class; offline ones run aggregated,
and energy has no price where there are any. Nothing costs or limits what changes between moments.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache

from tests.oracles.brute_force import Slot, TooLargeError, cheapest_loads_usd, least_units
from tests.oracles.draw import above_idle_kw
from tests.oracles.highs_day import _wait

from fleetplan.planner.problem import Cell, Problem

MAX_SUPPLIES = 3_000
MAX_WORKINGS = 150

Counts = tuple[tuple[Slot, int], ...]
"""Replicas by (candidate, pool)."""

Choice = tuple[Counts, float]
"""Replicas that serve a cell, with the least cost of its energy. [USD]"""


def brute_force_days_usd(problem: Problem) -> float | None:
    """Least expected TCO with all demand served, or None if no plan serves it. [USD]"""
    fixed = sum(sum(pool.fixed_usd) for pool in problem.pools)
    days = dict.fromkeys(moment.day_label for moment in problem.moments)

    @cache
    def choices(cell: Cell) -> list[Choice]:
        return _choices(problem, cell)

    @cache
    def energy_usd(day: str, units: tuple[int, ...]) -> float | None:
        return _day_usd(problem, day, units, choices)

    best: float | None = None
    for usd, units in sorted(_supplies(problem), key=lambda supply: supply[0]):
        if best is not None and fixed + usd >= best:
            break
        energy = 0.0
        for day in days:
            q = next(moment.period for moment in problem.moments if moment.day_label == day)
            least = energy_usd(day, units[q])
            if least is None:
                break
            energy += least
        else:
            total = fixed + usd + energy
            best = total if best is None else min(best, total)
    return best


def _supplies(problem: Problem) -> Iterator[tuple[float, list[tuple[int, ...]]]]:
    """Every way to acquire units: cost, and units of every pool by period."""
    keys = [
        (p, a, q)
        for p, pool in enumerate(problem.pools)
        for a, acquisition in enumerate(pool.acquisitions)
        for q in range(len(problem.periods))
        if acquisition.useful_in(q, len(problem.periods))
    ]
    ranges = [range((problem.pools[p].acquisitions[a].offer.max_units[q] or 0) + 1) for p, a, q in keys]
    if math.prod(len(each) for each in ranges) > MAX_SUPPLIES:
        raise TooLargeError
    for counts in itertools.product(*ranges):
        usd = sum(
            problem.pools[p].acquisitions[a].unit_usd[q] * n
            for (p, a, q), n in zip(keys, counts, strict=True)
        )
        units = [
            tuple(
                pool.existing_units
                + sum(
                    n
                    for (own, a, ordered), n in zip(keys, counts, strict=True)
                    if own == p and pool.acquisitions[a].serves(ordered, q)
                )
                for p, pool in enumerate(problem.pools)
            )
            for q in range(len(problem.periods))
        ]
        yield usd, units


def _day_usd(
    problem: Problem, day: str, units: tuple[int, ...], choices: Callable[[Cell], list[Choice]]
) -> float | None:
    """Least expected energy cost of a day on units, None if they cannot serve it. [USD]"""
    moments = [m for m, moment in enumerate(problem.moments) if moment.day_label == day]
    offline = [cell for cell in problem.cells if cell.moment in moments and _works(problem, cell)]
    best: float | None = None
    for working in _workings(problem, moments, offline):
        total = 0.0
        for m in moments:
            least = _moment_usd(problem, m, units, working.get(m, ()), choices)
            if least is None:
                break
            total += least
        else:
            best = total if best is None else min(best, total)
    return best


def _works(problem: Problem, cell: Cell) -> bool:
    return problem.services[cell.service].offline is not None


def _slots(problem: Problem, service: str) -> list[Slot]:
    return [
        (c, p)
        for c, one in enumerate(problem.candidates)
        for p, pool in enumerate(problem.pools)
        if one.service == service and pool.hardware == one.hardware
    ]


def _workings(problem: Problem, moments: list[int], cells: list[Cell]) -> Iterator[dict[int, Counts]]:
    """Replicas of the offline service by moment that get all of its work done in time."""
    if not cells:
        yield {}
        return
    name = cells[0].service
    headroom = 1 + problem.services[name].headroom
    arising = {
        cell.moment: cell.requests_per_s[0] * headroom * problem.moments[cell.moment].hours for cell in cells
    }
    slots = _slots(problem, name)
    total = sum(arising.values())
    places = [(m, slot) for m in moments for slot in slots]
    most = [
        math.ceil(total / problem.moments[m].hours / problem.candidates[c].requests_per_s[0] - 1e-9)
        for m, (c, _) in places
    ]
    if math.prod(n + 1 for n in most) > MAX_WORKINGS:
        raise TooLargeError
    for counts in itertools.product(*(range(n + 1) for n in most)):
        room: dict[int, float] = defaultdict(float)
        replicas: dict[int, list[tuple[Slot, int]]] = defaultdict(list)
        for (m, slot), n in zip(places, counts, strict=True):
            room[m] += n * problem.candidates[slot[0]].requests_per_s[0] * problem.moments[m].hours
            replicas[m].append((slot, n))
        if _in_time(problem, name, arising, room):
            yield {m: tuple(own) for m, own in replicas.items()}


def _in_time(problem: Problem, name: str, arising: dict[int, float], room: dict[int, float]) -> bool:
    """Return whether every set of slices has room for its work within the deadline (Hall's theorem)."""
    offline = problem.services[name].offline
    assert offline is not None
    for size in range(1, len(arising) + 1):
        for some in itertools.combinations(arising, size):
            reached = {
                m for m in room if any(_wait(problem, one, m) <= offline.deadline_hours for one in some)
            }
            if sum(arising[m] for m in some) > sum(room[m] for m in reached) + 1e-9:
                return False
    return True


def _moment_usd(
    problem: Problem,
    m: int,
    units: tuple[int, ...],
    working: Counts,
    choices: Callable[[Cell], list[Choice]],
) -> float | None:
    """Least expected energy cost of the online services of a moment, None where there is no room."""
    cells = [cell for cell in problem.cells if cell.moment == m and not _works(problem, cell)]
    best: float | None = None
    for combination in itertools.product(*map(choices, cells)):
        usd = sum(usd for _, usd in combination)
        replicas = [*working, *(item for counts, _ in combination for item in counts)]
        if (best is None or usd < best) and _fits(problem, replicas, units):
            best = usd
    return best


def _choices(problem: Problem, cell: Cell) -> list[Choice]:
    """All numbers of replicas that serve a cell, with the least energy cost. [USD]"""
    slots = _slots(problem, cell.service)
    headroom = 1 + problem.services[cell.service].headroom
    demand = cell.requests_per_s[0] * headroom
    moment = problem.moments[cell.moment]
    most = [math.ceil(demand / problem.candidates[c].requests_per_s[0] - 1e-9) for c, _ in slots]
    prices = [
        above_idle_kw(problem, c)
        * problem.pools[p].energy_usd_per_kw[moment.period]
        * moment.hours
        / 24
        * moment.probability
        / headroom
        for c, p in slots
    ]
    several = list(itertools.product(*(range(n + 1) for n in most)))
    costs = cheapest_loads_usd(problem, (demand,), slots, prices, several)
    return [
        (tuple((slot, n) for slot, n in zip(slots, counts, strict=True) if n), usd)
        for counts, usd in zip(several, costs, strict=True)
        if usd is not None
    ]


def _fits(problem: Problem, replicas: list[tuple[Slot, int]], units: tuple[int, ...]) -> bool:
    sizes: dict[int, list[int]] = defaultdict(list)
    for (c, p), n in replicas:
        sizes[p] += [problem.candidates[c].accelerators] * n
    return all(
        least_units(tuple(sorted(own, reverse=True)), problem.pools[p].accelerators_per_unit)
        + problem.pools[p].reserve_units
        <= units[p]
        for p, own in sizes.items()
        if own
    )
