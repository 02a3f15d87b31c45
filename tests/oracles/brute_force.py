"""Optimum of a tiny one-period fleet by trying every number of replicas.

Shares nothing with the model but the problem's data: loads are an LP in requests/s, packing is a search,
and every way to acquire the missing units is tried.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog
from tests.oracles.draw import above_idle_kw

from fleetplan.planner.problem import Cell, Phase, Problem
from fleetplan.planner.problem.supply import Acquisition

MAX_COMBINATIONS = 1_500

Slot = tuple[int, int]
"""(candidate index, pool index)"""


class TooLargeError(Exception):
    """The fleet has too many plans to try."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """Replicas of one cell that serve it, with the least energy that takes."""

    replicas: tuple[tuple[Slot, int], ...]
    energy_usd: float


@dataclass(frozen=True, slots=True)
class _Supply:
    """One way to acquire what is missing."""

    usd: float
    capex_usd: float
    opex_usd: float


def brute_force_usd(problem: Problem) -> float | None:
    """Least TCO with all demand served, or None if no plan serves it. [USD]"""
    choices = [_choices(problem, cell) for cell in problem.cells]
    if math.prod(len(of_cell) for of_cell in choices) > MAX_COMBINATIONS:
        raise TooLargeError
    fixed = sum(sum(pool.fixed_usd) for pool in problem.pools)
    written_off = sum(sum(pool.fixed_cost_kinds.get("depreciation", ())) for pool in problem.pools)
    budget = problem.fleet.budget
    best: float | None = None
    for combination in itertools.product(*choices):
        energy = sum(choice.energy_usd for choice in combination)
        if best is not None and fixed + energy >= best:
            continue
        replicas = [item for choice in combination for item in choice.replicas]
        missing = _missing_units(problem, replicas)
        if not _within_power(problem, replicas, missing):
            continue
        for supply in _supplies(problem, tuple(sorted(missing.items())), {}):
            total = fixed + energy + supply.usd
            if (
                supply.capex_usd <= _limit(budget.capex_usd)
                and supply.capex_usd <= _limit(budget.capex_usd_by_period[0])
                and fixed - written_off + energy + supply.opex_usd <= _limit(budget.opex_usd)
                and total <= _limit(budget.tco_usd)
                and (best is None or total < best)
            ):
                best = total
    return best


def _limit(value: float | None) -> float:
    return math.inf if value is None else value * (1 + 1e-9)


def _choices(problem: Problem, cell: Cell) -> list[_Choice]:
    """All counts of replicas that serve a cell, those left out that are more for no less energy."""
    slots = [
        (c, p)
        for c, candidate in enumerate(problem.candidates)
        for p, pool in enumerate(problem.pools)
        if candidate.service == cell.service
        and (pool.region, pool.hardware) == (cell.region, candidate.hardware)
    ]
    most = [_most_replicas(problem, cell, c) for c, _ in slots]
    if math.prod(m + 1 for m in most) > MAX_COMBINATIONS:
        raise TooLargeError
    limit = problem.fleet.policy.max_configs_per_service_region
    unusable: list[tuple[int, ...]] = []
    found: list[tuple[tuple[int, ...], float]] = []
    for counts in itertools.product(*(range(m, -1, -1) for m in most)):
        running = {c for (c, _), n in zip(slots, counts, strict=True) if n}
        if limit is not None and len(running) > limit:
            continue
        if any(all(a <= b for a, b in zip(counts, other, strict=True)) for other in unusable):
            continue
        energy = _energy_usd(problem, cell, slots, counts)
        if energy is None:
            unusable.append(counts)
        else:
            found.append((counts, energy))
    kept = [
        (counts, energy)
        for counts, energy in found
        if not any(
            other != counts and all(a <= b for a, b in zip(other, counts, strict=True)) and less <= energy
            for other, less in found
        )
    ]
    return [
        _Choice(tuple((slot, n) for slot, n in zip(slots, counts, strict=True) if n), energy)
        for counts, energy in kept
    ]


def _most_replicas(problem: Problem, cell: Cell, c: int) -> int:
    headroom = 1 + problem.services[cell.service].headroom
    needed = sum(
        demand * headroom / rate
        for demand, rate in zip(cell.requests_per_s, problem.candidates[c].requests_per_s, strict=True)
        if rate > 0
    )
    return math.ceil(needed - 1e-9)


def _energy_usd(problem: Problem, cell: Cell, slots: list[Slot], counts: tuple[int, ...]) -> float | None:
    """Least energy of a cell on its replicas, or None if they cannot serve it."""
    headroom = 1 + problem.services[cell.service].headroom
    demand = tuple(rate * headroom for rate in cell.requests_per_s)
    own = [(slot, n) for slot, n in zip(slots, counts, strict=True) if n]
    for k, wanted in enumerate(demand):
        alone = dict.fromkeys(Phase, 0.0)
        for (c, _), n in own:
            alone[problem.candidates[c].phase] += n * problem.candidates[c].requests_per_s[k]
        both = min(alone[Phase.PREFILL], alone[Phase.DECODE])
        if alone[Phase.AGGREGATED] + both < wanted - 1e-9:
            return None
    prices = [
        above_idle_kw(problem, c) * problem.pools[p].energy_usd_per_kw[0] / headroom for (c, p), _ in own
    ]
    if len(demand) == 1 and not any(prices):
        return 0.0
    return _cheapest_loads(problem, demand, own, prices)


def _cheapest_loads(
    problem: Problem, demand: tuple[float, ...], own: list[tuple[Slot, int]], prices: list[float]
) -> float | None:
    """LP over the load that each class puts on each replica set, and the rate served in two phases."""
    n_classes = len(demand)
    n_load = len(own) * n_classes
    cost = np.concatenate([np.repeat(prices, n_classes), np.zeros(n_classes)])
    rows, limits = [], []
    for i, (_, n) in enumerate(own):
        row = np.zeros(n_load + n_classes)
        row[i * n_classes : (i + 1) * n_classes] = 1.0
        rows.append(row)
        limits.append(float(n))
    for k in range(n_classes):
        for phase in (Phase.AGGREGATED, Phase.PREFILL, Phase.DECODE):
            row = np.zeros(n_load + n_classes)
            for i, ((c, _), _) in enumerate(own):
                if problem.candidates[c].phase is phase:
                    row[i * n_classes + k] = -problem.candidates[c].requests_per_s[k]
            row[n_load + k] = -1.0 if phase is Phase.AGGREGATED else 1.0
            rows.append(row)
            limits.append(-demand[k] if phase is Phase.AGGREGATED else 0.0)
    solved = linprog(cost, A_ub=np.array(rows), b_ub=np.array(limits), method="highs")
    return float(solved.fun) if solved.status == 0 else None


def _within_power(problem: Problem, replicas: list[tuple[Slot, int]], missing: dict[int, int]) -> bool:
    """Busy accelerators at full load, and whatever else stands once the missing units are there."""
    for region in problem.fleet.regions:
        if region.power_kw is not None:
            drawn_kw = sum(
                above_idle_kw(problem, c) * n
                for (c, p), n in replicas
                if problem.pools[p].region == region.name
            )
            for p, pool in enumerate(problem.pools):
                if pool.region == region.name:
                    units = pool.existing_units + missing.get(p, 0)
                    idle_w = problem.hardware[pool.hardware].idle_w_per_accelerator
                    drawn_kw += units * pool.accelerators_per_unit * idle_w / 1000
            if drawn_kw * region.pue > region.power_kw[0] * (1 + 1e-9):
                return False
    return True


def _missing_units(problem: Problem, replicas: list[tuple[Slot, int]]) -> dict[int, int]:
    """Units that each pool lacks, its reserve included."""
    sizes: dict[int, list[int]] = defaultdict(list)
    for (c, p), n in replicas:
        sizes[p] += [problem.candidates[c].accelerators] * n
    missing = {}
    for p, of_pool in sizes.items():
        pool = problem.pools[p]
        needed = least_units(tuple(sorted(of_pool, reverse=True)), pool.accelerators_per_unit)
        kept = pool.reserve_units + math.ceil(Fraction(str(pool.reserve_percent)) * needed / 100)
        lacking = needed + kept - pool.existing_units
        if lacking > 0:
            missing[p] = lacking
    return missing


def _supplies(
    problem: Problem, missing: tuple[tuple[int, int], ...], taken: dict[str, int]
) -> Iterator[_Supply]:
    """Every way to acquire the missing units, an offer's maximum counted over all its pools."""
    if not missing:
        yield _Supply(0.0, 0.0, 0.0)
        return
    (p, units), rest = missing[0], missing[1:]
    acquisitions = problem.pools[p].acquisitions
    for counts in _splits(units, len(acquisitions)):
        total = dict(taken)
        for acquisition, count in zip(acquisitions, counts, strict=True):
            total[acquisition.offer.name] = total.get(acquisition.offer.name, 0) + count
        if any(
            acquisition.offer.max_units[0] is not None
            and total[acquisition.offer.name] > acquisition.offer.max_units[0]
            for acquisition in acquisitions
        ):
            continue
        usd = sum(a.unit_usd[0] * n for a, n in zip(acquisitions, counts, strict=True))
        capex = sum(a.capex_usd_per_unit * n for a, n in zip(acquisitions, counts, strict=True))
        written_off = sum(_written_off(a) * n for a, n in zip(acquisitions, counts, strict=True))
        for other in _supplies(problem, rest, total):
            yield _Supply(usd + other.usd, capex + other.capex_usd, usd - written_off + other.opex_usd)


def _written_off(acquisition: Acquisition) -> float:
    return acquisition.unit_cost_kinds.get("depreciation", (0.0,))[0]


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as an ordered sum."""
    if parts == 0:
        return
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _splits(total - first, parts - 1):
            yield (first, *rest)


@lru_cache(maxsize=100_000)
def least_units(sizes: tuple[int, ...], unit: int) -> int:
    """Fewest hosts that hold the replicas (largest first): every assignment, symmetric ones once."""
    whole = sum(-(-size // unit) for size in sizes if size >= unit)
    small = [size for size in sizes if size < unit]
    least = -(-sum(small) // unit)
    best = len(small)

    def place(index: int, free: list[int]) -> None:
        nonlocal best
        if len(free) >= best or best == least:
            return
        if index == len(small):
            best = len(free)
            return
        for room in set(free):
            if room >= small[index]:
                changed = [*free]
                changed[free.index(room)] -= small[index]
                place(index + 1, changed)
        place(index + 1, [*free, unit - small[index]])

    if small:
        best += 1
        place(0, [])
    return whole + best
