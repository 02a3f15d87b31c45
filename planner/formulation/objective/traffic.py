r"""What served traffic draws or costs, by its rate: load units count only where the dearer way is taken.

Loads are decided in whole load units, and a plan serves the demand exactly, so that a sum over loads is up to
one unit of each too large. So a class of a cell is charged for its served rate as the replicas that
take least would serve it, v, and loads for what they take more. With the demand D, the unmet rate u, the rate
d[g] that passes between a pair of groups of prefill and decode replicas, what a load unit takes e and what it
serves mu / S::

    v (D - u) + sum_agg (e - v mu / S) w + sum_g (v[g] - v) d[g]
              + sum_{prefill} (e - v_p mu / S) w + sum_{decode} (e - v_d mu / S) w

    v_p, v_d = min e S / mu over the prefill, or the decode, replicas of a group;  v[g] = v_p + v_d
    v        = min of e S / mu over the aggregated replicas, and of v[g]

No weight of a load is negative. A plan, whose loads are scaled down to the demand, never takes more than the
sum says, and less only where replicas carry a part of a load unit that others would carry with less.
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
"""Share of what a load unit takes that may be float noise."""


@dataclass(slots=True)
class TrafficSum:
    """A figure of the served traffic as a sum of the decisions, in the figure's unit.

    Attributes
    ----------
    constant : float
        The part that is not decided.
    terms : list[Term]
        The rest; no weight of a load is negative.
    whole_units : float
        By how much the sum may be larger for whole load units than for the traffic of a plan.
    """

    constant: float = 0.0
    terms: list[Term] = field(default_factory=list)
    whole_units: float = 0.0


@dataclass(frozen=True, slots=True)
class _Load:
    """One load: what a unit of it takes, and the rate that it serves. [requests/s]"""

    variable: cp_model.IntVar
    takes: float
    rate: float

    @property
    def per_request_per_s(self) -> float:
        """What a steady request/s takes."""
        return self.takes / self.rate


def traffic_sum(problem: Problem, variables: Variables, takes: Callable[[LoadKey], float]) -> TrafficSum:
    """Sum of what the served traffic takes.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    variables : Variables
        Of its model.
    takes : callable
        What one load unit takes, 0 or more.
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
    known = variables.kv_pairs[place]
    least: dict[tuple[Phase, int], float] = {}
    for phase in (Phase.PREFILL, Phase.DECODE):
        for index, group in enumerate(known.groups(phase)):
            runs = [loads[slot] for slot in group.slots if slot in loads]
            if runs:
                least[phase, index] = _add_loads(runs, _least(runs), found)
    pairs = {
        g: least[Phase.PREFILL, pair.prefill] + least[Phase.DECODE, pair.decode]
        for g, pair in enumerate(known.pairs)
        if (Phase.PREFILL, pair.prefill) in least and (Phase.DECODE, pair.decode) in least
    }
    whole = [load for slot, load in loads.items() if problem.candidates[slot[0]].phase is Phase.AGGREGATED]
    served = min([*pairs.values(), *([_least(whole)] if whole else [])], default=0.0)
    if whole:
        _add_loads(whole, served, found)
    cell = problem.cells[place[0]]
    unit = rate_scales(problem)[cell.service].requests_per_s(1)
    for g, passed in pairs.items():
        found.terms.append((variables.disaggregated[*place, g], (passed - served) * unit))
    if place in variables.worked:
        found.terms.append((variables.worked[place], served * unit))
        return
    planned_ratio = problem.services[cell.service].planned_ratio
    found.constant += served * cell.requests_per_s[place[1]] * planned_ratio
    if place in variables.unmet:
        found.terms.append((variables.unmet[place], -served * unit))


def _least(loads: Sequence[_Load]) -> float:
    return min(load.per_request_per_s for load in loads)


def _add_loads(loads: Sequence[_Load], served: float, found: TrafficSum) -> float:
    """Charge loads with what they take above what their traffic is charged with; return the latter."""
    dearest = 0.0
    for load in loads:
        more = load.takes - served * load.rate
        if more > FLOAT_RATIO * load.takes:
            found.terms.append((load.variable, more))
            dearest = max(dearest, more)
    found.whole_units += dearest
    return served
