"""Bounds of variables implied by demand and supply."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from fleetplan.planner.formulation.scaling import exact_planned_ratio
from fleetplan.planner.problem import Candidate, Cell, Phase, Problem
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.problem.region_loss import joint_cells
from fleetplan.planner.problem.supply import SupplyPool
from fleetplan.planner.units import exact

UNLIMITED_UNITS = 1_000_000
"""Bound of an offer without a maximum, unless demand implies a smaller one. [units]"""

Served = Mapping[tuple[str, str, int], tuple[int, ...]]
"""Cell indices by service, region whose pools may serve them, and moment."""


@memoised
def served_cells(problem: Problem) -> Served:
    """Return the cells by service, serving region and moment, in the order of the cells."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    for index, cell in enumerate(problem.cells):
        for region in problem.serving_regions(cell):
            groups.setdefault((cell.service, region, cell.moment), []).append(index)
    return {key: tuple(indices) for key, indices in groups.items()}


def replicas_needed(problem: Problem, cells: Iterable[Cell], candidate_index: int) -> int:
    """Return the largest useful number of a candidate's replicas: enough to serve all these cells alone."""
    candidate = problem.candidates[candidate_index]
    planned_ratio = exact_planned_ratio(problem.services[candidate.service].headroom)
    load = sum(
        (
            exact(demand) * planned_ratio / exact(rate)
            for cell in cells
            for demand, rate in zip(cell.most_requests_per_s, candidate.requests_per_s, strict=True)
            if demand > 0 and rate > 0
        ),
        start=exact(0.0),
    )
    # One more replica than the load, because rates are rounded down to whole units.
    return math.ceil(replicas_for_load(candidate, load)) + 1 if load > 0 else 0


def replicas_for_load(candidate: Candidate, load: Fraction) -> Fraction:
    """Return the fewest replicas of one pool that carry a load; more than the load under latency limits."""
    by_line = (
        max((load + exact(line.loss)) / exact(line.slope), Fraction(line.least)) for line in candidate.pooling
    )
    return min(by_line, default=load)


def most_replicas(
    problem: Problem, served: Served, place: tuple[str, int], candidate_index: int, pool_index: int
) -> int:
    """Return the largest useful number of a candidate's replicas in a pool, by region and moment.

    Where starts cost money, replicas for another moment's demand may idle in this one.
    """
    region, moment = place
    needed = _needed_by_moment(problem, served, candidate_index, region)
    if not problem.keeps_idle_replicas:
        return needed[moment]
    return max(*needed, _most_before(problem).get((candidate_index, pool_index), 0))


@memoised
def _most_before(problem: Problem) -> dict[tuple[int, int], int]:
    """Return the largest number of replicas before the first period, by candidate and pool."""
    most: dict[tuple[int, int], int] = {}
    for (c, p, _), n in (problem.running_before or {}).items():
        most[c, p] = max(n, most.get((c, p), 0))
    return most


def needed_at_peak(problem: Problem, candidate_index: int, region: str) -> int:
    """Return the fewest replicas of a candidate that serve a region's peak demand."""
    # The bound has one replica more, as room for rounding.
    return max(*_needed_by_moment(problem, served_cells(problem), candidate_index, region), 1) - 1


def _needed_by_moment(problem: Problem, served: Served, candidate_index: int, region: str) -> tuple[int, ...]:
    """Return the largest useful number of replicas by moment; cached, because every pool needs it."""
    known = _needs(problem)
    if (candidate_index, region) not in known:
        service = problem.candidates[candidate_index].service
        known[candidate_index, region] = tuple(
            replicas_needed(
                problem,
                (problem.cells[index] for index in served.get((service, region, when), ())),
                candidate_index,
            )
            for when in range(len(problem.moments))
        )
    return known[candidate_index, region]


@memoised
def _needs(_: Problem) -> dict[tuple[int, str], tuple[int, ...]]:
    """Return the cache of replica numbers by candidate and region."""
    return {}


def most_units(problem: Problem, pool_index: int, period: int) -> int:
    """Return the most units that a pool can have in a period."""
    pool = problem.pools[pool_index]
    units = pool.existing_units - pool.maintenance_in(period)
    for acquisition in pool.acquisitions:
        limits = acquisition.offer.max_units[: period + 1]
        if any(limit is None for limit in limits):
            return UNLIMITED_UNITS
        units += sum(limit for limit in limits if limit is not None)
    return units


def units_that_serve_everything(problem: Problem, served: Served, pool_index: int) -> int:
    """Return the units for all replicas that a plan without waste puts into this pool."""
    pool = problem.pools[pool_index]
    if problem.keeps_idle_replicas:
        return _units_with_idle_replicas(problem, served, pool_index)
    units = [Fraction(0)] * len(problem.moments)
    for cell in problem.cells:
        if pool.region in problem.serving_regions(cell):
            units[cell.moment] += _units_for_cell(problem, pool, cell)
    in_use = math.ceil(max(units))
    return in_use + pool.reserve_of(in_use)


def units_after_loss(problem: Problem, pool_index: int) -> int:
    """Return the units for all replicas of the protected services of all regions."""
    most: dict[int, Fraction] = {}
    for cell, _ in joint_cells(problem):
        units = _units_for_cell(problem, problem.pools[pool_index], cell)
        most[cell.moment] = most.get(cell.moment, Fraction(0)) + units
    return math.ceil(max(most.values(), default=Fraction(0)))


def _units_with_idle_replicas(problem: Problem, served: Served, pool_index: int) -> int:
    """Return the units for all replicas where idle replicas of another moment may stay."""
    pool = problem.pools[pool_index]
    # The same for every moment.
    needed = {
        c: most_replicas(problem, served, (pool.region, 0), c, pool_index)
        for service in _services_in(problem).get(pool.region, ())
        for c in problem.candidates_of(service)
        if problem.candidates[c].hardware == pool.hardware
    }
    units = sum(
        (n * pool.units_per_replica(problem.candidates[c].accelerators) + 1 for c, n in needed.items()),
        start=Fraction(0),
    )
    return math.ceil(units) + pool.reserve_of(math.ceil(units))


@memoised
def _services_in(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Return the services that the pools of each region may serve."""
    services: dict[str, dict[str, None]] = {}
    for service, region, _ in served_cells(problem):
        services.setdefault(region, {})[service] = None
    return {region: tuple(found) for region, found in services.items()}


def _units_for_cell(problem: Problem, pool: SupplyPool, cell: Cell) -> Fraction:
    """Return the units for one cell, with each class and phase on the candidate that needs most."""
    known = _known_units(problem)
    key = (cell.service, cell.most_requests_per_s, pool.hardware, pool.accelerators_per_unit)
    if key not in known:
        known[key] = _most_units(problem, pool, cell)
    return known[key]


@memoised
def _known_units(problem: Problem) -> dict[tuple[str, tuple[float, ...], str, int], Fraction]:
    """Return the cache of units by cell; the same in all pools of one hardware."""
    return {}


def _most_units(problem: Problem, pool: SupplyPool, cell: Cell) -> Fraction:
    planned_ratio = exact_planned_ratio(problem.services[cell.service].headroom)
    largest: dict[tuple[Phase, int], Fraction] = {}
    rounding = Fraction(0)
    for c in problem.candidates_of(cell.service):
        candidate = problem.candidates[c]
        if candidate.hardware != pool.hardware:
            continue
        units_per_replica = pool.units_per_replica(candidate.accelerators)
        # A mix of candidates may leave part of a replica, one of rounded rates, and part of a unit each.
        rounding += 2 * units_per_replica + 1
        # A separate pool loses as much again as one that serves everything.
        rounding += units_per_replica * sum(
            exact(line.loss) / exact(line.slope) + line.least for line in candidate.pooling
        )
        rates = zip(cell.most_requests_per_s, candidate.requests_per_s, strict=True)
        for k, (demand, rate) in enumerate(rates):
            if demand > 0 and rate > 0:
                load = exact(demand) * planned_ratio / exact(rate)
                units = replicas_for_load(candidate, load) * units_per_replica
                key = (candidate.phase, k)
                largest[key] = max(largest.get(key, Fraction(0)), units)
    return sum(largest.values(), start=rounding) if largest else Fraction(0)
