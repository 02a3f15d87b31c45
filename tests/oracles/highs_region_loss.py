"""Capacity after the loss of a region in the HiGHS model, from the problem's data."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from tests.oracles.draw import above_idle_kw, standing_kw

from fleetplan.planner.problem import Phase, Problem

if TYPE_CHECKING:
    from tests.oracles.highs import _Milp


def add_region_losses(program: _Milp, problem: Problem) -> None:
    """Every protected service is served by the rest, whichever region is lost."""
    protected = [s for s in problem.fleet.services if s.name in problem.fleet.policy.survive_region_loss]
    for lost in problem.regions if protected else ():
        for q, moment in enumerate(problem.moments):
            pools = [p for p, pool in enumerate(problem.pools) if pool.region != lost]
            for c, candidate in enumerate(problem.candidates):
                if candidate.service not in {s.name for s in protected}:
                    continue
                for p in pools:
                    allowed = problem.services[candidate.service].may_run_in(problem.pools[p].region)
                    if allowed and problem.pools[p].hardware == candidate.hardware:
                        _replicas(program, problem, (lost, c, p, q))
            for service in protected:
                for k in range(len(service.classes)):
                    _served(program, problem, (lost, q), service.name, k)
            for p in pools:
                _packed(program, problem, lost, p, q)
            for region in problem.fleet.regions:
                if region.power_kw is not None:
                    drawn: dict[Hashable, float] = {
                        ("left", lost, c, p, q): above_idle_kw(problem, c)
                        for c in range(len(problem.candidates))
                        for p in pools
                        if problem.pools[p].region == region.name
                    }
                    standing, existing_kw = standing_kw(problem, region.name, moment.period)
                    limit = region.power_kw[moment.period] / region.pue - existing_kw
                    program.at_most({**drawn, **standing}, limit)


def _replicas(program: _Milp, problem: Problem, key: tuple[str, int, int, int]) -> None:
    lost, c, p, q = key
    program.column(("left", *key), integer=True)
    load: dict[Hashable, float] = {("left", *key): -1.0}
    for k, rate in enumerate(problem.candidates[c].requests_per_s):
        if rate > 0:
            program.column(("left_rate", lost, c, k, p, q), integer=False)
            load["left_rate", lost, c, k, p, q] = 1 / rate
    program.at_most(load, 0.0)


def _served(program: _Milp, problem: Problem, loss: tuple[str, int], name: str, k: int) -> None:
    lost, q = loss
    headroom = 1 + problem.services[name].headroom
    demand = sum(cell.requests_per_s[k] for cell in problem.cells if (cell.service, cell.moment) == (name, q))
    total: dict[Hashable, float] = {}
    for region in problem.regions:
        separate: Hashable = ("left_separate", lost, name, k, region, q)
        program.column(separate, integer=False)
        total[separate] = -1.0
        for phase in Phase:
            rates: dict[Hashable, float] = {
                ("left_rate", lost, c, k, p, q): -1.0
                for c, candidate in enumerate(problem.candidates)
                for p, pool in enumerate(problem.pools)
                if (candidate.service, candidate.phase, pool.region) == (name, phase, region)
            }
            if phase is Phase.AGGREGATED:
                total.update(rates)
            else:
                program.at_most({**rates, separate: 1.0}, 0.0)
    program.at_most(total, -demand * headroom)


def _packed(program: _Milp, problem: Problem, lost: str, p: int, q: int) -> None:
    """Units are divided in every way, as in the plan itself; the reserve is divided too."""
    from tests.oracles.highs import divisions  # noqa: PLC0415 - that module calls this one

    pool, period = problem.pools[p], problem.moments[q].period
    unit = pool.accelerators_per_unit
    sizes = {c: problem.candidates[c].accelerators for c in range(len(problem.candidates))}
    hosted = [c for c in sizes if ("left", lost, c, p, q) in program.columns]
    small = tuple(sorted({sizes[c] for c in hosted if sizes[c] < unit}))
    units: dict[Hashable, float] = {
        ("left", lost, c, p, q): float(-(-sizes[c] // unit)) for c in hosted if sizes[c] >= unit
    }
    for pattern in divisions(unit, small):
        program.column(("left_divided", lost, p, q, pattern), integer=True)
        units["left_divided", lost, p, q, pattern] = 1.0
    for position, size in enumerate(small):
        terms: dict[Hashable, float] = {("left", lost, c, p, q): 1.0 for c in hosted if sizes[c] == size}
        for pattern in divisions(unit, small):
            terms["left_divided", lost, p, q, pattern] = -float(pattern[position])
        program.at_most(terms, 0.0)
    for a, acquisition in enumerate(pool.acquisitions):
        for ordered in range(len(problem.periods)):
            if acquisition.serves(ordered, period):
                units["acquired", p, a, ordered] = -1.0
    program.at_most(units, float(pool.existing_units - pool.maintenance_in(period)))
