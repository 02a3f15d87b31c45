"""The decisions of a plan as CP-SAT variables, with bounds that the demand and the supply imply."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.scaling import RateScale, usd_units, whole_weights
from fleetplan.planner.problem import Candidate, Cell, Phase, Problem
from fleetplan.planner.problem.deferral import work_places
from fleetplan.planner.problem.kv_pairs import Handovers, cell_handovers
from fleetplan.planner.problem.memo import once
from fleetplan.planner.problem.region_loss import joint_cells
from fleetplan.planner.problem.supply import SupplyPool
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, exact

UNLIMITED_UNITS = 1_000_000
"""Bound of an offer without a maximum, where the demand gives no smaller one. [units]"""

REGRET_RANGE = 100
"""Bound of a regret over the largest cost of the best plan for one scenario."""

ReplicaKey = tuple[int, int, int]
"""(candidate index, pool index, moment index)"""

LineKey = tuple[int, int, int, int]
"""(candidate index, pool index, moment index, line index)"""

LoadKey = tuple[int, int, int, int]
"""(candidate index, class index, pool index, cell index); the cell has the moment and the origin"""

AcquireKey = tuple[int, int, int]
"""(pool index, acquisition index, period index: of the order for a purchase, of the use for rent)"""

CellClassKey = tuple[int, int]
"""(cell index, class index)"""

PairKey = tuple[int, int, int]
"""(cell index, class index, index of the pair of groups that a request passes between)"""


@dataclass(slots=True)
class Variables:
    """All variables of one model, by what they decide.

    Attributes
    ----------
    replicas : dict[ReplicaKey, IntVar]
        Replicas of a candidate in a pool and moment.
    load : dict[LoadKey, IntVar]
        Load that a class of a cell puts on these replicas. [load units]
    handovers : dict[CellClassKey, Handovers]
        Which prefill replicas may hand over to which decode replicas.
    disaggregated : dict[PairKey, IntVar]
        Rate served by a pair of groups of prefill and decode replicas. [rate units]
    unmet : dict[CellClassKey, IntVar]
        Rate left unserved; absent where the policy forbids it. [rate units]
    worked : dict[CellClassKey, IntVar]
        Rate at which a moment serves an offline service. [rate units]
    put_off : dict[tuple[int, int, int], IntVar]
        Work by (cell in which it arises, cell in which it is done, class). [rate units x hour weights]
    acquired : dict[AcquireKey, IntVar]
        Units ordered for purchase in a period, or rented for it.
    in_use : dict[tuple[int, int], IntVar]
        Whether a pool with a reserve runs anything in a moment.
    configuration : dict[tuple[int, str, int], IntVar]
        Whether a candidate runs in a region and moment, where the policy limits their number.
    packed : dict[tuple[int, int, tuple[int, ...]], IntVar]
        Units of a pool and moment that are divided by a packing pattern.
    started : dict[ReplicaKey, IntVar]
        Replicas that did not run in the period before; where changes count.
    switched : dict[ReplicaKey, IntVar]
        Replicas that did not run in the slice before; where changes within a day count.
    surviving, surviving_load, surviving_separate : dict
        Replicas by (lost region, candidate, pool, moment) after the loss of a region, their loads by class,
        and the rates by (lost region, service, class, pair, moment) that separate phases serve then.
    surviving_pooled, surviving_pooled_replicas : dict
        What `pooled` and `pooled_replicas` are, after the loss of a region.
    retired : dict[tuple[int, int], IntVar]
        Existing units that leave a pool at the start of a period.
    pooled, pooled_replicas : dict[LineKey, IntVar]
        Whether a set of replicas carries what one of its lines says, and how many replicas then do; where
        latencies are limited under load.
    lots : dict[AcquireKey, IntVar]
        Lots of an offer whose units come together.
    regret : dict[str, IntVar]
        The largest extra cost of any demand scenario, as `largest`; where it is minimised. [objective units]
    """

    replicas: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    load: dict[LoadKey, cp_model.IntVar] = field(default_factory=dict)
    handovers: dict[CellClassKey, Handovers] = field(default_factory=dict)
    disaggregated: dict[PairKey, cp_model.IntVar] = field(default_factory=dict)
    unmet: dict[CellClassKey, cp_model.IntVar] = field(default_factory=dict)
    worked: dict[CellClassKey, cp_model.IntVar] = field(default_factory=dict)
    put_off: dict[tuple[int, int, int], cp_model.IntVar] = field(default_factory=dict)
    acquired: dict[AcquireKey, cp_model.IntVar] = field(default_factory=dict)
    in_use: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    configuration: dict[tuple[int, str, int], cp_model.IntVar] = field(default_factory=dict)
    packed: dict[tuple[int, int, tuple[int, ...]], cp_model.IntVar] = field(default_factory=dict)
    started: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    switched: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    surviving: dict[tuple[str, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_load: dict[tuple[str, int, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_separate: dict[tuple[str, str, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_pooled: dict[tuple[str, int, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_pooled_replicas: dict[tuple[str, int, int, int, int], cp_model.IntVar] = field(
        default_factory=dict
    )
    retired: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    pooled: dict[LineKey, cp_model.IntVar] = field(default_factory=dict)
    pooled_replicas: dict[LineKey, cp_model.IntVar] = field(default_factory=dict)
    lots: dict[AcquireKey, cp_model.IntVar] = field(default_factory=dict)
    regret: dict[str, cp_model.IntVar] = field(default_factory=dict)


@once
def rate_scales(problem: Problem) -> dict[str, RateScale]:
    """Integer rate units of every service that has demand."""
    largest: dict[str, float] = {}
    for cell in problem.cells:
        headroom = 1 + problem.services[cell.service].headroom
        largest[cell.service] = max(
            largest.get(cell.service, 0.0), *(rate * headroom for rate in cell.most_requests_per_s)
        )
    return {service: RateScale(rate) for service, rate in largest.items()}


Served = Mapping[tuple[str, str, int], tuple[int, ...]]
"""Indices of the cells by the service, a region whose pools may serve them, and the moment."""


@once
def served_cells(problem: Problem) -> Served:
    """Cells by who may serve them, in the order of the cells."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    for index, cell in enumerate(problem.cells):
        for region in problem.serving_regions(cell):
            groups.setdefault((cell.service, region, cell.moment), []).append(index)
    return {key: tuple(indices) for key, indices in groups.items()}


def replicas_needed(problem: Problem, cells: Iterable[Cell], candidate_index: int) -> int:
    """Most replicas of one candidate that cells of its service can use: what serves all of them alone."""
    candidate = problem.candidates[candidate_index]
    headroom = 1 + exact(problem.services[candidate.service].headroom)
    load = sum(
        (
            exact(demand) * headroom / exact(rate)
            for cell in cells
            for demand, rate in zip(cell.most_requests_per_s, candidate.requests_per_s, strict=True)
            if demand > 0 and rate > 0
        ),
        start=exact(0.0),
    )
    # One more replica than the load: rates are rounded down to whole units.
    return math.ceil(replicas_for_load(candidate, load)) + 1 if load > 0 else 0


def replicas_for_load(candidate: Candidate, load: Fraction) -> Fraction:
    """Fewest replicas of one pool that carry a load; more than it where latencies are limited under load."""
    by_line = (
        max((load + exact(line.loss)) / exact(line.slope), Fraction(line.least)) for line in candidate.pooling
    )
    return min(by_line, default=load)


def most_replicas(
    problem: Problem, served: Served, place: tuple[str, int], candidate_index: int, pool_index: int
) -> int:
    """Most replicas of one candidate in one pool that a plan may want at a place: a region and a moment.

    Where starting a replica costs, replicas of another moment's demand may stand idle in this one.
    """
    region, moment = place
    needed = _needed_by_moment(problem, served, candidate_index, region)
    if not problem.keeps_idle_replicas:
        return needed[moment]
    place_before = (candidate_index, pool_index)
    before = [n for (c, p, _), n in (problem.running_before or {}).items() if (c, p) == place_before]
    return max(*before, *needed, 0)


def _needed_by_moment(problem: Problem, served: Served, candidate_index: int, region: str) -> tuple[int, ...]:
    """Most replicas of a candidate in a region that each moment's demand can use; every pool asks for it."""
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


@once
def _needs(_: Problem) -> dict[tuple[int, str], tuple[int, ...]]:
    """Replicas that are needed, by candidate and region, as far as they have been asked for."""
    return {}


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
    variables = Variables(handovers=cell_handovers(problem))
    scales = rate_scales(problem)
    served = served_cells(problem)
    created: set[tuple[str, str, int]] = set()
    for cell_index, cell in enumerate(problem.cells):
        for region in problem.serving_regions(cell):
            group = (cell.service, region, cell.moment)
            if group not in created:
                created.add(group)
                _create_service_variables(model, problem, variables, served, group, bounded_by_supply)
        scale, headroom = scales[cell.service], problem.services[cell.service].headroom
        for k, demand in enumerate(cell.requests_per_s):
            most = scale.demand_units(cell.most_requests_per_s[k], headroom)
            label = cell_label(problem, cell, k)
            for index, pair in enumerate(variables.handovers[cell_index, k].pairs):
                variables.disaggregated[cell_index, k, index] = model.new_int_var(
                    0, most, f"disaggregated[{with_label(label, pair.label)}]"
                )
            if allow_unmet:
                units = scale.demand_units(demand, headroom)
                variables.unmet[cell_index, k] = model.new_int_var(0, units, f"unmet[{label}]")
    _create_work_variables(model, problem, variables, scales)
    if problem.keeps_idle_replicas:
        _create_idle_moments(model, problem, variables, served, bounded_by_supply)
    if problem.counts_changes:
        _create_change_variables(model, problem, variables)
    if problem.counts_tides:
        _create_tide_variables(model, problem, variables)
    _create_supply_variables(model, problem, variables, served)
    if problem.minimises_regret:
        # No regret is more than many times what the dearest scenario costs, nor less than all of that.
        # Sales of hosts may bring more than all else costs, so what stands counts at its full price.
        dearest_usd = max(abs(best.usd) for best in (problem.best_alone or {}).values())
        standing_usd = sum(abs(usd) for pool in problem.pools for usd in pool.fixed_usd)
        most = REGRET_RANGE * usd_units(dearest_usd + standing_usd + 1)
        variables.regret["largest"] = model.new_int_var(-most, most, "regret[largest]")
    return variables


def hour_weights(problem: Problem) -> list[int]:
    """Hours of each moment as small whole numbers in their exact ratio: slices last quarters of an hour."""
    return whole_weights([exact(moment.hours) for moment in problem.moments])


def _create_work_variables(
    model: cp_model.CpModel, problem: Problem, variables: Variables, scales: Mapping[str, RateScale]
) -> None:
    """The work of offline services: how fast each moment serves it, and from which moment it is."""
    hours = hour_weights(problem)
    by_place = {(cell.service, cell.region, cell.moment): i for i, cell in enumerate(problem.cells)}
    for i, cell in enumerate(problem.cells):
        service = problem.services[cell.service]
        if service.offline is None:
            continue
        places = work_places(problem.moments, service.offline.deadline_hours)[cell.moment]
        # A moment into which nothing can be put off has no cell.
        keys = [(cell.service, cell.region, m) for m in places]
        cells = [by_place[key] for key in keys if key in by_place]
        for k, demand in enumerate(cell.requests_per_s):
            label, scale = cell_label(problem, cell, k), scales[cell.service]
            most = scale.demand_units(cell.most_requests_per_s[k], service.headroom)
            # Rounding up what arises in each moment may take one unit more from each of them.
            variables.worked[i, k] = model.new_int_var(0, most + len(cells), f"worked[{label}]")
            arising = hours[cell.moment] * scale.demand_units(demand, service.headroom)
            for j in cells if arising else ():
                done_in = problem.moments[problem.cells[j].moment].slice
                variables.put_off[i, j, k] = model.new_int_var(
                    0, arising, f"put_off[{with_label(label, done_in or '')}]"
                )


def _create_change_variables(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Replicas that start, in every moment that has one before it or a plan in force."""
    for (c, p, m), replicas in variables.replicas.items():
        if problem.moments[m].before is not None or problem.running_before is not None:
            label = replica_label(problem, (c, p, m))
            most = replicas.proto.domain[1]
            variables.started[c, p, m] = model.new_int_var(0, most, f"started[{label}]")


def _create_tide_variables(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Replicas that start from one slice of the day to the next."""
    for key, replicas in variables.replicas.items():
        most, label = replicas.proto.domain[1], replica_label(problem, key)
        variables.switched[key] = model.new_int_var(0, most, f"switched[{label}]")


def _create_idle_moments(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    served: Served,
    bounded_by_supply: bool,
) -> None:
    """Replicas in moments without demand: they may stay for the demand of a later one."""
    for service, region in dict.fromkeys((service, region) for service, region, _ in served):
        for m in range(len(problem.moments)):
            if (service, region, m) not in served:
                group = (service, region, m)
                _create_service_variables(model, problem, variables, served, group, bounded_by_supply)


def replica_label(problem: Problem, key: ReplicaKey) -> str:
    """Label of a set of replicas in solver names."""
    c, p, m = key
    return f"{problem.candidates[c].label},{problem.pools[p].name},{problem.moments[m].label}"


def with_label(label: str, more: str) -> str:
    """A label with one more part, where there is one."""
    return f"{label},{more}" if more else label


def cell_label(problem: Problem, cell: Cell, class_index: int) -> str:
    """Label of a demand cell and class in solver names."""
    request_class = problem.services[cell.service].classes[class_index].name
    return f"{cell.service},{request_class},{cell.region},{problem.moments[cell.moment].label}"


def _create_service_variables(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    served: Served,
    group: tuple[str, str, int],
    bounded_by_supply: bool,
) -> None:
    """Replicas of a service in the pools of one region and moment, and the loads of the cells they serve."""
    service, region, m = group
    limit = problem.fleet.policy.max_configs_per_service_region
    for c in problem.candidates_of(service):
        candidate = problem.candidates[c]
        hosted = False
        for p in problem.pools_for(candidate, region):
            pool = problem.pools[p]
            capacity = most_units(problem, p, problem.moments[m].period) * pool.accelerators_per_unit
            held = capacity // pool.footprint_accelerators(candidate.accelerators)
            needed = most_replicas(problem, served, (region, m), c, p)
            bound = min(needed, held) if bounded_by_supply else needed
            if bound <= 0:
                continue
            hosted = True
            label = replica_label(problem, (c, p, m))
            variables.replicas[c, p, m] = model.new_int_var(0, bound, f"replicas[{label}]")
            for line in range(len(candidate.pooling)):
                key = (c, p, m, line)
                variables.pooled[key] = model.new_bool_var(f"pooled[{label},{line}]")
                variables.pooled_replicas[key] = model.new_int_var(
                    0, bound, f"pooled_replicas[{label},{line}]"
                )
            for cell_index in served.get(group, ()):
                _create_loads(model, problem, variables, (c, p, cell_index), bound)
        if hosted and limit is not None:
            variables.configuration[c, region, m] = model.new_bool_var(
                f"configuration[{candidate.label},{region},{problem.moments[m].label}]"
            )


def _create_loads(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    place: tuple[int, int, int],
    replicas: int,
) -> None:
    """Load of every class of a cell on the replicas of a candidate in a pool: (candidate, pool, cell)."""
    c, p, cell_index = place
    cell = problem.cells[cell_index]
    service, scale = problem.services[cell.service], rate_scales(problem)[cell.service]
    label = replica_label(problem, (c, p, cell.moment))
    origin = "" if problem.pools[p].region == cell.region else f",{cell.region}"
    for k, rate in enumerate(problem.candidates[c].requests_per_s):
        rate_units = scale.rate_units(rate)
        demand_units = scale.demand_units(cell.most_requests_per_s[k], service.headroom)
        if rate_units and demand_units and problem.may_serve((c, p), k, cell.region):
            # No more than the class needs: a fast replica of a small service would else make
            # sums that pass 64 bits.
            needed_load = -(-demand_units * LOAD_UNITS_PER_REPLICA // rate_units)
            variables.load[c, k, p, cell_index] = model.new_int_var(
                0,
                min(replicas * LOAD_UNITS_PER_REPLICA, needed_load),
                f"load[{label},{service.classes[k].name}{origin}]",
            )


def _create_supply_variables(
    model: cp_model.CpModel, problem: Problem, variables: Variables, served: Served
) -> None:
    """Acquisitions, and the use of pools that keep a reserve."""
    for p, pool in enumerate(problem.pools):
        most = max(_units_that_serve_everything(problem, served, p), _units_after_loss(problem, p))
        for a, acquisition in enumerate(pool.acquisitions):
            for q, period in enumerate(problem.periods):
                limit, lot = acquisition.offer.max_units[q], acquisition.offer.lot_units
                limit = UNLIMITED_UNITS if limit is None else limit
                bound = min(-(-most // lot) * lot, limit // lot * lot)
                least = 0
                if problem.fixed_supply is not None:
                    least = bound = problem.fixed_supply.acquired.get((p, a, q), 0)
                if bound <= 0 or not acquisition.useful_in(q, len(problem.periods)):
                    continue
                variables.acquired[p, a, q] = model.new_int_var(
                    least, bound, f"acquired[{acquisition.offer.name},{pool.region},{period}]"
                )
                if lot > 1:
                    variables.lots[p, a, q] = model.new_int_var(
                        0, bound // lot, f"lots[{acquisition.offer.name},{pool.region},{period}]"
                    )
        if pool.retirement is not None and pool.region in problem.regions:
            for q, period in enumerate(problem.periods):
                if pool.retirement.possible_in(q):
                    least, most = 0, pool.existing_units
                    if problem.fixed_supply is not None:
                        least = most = problem.fixed_supply.retired.get((p, q), 0)
                    variables.retired[p, q] = model.new_int_var(least, most, f"retired[{pool.name},{period}]")
        if pool.reserve_units and pool.may_stay_empty:
            for m, moment in enumerate(problem.moments):
                # Where more than the reserve stands for good, using the pool takes nothing that is wanted.
                stays = pool.existing_units - pool.maintenance_in(moment.period) > pool.reserve_units
                if pool.retirement is not None or not stays:
                    variables.in_use[p, m] = model.new_bool_var(f"in_use[{pool.name},{moment.label}]")


def _units_that_serve_everything(problem: Problem, served: Served, pool_index: int) -> int:
    """Units that would hold all replicas that any plan without waste puts into this pool."""
    pool = problem.pools[pool_index]
    if problem.keeps_idle_replicas:
        return _units_with_idle_replicas(problem, served, pool_index)
    units = [Fraction(0)] * len(problem.moments)
    for cell in problem.cells:
        if pool.region in problem.serving_regions(cell):
            units[cell.moment] += _units_for_cell(problem, pool, cell)
    return math.ceil(max(units)) + pool.reserve_units


def _units_after_loss(problem: Problem, pool_index: int) -> int:
    """Units that would hold all replicas of the protected services of all regions."""
    most: dict[int, Fraction] = {}
    for cell, _ in joint_cells(problem):
        units = _units_for_cell(problem, problem.pools[pool_index], cell)
        most[cell.moment] = most.get(cell.moment, Fraction(0)) + units
    return math.ceil(max(most.values(), default=Fraction(0)))


def _units_with_idle_replicas(problem: Problem, served: Served, pool_index: int) -> int:
    """The same where replicas that wait for another moment may stand beside those that serve."""
    pool = problem.pools[pool_index]
    needed: dict[int, int] = {}
    for service, region, m in served:
        for c in problem.candidates_of(service):
            if (region, problem.candidates[c].hardware) == (pool.region, pool.hardware):
                needed[c] = most_replicas(problem, served, (region, m), c, pool_index)
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
        # A pool of its own loses as much again as one that serves everything.
        rounding += units_per_replica * sum(
            exact(line.loss) / exact(line.slope) + line.least for line in candidate.pooling
        )
        rates = zip(cell.most_requests_per_s, candidate.requests_per_s, strict=True)
        for k, (demand, rate) in enumerate(rates):
            if demand > 0 and rate > 0:
                load = exact(demand) * headroom / exact(rate)
                units = replicas_for_load(candidate, load) * units_per_replica
                key = (candidate.phase, k)
                largest[key] = max(largest.get(key, Fraction(0)), units)
    return sum(largest.values(), start=rounding) if largest else Fraction(0)
