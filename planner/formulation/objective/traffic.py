r"""Energy or cost of the served traffic by its rate; load units count only on less efficient replicas.

Loads are whole load units while plans serve the demand exactly, so a sum over loads is up to one unit each
too large. Therefore a class of a cell is charged for its served rate at v, the least that any replica would
draw, and loads for the excess. With demand D, unmet rate u, rate d[g] through a pair of groups of prefill and
decode replicas, draw e and rate mu / S of a load unit::

    v (D - u) + sum_agg (e - v mu / S) w + sum_g (v[g] - v) d[g]
              + sum_{prefill} (e - v_p mu / S) w + sum_{decode} (e - v_d mu / S) w

    v_p, v_d = min e S / mu over the prefill, or the decode, replicas of a group;  v[g] = v_p + v_d
    v        = min of e S / mu over the aggregated replicas, and of v[g]

No load has a negative weight. A plan, whose loads are scaled down to the demand, never draws more than the
sum states, and less only if replicas carry part of a load unit that others would carry more efficiently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.objective.tco import Term
from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.formulation.variables import CellClassKey, LoadKey, Variables
from fleetplan.planner.problem import Phase, Problem, Slot
from fleetplan.planner.problem.load_units import load_units

FLOAT_RATIO: Final = 1e-12
"""Share of a load unit's draw that may be float noise."""


@dataclass(slots=True)
class TrafficSum:
    """Draw or cost of the served traffic as a sum over decisions, in the unit of the figure.

    Attributes
    ----------
    constant : float
        Constant part.
    terms : list[Term]
        Variable part; no load has a negative weight.
    served : list[tuple[IntVar, int, float]]
        Unmet demand, the units of the whole demand, and the draw of a unit that is served. A row rounds that
        draw alone: of a demand of which most stays unmet, the draw of the whole would hide that of the rest.
    whole_units : float
        Excess of the sum over a plan's traffic, due to whole load units.
    """

    constant: float = 0.0
    terms: list[Term] = field(default_factory=list)
    served: list[tuple[cp_model.IntVar, int, float]] = field(default_factory=list)
    whole_units: float = 0.0


@dataclass(frozen=True, slots=True)
class _Load:
    """One load: draw of a unit, and rate it serves. [requests/s]"""

    variable: cp_model.IntVar
    takes: float
    rate: float

    @property
    def per_request_per_s(self) -> float:
        """Return the draw of a steady request/s."""
        return self.takes / self.rate


def traffic_sum(problem: Problem, variables: Variables, takes: Callable[[LoadKey], float]) -> TrafficSum:
    """Sum the draw of the served traffic.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    variables : Variables
        Variables of its model.
    takes : callable
        Draw of one load unit, 0 or more.
    """
    loads: dict[CellClassKey, dict[Slot, _Load]] = defaultdict(dict)
    for key, variable in variables.load.items():
        c, k, p, cell = key
        rate = problem.candidates[c].requests_per_s[k] / load_units(problem, c, k)
        loads[cell, k][c, p] = _Load(variable, takes(key), rate)
    found = TrafficSum()
    for place, of_class in loads.items():
        _add_class(problem, variables, place, of_class, found)
    return found


def _add_class(
    problem: Problem,
    variables: Variables,
    place: CellClassKey,
    loads: Mapping[Slot, _Load],
    found: TrafficSum,
) -> None:
    """Add one class of a cell."""
    kv_pairs = variables.kv_pairs[place]
    least: dict[tuple[Phase, int], float] = {}
    for phase in (Phase.PREFILL, Phase.DECODE):
        for index, group in enumerate(kv_pairs.groups(phase)):
            group_loads = [loads[slot] for slot in group.slots if slot in loads]
            if group_loads:
                least[phase, index] = _add_loads(group_loads, _least(group_loads), found)
    least_of_pair = {
        g: least[Phase.PREFILL, pair.prefill] + least[Phase.DECODE, pair.decode]
        for g, pair in enumerate(kv_pairs.pairs)
        if (Phase.PREFILL, pair.prefill) in least and (Phase.DECODE, pair.decode) in least
    }
    aggregated = [
        load for slot, load in loads.items() if problem.candidates[slot[0]].phase is Phase.AGGREGATED
    ]
    served = min([*least_of_pair.values(), *([_least(aggregated)] if aggregated else [])], default=0.0)
    if aggregated:
        _add_loads(aggregated, served, found)
    cell = problem.cells[place[0]]
    unit = rate_scales(problem)[cell.service].requests_per_s(1)
    for g, pair_least in least_of_pair.items():
        found.terms.append((variables.disaggregated[*place, g], (pair_least - served) * unit))
    if place in variables.worked:
        found.terms.append((variables.worked[place], served * unit))
        return
    planned_ratio = problem.services[cell.service].planned_ratio
    demand = served * cell.requests_per_s[place[1]] * planned_ratio
    units = rate_scales(problem)[cell.service].demand_units(cell.requests_per_s[place[1]])
    if place in variables.unmet and units:
        # Whole units exceed the demand: if all of it is unmet, nothing is drawn.
        found.served.append((variables.unmet[place], units, demand / units))
    else:
        found.constant += demand


def _least(loads: Sequence[_Load]) -> float:
    return min(load.per_request_per_s for load in loads)


def _add_loads(loads: Sequence[_Load], served: float, found: TrafficSum) -> float:
    """Charge loads for their draw above that of their traffic; return the draw charged to the traffic."""
    dearest = 0.0
    for load in loads:
        more = load.takes - served * load.rate
        if more > FLOAT_RATIO * load.takes:
            found.terms.append((load.variable, more))
            dearest = max(dearest, more)
    found.whole_units += dearest
    return served
