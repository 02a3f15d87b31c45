"""The plan that operators like best among those that cost little more than the cheapest one found.

Three steps on the configurations that the cheapest plan runs, each within its part of a short time:

1. the fewest kinds of traffic away from home, then kinds of hardware and configurations of each service in a
   region, at a cost within what the policy allows (`policy.simpler_percent`) and within the asked gap;
2. the cheapest of these plans;
3. of about the same cost, the one with the fewest accelerators that start or hold replicas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, ReplicaKey
from fleetplan.planner.search.solvers.cpsat import hint


@dataclass(frozen=True, slots=True)
class SimplerStep:
    """Share of the time of a step, and the gap at which its answer is good enough."""

    share_of_time: float
    gap_ratio: float = 0.0


FEWEST_KINDS: Final = SimplerStep(0.4)

# A fiftieth of what the plan may cost more by default.
CHEAPEST: Final = SimplerStep(0.3, 1e-4)

LEAST_EFFORT: Final = SimplerStep(0.3)

NEARLY_SAME_RATIO: Final = 0.0005
"""What a plan may cost more for fewer starts: less than the prices are known to."""

HELD_WEIGHT: Final = 2
"""An accelerator that holds replicas in a moment, against one that starts: none idles to save a start."""

Ask = Callable[[SimplerStep], cp_model.CpSolver | None]
"""Solves the model for its objective; None where that finds nothing."""

Relation = tuple[str, str, str]
"""Service with a region and its hardware, its configuration, or the region that its requests come from."""


class SimplerPlans:
    """The model of one part, used up by the search for a simpler plan.

    Parameters
    ----------
    planning : PlanningModel
        Rows are added to its model.
    values : CpSolver
        The cheapest plan.
    ask : callable
        Solves the model for its objective.
    """

    def __init__(self, planning: PlanningModel, values: cp_model.CpSolver, ask: Ask) -> None:
        self.planning, self.values, self.ask = planning, values, ask
        variables = planning.variables.replicas
        self.running = {c for (c, _, _), count in variables.items() if values.value(count)}
        self.varied = False

    def search(self, most: int, nearly: Callable[[int], int]) -> cp_model.CpSolver:
        """Return the values of the simplest plan found, at worst those of the cheapest one.

        Parameters
        ----------
        most : int
            The largest value of the cost objective.
        nearly : callable
            The largest value that is about the same cost as another one.
        """
        model, cost = self.planning.model, self.planning.total_cost
        for (c, _, _), replicas in self.planning.variables.replicas.items():
            if c not in self.running:
                model.add(replicas == 0)
        least = int(self.values.value(cost))
        model.add(cost <= max(most, least))
        hint(model, self.values)
        self._fewest_kinds()
        own = int(self.values.value(cost))
        model.add(cost <= max(own, min(nearly(own), max(most, least))))
        model.minimize(self._effort())
        self.values = self.ask(LEAST_EFFORT) or self.values
        return self.values

    def _fewest_kinds(self) -> None:
        """Take the simplest plan within the cost, then the cheapest that is as simple."""
        model = self.planning.model
        kinds = self._kinds()
        before = sum(weight * used for weight, _, used in kinds)
        variety = cp_model.LinearExpr.weighted_sum([each for _, each, _ in kinds], [w for w, _, _ in kinds])
        for _, each, used in kinds:
            model.add_hint(each, used)
        model.minimize(variety)
        simpler = self.ask(FEWEST_KINDS)
        if simpler is None or simpler.value(variety) >= before:
            model.add(variety <= before)
            return
        self.values, self.varied = simpler, True
        model.add(variety <= int(simpler.value(variety)))
        hint(model, simpler)
        model.minimize(self.planning.total_cost)
        self.values = self.ask(CHEAPEST) or simpler
        hint(model, self.values)

    def _kinds(self) -> list[tuple[int, cp_model.IntVar, bool]]:
        """Weight of each relation, whether a plan has it, and whether the cheapest plan does."""
        problem, variables = self.planning.problem, self.planning.variables
        configurations: dict[Relation, list[cp_model.IntVar]] = defaultdict(list)
        hardware: dict[Relation, list[cp_model.IntVar]] = defaultdict(list)
        away: dict[Relation, list[cp_model.IntVar]] = defaultdict(list)
        for (c, p, _), replicas in variables.replicas.items():
            candidate, region = problem.candidates[c], problem.pools[p].region
            if c in self.running:
                configurations[candidate.service, region, candidate.label].append(replicas)
                hardware[candidate.service, region, candidate.hardware].append(replicas)
        for (c, _, p, i), load in variables.load.items():
            cell, region = problem.cells[i], problem.pools[p].region
            if c in self.running and region != cell.region:
                away[cell.service, cell.region, region].append(load)
        kinds: list[tuple[int, cp_model.IntVar, bool]] = []
        weight = 1
        for name, relations in (("config", configurations), ("kind", hardware), ("away", away)):
            kinds += [
                (weight, self._used(f"{name}[{','.join(key)}]", own), any(map(self.values.value, own)))
                for key, own in relations.items()
            ]
            # One of what follows counts for more than all of what was there.
            weight *= len(relations) + 1
        return kinds

    def _used(self, name: str, decided: Collection[cp_model.IntVar]) -> cp_model.IntVar:
        """Whether any of some decisions is not 0."""
        model = self.planning.model
        used = model.new_bool_var(name)
        for each in decided:
            model.add(each <= each.proto.domain[1] * used)
        return used

    def _effort(self) -> cp_model.LinearExprT:
        """Accelerators that start, those that hold replicas, and those that are bought or rented."""
        problem, variables = self.planning.problem, self.planning.variables
        parts: list[cp_model.LinearExprT] = []
        # Where changes cost, a replica idles rather than to start anew.
        dear = bool(variables.started or variables.switched)
        start_weight = HELD_WEIGHT * len(problem.moments) + 1 if dear else 1
        for (c, p, m), replicas in variables.replicas.items():
            if c in self.running:
                accelerators = problem.candidates[c].accelerators
                parts.append(HELD_WEIGHT * accelerators * replicas)
                parts += [start_weight * accelerators * each for each in self._starts((c, p, m))]
        for (p, _, _), units in variables.acquired.items():
            parts.append(HELD_WEIGHT * problem.pools[p].accelerators_per_unit * units)
        return cp_model.LinearExpr.sum(parts)

    def _starts(self, key: ReplicaKey) -> list[cp_model.IntVar]:
        """Replicas more than in the slice before, and than in the period before or in the plan in force."""
        problem, (c, p, m) = self.planning.problem, key
        replicas, moment = self.planning.variables.replicas, problem.moments[m]
        earlier: list[cp_model.IntVar | int] = []
        for before in (moment.slice_before, moment.before):
            if before is not None:
                earlier.append(replicas.get((c, p, before), 0))
        if moment.before is None and problem.running_before is not None:
            earlier.append(problem.running_before.get((c, p, moment.slice), 0))
        model, found = self.planning.model, []
        for n, count in enumerate(earlier):
            more = model.new_int_var(0, replicas[key].proto.domain[1], f"starts[{c},{p},{m},{n}]")
            model.add(more >= replicas[key] - count)
            found.append(more)
        return found
