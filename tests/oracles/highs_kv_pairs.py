"""Optimum of a fleet of single rented accelerators whose phases may be apart, by scipy's HiGHS.

Written anew from the fleet's rules: traffic is in requests/s, every request that is disaggregated is a flow
from one set of replicas to another, by the region that it comes from, and nothing is grouped or rounded.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from fleetplan.planner.problem import Candidate, Cell, Phase, Problem

Terms = dict[int, float]


class _Program:
    def __init__(self) -> None:
        self.cost: list[float] = []
        self.integer: list[int] = []
        self.rows: list[tuple[Terms, float]] = []

    def column(self, usd: float = 0.0, *, integer: bool = False) -> int:
        self.cost.append(usd)
        self.integer.append(int(integer))
        return len(self.cost) - 1

    def minimise(self) -> float | None:
        matrix = np.zeros((len(self.rows), len(self.cost)))
        for i, (terms, _) in enumerate(self.rows):
            for j, value in terms.items():
                matrix[i, j] = value
        solved = milp(
            np.array(self.cost),
            integrality=np.array(self.integer),
            bounds=Bounds(0, np.inf),
            constraints=LinearConstraint(matrix, -np.inf, np.array([limit for _, limit in self.rows])),
            options={"mip_rel_gap": 0.0, "time_limit": 30.0},
        )
        return None if solved.status == 2 else float(solved.fun)


def least_rent_usd(problem: Problem) -> float | None:
    """Least rent of a quarter with all demand served, or None where it cannot be. [USD]"""
    program = _Program()
    replicas: dict[tuple[int, int], int] = {}
    loads: dict[int, Terms] = defaultdict(dict)
    for p, pool in enumerate(problem.pools):
        (offer,) = (acquisition.offer for acquisition in pool.acquisitions)
        assert offer.rent_usd_per_accelerator_hour is not None
        rent = offer.rent_usd_per_accelerator_hour[0] * 2190
        held: Terms = {}
        for c, candidate in enumerate(problem.candidates):
            if candidate.hardware == pool.hardware:
                replicas[c, p] = program.column(rent * candidate.accelerators, integer=True)
                held[replicas[c, p]] = candidate.accelerators
        if offer.max_units[0] is not None:
            program.rows.append((held, offer.max_units[0]))
    links: list[Terms] = [{} for _ in problem.fleet.kv_links]
    for cell in problem.cells:
        surplus = _serve(program, problem, cell, replicas, loads, links)
        floor = problem.services[cell.service].average_quality_floor
        if floor is not None:
            program.rows.append((surplus, 0.0))
    for column, terms in loads.items():
        program.rows.append(({**terms, column: -1.0}, 0.0))
    for link, terms in zip(problem.fleet.kv_links, links, strict=True):
        program.rows.append((terms, link.gb_per_s))
    return program.minimise()


def _serve(
    program: _Program,
    problem: Problem,
    cell: Cell,
    replicas: dict[tuple[int, int], int],
    loads: dict[int, Terms],
    links: list[Terms],
) -> Terms:
    """Serve the demand of a cell by class, and return its deficit of quality."""
    service, origin = problem.services[cell.service], cell.region
    scores = {variant.name: variant.quality for variant in service.variants}
    surplus: Terms = {}
    own = {slot: i for slot, i in replicas.items() if problem.candidates[slot[0]].service == cell.service}
    for k, rate in enumerate(cell.requests_per_s):
        wanted = rate * (1 + service.headroom)
        served: Terms = {}
        for (c, p), i in own.items():
            first = problem.candidates[c]
            if first.requests_per_s[k] <= 0 or first.phase is Phase.DECODE:
                continue
            left_ms = _left_ms(problem, first, k, origin, problem.pools[p].region)
            if left_ms < 0:
                continue
            missing = (service.average_quality_floor or 0.0) - scores.get(first.variant, 0.0)
            if first.phase is Phase.AGGREGATED:
                column = program.column()
                loads[i][column] = 1 / first.requests_per_s[k]
                served[column], surplus[column] = -1.0, missing
                continue
            for (d, s), j in own.items():
                second = problem.candidates[d]
                used = _between(problem, (first, p), (second, s))
                if second.phase is not Phase.DECODE or second.requests_per_s[k] <= 0 or used is None:
                    continue
                if sum(problem.fleet.kv_links[link].added_ms for link in used) > left_ms:
                    continue
                column = program.column()
                loads[i][column] = 1 / first.requests_per_s[k]
                loads[j][column] = 1 / second.requests_per_s[k]
                served[column], surplus[column] = -1.0, missing
                for link in used:
                    links[link][column] = first.kv_gb[k] or 0.0
        if wanted > 0:
            program.rows.append((served, -wanted))
        if service.average_quality_floor is not None:
            program.rows.append((dict.fromkeys(served, 1.0), wanted))
    return surplus


def _left_ms(problem: Problem, candidate: Candidate, k: int, origin: str, region: str) -> float:
    service = problem.services[candidate.service]
    way = 0.0
    if origin != region:
        if region not in service.serve_from.get(origin, ()):
            return -1.0
        way = problem.regions[origin].round_trip_ms[region]
    ttft = candidate.ttft_ms[k]
    if service.ttft_ms is None or ttft is None:
        return float("inf")
    return service.ttft_ms - service.outside_ms.total_ms - ttft - way


def _between(
    problem: Problem, sender: tuple[Candidate, int], receiver: tuple[Candidate, int]
) -> list[int] | None:
    """Links of a handover, or None where there can be none."""
    policy = problem.fleet.policy
    one, other = problem.pools[sender[1]], problem.pools[receiver[1]]
    if sender[0].variant != receiver[0].variant:
        return None
    if policy.kv_pairs is not None and (one.hardware, other.hardware) not in policy.kv_pairs:
        return None
    if policy.kv_transfer == "same-pool" and one.name != other.name:
        return None
    found = [
        i
        for i, link in enumerate(problem.fleet.kv_links)
        if link.prefill in (one.name, one.region) and link.decode in (other.name, other.region)
    ]
    if one.region != other.region and not (policy.kv_transfer == "cross-region" and found):
        return None
    return found
