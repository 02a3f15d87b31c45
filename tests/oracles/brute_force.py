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
from scipy.sparse import block_diag, csr_array
from tests.oracles.draw import above_idle_kw

from fleetplan.planner.problem import Cell, Phase, Problem
from fleetplan.planner.problem.supply import Acquisition

MAX_COMBINATIONS = 1_500

AT_ONCE = 50
"""LPs that are solved together."""

UNSERVED_TOLERANCE = 1e-7
"""What a solver calls nothing. [requests/s]"""

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
    tried = [
        counts
        for counts in itertools.product(*(range(m, -1, -1) for m in most))
        if (limit is None or len({c for (c, _), n in zip(slots, counts, strict=True) if n}) <= limit)
        and _may_serve(problem, cell, slots, counts)
    ]
    energies_of = itertools.chain.from_iterable(
        _energies_usd(problem, cell, slots, tried[first : first + AT_ONCE])
        for first in range(0, len(tried), AT_ONCE)
    )
    found = [(counts, usd) for counts, usd in zip(tried, energies_of, strict=True) if usd is not None]
    all_counts = np.array([counts for counts, _ in found]).reshape(len(found), len(slots))
    energies = np.array([energy for _, energy in found])
    kept = []
    for counts, energy in found:
        no_more = (all_counts <= counts).all(axis=1) & (energies <= energy)
        # The choice itself is the one that is no more than it.
        if no_more.sum() == 1:
            kept.append((counts, energy))
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


def _demand(problem: Problem, cell: Cell) -> tuple[float, ...]:
    headroom = 1 + problem.services[cell.service].headroom
    return tuple(rate * headroom for rate in cell.requests_per_s)


def _may_serve(problem: Problem, cell: Cell, slots: list[Slot], counts: tuple[int, ...]) -> bool:
    """Return whether replicas could serve each class alone."""
    for k, wanted in enumerate(_demand(problem, cell)):
        alone = dict.fromkeys(Phase, 0.0)
        for (c, _), n in zip(slots, counts, strict=True):
            alone[problem.candidates[c].phase] += n * problem.candidates[c].requests_per_s[k]
        if alone[Phase.AGGREGATED] + min(alone[Phase.PREFILL], alone[Phase.DECODE]) < wanted - 1e-9:
            return False
    return True


def _energies_usd(
    problem: Problem, cell: Cell, slots: list[Slot], several: list[tuple[int, ...]]
) -> list[float | None]:
    """Least energy of a cell on each of several sets of replicas, None where these cannot serve it."""
    demand = _demand(problem, cell)
    headroom = 1 + problem.services[cell.service].headroom
    prices = [above_idle_kw(problem, c) * problem.pools[p].energy_usd_per_kw[0] / headroom for c, p in slots]
    if len(demand) == 1 and not any(prices):
        return [0.0] * len(several)
    return cheapest_loads_usd(problem, demand, slots, prices, several)


def cheapest_loads_usd(
    problem: Problem,
    demand: tuple[float, ...],
    slots: list[Slot],
    prices: list[float],
    several: list[tuple[int, ...]],
) -> list[float | None]:
    """Least cost of a demand on each of several sets of replicas, None where these cannot serve it.

    One LP a set over the load that each class puts on the replicas of each slot, the rate served in two
    phases, and the rate left unserved, which costs more than any load. They share nothing and are solved
    together.
    """
    n_classes, n_load = len(demand), len(slots) * len(demand)
    energy = np.concatenate([np.repeat(prices, n_classes), np.zeros(2 * n_classes)])
    rows, limits = [], []
    for k in range(n_classes):
        for phase in (Phase.AGGREGATED, Phase.PREFILL, Phase.DECODE):
            row = np.zeros(n_load + 2 * n_classes)
            for i, (c, _) in enumerate(slots):
                if problem.candidates[c].phase is phase:
                    row[i * n_classes + k] = -problem.candidates[c].requests_per_s[k]
            row[n_load + k] = -1.0 if phase is Phase.AGGREGATED else 1.0
            row[n_load + n_classes + k] = -1.0 if phase is Phase.AGGREGATED else 0.0
            rows.append(row)
            limits.append(-demand[k] if phase is Phase.AGGREGATED else 0.0)
    for i in range(len(slots)):
        row = np.zeros(n_load + 2 * n_classes)
        row[i * n_classes : (i + 1) * n_classes] = 1.0
        rows.append(row)
    # Ten times what all replicas at full load cost, for the smallest demand.
    unserved = np.zeros(n_load + 2 * n_classes)
    dearest = max(prices, default=0.0) * max(map(sum, several)) + 1.0
    unserved[n_load + n_classes :] = 10 * dearest / min((rate for rate in demand if rate > 0), default=1.0)
    solved = linprog(
        np.tile(energy + unserved, len(several)),
        A_ub=block_diag([csr_array(np.array(rows))] * len(several), format="csr"),
        b_ub=np.concatenate([[*limits, *counts] for counts in several]),
        method="highs",
    )
    assert solved.status == 0, solved.message
    loads = solved.x.reshape(len(several), -1)
    served = (loads[:, n_load + n_classes :] <= UNSERVED_TOLERANCE).all(axis=1)
    return [float(usd) if whole else None for usd, whole in zip(loads @ energy, served, strict=True)]


def _within_power(problem: Problem, replicas: list[tuple[Slot, int]], missing: dict[int, int]) -> bool:
    """Return whether busy accelerators at full load and all others at idle stay within the power."""
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
    """Return the units that each pool must add, its reserve included."""
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
