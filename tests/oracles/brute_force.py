"""Optimum of a tiny one-period fleet by trying every number of replicas.

Shares nothing with the model but the problem's data: loads are an LP over fractions, packing is a search,
cost is added up from the offers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog

from fleetplan.planner.problem import Phase, Problem

MAX_COMBINATIONS = 60_000


class TooLargeError(Exception):
    """The fleet has too many plans to try."""


def brute_force_usd(problem: Problem) -> float | None:
    """Least TCO with all demand served, or None if no plan serves it."""
    slots = [
        (c, p, most)
        for c, candidate in enumerate(problem.candidates)
        for p, pool in enumerate(problem.pools)
        if candidate.hardware == pool.hardware
        for most in [_most_replicas(problem, c, p)]
    ]
    if math.prod(most + 1 for _, _, most in slots) > MAX_COMBINATIONS:
        raise TooLargeError
    priced = []
    for counts in itertools.product(*(range(most + 1) for _, _, most in slots)):
        replicas = {(c, p): n for (c, p, _), n in zip(slots, counts, strict=True) if n}
        usd = _capacity_usd(problem, replicas)
        if usd is not None and _allowed(problem, replicas):
            priced.append((usd, counts))
    priced.sort(key=lambda item: item[0])
    best: float | None = None
    for usd, counts in priced:
        if best is not None and usd >= best:
            break
        replicas = {(c, p): n for (c, p, _), n in zip(slots, counts, strict=True) if n}
        energy = _energy_usd(problem, replicas)
        if energy is not None and (best is None or usd + energy < best):
            best = usd + energy
    return best


def _most_replicas(problem: Problem, c: int, p: int) -> int:
    candidate, pool = problem.candidates[c], problem.pools[p]
    headroom = 1 + problem.services[candidate.service].headroom
    needed = 0.0
    for cell in problem.cells:
        if (cell.service, cell.region) == (candidate.service, pool.region):
            needed += sum(
                demand * headroom / rate
                for demand, rate in zip(cell.requests_per_s, candidate.requests_per_s, strict=True)
                if rate > 0
            )
    return math.ceil(needed - 1e-9)


def _capacity_usd(problem: Problem, replicas: dict[tuple[int, int], int]) -> float | None:
    """Cost of the cheapest units that hold the replicas, or None if they do not fit."""
    total = 0.0
    for p, pool in enumerate(problem.pools):
        sizes = sorted(
            (
                problem.candidates[c].accelerators
                for (c, where), n in replicas.items()
                if where == p
                for _ in range(n)
            ),
            reverse=True,
        )
        total += sum(pool.fixed_usd)
        if not sizes:
            continue
        units = _least_units(tuple(sizes), pool.accelerators_per_unit) + pool.reserve_units
        missing = max(0, units - pool.existing_units)
        for acquisition in sorted(pool.acquisitions, key=lambda a: a.unit_usd[0]):
            limit = acquisition.offer.max_units[0]
            taken = missing if limit is None else min(missing, limit)
            total += taken * acquisition.unit_usd[0]
            missing -= taken
        if missing:
            return None
    return total


def _least_units(sizes: tuple[int, ...], unit: int) -> int:
    """Fewest hosts that hold the replicas: every assignment, symmetric ones once."""
    whole = sum(-(-size // unit) for size in sizes if size >= unit)
    small = [size for size in sizes if size < unit]
    best = len(small)

    def place(index: int, hosts: list[int]) -> None:
        nonlocal best
        if len(hosts) >= best:
            return
        if index == len(small):
            best = len(hosts)
            return
        for free in set(hosts):
            if free >= small[index]:
                changed = [*hosts]
                changed[hosts.index(free)] -= small[index]
                place(index + 1, changed)
        place(index + 1, [*hosts, unit - small[index]])

    if small:
        best += 1
        place(0, [])
    return whole + best


def _allowed(problem: Problem, replicas: dict[tuple[int, int], int]) -> bool:
    """Power and the number of configurations."""
    for region in problem.regions.values():
        if region.power_kw is not None:
            drawn = sum(
                (problem.candidates[c].power_kw or 0.0) * n
                for (c, p), n in replicas.items()
                if problem.pools[p].region == region.name
            )
            if drawn * region.pue > region.power_kw[0] + 1e-9:
                return False
    limit = problem.fleet.policy.max_configs_per_service_region
    if limit is not None:
        for cell in problem.cells:
            running = {
                c
                for c, p in replicas
                if problem.candidates[c].service == cell.service and problem.pools[p].region == cell.region
            }
            if len(running) > limit:
                return False
    return True


def _energy_usd(problem: Problem, replicas: dict[tuple[int, int], int]) -> float | None:
    """Least energy of serving all demand on the replicas, or None if they cannot."""
    total = 0.0
    for cell in problem.cells:
        own = [
            (c, p, n)
            for (c, p), n in replicas.items()
            if problem.candidates[c].service == cell.service and problem.pools[p].region == cell.region
        ]
        usd = _cell_energy_usd(problem, cell.service, cell.requests_per_s, own)
        if usd is None:
            return None
        total += usd
    return total


def _cell_energy_usd(
    problem: Problem, service: str, demand: tuple[float, ...], own: list[tuple[int, int, int]]
) -> float | None:
    """LP over the fraction of each replica set that each class takes, and the disaggregated rate."""
    classes = range(len(demand))
    headroom = 1 + problem.services[service].headroom
    columns = [(c, p, k) for c, p, _ in own for k in classes]
    n_load = len(columns)
    cost = np.zeros(n_load + len(demand))
    for j, (c, p, _) in enumerate(columns):
        cost[j] = (problem.candidates[c].power_kw or 0.0) * problem.pools[p].energy_usd_per_kw[0] / headroom
    rows, limits = [], []
    for c, p, n in own:
        row = np.zeros(n_load + len(demand))
        for j, (other, pool, _) in enumerate(columns):
            row[j] = float((other, pool) == (c, p))
        rows.append(row)
        limits.append(float(n))
    for k in classes:
        rows.extend(_coverage_rows(problem, columns, n_load, k, len(demand)))
        limits.extend([-demand[k] * headroom, 0.0, 0.0])
    solved = linprog(cost, A_ub=np.array(rows), b_ub=np.array(limits), method="highs")
    return float(solved.fun) if solved.status == 0 else None


def _coverage_rows(
    problem: Problem, columns: list[tuple[int, int, int]], n_load: int, k: int, n_classes: int
) -> Iterator[np.ndarray]:
    """aggregated + separate >= demand; prefill >= separate; decode >= separate (all negated)."""
    for phase in (Phase.AGGREGATED, Phase.PREFILL, Phase.DECODE):
        row = np.zeros(n_load + n_classes)
        for j, (c, _, of) in enumerate(columns):
            if of == k and problem.candidates[c].phase is phase:
                row[j] = -problem.candidates[c].requests_per_s[k]
        row[n_load + k] = -1.0 if phase is Phase.AGGREGATED else 1.0
        yield row
