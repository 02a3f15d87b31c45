"""Rows of what runs: coverage, loads, packing with reserve, power, shares, configurations and starts."""

from __future__ import annotations

import math
from collections import defaultdict

from tests.oracles.independent import money
from tests.oracles.independent.facts import AGGREGATED, DECODE, PREFILL, WHOLE_DAY_HOURS
from tests.oracles.independent.formulation import LOAD_UNITS_PER_REPLICA, Formulation, Mode, Spot
from tests.oracles.independent.money import Usd
from tests.oracles.independent.pools import packings
from tests.oracles.independent.program import Terms
from tests.oracles.independent.rows_supply import add_budgets, installed_units, usable_units

DEMAND_RESOLUTION = 1e-7
"""How much the planner's demand may be above the one that is stated, and its rates below, at most."""


def add(model: Formulation) -> None:
    """Add serving to a formulation that has its supply."""
    for spot in model.carried:
        model.program.column(("replicas", spot), upper=model.most_replicas(spot), whole=True)
    _coverage(model)
    _loads(model)
    _capacity(model)
    _power(model)
    _shares(model)
    _configurations(model)
    _starts(model)
    _tides(model)
    add_budgets(model)


def _coverage(model: Formulation) -> None:
    """Flows and what is unmet add up to the demand of every cell."""
    may_lack = model.facts.policy.unmet or model.facts.objective == "served"
    flows: dict[tuple[object, ...], Terms] = defaultdict(dict)
    for key, path in model.paths.items():
        flows[path.service, path.moment, path.region, path.name][key] = 1.0
    for s, service in enumerate(model.facts.services):
        for region, moment, name in service.demand:
            demand = service.with_headroom(region, moment, name)
            if model.mode is Mode.COARSE:
                demand *= 1 + DEMAND_RESOLUTION
            cell = (s, model.moments.index(moment), region, name)
            terms = flows[cell]
            if may_lack and demand > 0:
                model.program.column(("unmet", *cell), upper=demand)
                terms["unmet", *cell] = 1.0
            model.program.row(f"coverage{cell}", terms, demand, demand)


def _loads(model: Formulation) -> None:
    """Limit the load of the classes to what the replicas carry."""
    for spot, terms in model.carried.items():
        carries = 1.0
        if model.mode is Mode.COARSE:
            cells = {(model.paths[key].region, model.paths[key].name) for key in terms}
            carries -= len(cells) / LOAD_UNITS_PER_REPLICA
        model.program.at_most(f"load{spot}", {**terms, ("replicas", spot): -carries}, 0.0)


def _capacity(model: Formulation) -> None:
    """Replicas fill units; a pool in use keeps its reserve free."""
    by_pool: dict[tuple[int, int], list[Spot]] = defaultdict(list)
    for spot in model.carried:
        by_pool[spot[2], spot[3]].append(spot)
    for (p, m), spots in by_pool.items():
        pool, program = model.pools[p], model.program
        sizes = tuple(
            sorted({model.engine(spot).size for spot in spots if model.engine(spot).size <= pool.unit})
        )
        units, supply = usable_units(model, p, model.moments[m].period)
        used: Terms = {key: -value for key, value in supply.items()}
        for spot in spots:
            if model.engine(spot).size > pool.unit:
                used["replicas", spot] = math.ceil(model.engine(spot).size / pool.unit)
        ways = packings(pool.unit, sizes)
        for way in ways:
            program.column(("packed", p, m, way), whole=True)
            used["packed", p, m, way] = 1.0
        for place, size in enumerate(sizes):
            slots: Terms = {("packed", p, m, way): -float(way[place]) for way in ways}
            slots |= {("replicas", spot): 1.0 for spot in spots if model.engine(spot).size == size}
            program.at_most(f"slots[{p},{m},{size}]", slots, 0.0)
        if pool.reserve:
            program.column(("in_use", p, m), upper=1.0, whole=True)
            used["in_use", p, m] = pool.reserve
            for spot in spots:
                most = model.most_replicas(spot)
                program.at_most(f"in_use{spot}", {("replicas", spot): 1.0, ("in_use", p, m): -most}, 0.0)
        if pool.reserve_percent:
            # Whole hosts that replicas fill; of hosts in whole numbers so many per cent more are held.
            busy = ("busy", p, m)
            program.column(busy, whole=True)
            filled = {key: n for key, n in used.items() if key[0] in ("replicas", "packed")}
            program.at_most(f"busy[{p},{m}]", filled | {busy: -1.0}, 0.0)
            used = {key: n for key, n in used.items() if key not in filled}
            used[busy] = 1 + pool.reserve_percent / 100
        program.at_most(f"capacity[{p},{m}]", used, units)


def _power(model: Formulation) -> None:
    """Limit power: replicas at full load, all other installed accelerators at idle."""
    for name, place in model.facts.places.items():
        for m, moment in enumerate(model.moments):
            limit = place.power_kw[moment.period]
            if limit is None:
                continue
            terms: Terms = {}
            standing_kw = 0.0
            for p, pool in enumerate(model.pools):
                if pool.region == name:
                    idle_kw = _idle_kw(model, pool.part) * place.pue
                    units, columns = installed_units(model, p, moment.period)
                    standing_kw += idle_kw * pool.unit * units
                    terms |= {key: sign * idle_kw * pool.unit for key, sign in columns.items()}
            for spot in model.carried:
                if spot[3] == m and model.pools[spot[2]].region == name:
                    engine = model.engine(spot)
                    busy_kw = engine.kw - _idle_kw(model, engine.part) * engine.size
                    terms["replicas", spot] = max(0.0, busy_kw) * place.pue
            # The planner counts whole watts.
            watt = place.pue / money.WATTS_PER_KW if model.mode is Mode.COARSE else 0.0
            model.program.at_most(f"power[{name},{m}]", terms, limit - standing_kw - watt)


def _idle_kw(model: Formulation, part: str) -> float:
    """Return the power of an idle accelerator, in the whole watts of the planner. [kW]"""
    watts = model.facts.parts[part].idle_w
    return (math.ceil(watts) if model.mode is Mode.COARSE else watts) / money.WATTS_PER_KW


def _shares(model: Formulation) -> None:
    """A pool serves at most a share of a service's demand of a moment, in either phase.

    The planner leaves a load unit to each load of the pool: a share that is met exactly has no whole loads.
    """
    policy = model.facts.policy
    for p, pool in enumerate(model.pools):
        shares = [share for share in (policy.max_share, pool.max_share) if share is not None]
        if not shares:
            continue
        for s, service in enumerate(model.facts.services):
            for m, moment in enumerate(model.moments):
                total = sum(service.with_headroom(*cell) for cell in service.demand if cell[1] == moment)
                for phase in (PREFILL, DECODE):
                    terms = {
                        key: 1.0
                        for key, path in model.paths.items()
                        if (path.service, path.moment) == (s, m)
                        and any(
                            spot[2] == p and model.engine(spot).phase in (phase, AGGREGATED)
                            for spot in path.spots
                        )
                    }
                    most = min(shares) * total + _load_units(model, (s, m, p), phase)
                    model.program.at_most(f"share[{s},{m},{p},{phase}]", terms, most)


def _load_units(model: Formulation, group: tuple[int, int, int], phase: str) -> float:
    """Return the rate of one load unit of every load of a service, moment, pool and phase. [requests/s]"""
    if model.mode is not Mode.LOOSE:
        return 0.0
    loads = {
        (spot, path.name, path.region)
        for path in model.paths.values()
        for spot in path.spots
        if (spot[0], spot[3], spot[2]) == group and model.engine(spot).phase in (phase, AGGREGATED)
    }
    return sum(model.engine(spot).rates[name] for spot, name, _ in loads) / LOAD_UNITS_PER_REPLICA


def _configurations(model: Formulation) -> None:
    """At most K configurations of a service run in a region at a time."""
    most = model.facts.policy.max_configs
    if most is None:
        return
    running: dict[tuple[int, str, int], Terms] = defaultdict(dict)
    for spot in model.carried:
        s, e, p, m = spot
        region = model.pools[p].region
        key = ("runs", s, e, region, m)
        if key not in model.program.index:
            model.program.column(key, upper=1.0, whole=True)
        running[s, region, m][key] = 1.0
        model.program.at_most(
            f"runs{spot}", {("replicas", spot): 1.0, key: -float(model.most_replicas(spot))}, 0.0
        )
    for place, terms in running.items():
        model.program.at_most(f"configurations{place}", terms, most)


def _starts(model: Formulation) -> None:
    """Each accelerator of a replica that did not run in the period before costs, at the period's start."""
    if not model.facts.policy.transition_usd:
        return
    for spot in model.carried:
        s, e, p, m = spot
        now = model.moments[m]
        before = [
            n
            for n, moment in enumerate(model.moments)
            if (moment.period, moment.slice, moment.scenario) == (now.period - 1, now.slice, now.scenario)
        ]
        if not before:
            continue
        key = ("started", spot)
        model.program.column(key)
        usd = model.facts.policy.transition_usd * model.engine(spot).size * now.weight
        model.usd[key] = Usd(operating=usd * money.worth_at_start(model.facts, now.period))
        _at_least_the_rise(model, key, spot, (s, e, p, before[0]))


def _tides(model: Formulation) -> None:
    """The same from one slice of the day to the next, every day anew; a share of a pool at most."""
    policy = model.facts.policy
    sliced = any(moment.hours < WHOLE_DAY_HOURS for moment in model.moments)
    if not sliced or (not policy.tidal_usd and policy.tidal_share >= 1):
        return
    started: dict[tuple[int, int], Terms] = defaultdict(dict)
    for spot in model.carried:
        s, e, p, m = spot
        now = model.moments[m]
        day = [
            n
            for n, moment in enumerate(model.moments)
            if (moment.period, moment.scenario) == (now.period, now.scenario)
        ]
        key = ("tide", spot)
        model.program.column(key)
        usd = policy.tidal_usd * model.engine(spot).size * money.hours(model.facts) / 24 * now.probability
        model.usd[key] = Usd(operating=usd * money.worth_at_end(model.facts, now.period))
        _at_least_the_rise(model, key, spot, (s, e, p, day[day.index(m) - 1]))
        started[p, m][key] = float(model.engine(spot).size)
    if policy.tidal_share < 1:
        for (p, m), terms in started.items():
            unit = model.pools[p].unit
            units, supply = installed_units(model, p, model.moments[m].period)
            terms |= {key: -value * policy.tidal_share * unit for key, value in supply.items()}
            model.program.at_most(f"tide[{p},{m}]", terms, policy.tidal_share * unit * units)


def _at_least_the_rise(model: Formulation, key: object, spot: Spot, before: Spot) -> None:
    """Count the replicas of a spot beyond those that ran before."""
    terms: Terms = {("replicas", spot): 1.0, key: -1.0}
    if before in model.carried:
        terms["replicas", before] = -1.0
    model.program.at_most(f"rise{key}", terms, 0.0)
