"""The decisions of a plan as CP-SAT variables, with bounds that the demand and the supply imply."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Cell, Phase, Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA, RateScale, exact
from fleetplan.planner.supply import SupplyPool
from fleetplan.planner.survival import joint_cells

UNLIMITED_UNITS = 1_000_000
"""Bound of an offer without a maximum, where the demand gives no smaller one. [units]"""

ReplicaKey = tuple[int, int, int]
"""(candidate index, pool index, period index)"""

LoadKey = tuple[int, int, int, int]
"""(candidate index, class index, pool index, period index)"""

AcquireKey = tuple[int, int, int]
"""(pool index, acquisition index, period index: of the order for a purchase, of the use for rent)"""

CellClassKey = tuple[int, int]
"""(cell index, class index)"""


@dataclass(slots=True)
class Variables:
    """All variables of one model, by what they decide.

    Attributes
    ----------
    replicas : dict[ReplicaKey, IntVar]
        Replicas of a candidate in a pool and period.
    load : dict[LoadKey, IntVar]
        Load that a class puts on these replicas. [load units]
    disaggregated : dict[CellClassKey, IntVar]
        Rate served by separate prefill and decode replicas. [rate units]
    unmet : dict[CellClassKey, IntVar]
        Rate left unserved; absent where the policy forbids it. [rate units]
    acquired : dict[AcquireKey, IntVar]
        Units ordered for purchase in a period, or rented for it.
    in_use : dict[tuple[int, int], IntVar]
        Whether a pool with a reserve runs anything in a period.
    configuration : dict[tuple[int, str, int], IntVar]
        Whether a candidate runs in a region and period, where the policy limits their number.
    packed : dict[tuple[int, int, tuple[int, ...]], IntVar]
        Units of a pool and period that are divided by a packing pattern.
    started : dict[ReplicaKey, IntVar]
        Replicas that did not run in the period before; where changes count.
    surviving, surviving_load, surviving_separate : dict
        Replicas by (lost region, candidate, pool, period) after the loss of a region, their loads by class,
        and the rates by (lost region, service, class, region, period) that separate phases serve then.
    retired : dict[tuple[int, int], IntVar]
        Existing units that leave a pool at the start of a period.
    lots : dict[AcquireKey, IntVar]
        Lots of an offer whose units come together.
    """

    replicas: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    load: dict[LoadKey, cp_model.IntVar] = field(default_factory=dict)
    disaggregated: dict[CellClassKey, cp_model.IntVar] = field(default_factory=dict)
    unmet: dict[CellClassKey, cp_model.IntVar] = field(default_factory=dict)
    acquired: dict[AcquireKey, cp_model.IntVar] = field(default_factory=dict)
    in_use: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    configuration: dict[tuple[int, str, int], cp_model.IntVar] = field(default_factory=dict)
    packed: dict[tuple[int, int, tuple[int, ...]], cp_model.IntVar] = field(default_factory=dict)
    started: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    surviving: dict[tuple[str, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_load: dict[tuple[str, int, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_separate: dict[tuple[str, str, int, str, int], cp_model.IntVar] = field(default_factory=dict)
    retired: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    lots: dict[AcquireKey, cp_model.IntVar] = field(default_factory=dict)

    def all(self) -> Iterator[cp_model.IntVar]:
        """Every variable."""
        groups: tuple[Mapping[Any, cp_model.IntVar], ...] = (
            self.replicas,
            self.load,
            self.disaggregated,
            self.unmet,
            self.acquired,
            self.in_use,
            self.configuration,
            self.packed,
            self.started,
            self.surviving,
            self.surviving_load,
            self.surviving_separate,
            self.retired,
            self.lots,
        )
        for group in groups:
            yield from group.values()


def rate_scales(problem: Problem) -> dict[str, RateScale]:
    """Integer rate units of every service that has demand."""
    largest: dict[str, float] = {}
    for cell in problem.cells:
        headroom = 1 + problem.services[cell.service].headroom
        largest[cell.service] = max(
            largest.get(cell.service, 0.0), *(rate * headroom for rate in cell.requests_per_s)
        )
    return {service: RateScale(rate) for service, rate in largest.items()}


def replicas_needed(problem: Problem, cell: Cell, candidate_index: int) -> int:
    """Most replicas of one candidate that a cell can use: what serves all its classes alone."""
    candidate = problem.candidates[candidate_index]
    headroom = 1 + exact(problem.services[cell.service].headroom)
    load = sum(
        (
            exact(demand) * headroom / exact(rate)
            for demand, rate in zip(cell.requests_per_s, candidate.requests_per_s, strict=True)
            if demand > 0 and rate > 0
        ),
        start=exact(0.0),
    )
    # One more replica than the load: rates are rounded down to whole units.
    return math.ceil(load) + 1 if load > 0 else 0


def most_replicas(problem: Problem, cell: Cell, candidate_index: int, pool_index: int) -> int:
    """Most replicas of one candidate in one pool that a plan may want in the period of a cell.

    Where starting a replica costs, replicas of another period's demand may stand idle in this one.
    """
    if not problem.counts_changes:
        return replicas_needed(problem, cell, candidate_index)
    before = (problem.running_before or {}).get((candidate_index, pool_index), 0)
    needed = [
        replicas_needed(problem, other, candidate_index)
        for other in problem.cells
        if (other.service, other.region) == (cell.service, cell.region)
    ]
    return max(before, *needed)


def most_units(problem: Problem, pool_index: int, period: int) -> int:
    """Most units that a pool can hold in a period."""
    pool = problem.pools[pool_index]
    units = pool.existing_units - pool.maintenance_in(period)
    for acquisition in pool.acquisitions:
        limits = acquisition.offer.max_units[: period + 1]
        if any(limit is None for limit in limits):
            return UNLIMITED_UNITS
        units += sum(limit for limit in limits if limit is not None)
    return units


def create_variables(
    model: cp_model.CpModel, problem: Problem, allow_unmet: bool, bounded_by_supply: bool = True
) -> Variables:
    """Variables for every decision that the problem leaves open.

    Parameters
    ----------
    model : CpModel
        Receives the variables.
    problem : Problem
        Sets and data.
    allow_unmet : bool
        Whether demand may stay unserved.
    bounded_by_supply : bool
        Whether replicas are bounded by what their pool can hold; without that only by the demand.

    Returns
    -------
    Variables
        A candidate gets variables only where its region has demand and a pool of its hardware.
    """
    variables = Variables()
    scales = rate_scales(problem)
    for cell_index, cell in enumerate(problem.cells):
        _create_service_variables(model, problem, variables, cell, scales[cell.service], bounded_by_supply)
        for k, demand in enumerate(cell.requests_per_s):
            scale = scales[cell.service]
            units = scale.demand_units(demand, problem.services[cell.service].headroom)
            label = cell_label(problem, cell, k)
            phases = {problem.candidates[c].phase for c in problem.candidates_of(cell.service)}
            if Phase.PREFILL in phases and Phase.DECODE in phases:
                variables.disaggregated[cell_index, k] = model.new_int_var(
                    0, units, f"disaggregated[{label}]"
                )
            if allow_unmet:
                variables.unmet[cell_index, k] = model.new_int_var(0, units, f"unmet[{label}]")
    if problem.counts_changes:
        _create_idle_periods(model, problem, variables, bounded_by_supply)
        _create_change_variables(model, problem, variables)
    _create_supply_variables(model, problem, variables)
    return variables


def _create_change_variables(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Replicas that start, in every period that has one before it or a plan in force."""
    for (c, p, q), replicas in variables.replicas.items():
        if q > 0 or problem.running_before is not None:
            label = f"{problem.candidates[c].label},{problem.pools[p].name},{problem.periods[q]}"
            most = replicas.proto.domain[1]
            variables.started[c, p, q] = model.new_int_var(0, most, f"started[{label}]")


def _create_idle_periods(
    model: cp_model.CpModel, problem: Problem, variables: Variables, bounded_by_supply: bool
) -> None:
    """Replicas in periods without demand: they may stay for the demand of a later one."""
    asked = {(cell.service, cell.region, cell.period) for cell in problem.cells}
    for service, region in dict.fromkeys((cell.service, cell.region) for cell in problem.cells):
        for q in range(len(problem.periods)):
            if (service, region, q) not in asked:
                idle = Cell(service, region, q, tuple(0.0 for _ in problem.services[service].classes))
                scale = rate_scales(problem)[service]
                _create_service_variables(model, problem, variables, idle, scale, bounded_by_supply)


def cell_label(problem: Problem, cell: Cell, class_index: int) -> str:
    """Label of a demand cell and class in solver names."""
    request_class = problem.services[cell.service].classes[class_index].name
    return f"{cell.service},{request_class},{cell.region},{problem.periods[cell.period]}"


def _create_service_variables(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    cell: Cell,
    scale: RateScale,
    bounded_by_supply: bool,
) -> None:
    """Replicas and loads of the candidates of one cell."""
    headroom = problem.services[cell.service].headroom
    period_name = problem.periods[cell.period]
    limit = problem.fleet.policy.max_configs_per_service_region
    for c in problem.candidates_of(cell.service):
        candidate = problem.candidates[c]
        hosted = False
        for p in problem.pools_for(candidate, cell.region):
            pool = problem.pools[p]
            capacity = most_units(problem, p, cell.period) * pool.accelerators_per_unit
            held = capacity // pool.footprint_accelerators(candidate.accelerators)
            needed = most_replicas(problem, cell, c, p)
            bound = min(needed, held) if bounded_by_supply else needed
            if bound <= 0:
                continue
            hosted = True
            label = f"{candidate.label},{pool.name},{period_name}"
            variables.replicas[c, p, cell.period] = model.new_int_var(0, bound, f"replicas[{label}]")
            for k, rate in enumerate(candidate.requests_per_s):
                rate_units = scale.rate_units(rate)
                demand_units = scale.demand_units(cell.requests_per_s[k], headroom)
                if rate_units and demand_units:
                    name = problem.services[cell.service].classes[k].name
                    # No more than the class needs: a fast replica of a small service would else make
                    # sums that pass 64 bits.
                    needed_load = -(-demand_units * LOAD_UNITS_PER_REPLICA // rate_units)
                    variables.load[c, k, p, cell.period] = model.new_int_var(
                        0, min(bound * LOAD_UNITS_PER_REPLICA, needed_load), f"load[{label},{name}]"
                    )
        if hosted and limit is not None:
            variables.configuration[c, cell.region, cell.period] = model.new_bool_var(
                f"configuration[{candidate.label},{cell.region},{period_name}]"
            )


def _create_supply_variables(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Acquisitions, and the use of pools that keep a reserve."""
    for p, pool in enumerate(problem.pools):
        for a, acquisition in enumerate(pool.acquisitions):
            for q, period in enumerate(problem.periods):
                limit, lot = acquisition.offer.max_units[q], acquisition.offer.lot_units
                bound = max(_units_that_serve_everything(problem, p), _units_after_loss(problem, p))
                bound = -(-bound // lot) * lot
                if limit is not None:
                    bound = min(bound, limit // lot * lot)
                if bound <= 0 or not acquisition.useful_in(q, len(problem.periods)):
                    continue
                variables.acquired[p, a, q] = model.new_int_var(
                    0, bound, f"acquired[{acquisition.offer.name},{pool.region},{period}]"
                )
                if lot > 1:
                    variables.lots[p, a, q] = model.new_int_var(
                        0, bound // lot, f"lots[{acquisition.offer.name},{pool.region},{period}]"
                    )
        if pool.retirement is not None and pool.region in problem.regions:
            for q, period in enumerate(problem.periods):
                if pool.retirement.possible_in(q):
                    variables.retired[p, q] = model.new_int_var(
                        0, pool.existing_units, f"retired[{pool.name},{period}]"
                    )
        if pool.reserve_units and pool.may_stay_empty:
            for q, period in enumerate(problem.periods):
                variables.in_use[p, q] = model.new_bool_var(f"in_use[{pool.name},{period}]")


def _units_that_serve_everything(problem: Problem, pool_index: int) -> int:
    """Units that would hold all replicas that any plan without waste puts into this pool."""
    pool = problem.pools[pool_index]
    if problem.counts_changes:
        return _units_with_idle_replicas(problem, pool_index)
    most = Fraction(0)
    for q in range(len(problem.periods)):
        units = Fraction(0)
        for cell in problem.cells:
            if (cell.region, cell.period) == (pool.region, q):
                units += _units_for_cell(problem, pool, cell)
        most = max(most, units)
    return math.ceil(most) + pool.reserve_units


def _units_after_loss(problem: Problem, pool_index: int) -> int:
    """Units that would hold all replicas of the protected services of all regions."""
    most: dict[int, Fraction] = {}
    for cell, _ in joint_cells(problem):
        units = _units_for_cell(problem, problem.pools[pool_index], cell)
        most[cell.period] = most.get(cell.period, Fraction(0)) + units
    return math.ceil(max(most.values(), default=Fraction(0)))


def _units_with_idle_replicas(problem: Problem, pool_index: int) -> int:
    """The same where replicas that wait for another period may stand beside those that serve."""
    pool = problem.pools[pool_index]
    needed: dict[int, int] = {}
    for cell in problem.cells:
        for c in problem.candidates_of(cell.service):
            if (cell.region, problem.candidates[c].hardware) == (pool.region, pool.hardware):
                needed[c] = most_replicas(problem, cell, c, pool_index)
    units = sum(
        (n * pool.units_per_replica(problem.candidates[c].accelerators) + 1 for c, n in needed.items()),
        start=Fraction(pool.reserve_units),
    )
    return math.ceil(units)


def _units_for_cell(problem: Problem, pool: SupplyPool, cell: Cell) -> Fraction:
    """Units of a pool for one cell: each class and phase on the candidate that takes the most."""
    headroom = 1 + exact(problem.services[cell.service].headroom)
    largest: dict[tuple[Phase, int], Fraction] = {}
    rounding = Fraction(0)
    for c in problem.candidates_of(cell.service):
        candidate = problem.candidates[c]
        if candidate.hardware != pool.hardware:
            continue
        units_per_replica = pool.units_per_replica(candidate.accelerators)
        # A mix of candidates leaves a part of a replica, one of rounded rates and a part of a unit each.
        rounding += 2 * units_per_replica + 1
        for k, (demand, rate) in enumerate(zip(cell.requests_per_s, candidate.requests_per_s, strict=True)):
            if demand > 0 and rate > 0:
                units = exact(demand) * headroom / exact(rate) * units_per_replica
                key = (candidate.phase, k)
                largest[key] = max(largest.get(key, Fraction(0)), units)
    return sum(largest.values(), start=rounding) if largest else Fraction(0)
