r"""Rows in whole replicas that coverage and replica load imply, from which solvers derive cuts.

Weights convert the demand D[k] of all classes k of a cell to one unit. The replicas needed for it must run,
whatever their loads::

    sum_{c in phase or aggregated} most[c] n[c] + sum_k weight[k] u[k] >= sum_k weight[k] D[k]
                                                                          replicas_<phase>[...]
    most[c] = max sum_k weight[k] mu[c,k] w[k] / S   with   sum_k w[k] <= S,   w[k] <= bound of class k

with loads w in load units, S of them per replica, rates :math:`\mu` and unmet demand u. The most that n
replicas serve is concave in n, so n times one replica's most is an upper bound. There is one row per
candidate: with weights :math:`1 / \mu`, demand counts in its replicas. Candidates with equal weights share a
row; a service of one class has one row per phase.

The rows do not change the feasible plans. A fleet of five services took HiGHS 1,500 nodes with them and
without restarts (mean of eight seeds), and 3,400 without them (mean of three; benchmarks/RESULTS.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.formulation.variables import Variables, with_label
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.problem.load_units import load_parts
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

LARGEST_WEIGHT: Final = 1000
"""Weight of the class that a candidate serves slowest; the others are integers relative to it. Values of 30,
100, 300 and 1,000 differ on four small fleets by no more than HiGHS's seeds; 1,000 is best."""

MOST_SETS: Final = 10_000
"""Sets of replicas above which only services of one class get these rows. At 22,000 sets, a linear relaxation
took 29 s with the rows of several classes and 15 s without; at 4,000 there was no difference. Sizes in
between are not measured."""


@dataclass(frozen=True, slots=True)
class _ReplicaSet:
    """Replicas of a candidate in a pool, and the most one serves of each class of a cell.

    Attributes
    ----------
    replicas : IntVar
        Number of replicas.
    rates : dict[int, int]
        Rate of one replica by class. [rate units]
    most_loads : dict[int, int]
        Largest load of each class on all of them. [load units]
    """

    replicas: cp_model.IntVar
    rates: dict[int, int]
    most_loads: dict[int, int]

    def weights(self) -> tuple[tuple[int, int], ...]:
        """Return class weights with which one replica serves as much of every class."""
        least = min(self.rates.values())
        weights = {k: max(1, round(LARGEST_WEIGHT * least / rate)) for k, rate in self.rates.items()}
        common = math.gcd(*weights.values())
        return tuple((k, weight // common) for k, weight in sorted(weights.items()))

    def most(self, weights: Mapping[int, int]) -> int:
        """Return the most that one replica serves, rounded up. [rate units times weights]"""
        left, done = LOAD_UNITS_PER_REPLICA, 0
        worth = {k: weight * self.rates[k] for k, weight in weights.items() if k in self.rates}
        for k in sorted(worth, key=lambda k: -worth[k]):
            load = min(left, self.most_loads[k])
            done += worth[k] * load
            left -= load
        return -(-done // LOAD_UNITS_PER_REPLICA)


def add_rows(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    cell_index: int,
    asked: Mapping[int, cp_model.LinearExprT],
    unmet: Mapping[int, cp_model.LinearExprT],
) -> None:
    """Add the rows of one cell.

    Parameters
    ----------
    model : CpModel
        Receives the rows.
    problem : Problem
        Sets and data.
    variables : Variables
        Variables of the model.
    cell_index : int
        Index of the cell.
    asked, unmet : Mapping[int, LinearExprT]
        Demand by class, and the part of it that may stay unmet. [rate units]
    """
    if len(asked) > 1 and len(variables.replicas) > MOST_SETS:
        return
    cell = problem.cells[cell_index]
    total = cp_model.LinearExpr.sum
    for phase in (Phase.PREFILL, Phase.DECODE):
        sets = _replica_sets(problem, variables, cell_index, phase, asked.keys())
        # A class that no replica serves has no weight in any row: its coverage row makes it unmet.
        for number, class_weights in enumerate(dict.fromkeys(each.weights() for each in sets)):
            weights = dict(class_weights)
            served = total([each.most(weights) * each.replicas for each in sets])
            unserved = total([weight * unmet[k] for k, weight in class_weights])
            demand = total([weight * asked[k] for k, weight in class_weights])
            place = f"{cell.service},{cell.region},{problem.moments[cell.moment].label}"
            model.add(served + unserved >= demand).with_name(
                f"replicas_{phase}[{with_label(place, str(number) if number else '')}]"
            )


def _replica_sets(
    problem: Problem, variables: Variables, cell_index: int, phase: Phase, classes: Collection[int]
) -> list[_ReplicaSet]:
    """Return all replicas that may serve the cell in a phase, alone or aggregated."""
    cell = problem.cells[cell_index]
    scale = rate_scales(problem)[cell.service]
    sets = []
    for c, p in problem.slots(cell):
        candidate = problem.candidates[c]
        if candidate.phase not in (phase, Phase.AGGREGATED):
            continue
        loads = {
            k: variables.load[c, k, p, cell_index] for k in classes if (c, k, p, cell_index) in variables.load
        }
        if loads:
            rates = {k: scale.rate_units(candidate.requests_per_s[k]) for k in loads}
            parts = load_parts(problem)[c]
            most = {k: -(-load.proto.domain[1] // parts[k]) for k, load in loads.items()}
            sets.append(_ReplicaSet(variables.replicas[c, p, cell.moment], rates, most))
    return sets
