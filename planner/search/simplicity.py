"""Choose the plan that is simplest to operate, among those that cost little more than the cheapest.

Where services may pay for local serving (`services.home_percent`), their requests are sent home first, those
of services that may pay most before others. Then three steps share a short time:

1. minimise the kinds of traffic away from home, then the kinds of hardware and configurations per service and
region, within the cost allowance of the policy (`policy.simpler_percent`) and the target gap: first with the
plan's own configurations, which is quick, then with others;
2. minimise the cost of these plans;
3. at about the same cost, minimise the accelerators that start or hold replicas.

The other configurations are, by service and hardware, those that serve a region's peak with the fewest
accelerators. The cheapest plan may use many accelerators that are paid for and idle, where fewer would do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, ReplicaKey, needed_at_peak
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.problem.load_units import load_parts
from fleetplan.planner.search.solvers.cpsat import hint
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA


@dataclass(frozen=True, slots=True)
class SimplerStep:
    """Time share and sufficient gap of one step."""

    share_of_time: float
    gap_ratio: float = 0.0


@dataclass(slots=True)
class StepBudget:
    """Time budget of consecutive steps: what one leaves, later ones may use.

    Attributes
    ----------
    seconds : float
        Budget of all steps. [s]
    spent : callable
        Time used since the first step began. [s]
    granted : float
        Time granted to the steps so far. [s]
    """

    seconds: float
    spent: Callable[[], float]
    granted: float = 0.0

    def next(self, share: float) -> float:
        """Return the time of a step: its share and what is left of the shares before it. [s]"""
        own = share * self.seconds
        self.granted += own
        return max(own, self.granted - self.spent())


HOME_SHARE_OF_TIME: Final = 0.4
"""Time to send requests home, as a multiple of the time of the three steps; the same again to make these
plans cheaper."""

ALL_SHARES_OF_TIME: Final = 1 + 2 * HOME_SHARE_OF_TIME
"""Total time, in the same unit, where requests are sent home."""

RATE_RESOLUTION: Final = 10**4
"""Objective units per request/s of the fastest replica, when counting requests away from home."""

FEWEST_KINDS: Final = SimplerStep(0.3)

FEWEST_WITH_OTHERS: Final = SimplerStep(0.2)

# A fiftieth of the default allowance for a simpler plan.
CHEAPEST: Final = SimplerStep(0.2, 1e-4)

LEAST_EFFORT: Final = SimplerStep(0.3)

NEARLY_SAME_RATIO: Final = 0.0005
"""Relative extra cost for fewer starts: less than the uncertainty of prices."""

HELD_WEIGHT: Final = 2
"""Weight of an accelerator that holds replicas for a moment against one that starts: no replica idles to save
a start."""

Ask = Callable[[SimplerStep], cp_model.CpSolver | None]
"""Function that solves the model for its current objective; None without a solution."""

Relation = tuple[str, str, str]
"""Service, region, and one of: hardware, configuration, or the region of its requests."""


def requests_away(planning: PlanningModel, services: Collection[str]) -> cp_model.LinearExpr | None:
    """Return the requests that other regions serve of these services, weighted by time.

    Prefill and decode count half each. The unit is arbitrary. None where no other region can serve any.
    """
    problem, loads = planning.problem, planning.variables.load
    away = {
        (c, k, p, cell): _mean_rate(problem, c, k, cell)
        for c, k, p, cell in loads
        if problem.cells[cell].service in services and problem.pools[p].region != problem.cells[cell].region
    }
    if not away:
        return None
    fastest = max(away.values())
    weights = [max(1, round(RATE_RESOLUTION * rate / fastest)) for rate in away.values()]
    return cp_model.LinearExpr.weighted_sum([loads[key] for key in away], weights)


def _mean_rate(problem: Problem, c: int, k: int, cell: int) -> float:
    """Return the request rate of a load unit, averaged over the period. [requests/s]"""
    candidate, moment = problem.candidates[c], problem.moments[problem.cells[cell].moment]
    share = 1.0 if candidate.phase is Phase.AGGREGATED else 0.5
    units = LOAD_UNITS_PER_REPLICA * load_parts(problem)[c][k]
    return share * candidate.requests_per_s[k] / units * moment.weight


def _fewest_accelerators(planning: PlanningModel) -> set[int]:
    """Return the candidates that serve a region's peak with the fewest accelerators of their hardware."""
    problem = planning.problem
    places = {(c, problem.pools[p].region) for c, p, _ in planning.variables.replicas}
    best: dict[tuple[str, Phase, str, str], tuple[int, int]] = {}
    for c, region in places:
        candidate = problem.candidates[c]
        if all(rate > 0 for rate in candidate.requests_per_s):
            group = candidate.service, candidate.phase, candidate.hardware, region
            needed = needed_at_peak(problem, c, region) * candidate.accelerators
            best[group] = min(best.get(group, (needed, c)), (needed, c))
    return {c for _, c in best.values()}


class SimplerPlans:
    """Search for a simpler plan on the model of one part; changes the model.

    Parameters
    ----------
    planning : PlanningModel
        Model that gets more rows.
    values : CpSolver
        Values of the cheapest plan.
    ask : callable
        Solves the model for its current objective.
    """

    def __init__(self, planning: PlanningModel, values: cp_model.CpSolver, ask: Ask) -> None:
        self.planning, self.values, self.ask = planning, values, ask
        variables = planning.variables.replicas
        self.running = {c for (c, _, _), count in variables.items() if values.value(count)}
        self.others = _fewest_accelerators(planning)
        self.with_others = planning.model.new_int_var(0, 0, "other_configurations")
        self.varied = False
        self.home_cost = 0

    def search(
        self, most: int, nearly: Callable[[int], int], home: Mapping[frozenset[str], int]
    ) -> cp_model.CpSolver:
        """Return the values of the simplest plan found, or those of the cheapest one.

        Parameters
        ----------
        most : int
            Cost limit. [objective units]
        nearly : callable
            Returns the largest cost that counts as about the same. [objective units]
        home : Mapping[frozenset[str], int]
            Cost limits of local serving by groups of services, largest first. [objective units]
        """
        model, cost = self.planning.model, self.planning.total_cost
        self._send_home(home)
        self._keep_to_running(frozenset())
        least = int(self.values.value(cost))
        model.add(cost <= max(most, least))
        hint(model, self.values)
        self._fewest_kinds()
        own = int(self.values.value(cost))
        model.add(cost <= max(own, min(nearly(own), max(most, least))))
        model.minimize(self._effort())
        self.values = self.ask(LEAST_EFFORT) or self.values
        return self.values

    def _keep_to_running(self, free: frozenset[str]) -> None:
        """Allow only the plan's own configurations, except for `free` services and, once let in, `others`."""
        model, problem = self.planning.model, self.planning.problem
        for (c, _, _), replicas in self.planning.variables.replicas.items():
            if c not in self.running and problem.candidates[c].service not in free:
                most = replicas.proto.domain[1] if c in self.others else 0
                model.add(replicas <= most * self.with_others)

    def _send_home(self, home: Mapping[frozenset[str], int]) -> None:
        """Minimise the requests served away from home, group by group, each within its cost limit."""
        every = {services: requests_away(self.planning, services) for services in home}
        away = {services: each for services, each in every.items() if each is not None}
        if not any(self.values.value(each) for each in away.values()):
            # All requests are at home: keep them there.
            for each in away.values():
                self.planning.model.add(each <= 0)
            return
        model, cost = self.planning.model, self.planning.total_cost
        self._keep_to_running(frozenset().union(*away))
        before = int(self.values.value(cost))
        step = SimplerStep(HOME_SHARE_OF_TIME / len(away))
        for services, served in away.items():
            model.add(cost <= max(home[services], int(self.values.value(cost))))
            hint(model, self.values)
            model.minimize(served)
            now = int(self.values.value(served))
            nearer = self.ask(step) if now else None
            if nearer is not None and nearer.value(served) < now:
                self.values, self.varied = nearer, True
            model.add(served <= int(self.values.value(served)))
        if self.varied:
            self._cheapest_of_these(away)
        self.home_cost = int(self.values.value(cost)) - before
        replicas = self.planning.variables.replicas
        self.running = {c for (c, _, _), count in replicas.items() if self.values.value(count)}

    def _cheapest_of_these(self, away: Mapping[frozenset[str], cp_model.LinearExprT]) -> None:
        """Take the cheapest plan that serves no more requests away from home."""
        hint(self.planning.model, self.values)
        self.planning.model.minimize(self.planning.total_cost)
        self.values = self.ask(SimplerStep(HOME_SHARE_OF_TIME / len(away), CHEAPEST.gap_ratio)) or self.values

    def _fewest_kinds(self) -> None:
        """Take the simplest plan within the cost limit, then the cheapest one that is as simple."""
        model = self.planning.model
        kinds = self._kinds()
        fewest = sum(weight * used for weight, _, used in kinds)
        variety = cp_model.LinearExpr.weighted_sum([each for _, each, _ in kinds], [w for w, _, _ in kinds])
        for _, each, used in kinds:
            model.add_hint(each, used)
        model.minimize(variety)
        for step in (FEWEST_KINDS, FEWEST_WITH_OTHERS):
            simpler = self.ask(step)
            if simpler is not None and simpler.value(variety) < fewest:
                self.values, self.varied, fewest = simpler, True, int(simpler.value(variety))
                hint(model, simpler)
            self._let_others_in()
        model.add(variety <= fewest)
        if self.varied:
            model.minimize(self.planning.total_cost)
            self.values = self.ask(CHEAPEST) or self.values
            hint(model, self.values)

    def _let_others_in(self) -> None:
        """Allow the other configurations from now on."""
        domain = self.with_others.proto.domain
        domain[0] = domain[1] = 1

    def _kinds(self) -> list[tuple[int, cp_model.IntVar, bool]]:
        """Return each relation's weight, its indicator variable, and whether the cheapest plan has it."""
        problem, variables = self.planning.problem, self.planning.variables
        allowed = self.running | self.others
        configurations: dict[Relation, list[cp_model.IntVar]] = defaultdict(list)
        hardware: dict[Relation, list[cp_model.IntVar]] = defaultdict(list)
        away: dict[Relation, list[cp_model.IntVar]] = defaultdict(list)
        for (c, p, _), replicas in variables.replicas.items():
            candidate, region = problem.candidates[c], problem.pools[p].region
            if c in allowed:
                configurations[candidate.service, region, candidate.label].append(replicas)
                hardware[candidate.service, region, candidate.hardware].append(replicas)
        for (c, _, p, i), load in variables.load.items():
            cell, region = problem.cells[i], problem.pools[p].region
            if c in allowed and region != cell.region:
                away[cell.service, cell.region, region].append(load)
        kinds: list[tuple[int, cp_model.IntVar, bool]] = []
        weight = 1
        for name, relations in (("config", configurations), ("kind", hardware), ("away", away)):
            kinds += [
                (weight, self._used(f"{name}[{','.join(key)}]", own), any(map(self.values.value, own)))
                for key, own in relations.items()
            ]
            # One relation of the next kind outweighs all relations of the kinds before.
            weight *= len(relations) + 1
        return kinds

    def _used(self, name: str, decided: Collection[cp_model.IntVar]) -> cp_model.IntVar:
        """Return a variable that is 1 if any of these decisions is not 0."""
        model = self.planning.model
        used = model.new_bool_var(name)
        for each in decided:
            model.add(each <= each.proto.domain[1] * used)
        return used

    def _effort(self) -> cp_model.LinearExprT:
        """Return the weighted sum of accelerators that start, hold replicas, or are bought or rented."""
        problem, variables = self.planning.problem, self.planning.variables
        parts: list[cp_model.LinearExprT] = []
        allowed = self.running | self.others
        # Where starts or switches cost money, an idle replica is better than a new start.
        dear = bool(variables.started or variables.switched)
        start_weight = HELD_WEIGHT * len(problem.moments) + 1 if dear else 1
        for (c, p, m), replicas in variables.replicas.items():
            if c in allowed:
                accelerators = problem.candidates[c].accelerators
                parts.append(HELD_WEIGHT * accelerators * replicas)
                parts += [start_weight * accelerators * each for each in self._starts((c, p, m))]
        for (p, _, _), units in variables.acquired.items():
            parts.append(HELD_WEIGHT * problem.pools[p].accelerators_per_unit * units)
        return cp_model.LinearExpr.sum(parts)

    def _starts(self, key: ReplicaKey) -> list[cp_model.IntVar]:
        """Return the replicas added since the slice before, and since the period before or plan in force."""
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
