"""Convert solver values to unrounded traffic.

The solver's values determine the numbers of replicas, units and load units. Traffic is then distributed over
them in floating point, loads are scaled down to the demand, and replicas without traffic are dropped.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetplan.fleet.units import SECONDS_PER_HOUR
from fleetplan.planner.assemble.changes import with_idle_replicas
from fleetplan.planner.assemble.offline_work import offline_work
from fleetplan.planner.formulation import (
    LoadKey,
    PairKey,
    ReplicaKey,
    Solution,
    rate_scales,
)
from fleetplan.planner.problem import Candidate, Phase, Problem, Slot
from fleetplan.planner.problem.kv_pairs import KvPairs, cell_pairs
from fleetplan.planner.problem.load_units import load_units

LOAD_TOLERANCE = 1e-7
"""Load above a whole number of replicas that counts as rounding. [replicas]"""

SMALLEST_SHARE = 1e-12
"""Share of a class's demand below which nothing is served: floating-point noise. A rate unit is 1e-8 of the
largest demand of a service; load units have no such limit, because a replica may serve any multiple of the
demand.
"""

CRUMB_RATIO = 1e-7
"""Share of a class's disaggregated traffic below which a pair of groups transfers nothing. Such a flow
consists of a few rate units that no plan needs.
"""


@dataclass(frozen=True, slots=True)
class ServedTraffic:
    """Assignment of traffic to replicas.

    Attributes
    ----------
    rates : dict[LoadKey, float]
        Traffic by (candidate, class, pool, cell), without headroom. [requests/s]
    replicas : dict[ReplicaKey, int]
        Replicas by (candidate, pool, moment); idle ones only if starting them again would cost money.
    unmet : dict[tuple[int, int], float]
        Unserved traffic by (cell, class). [requests/s]
    passed : dict[PairKey, float]
        Traffic between pairs of prefill and decode groups. [requests/s]
    put_off : dict[tuple[int, int, int], float]
        Offline work by (cell of origin, cell of execution, class). [requests/day]
    """

    rates: dict[LoadKey, float]
    replicas: dict[ReplicaKey, int]
    unmet: dict[tuple[int, int], float]
    passed: dict[PairKey, float]
    put_off: dict[tuple[int, int, int], float]


def spread_traffic(problem: Problem, solution: Solution) -> ServedTraffic:
    """Return the traffic on every set of replicas, scaled to the demand.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Solver values.

    Returns
    -------
    Traffic
        Traffic with equal prefill and decode rates for each class.
    """
    scales = rate_scales(problem)
    rates: dict[LoadKey, float] = {}
    unmet: dict[tuple[int, int], float] = {}
    passed: dict[PairKey, float] = {}
    planned = _planned_rates(problem, solution)
    known = cell_pairs(problem)
    for cell_index, cell in enumerate(problem.cells):
        planned_ratio = problem.services[cell.service].planned_ratio
        for k, demand in enumerate(cell.requests_per_s):
            place = (cell_index, k)
            units = solution.unmet.get(place, 0)
            missing = min(scales[cell.service].requests_per_s(units) / planned_ratio, demand)
            if missing > 0:
                unmet[place] = missing
    put_off = offline_work(problem, solution, unmet)
    for (cell_index, k), wanted in _served_rates(problem, unmet, put_off).items():
        place, service = (cell_index, k), problem.services[problem.cells[cell_index].service]
        own = planned[place]
        whole = {s: rate for s, rate in own.items() if problem.candidates[s[0]].phase is Phase.AGGREGATED}
        aggregated = min(sum(whole.values()), wanted)
        if service.average_quality_floor is not None:
            # Scale all variants equally to preserve the average quality.
            planned_apart = _apart(problem, solution, place, known[place]) / service.planned_ratio
            aggregated = wanted * _share(sum(whole.values()), planned_apart)
        apart = wanted - aggregated
        between = _passed(solution, place, known[place], apart if apart > SMALLEST_SHARE * wanted else 0.0)
        passed.update({(*place, g): rate for g, rate in enumerate(between)})
        scaled = _scaled(whole, aggregated)
        for phase in (Phase.PREFILL, Phase.DECODE):
            for index, group in enumerate(known[place].groups(phase)):
                through = sum(between[g] for g in known[place].pairs_of(phase, index))
                scaled |= _scaled({s: own[s] for s in group.slots if s in own}, through)
        rates.update({(c, k, p, cell_index): rate for (c, p), rate in scaled.items() if rate > 0})
    needed = _needed_replicas(problem, solution, rates)
    if problem.keeps_idle_replicas:
        needed = with_idle_replicas(problem, needed, solution.replicas)
    return ServedTraffic(rates, needed, unmet, passed, put_off)


def _served_rates(
    problem: Problem, unmet: Mapping[tuple[int, int], float], put_off: Mapping[tuple[int, int, int], float]
) -> dict[tuple[int, int], float]:
    """Return the served rate of each cell and class, without headroom. [requests/s]"""
    rates = {}
    for i, cell in enumerate(problem.cells):
        offline = problem.services[cell.service].offline is not None
        for k, demand in enumerate(cell.requests_per_s):
            served = 0.0 if offline else demand - unmet.get((i, k), 0.0)
            rates[i, k] = served if served > SMALLEST_SHARE * demand else 0.0
    for (_, j, k), per_day in put_off.items():
        seconds = problem.moments[problem.cells[j].moment].hours * SECONDS_PER_HOUR
        rates[j, k] += per_day / seconds
    return rates


def _planned_rates(problem: Problem, solution: Solution) -> dict[tuple[int, int], dict[Slot, float]]:
    """Return the traffic in the solver's loads by (cell, class), without headroom. [requests/s]"""
    planned: dict[tuple[int, int], dict[Slot, float]] = defaultdict(dict)
    for (c, k, p, cell), units in solution.load.items():
        planned_ratio = problem.services[problem.candidates[c].service].planned_ratio
        rate = problem.candidates[c].requests_per_s[k] * units / load_units(problem, c, k)
        planned[cell, k][c, p] = rate / planned_ratio
    return planned


def _passed(solution: Solution, place: tuple[int, int], known: KvPairs, rate: float) -> list[float]:
    """Return the rate between each pair, in the solver's proportions. [requests/s]"""
    if len(known.pairs) == 1:
        return [rate]
    return shared_out(rate, [solution.disaggregated.get((*place, g), 0) for g in range(len(known.pairs))])


def shared_out(rate: float, units: Sequence[int]) -> list[float]:
    """Return a rate divided in proportion to the solver's units, without negligible shares. [requests/s]"""
    least = CRUMB_RATIO * sum(units)
    kept = [each if each > least else 0 for each in units]
    total = sum(kept)
    return [rate * each / total if total else 0.0 for each in kept]


def _apart(problem: Problem, solution: Solution, place: tuple[int, int], known: KvPairs) -> float:
    """Return the solver's rate between all pairs, with its headroom. [requests/s]"""
    scale = rate_scales(problem)[problem.cells[place[0]].service]
    return scale.requests_per_s(
        sum(solution.disaggregated.get((*place, g), 0) for g in range(len(known.pairs)))
    )


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 0.0


def _scaled(rates: Mapping[Slot, float], wanted: float) -> dict[Slot, float]:
    """Return rates in the same proportions that add up to a wanted rate; empty if it is zero."""
    total = sum(rates.values())
    if total <= 0 or wanted <= 0:
        return {}
    return {slot: rate * wanted / total for slot, rate in rates.items()}


def _needed_replicas(
    problem: Problem, solution: Solution, rates: dict[LoadKey, float]
) -> dict[ReplicaKey, int]:
    """Return the replicas needed for the traffic with its headroom."""
    load: dict[ReplicaKey, float] = defaultdict(float)
    for (c, k, p, cell), rate in rates.items():
        candidate = problem.candidates[c]
        planned_ratio = problem.services[candidate.service].planned_ratio
        load[c, p, problem.cells[cell].moment] += rate * planned_ratio / candidate.requests_per_s[k]
    return {
        key: _fewest_replicas(problem.candidates[key[0]], value, solution.replicas[key])
        for key, value in load.items()
        if value > 0
    }


def _fewest_replicas(candidate: Candidate, load: float, most: int) -> int:
    """Return the fewest replicas of one pool that carry a load, at most `most`."""
    fewest = max(math.ceil(load - LOAD_TOLERANCE), 1)
    while fewest < most and candidate.carried(fewest) < load - LOAD_TOLERANCE:
        fewest += 1
    return min(most, fewest)
