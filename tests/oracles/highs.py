"""Optimum of a fleet by scipy's HiGHS, over several periods and moments, in unrounded numbers.

The formulation is written anew from the problem's data: traffic is continuous and in requests/s, every way
to divide a host is a column, and no coefficient is an integer of the planner's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from tests.oracles.draw import above_idle_kw, standing_kw
from tests.oracles.highs_day import add_tides, add_work
from tests.oracles.highs_region_loss import add_region_losses

from fleetplan.planner.problem import Phase, Problem

FILLING = ("divided", "replicas")
"""Columns of what fills units."""

MANY = 10_000.0
"""More replicas or units than any of the fleets tried here can use."""


class _Milp:
    """Columns and rows by name, for scipy."""

    def __init__(self) -> None:
        self.columns: dict[Hashable, int] = {}
        self.upper: list[float] = []
        self.integer: list[int] = []
        self.cost: list[float] = []
        self.rows: list[tuple[dict[int, float], float]] = []

    def column(self, key: Hashable, *, integer: bool, upper: float = MANY, usd: float = 0.0) -> int:
        self.columns[key] = len(self.cost)
        self.upper.append(upper)
        self.integer.append(int(integer))
        self.cost.append(usd)
        return self.columns[key]

    def at_most(self, terms: Mapping[Hashable, float], limit: float) -> None:
        """Sum of coefficient times column <= limit; columns that do not exist are zero."""
        self.rows.append(({self.columns[k]: v for k, v in terms.items() if k in self.columns}, limit))

    def minimise(self) -> float | None:
        data, row_index, column_index = [], [], []
        for i, (terms, _) in enumerate(self.rows):
            for j, value in terms.items():
                row_index.append(i)
                column_index.append(j)
                data.append(value)
        shape = (len(self.rows), len(self.cost))
        matrix = coo_array((data, (row_index, column_index)), shape=shape).tocsr()
        scale = max(self.cost) or 1.0
        solved = milp(
            np.array(self.cost) / scale,
            integrality=np.array(self.integer),
            bounds=Bounds(np.zeros(shape[1]), np.array(self.upper)),
            constraints=LinearConstraint(matrix, -np.inf, np.array([limit for _, limit in self.rows])),
            options={"time_limit": 30.0, "mip_rel_gap": 0.0},
        )
        if solved.status == 2:
            return None
        if solved.status != 0:
            raise RuntimeError(solved.message)
        return float(solved.fun) * scale


def highs_usd(problem: Problem) -> float | None:
    """Least TCO with all demand served, or None if no plan serves it. [USD]"""
    program = _Milp()
    _columns(program, problem)
    _serve(program, problem)
    add_work(program, problem)
    add_tides(program, problem)
    _pack(program, problem)
    _retire(program, problem)
    _lots(program, problem)
    _limits(program, problem)
    add_region_losses(program, problem)
    _budgets(program, problem)
    usd = program.minimise()
    return None if usd is None else usd + sum(sum(pool.fixed_usd) for pool in problem.pools)


def _columns(program: _Milp, problem: Problem) -> None:
    for q in range(len(problem.periods)):
        for p, pool in enumerate(problem.pools):
            if pool.retirement is not None and pool.retirement.possible_in(q):
                program.column(
                    ("retired", p, q),
                    integer=True,
                    upper=pool.existing_units,
                    usd=pool.retirement.unit_usd[q],
                )
            for a, acquisition in enumerate(pool.acquisitions):
                if acquisition.useful_in(q, len(problem.periods)):
                    limit = acquisition.offer.max_units[q]
                    program.column(
                        ("acquired", p, a, q),
                        integer=True,
                        upper=MANY if limit is None else limit,
                        usd=acquisition.unit_usd[q],
                    )
    for m, moment in enumerate(problem.moments):
        share = moment.hours / 24 * moment.probability
        for p, pool in enumerate(problem.pools):
            program.column(("used", p, m), integer=True, upper=1.0)
            for c, candidate in enumerate(problem.candidates):
                if candidate.hardware != pool.hardware:
                    continue
                program.column(("replicas", c, p, m), integer=True)
                program.column(("runs", c, pool.region, m), integer=True, upper=1.0)
                _starts(program, problem, (c, p, m))
                headroom = 1 + problem.services[candidate.service].headroom
                kw_usd = above_idle_kw(problem, c) * pool.energy_usd_per_kw[moment.period] * share
                for k, rate in enumerate(candidate.requests_per_s):
                    if rate > 0:
                        program.column(("rate", c, k, p, m), integer=False, usd=kw_usd / rate / headroom)


def _starts(program: _Milp, problem: Problem, key: tuple[int, int, int]) -> None:
    """Replicas that did not run in the period before, or in the plan in force."""
    c, p, m = key
    moment = problem.moments[m]
    if moment.before is None and problem.running_before is None:
        return
    usd = problem.fleet.policy.transition_usd_per_accelerator * problem.candidates[c].accelerators
    worth = (1 + problem.fleet.finance.discount_rate_per_year) ** (-moment.period / 4)
    program.column(
        ("started", c, p, m), integer=False, usd=usd * moment.hours / 24 * moment.probability * worth
    )
    terms: dict[Hashable, float] = {("replicas", c, p, m): 1.0, ("started", c, p, m): -1.0}
    if moment.before is not None:
        terms["replicas", c, p, moment.before] = -1.0
    before = (problem.running_before or {}).get((c, p, moment.slice), 0) if moment.before is None else 0
    program.at_most(terms, float(before))


def _serve(program: _Milp, problem: Problem) -> None:
    """Coverage by class and phase, and the load of the replicas."""
    for index, cell in enumerate(problem.cells):
        headroom = 1 + problem.services[cell.service].headroom
        for k, demand in enumerate(cell.requests_per_s):
            program.column(("separate", index, k), integer=False)
            by_phase: dict[Phase, dict[Hashable, float]] = {phase: {} for phase in Phase}
            for c, candidate in enumerate(problem.candidates):
                for p, pool in enumerate(problem.pools):
                    if candidate.service == cell.service and pool.region == cell.region:
                        by_phase[candidate.phase]["rate", c, k, p, cell.moment] = -1.0
            separate: Hashable = ("separate", index, k)
            served = {**by_phase[Phase.AGGREGATED], separate: -1.0}
            if problem.services[cell.service].offline is None:
                program.at_most(served, -demand * headroom)
            else:
                program.column(("worked", index, k), integer=False)
                program.at_most({**served, ("worked", index, k): 1.0}, 0.0)
            program.at_most({**by_phase[Phase.PREFILL], separate: 1.0}, 0.0)
            program.at_most({**by_phase[Phase.DECODE], separate: 1.0}, 0.0)
    for key in list(program.columns):
        if isinstance(key, tuple) and key[0] == "replicas":
            _, c, p, m = key
            rates = problem.candidates[c].requests_per_s
            load: dict[Hashable, float] = {
                ("rate", c, k, p, m): 1 / rate for k, rate in enumerate(rates) if rate > 0
            }
            program.at_most({**load, key: -1.0}, 0.0)


def _pack(program: _Milp, problem: Problem) -> None:
    """Every way to divide a unit is a column; a unit in reserve is divided in none."""
    for p, pool in enumerate(problem.pools):
        unit = pool.accelerators_per_unit
        hosted = [c for c, candidate in enumerate(problem.candidates) if candidate.hardware == pool.hardware]
        sizes = sorted({problem.candidates[c].accelerators for c in hosted})
        small = tuple(size for size in sizes if size < unit)
        patterns = divisions(unit, small)
        for m, moment in enumerate(problem.moments):
            q = moment.period
            units: dict[Hashable, float] = {}
            for pattern in patterns:
                program.column(("divided", p, m, pattern), integer=True)
                units["divided", p, m, pattern] = 1.0
            for position, size in enumerate(small):
                terms: dict[Hashable, float] = {
                    ("replicas", c, p, m): 1.0 for c in hosted if problem.candidates[c].accelerators == size
                }
                for pattern in patterns:
                    terms["divided", p, m, pattern] = -float(pattern[position])
                program.at_most(terms, 0.0)
            for c in hosted:
                size = problem.candidates[c].accelerators
                if size >= unit:
                    units["replicas", c, p, m] = float(-(-size // unit))
                program.at_most({("replicas", c, p, m): 1.0, ("used", p, m): -MANY}, 0.0)
            for a, acquisition in enumerate(pool.acquisitions):
                for ordered in range(len(problem.periods)):
                    if acquisition.serves(ordered, q):
                        units["acquired", p, a, ordered] = -1.0
            for left in range(q + 1):
                units["retired", p, left] = 1.0
            units["used", p, m] = float(pool.reserve_units)
            if pool.reserve_percent:
                # Whole units in use, each with its part of the reserve.
                busy: Hashable = ("busy", p, m)
                program.column(busy, integer=True)
                filled = {key: n for key, n in units.items() if isinstance(key, tuple) and key[0] in FILLING}
                program.at_most({**filled, busy: -1.0}, 0.0)
                units = {key: n for key, n in units.items() if key not in filled}
                units[busy] = 1 + pool.reserve_percent / 100
            program.at_most(units, float(pool.existing_units - pool.maintenance_in(q)))


def _lots(program: _Milp, problem: Problem) -> None:
    """Require whole multiples of the lot size."""
    for key in list(program.columns):
        if isinstance(key, tuple) and key[0] == "acquired":
            _, p, a, q = key
            lot = problem.pools[p].acquisitions[a].offer.lot_units
            if lot > 1:
                lots: Hashable = ("lots", p, a, q)
                program.column(lots, integer=True)
                program.at_most({key: 1.0, lots: -float(lot)}, 0.0)
                program.at_most({key: -1.0, lots: float(lot)}, 0.0)


def _retire(program: _Milp, problem: Problem) -> None:
    """No more units leave than there are, and all of them by their end of life."""
    for p, pool in enumerate(problem.pools):
        if pool.retirement is not None:
            left: dict[Hashable, float] = {("retired", p, q): 1.0 for q in range(len(problem.periods))}
            program.at_most(left, float(pool.existing_units))
            if pool.retirement.end_period is not None:
                program.at_most(dict.fromkeys(left, -1.0), -float(pool.existing_units))


def divisions(unit: int, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All counts of the sizes that fit one unit."""
    if not sizes:
        return [()]
    return [
        (count, *rest)
        for count in range(unit // sizes[0] + 1)
        for rest in divisions(unit - count * sizes[0], sizes[1:])
    ]


def _limits(program: _Milp, problem: Problem) -> None:
    """Offers, power and the number of configurations."""
    for q in range(len(problem.periods)):
        by_offer: dict[str, dict[Hashable, float]] = defaultdict(dict)
        for p, pool in enumerate(problem.pools):
            for a, acquisition in enumerate(pool.acquisitions):
                for ordered in range(len(problem.periods)):
                    if acquisition.counts_in(ordered, q):
                        by_offer[acquisition.offer.name]["acquired", p, a, ordered] = 1.0
        for offer in problem.fleet.offers:
            limit = offer.max_units[q]
            if limit is not None:
                program.at_most(by_offer[offer.name], float(limit))
    for m in range(len(problem.moments)):
        _moment_limits(program, problem, m)
        _shares(program, problem, m)


def _moment_limits(program: _Milp, problem: Problem, m: int) -> None:
    """Power and the number of configurations."""
    most, q = problem.fleet.policy.max_configs_per_service_region, problem.moments[m].period
    power: dict[str, dict[Hashable, float]] = defaultdict(dict)
    running: dict[tuple[str, str], dict[Hashable, float]] = defaultdict(dict)
    for p, pool in enumerate(problem.pools):
        for c, candidate in enumerate(problem.candidates):
            if candidate.hardware == pool.hardware:
                power[pool.region]["replicas", c, p, m] = above_idle_kw(problem, c)
                running[candidate.service, pool.region]["runs", c, pool.region, m] = 1.0
                runs: Hashable = ("runs", c, pool.region, m)
                program.at_most({("replicas", c, p, m): 1.0, runs: -MANY}, 0.0)
    for region in problem.fleet.regions:
        if region.power_kw is not None:
            standing, existing_kw = standing_kw(problem, region.name, q)
            limit = region.power_kw[q] / region.pue - existing_kw
            program.at_most({**power[region.name], **standing}, limit)
    if most is not None:
        for terms in running.values():
            program.at_most(terms, float(most))


def _shares(program: _Milp, problem: Problem, m: int) -> None:
    """No pool serves more than its share of a service, in either phase."""
    policy = problem.fleet.policy.max_share_per_pool
    for service in problem.fleet.services:
        cells = [cell for cell in problem.cells if (cell.service, cell.moment) == (service.name, m)]
        demand = sum(sum(cell.requests_per_s) for cell in cells)
        for p, pool in enumerate(problem.pools):
            share = min(limit for limit in (policy, pool.spot_max_share, 1.0) if limit is not None)
            for phase in (Phase.PREFILL, Phase.DECODE) if share < 1.0 else ():
                rates: dict[Hashable, float] = {
                    ("rate", c, k, p, m): 1.0
                    for c, candidate in enumerate(problem.candidates)
                    if candidate.service == service.name and candidate.phase in (phase, Phase.AGGREGATED)
                    for k in range(len(candidate.requests_per_s))
                }
                program.at_most(rates, share * demand * (1 + service.headroom))


def _budgets(program: _Milp, problem: Problem) -> None:
    budget = problem.fleet.budget
    capex: dict[Hashable, float] = {}
    opex: dict[Hashable, float] = {}
    for key, column in program.columns.items():
        if isinstance(key, tuple) and key[0] == "acquired":
            _, p, a, q = key
            acquisition = problem.pools[p].acquisitions[a]
            capex[key] = acquisition.capex_usd_per_unit
            opex[key] = program.cost[column] - acquisition.unit_cost_kinds.get("depreciation", _ZEROS)[q]
        else:
            opex[key] = program.cost[column]
    for q, limit in enumerate(budget.capex_usd_by_period):
        if limit is not None:
            program.at_most({k: v for k, v in capex.items() if isinstance(k, tuple) and k[3] == q}, limit)
    fixed = sum(sum(pool.fixed_usd) for pool in problem.pools)
    written_off = sum(sum(pool.fixed_cost_kinds.get("depreciation", ())) for pool in problem.pools)
    everything: dict[Hashable, float] = {key: program.cost[j] for key, j in program.columns.items()}
    if budget.capex_usd is not None:
        program.at_most(capex, budget.capex_usd)
    if budget.opex_usd is not None:
        program.at_most(opex, budget.opex_usd - (fixed - written_off))
    if budget.tco_usd is not None:
        program.at_most(everything, budget.tco_usd - fixed)


class _Zeros:
    def __getitem__(self, _: int) -> float:
        return 0.0


_ZEROS = _Zeros()
