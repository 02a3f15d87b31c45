"""Solve changed fleets: evaluate each distinct service once, and verify each plan."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.planner.api import NoPlanFoundError, Purpose, evaluate_within, solve_problem
from fleetplan.planner.candidates import (
    CandidateSet,
    OutOfTimeError,
    found_before,
    kept_candidates,
    supplied_hardware,
)
from fleetplan.planner.formulation import CostOverflowError
from fleetplan.planner.jobs import RunJobs, run_here
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.problem import ConfigurationKey, Problem, build_problem
from fleetplan.planner.problem.current_plan import configurations_in_force, with_baseline
from fleetplan.planner.problem.quick_checks import unservable
from fleetplan.planner.questions.fleet_question import Change, FleetAnswer, FleetQuestion
from fleetplan.planner.questions.reuse import (
    counts_cost_alone,
    has_hardware_of,
    on_hardware,
    runs_alike,
    same_hardware,
    same_program,
)
from fleetplan.planner.search import SearchLimits, Verdict, Watcher, feasibility

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


KNOWN_OF_A_SERVICE: Final = 16
"""Candidate sets kept in memory per service, most recent first; the cache folder has the others. Each has
about 100 candidates of 1 kB, and the fleet.
"""


def quiet(text: str) -> None:
    """Ignore a progress message."""
    del text


@dataclass(slots=True)
class Resolver:
    """Solves fleets under the same limits.

    Attributes
    ----------
    limits : SearchLimits
        Limits for each fleet, including the evaluation of candidates.
    say : callable
        Receives progress messages.
    watch : callable or None
        Receives every better plan and bound.
    baseline : Plan or None
        Plan in force, the reference for changes.
    keep : frozenset[ConfigurationKey]
        Configurations that stay candidates even if dominated.
    run : callable
        Runs independent solves and evaluations.
    """

    limits: SearchLimits
    say: Callable[[str], None] = quiet
    watch: Watcher | None = None
    baseline: Plan | None = None
    keep: frozenset[ConfigurationKey] = frozenset()
    run: RunJobs = run_here
    _known: dict[str, deque[tuple[Fleet, Service, CandidateSet]]] = field(default_factory=dict)
    _took_s: list[float] = field(default_factory=list)
    _latest: str = ""

    def know(self, fleet: Fleet, found: CandidateSet) -> None:
        """Store the candidates of a fleet built elsewhere."""
        for service in fleet.services:
            own = replace(
                found,
                candidates=tuple(each for each in found.candidates if each.service == service.name),
                rejections=tuple(each for each in found.rejections if each.service == service.name),
            )
            self._know(fleet, service, own)

    def _know(self, fleet: Fleet, service: Service, own: CandidateSet) -> None:
        """Store the candidates of one service."""
        known = self._known.setdefault(service.name, deque(maxlen=KNOWN_OF_A_SERVICE))
        known.append((fleet, service, own))

    def candidates(self, fleet: Fleet, late: Callable[[], bool] | None = None) -> CandidateSet:
        """Return the candidates of a fleet; evaluate only services that differ from earlier fleets.

        Parameters
        ----------
        fleet : Fleet
            Fleet to plan.
        late : callable, optional
            Returns whether the time for candidates is over; by default the limits decide.

        Raises
        ------
        OutOfTimeError
            The limits would pass before another evaluation is complete.
        """
        missing = tuple(service for service in fleet.services if self._found(fleet, service) is None)
        if len(missing) > 1:
            self._know_together(replace(fleet, services=missing), late)
        return _joined([self._of_service(fleet, service, late) for service in fleet.services])

    def _know_together(self, fleet: Fleet, late: Callable[[], bool] | None) -> None:
        """Load candidates that an earlier command stored, or evaluate the services in parallel."""
        if (found := found_before(fleet, self._kept)) is not None:
            self.know(fleet, found)
        elif self.side_by_side:
            apart = [replace(fleet, services=(service,)) for service in fleet.services]
            for done, (number, of_one) in enumerate(self.each(Resolver.candidates, apart), start=1):
                service = fleet.services[number]
                self.say(f"evaluated {service.name}")
                self._know(fleet, service, of_one)
                if late is not None and late():
                    services = counted(len(fleet.services), "service")
                    raise OutOfTimeError(f"{done} of {services} evaluated and kept")
        elif math.isinf(self.limits.latest.ends):
            self.know(fleet, kept_candidates(fleet, self.say, self._kept, late or (lambda: False)))
        # With a common deadline for all questions, start a service only if it can finish.

    @property
    def side_by_side(self) -> bool:
        """Return whether jobs run in other processes, several at a time."""
        return self.run is not run_here

    def each(
        self, function: Callable[[Resolver, _ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        """Yield numbered results of a function of a resolver and an argument, as they finish.

        Jobs in this process use this resolver; jobs elsewhere use a silent copy that runs its jobs locally.
        """
        if not self.side_by_side:
            return ((number, function(self, argument)) for number, argument in enumerate(arguments))
        copy = replace(self, say=quiet, watch=None, run=run_here)
        return self.run(_done, [_Job(copy, function, argument) for argument in arguments])

    def in_order(
        self, function: Callable[[Resolver, _ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[_ResultT]:
        """Yield the results of `each` in the order of the arguments, as soon as they are known."""
        waiting: dict[int, _ResultT] = {}
        following = 0
        for number, result in self.each(function, arguments):
            waiting[number] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1

    def answers(self, asked: Sequence[FleetQuestion]) -> Iterator[FleetAnswer]:
        """Yield the answers to questions, in their order; raises as `answer`."""
        return self.in_order(Resolver.answer, asked)

    def problem(
        self, fleet: Fleet, change: Change | None = None, late: Callable[[], bool] | None = None
    ) -> tuple[CandidateSet, Problem]:
        """Return candidates and problem of a fleet with the changes of a question; raises as `candidates`."""
        candidates = self.candidates(fleet, late)
        if change is not None:
            changed = (change(candidate) for candidate in candidates.candidates)
            candidates = replace(candidates, candidates=tuple(c for c in changed if c is not None))
        problem = build_problem(fleet, candidates.candidates)
        if self.baseline is not None:
            problem, warnings = with_baseline(problem, self.baseline)
            candidates = replace(candidates, warnings=(*candidates.warnings, *warnings))
        return candidates, problem

    def solve(self, fleet: Fleet, change: Change | None = None, begin: Plan | None = None) -> FleetAnswer:
        """Return the cheapest plan of a fleet, if there is one; raises as `answer`."""
        return self.answer(FleetQuestion(fleet, change, begin))

    def answer(self, asked: FleetQuestion) -> FleetAnswer:
        """Return the answer to a question.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C ends the whole question, not only one of its solves.
        """
        if not asked.with_baseline and self.baseline is not None:
            return replace(self, baseline=None).answer(replace(asked, with_baseline=True))
        try:
            (candidates, problem), left = self.problem_in_time(asked.fleet, asked.change)
        except NoPlanFoundError as error:
            return FleetAnswer(build_problem(asked.fleet, ()), None, False, (str(error),))
        if asked.same_as is not None and same_program(problem, asked.same_as):
            return FleetAnswer(problem, asked.begin, False, known=True)
        return replace(self, limits=left)._solved(asked, candidates, problem)

    def is_known(self, asked: FleetQuestion) -> bool:
        """Return whether a fleet has the program of the named problem, so that no solve is needed."""
        try:
            (_, problem), _ = self.problem_in_time(asked.fleet, asked.change)
        except NoPlanFoundError:
            return False
        return asked.same_as is not None and same_program(problem, asked.same_as)

    def problem_in_time(
        self, fleet: Fleet, change: Change | None = None
    ) -> tuple[tuple[CandidateSet, Problem], SearchLimits]:
        """Return candidates, problem and remaining limits; raises as `evaluate_within`.

        A common deadline for all questions also limits this one.
        """
        if not math.isinf(self.limits.latest.ends):
            return self.problem(fleet, change), self.limits
        return evaluate_within(self.limits, lambda late: self.problem(fleet, change, late))

    def _solved(self, asked: FleetQuestion, candidates: CandidateSet, problem: Problem) -> FleetAnswer:
        problem = replace(problem, begins_with=asked.begin or problem.begins_with)
        limits = replace(self.limits, simplified=asked.shown)
        if counts_cost_alone(asked.fleet):
            problem = replace(problem, bounded_by=asked.bound)
            limits = replace(limits, thresholds=asked.thresholds)
        if not problem.cells:
            return FleetAnswer(problem, None, False, ("no service has any demand",))
        reasons = unservable(problem)
        if reasons and asked.fleet.policy.unmet == "forbid":
            return FleetAnswer(problem, None, True, reasons)
        try:
            outcome = solve_problem(candidates, problem, limits, self.watch, self.say, Purpose.STEP).outcome
        except NoPlanFoundError as error:
            return FleetAnswer(problem, None, False, (str(error),))
        except CostOverflowError as error:
            # A question may add supply that the fleet file does not allow.
            return FleetAnswer(problem, None, False, tuple(issue.message for issue in error.issues))
        if isinstance(outcome, Infeasible):
            return FleetAnswer(problem, None, True)
        return FleetAnswer(problem, outcome, False)

    def feasible(self, fleet: Fleet, change: Change | None = None) -> Verdict:
        """Return whether a fleet has a plan that serves all demand."""
        _, problem = self.problem(fleet, change)
        if unservable(problem):
            return Verdict.NO
        return feasibility(problem, self.limits)

    def _found(self, fleet: Fleet, service: Service) -> CandidateSet | None:
        """Return the known candidates of a service, or None."""
        for known_fleet, known, found in self._known.get(service.name, ()):
            if not runs_alike(known, service):
                continue
            if same_hardware(known_fleet, fleet):
                return found
            if service.engines is None and has_hardware_of(known_fleet, fleet):
                return on_hardware(found, frozenset(supplied_hardware(fleet)))
        return None

    def _of_service(self, fleet: Fleet, service: Service, late: Callable[[], bool] | None) -> CandidateSet:
        if (known := self._found(fleet, service)) is not None:
            return known
        # Start an evaluation only if one of typical duration can finish.
        if self.limits.latest.left_s <= max(self._took_s, default=0.0):
            raise OutOfTimeError(f"{service.name} is not evaluated")
        left_s = self.limits.latest.left_s
        say, self._latest = quiet if service.name == self._latest else self.say, service.name
        found = kept_candidates(
            replace(fleet, services=(service,)),
            lambda _: say(f"evaluating {service.name}"),
            self._kept,
            late or (lambda: self.limits.latest.passed),
        )
        if left_s < math.inf:
            self._took_s.append(left_s - self.limits.latest.left_s)
        self._know(fleet, service, found)
        return found

    @property
    def _kept(self) -> Collection[ConfigurationKey]:
        if self.baseline is None:
            return self.keep
        return self.keep | configurations_in_force(self.baseline)


@dataclass(frozen=True, slots=True)
class _Job(Generic[_ArgumentT, _ResultT]):
    """A call of a function with a resolver, to run in another process."""

    resolver: Resolver
    function: Callable[[Resolver, _ArgumentT], _ResultT]
    argument: _ArgumentT


def _done(job: _Job[_ArgumentT, _ResultT]) -> _ResultT:
    return job.function(job.resolver, job.argument)


def _joined(parts: Sequence[CandidateSet]) -> CandidateSet:
    """Return the candidates of all services as a single set."""
    return CandidateSet(
        candidates=tuple(each for part in parts for each in part.candidates),
        rejections=tuple(each for part in parts for each in part.rejections),
        table_sources=tuple(dict.fromkeys(each for part in parts for each in part.table_sources)),
        warnings=tuple(dict.fromkeys(each for part in parts for each in part.warnings)),
        calibrations=tuple(dict.fromkeys(each for part in parts for each in part.calibrations)),
    )
