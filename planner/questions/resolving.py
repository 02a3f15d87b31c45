"""Changed fleets solved again: each way to run a service is evaluated once, each plan is verified."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.planner.api import NoPlanFoundError, solve_problem
from fleetplan.planner.candidates import CandidateSet, build_candidates, supplied_hardware
from fleetplan.planner.formulation import build_model, fixed_usd
from fleetplan.planner.plan import Infeasible, Plan, Rejections
from fleetplan.planner.problem import Candidate, ConfigurationKey, KnownBound, Problem, build_problem
from fleetplan.planner.problem.plan_in_force import configurations_in_force, with_baseline
from fleetplan.planner.problem.quick_checks import unservable
from fleetplan.planner.search import LEAST_REGRET, SearchLimits, Verdict, Verge, Watcher, feasibility


class OutOfTimeError(Exception):
    """A question would be over before all candidates of its fleet are evaluated."""


Change = Callable[[Candidate], Candidate | None]
"""What becomes of a candidate in a question; None leaves it out."""


@dataclass(frozen=True, slots=True)
class Question:
    """A fleet to be solved, and what is known of it before.

    Attributes
    ----------
    fleet : Fleet
        What is planned.
    change : callable or None
        What becomes of the candidates.
    begin : Plan or None
        A plan that the search begins with.
    bound : KnownBound or None
        A bound that holds for the fleet.
    verge : Verge or None
        What the least TCO is held against, where no more has to be known of it.
    shown : bool
        Whether somebody sees the plan, not only what it costs: it is then one of few configurations.
    """

    fleet: Fleet
    change: Change | None = None
    begin: Plan | None = None
    bound: KnownBound | None = None
    verge: Verge | None = None
    shown: bool = False


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """What solving a changed fleet gave.

    Attributes
    ----------
    problem : Problem
        What was solved.
    plan : Plan or None
        The verified plan; None where there is none.
    infeasible : bool
        Whether it is proven that there is none.
    reasons : tuple[str, ...]
        Why there is none, as far as a glance shows it, or that the time was short.
    """

    problem: Problem
    plan: Plan | None
    infeasible: bool
    reasons: tuple[str, ...] = ()

    @property
    def most_usd(self) -> float:
        """The optimum costs no more; infinite without a plan. [USD]"""
        return float("inf") if self.plan is None else self.plan.objective_usd

    @property
    def least_usd(self) -> float:
        """The optimum costs no less; infinite where infeasible, 0 where nothing is known. [USD]"""
        if self.plan is not None:
            return self.plan.bound_usd
        return float("inf") if self.infeasible else 0.0


@dataclass(slots=True)
class Resolver:
    """Solves fleets under the same limits.

    Attributes
    ----------
    limits : SearchLimits
        Of each solve.
    say : callable
        Told what is being done.
    watch : callable or None
        Told of every better plan and bound.
    baseline : Plan or None
        The plan in force, against which changes count.
    keep : frozenset[ConfigurationKey]
        Configurations that stay candidates even where others dominate them.
    """

    limits: SearchLimits
    say: Callable[[str], None] = field(default=lambda _: None)
    watch: Watcher | None = None
    baseline: Plan | None = None
    keep: frozenset[ConfigurationKey] = frozenset()
    _known: list[tuple[Fleet, Service, CandidateSet]] = field(default_factory=list)
    _took_s: list[float] = field(default_factory=list)

    def know(self, fleet: Fleet, found: CandidateSet) -> None:
        """Take over the candidates of a fleet that somebody else has built."""
        for service in fleet.services:
            own = replace(
                found,
                candidates=tuple(each for each in found.candidates if each.service == service.name),
                rejections=tuple(each for each in found.rejections if each.service == service.name),
            )
            self._known.append((fleet, service, own))

    def candidates(self, fleet: Fleet) -> CandidateSet:
        """Candidates of a fleet; a service that runs as in a fleet before is not evaluated again.

        Raises
        ------
        OutOfTimeError
            If the limits would be over before another one is evaluated.
        """
        return _joined([self._of_service(fleet, service) for service in fleet.services])

    def problem(self, fleet: Fleet, change: Change | None = None) -> tuple[CandidateSet, Problem]:
        """Candidates and problem of a fleet, with what a question changes about them."""
        candidates = self.candidates(fleet)
        if change is not None:
            changed = (change(candidate) for candidate in candidates.candidates)
            candidates = replace(candidates, candidates=tuple(c for c in changed if c is not None))
        problem = build_problem(fleet, candidates.candidates)
        if self.baseline is not None:
            problem, warnings = with_baseline(problem, self.baseline)
            candidates = replace(candidates, warnings=(*candidates.warnings, *warnings))
        return candidates, problem

    def solve(self, fleet: Fleet, change: Change | None = None, begin: Plan | None = None) -> FleetAnswer:
        """The cheapest plan of a fleet, or that there is none; raises as `answer`."""
        return self.answer(Question(fleet, change, begin))

    def answer(self, asked: Question) -> FleetAnswer:
        """What solving a fleet gives.

        Raises
        ------
        KeyboardInterrupt
            At Ctrl-C: it ends the question, not one of its solves.
        """
        candidates, problem = self.problem(asked.fleet, asked.change)
        problem = replace(problem, begins_with=asked.begin or problem.begins_with)
        limits = replace(self.limits, simplified=asked.shown)
        if counts_cost_alone(asked.fleet):
            problem = replace(problem, bounded_by=asked.bound)
            limits = replace(limits, verge=asked.verge)
        if not problem.cells:
            return FleetAnswer(problem, None, False, ("no service has any demand",))
        reasons = unservable(problem)
        if reasons and asked.fleet.policy.unmet == "forbid":
            return FleetAnswer(problem, None, True, reasons)
        try:
            outcome = solve_problem(candidates, problem, limits, self.watch, self.say, final=False).outcome
        except NoPlanFoundError as error:
            return FleetAnswer(problem, None, False, (str(error),))
        if isinstance(outcome, Infeasible):
            return FleetAnswer(problem, None, True)
        return FleetAnswer(problem, outcome, False)

    def feasible(self, fleet: Fleet, change: Change | None = None) -> Verdict:
        """Whether a fleet has any plan that serves everything."""
        _, problem = self.problem(fleet, change)
        if unservable(problem):
            return Verdict.NO
        return feasibility(problem, self.limits)

    def _of_service(self, fleet: Fleet, service: Service) -> CandidateSet:
        for known_fleet, known, found in self._known:
            if not runs_alike(known, service):
                continue
            if same_hardware(known_fleet, fleet):
                return found
            if service.engines is None and has_hardware_of(known_fleet, fleet):
                return _on_hardware(found, frozenset(supplied_hardware(fleet)))
        # Nothing cuts an evaluation short; it takes about as long as others before it.
        if self.limits.latest.left_s <= max(self._took_s, default=0.0):
            raise OutOfTimeError
        left_s = self.limits.latest.left_s
        found = build_candidates(
            replace(fleet, services=(service,)), lambda _: self.say(f"evaluating {service.name}"), self._kept
        )
        if left_s < math.inf:
            self._took_s.append(left_s - self.limits.latest.left_s)
        self._known.append((fleet, service, found))
        return found

    @property
    def _kept(self) -> Collection[ConfigurationKey]:
        if self.baseline is None:
            return self.keep
        return self.keep | configurations_in_force(self.baseline)


def _joined(parts: Sequence[CandidateSet]) -> CandidateSet:
    """The candidates of all services as if they had been built together."""
    return CandidateSet(
        candidates=tuple(each for part in parts for each in part.candidates),
        rejections=tuple(each for part in parts for each in part.rejections),
        table_sources=tuple(dict.fromkeys(each for part in parts for each in part.table_sources)),
        warnings=tuple(dict.fromkeys(each for part in parts for each in part.warnings)),
        calibrations=tuple(dict.fromkeys(each for part in parts for each in part.calibrations)),
    )


def _on_hardware(found: CandidateSet, names: frozenset[str]) -> CandidateSet:
    """The candidates on some hardware; each dominates others on its own hardware alone."""
    rejections = []
    for row in found.rejections:
        by_hardware = {name: counts for name, counts in row.by_hardware.items() if name in names}
        total = sum(map(Counter, by_hardware.values()), Counter())
        rejections.append(Rejections(service=row.service, counts=dict(total), by_hardware=by_hardware))
    candidates = tuple(each for each in found.candidates if each.hardware in names)
    return replace(found, candidates=candidates, rejections=tuple(rejections))


def same_hardware(one: Fleet, other: Fleet) -> bool:
    """Whether a service has the same choice of hardware in two fleets."""
    return one is other or (
        has_hardware_of(one, other) and set(supplied_hardware(one)) == set(supplied_hardware(other))
    )


def has_hardware_of(one: Fleet, other: Fleet) -> bool:
    """Whether a fleet supplies all hardware of another one, of the same figures."""
    return (
        one.path == other.path
        and one.hardware == other.hardware
        and one.calibration == other.calibration
        and set(supplied_hardware(one)) >= set(supplied_hardware(other))
    )


def counts_cost_alone(fleet: Fleet) -> bool:
    """Whether no regret comes before the cost of a plan: bounds on cost are then those of all plans."""
    return not (fleet.demand_scenarios and fleet.demand_objective == LEAST_REGRET)


def bound_of(plan: Plan, fleet: Fleet) -> KnownBound | None:
    """What a plan of a fleet proves of every fleet whose plans are among its own, none of them cheaper there.

    None where its bound is one of some plans only: those that reach a goal, or leave no more unmet.
    """
    if plan.goal is not None or plan.shortages or not counts_cost_alone(fleet):
        return None
    return KnownBound(plan.bound_usd, plan.solve.bound_source)


def program_sha256(problem: Problem) -> str:
    """Hash of the integer program that serves everything at least cost: equal ones have the same optimum."""
    planning = build_model(problem, allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    return hashlib.sha256(f"{fixed_usd(problem)!r}{planning.model.proto}".encode()).hexdigest()


def runs_alike(one: Service, other: Service) -> bool:
    """Whether two services have the same candidates: only what is asked of them may differ.

    Where latencies are limited under load, what a replica carries depends on the demand.
    """
    if one.traffic is not None and one.traffic.limits_load:
        asked = (one.demand.peak, one.headroom)
        if asked != (other.demand.peak, other.headroom):
            return False
    alike = replace(
        other,
        demand=one.demand,
        headroom=one.headroom,
        priority=one.priority,
        allowed_regions=one.allowed_regions,
    )
    if one.engines is None or other.engines is None:
        return one == alike and one.engines is other.engines
    return one == alike and (one.engines is other.engines or one.engines.equals(other.engines))
