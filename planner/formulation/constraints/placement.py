r"""Family 11, placement rules: a pool serves at most a share of a service, by policy or as spot capacity.

For each service s, moment m, pool p and phase, with D the demand of all regions and classes, S load units per
replica, and mu rounded up::

    sum_{c in phase or aggregated, k} mu[c,k] w[c,k,p,i] <= S share D[s,m] + sum mu[c,k]  share[...]

The last sum is one load unit per load; without it, whole load units could not meet a share exactly. It must
not serve demand, though, or plans would run one more configuration for its rounding. Therefore, for a part T
of the traffic (cells that share pools, one cell, or one class of a cell) and every set A of pools that is too
small for T, the excess over the pools' shares is served elsewhere or unmet. This is valid without rounding,
as loads of other pools may exceed what they serve::

    sum_{p not in A, c in phase or agg} mu w + S u[T] >= S (D[T] - sum_{p in A} share D)    elsewhere[...]

An offline service has one row per day instead, over its moments weighted by their hours: a pool does at most
that share of a day's work. Maintenance windows reduce a pool's units and belong to family 3.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.rates import hour_weights, rate_scales, rate_units, rate_units_at_most
from fleetplan.planner.formulation.variables import LoadKey, Variables
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, exact

FAMILY = 11

MOST_SETS: Final = 64
"""Most pool sets with `elsewhere` rows per part of the traffic, small sets first; others have only
`share`."""

Source: TypeAlias = tuple[int, int]
"""(cell index, class index)"""


@dataclass(slots=True)
class _Served:
    """One phase of a service in one moment: rates and loads by part of the traffic and by pool."""

    service: str
    phase: Phase
    moment: int
    loads: dict[Source, dict[int, list[tuple[int, cp_model.IntVar]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row per service, phase, pool and moment (or day) where the pool's share is limited."""
    scales, hours = rate_scales(problem), hour_weights(problem)
    for (name, phase, p, moments), keys in _loads(problem, variables).items():
        share = max_share(problem, p)
        if share is None:
            continue
        weights = {m: hours[m] if len(moments) > 1 else 1 for m in moments}
        scale = scales[name]
        rates = [
            weights[problem.cells[cell].moment] * rate_units_at_most(problem, c, k) for c, k, _, cell in keys
        ]
        demand = sum(
            weights[m] * scale.demand_units(rate)
            for m in moments
            for rate in problem.demand(name, m).values()
        )
        most = math.floor(exact(share) * demand * LOAD_UNITS_PER_REPLICA) + sum(rates)
        served = sum(rate * variables.load[key] for rate, key in zip(rates, keys, strict=True))
        first = problem.moments[moments[0]]
        when = first.label if len(moments) == 1 else first.day_label
        label = f"{name},{phase},{problem.pools[p].name},{when}"
        model.add(served <= most).with_name(f"share[{label}]")
    _add_elsewhere(model, problem, variables)


def max_share(problem: Problem, p: int) -> float | None:
    """Return the largest share of a service that a pool may serve, by policy or as spot capacity."""
    limits = (problem.fleet.policy.max_share_per_pool, problem.pools[p].spot_max_share)
    return min((limit for limit in limits if limit is not None), default=None)


def limited_together(problem: Problem, service: str, moment: int) -> tuple[int, ...]:
    """Return the moments that a share limit counts together: one, or the day of an offline service."""
    return (moment,) if problem.services[service].offline is None else problem.day_of(moment)


def _loads(
    problem: Problem, variables: Variables
) -> dict[tuple[str, Phase, int, tuple[int, ...]], list[LoadKey]]:
    """Return the loads that carry a phase of a service in a pool and moments; aggregated ones carry both."""
    found: dict[tuple[str, Phase, int, tuple[int, ...]], list[LoadKey]] = {}
    for key in variables.load:
        c, _, p, cell = key
        candidate = problem.candidates[c]
        moments = limited_together(problem, candidate.service, problem.cells[cell].moment)
        for phase in (Phase.PREFILL, Phase.DECODE):
            if candidate.phase in (phase, Phase.AGGREGATED):
                found.setdefault((candidate.service, phase, p, moments), []).append(key)
    return found


def _add_elsewhere(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the least traffic of other pools, for every set of pools too small for some traffic."""
    if all(max_share(problem, p) is None for p in range(len(problem.pools))):
        return
    scales = rate_scales(problem)
    for served in _served_by_phase(problem, variables):
        scale = scales[served.service]
        asked = {
            (cell, k): scale.demand_units(problem.cells[cell].requests_per_s[k]) for cell, k in served.loads
        }
        whole = sum(
            scale.demand_units(rate) for rate in problem.demand(served.service, served.moment).values()
        )
        for sources in _parts(served):
            demand = sum(asked[source] for source in sources)
            unmet = [variables.unmet[source] for source in sources if source in variables.unmet]
            pools = {p for source in sources for p in served.loads[source]}
            for chosen, room in _too_few(problem, pools, whole, demand):
                others = [
                    rate * load
                    for source in sources
                    for p, loads in served.loads[source].items()
                    if p not in chosen
                    for rate, load in loads
                ]
                least = math.ceil(LOAD_UNITS_PER_REPLICA * (demand - room))
                rest = cp_model.LinearExpr.sum(others)
                unserved = LOAD_UNITS_PER_REPLICA * cp_model.LinearExpr.sum(unmet)
                names = "+".join(problem.pools[p].name for p in chosen)
                when = problem.moments[served.moment].label
                label = f"{served.service},{served.phase},{when},{_part_label(problem, sources)},{names}"
                model.add(rest + unserved >= least).with_name(f"elsewhere[{label}]")


def _served_by_phase(problem: Problem, variables: Variables) -> Iterator[_Served]:
    """Yield the loads of every online service, by phase and moment."""
    found: dict[tuple[str, Phase, int], _Served] = {}
    for (c, k, p, cell), load in variables.load.items():
        candidate, moment = problem.candidates[c], problem.cells[cell].moment
        if problem.services[candidate.service].offline is not None:
            continue
        rate = rate_units(problem, c, k)
        for phase in (Phase.PREFILL, Phase.DECODE):
            if candidate.phase in (phase, Phase.AGGREGATED):
                key = (candidate.service, phase, moment)
                served = found.setdefault(key, _Served(*key))
                served.loads[cell, k][p].append((rate, load))
    yield from found.values()


def _parts(served: _Served) -> list[tuple[Source, ...]]:
    """Return parts of the traffic: cells that share pools, each cell, and each class of a cell."""
    cells: dict[int, list[Source]] = defaultdict(list)
    for source in sorted(served.loads):
        cells[source[0]].append(source)
    groups: list[tuple[set[int], list[Source]]] = []
    for sources in cells.values():
        pools, together = {p for source in sources for p in served.loads[source]}, list(sources)
        apart = []
        for known, others in groups:
            if known & pools:
                pools, together = pools | known, others + together
            else:
                apart.append((known, others))
        groups = [*apart, (pools, together)]
    parts = [tuple(together) for _, together in groups]
    parts += [tuple(sources) for sources in cells.values()]
    parts += [(source,) for source in served.loads]
    return list(dict.fromkeys(parts))


def _too_few(
    problem: Problem, pools: Collection[int], whole: int, demand: int
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Yield the sets of limited pools too small for a demand, with the rate they may serve. [rate units]"""
    shares = {p: share for p in sorted(pools) if (share := max_share(problem, p)) is not None}
    sets = (chosen for size in range(1, len(shares) + 1) for chosen in itertools.combinations(shares, size))
    for chosen in itertools.islice(sets, MOST_SETS):
        room = sum((exact(shares[p]) * whole for p in chosen), start=Fraction(0))
        if room < demand:
            yield chosen, room


def _part_label(problem: Problem, sources: Collection[Source]) -> str:
    """Return the regions and classes of a part of the traffic as a label."""
    regions = dict.fromkeys(problem.cells[cell].region for cell, _ in sources)
    service = problem.services[problem.cells[next(iter(sources))[0]].service]
    classes = dict.fromkeys(service.classes[k].name for _, k in sources)
    return f"{'+'.join(regions)},{'+'.join(classes)}"
