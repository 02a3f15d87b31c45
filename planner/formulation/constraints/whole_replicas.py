r"""Rows in whole replicas that coverage and replica load imply, for the solver to cut on.

Demand D[k] of a cell is measured in one unit for all its classes k, by weights. As many replicas as it
takes must run, whatever they are loaded with::

    sum_{c in phase or aggregated} most[c] n[c] + sum_k weight[k] u[k] >= sum_k weight[k] D[k]
                                                                          replicas_<phase>[...]
    most[c] = max sum_k weight[k] mu[c,k] w[k] / S   with   sum_k w[k] <= S,   w[k] <= bound of class k

with loads w in load units, S of them a replica, rates :math:`\mu` and unmet demand u. The most that n
replicas do is concave in n, so n times what one does is no less. There is a row for each candidate: by
weights :math:`1 / \mu` demand counts in replicas of it. Those that weigh the classes alike share one; of a
service of one class there is one in each phase.

No plan is lost or gained by these rows. For a fleet of five services HiGHS took 3,400 nodes without them, in
the mean of three seeds, and 1,500 with them and no restarts, in that of eight (benchmarks/RESULTS.md).
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
"""Weight of the class of which a candidate serves the least; those of others are whole too. Of 30, 100, 300
and 1,000 it did best on four small fleets, by no more than seeds of HiGHS differ."""

MOST_SETS: Final = 10_000
"""In models of more sets of replicas only services of one class get the rows. At 22,000 sets a linear
relaxation took 29 s with those of several classes, 15 s without; at 4,000 it took no longer. Nothing between
was measured."""


@dataclass(frozen=True, slots=True)
class _Team:
    """The replicas of a candidate in a pool, and what one may do for the classes of a cell.

    Attributes
    ----------
    replicas : IntVar
        How many there are.
    rates : dict[int, int]
        Of one replica by class. [rate units]
    most_loads : dict[int, int]
        The most that a class loads all of them with. [load units]
    """

    replicas: cp_model.IntVar
    rates: dict[int, int]
    most_loads: dict[int, int]

    def weights(self) -> tuple[tuple[int, int], ...]:
        """Weights by class in whose measure one replica does as much of one class as of another."""
        least = min(self.rates.values())
        weights = {k: max(1, round(LARGEST_WEIGHT * least / rate)) for k, rate in self.rates.items()}
        common = math.gcd(*weights.values())
        return tuple((k, weight // common) for k, weight in sorted(weights.items()))

    def most(self, weights: Mapping[int, int]) -> int:
        """The most that one replica does, rounded up. [rate units times weights]"""
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
        Receives them.
    problem : Problem
        Sets and data.
    variables : Variables
        Its decisions.
    cell_index : int
        The cell.
    asked, unmet : Mapping[int, LinearExprT]
        By class, what has to be served and what may be left of it. [rate units]
    """
    if len(asked) > 1 and len(variables.replicas) > MOST_SETS:
        return
    cell = problem.cells[cell_index]
    total = cp_model.LinearExpr.sum
    for phase in (Phase.PREFILL, Phase.DECODE):
        teams = _teams(problem, variables, cell_index, phase, asked.keys())
        # A class that nobody serves has no weight in any row: its coverage says that it stays unmet.
        for number, measure in enumerate(dict.fromkeys(team.weights() for team in teams)):
            weights = dict(measure)
            done = total([team.most(weights) * team.replicas for team in teams])
            left = total([weight * unmet[k] for k, weight in measure])
            wanted = total([weight * asked[k] for k, weight in measure])
            place = f"{cell.service},{cell.region},{problem.moments[cell.moment].label}"
            model.add(done + left >= wanted).with_name(
                f"replicas_{phase}[{with_label(place, str(number) if number else '')}]"
            )


def _teams(
    problem: Problem, variables: Variables, cell_index: int, phase: Phase, classes: Collection[int]
) -> list[_Team]:
    """All replicas that may serve the cell in a phase, alone or with the other one."""
    cell = problem.cells[cell_index]
    scale = rate_scales(problem)[cell.service]
    teams = []
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
            teams.append(_Team(variables.replicas[c, p, cell.moment], rates, most))
    return teams
