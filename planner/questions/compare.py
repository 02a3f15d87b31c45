"""Value of a plan: its saving against counterfactual fleets with the same demand and limits.

Candidates are evaluated once; a counterfactual only removes some. A scenario has a fleet of its own and
shares the candidates if its services and hardware are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fleetplan.fleet.figures import counted, figure
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import NoPlanFoundError, Purpose, evaluate_within, solve_problem
from fleetplan.planner.candidates import CandidateSet, kept_candidates
from fleetplan.planner.plan import Infeasible, Plan, Shortage
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.problem.current_plan import configurations_in_force, with_baseline
from fleetplan.planner.problem.quick_checks import unservable
from fleetplan.planner.questions.comparison import Compared, Comparison, OptionResult, Saving
from fleetplan.planner.questions.counterfactuals import Counterfactual, FleetOption
from fleetplan.planner.questions.diff import diff
from fleetplan.planner.questions.reuse import bound_of, counts_cost_alone, runs_alike, same_hardware
from fleetplan.planner.search import CostThresholds, SearchLimits, Watcher

DEARER_GAP_RATIO: Final = 0.05
"""Optimality gap at which the search of an option ends once another option is proven cheaper."""

UNMET_TOLERANCE_RATIO = 1e-6
"""Relative difference of unmet demand that counts as rounding."""


_Solved = tuple[int, tuple[Candidate, ...], CostThresholds | None]
"""Cache key of a solve: the fleet, its candidates, and the cost threshold of the search."""


@dataclass(frozen=True, slots=True)
class _Solver:
    """Solver of all fleets of a comparison, with equal limits for all and a cache of answers."""

    limits: SearchLimits
    watch: Watcher | None
    say: Callable[[str], None]
    baseline: Plan | None
    solved: dict[_Solved, Plan | Infeasible] = field(default_factory=dict)

    def solve(
        self,
        title: str,
        fleet: Fleet,
        candidates: CandidateSet,
        known: Plan | None = None,
        simplified: bool = True,
        thresholds: CostThresholds | None = None,
    ) -> Plan | Infeasible:
        """Return the plan of a fleet; with fewer candidates, start from the plan with all of them.

        With a verge, the search only decides on which side of it the lowest TCO lies.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C in a solve of a counterfactual; the solve of the fleet itself keeps its best plan.
        """
        whole = id(fleet), candidates.candidates, None
        key = whole if whole in self.solved else (id(fleet), candidates.candidates, thresholds)
        if key not in self.solved:
            self.say(f"{title}: {counted(len(candidates.candidates), 'candidate')}; solving")
            problem = build_problem(fleet, candidates.candidates)
            if self.baseline is not None:
                problem, _ = with_baseline(problem, self.baseline)
            if known is not None:
                problem = replace(problem, begins_with=known, bounded_by=bound_of(known, fleet))
            limits = replace(self.limits, simplified=simplified, thresholds=thresholds)
            purpose = Purpose.ROW if self.solved else Purpose.ANSWER
            outcome = solve_problem(candidates, problem, limits, self.watch, self.say, purpose).outcome
            if isinstance(outcome, Infeasible) or outcome.gap <= self.limits.gap_ratio:
                # As good as a solve without a verge.
                key = whole
            self.solved[key] = outcome
        return self.solved[key]


def comparisons(
    fleet: Fleet,
    counterfactuals: Sequence[Counterfactual],
    limits: SearchLimits,
    watch: Watcher | None = None,
    announce: Callable[[str], None] | None = None,
    baseline: Plan | None = None,
) -> Iterator[Comparison]:
    """Yield the comparison after the solve of a fleet, and after each of its counterfactuals.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    counterfactuals : Sequence[Counterfactual]
        Fleets to compare the plan with.
    limits : SearchLimits
        Limits for each fleet. The time to evaluate candidates counts for the first fleet that uses them.
    watch, announce : callable, optional
        As in `plan_fleet`.
    baseline : Plan, optional
        Plan in force, the reference for changes in every fleet.

    Raises
    ------
    NoPlanFoundError
        The limit was reached before the first plan of the fleet itself.
    KeyboardInterrupt
        Ctrl-C in a solve of a counterfactual; in the solve of the fleet itself, it keeps the best plan.
    """
    solver = _Solver(limits, watch, announce or (lambda _: None), baseline)
    keep = frozenset().union(*(each.configurations for each in counterfactuals))
    if baseline is not None:
        keep |= configurations_in_force(baseline)
    candidates, left = evaluate_within(limits, lambda late: kept_candidates(fleet, solver.say, keep, late))
    outcome = replace(solver, limits=left).solve("the plan", fleet, candidates)
    found = Comparison(outcome, candidates.warnings, ())
    yield found
    if isinstance(outcome, Infeasible):
        return
    for each in counterfactuals:
        row = _compared(fleet, candidates, outcome, each, solver)
        found = replace(found, rows=(*found.rows, row))
        yield found


def _compared(
    fleet: Fleet, candidates: CandidateSet, plan: Plan, against: Counterfactual, solver: _Solver
) -> Compared:
    """Solve every option of a counterfactual and compare the cheapest with the plan."""
    other = against.fleet or fleet
    if not _same_candidates(fleet, other):
        running = solver.baseline
        keep = frozenset() if running is None else configurations_in_force(running)
        try:
            candidates, left = evaluate_within(
                solver.limits, lambda late: kept_candidates(other, solver.say, keep, late)
            )
        except NoPlanFoundError as error:
            late = tuple(OptionResult(each.label, None, False, (str(error),)) for each in against.options)
            return Compared(against.name, against.definition, late, None, None, None, None, 0.0, ())
        solver = replace(solver, limits=left)
    known = plan if against.fleet is None else None
    trials = _trials(other, candidates, against, solver, known)
    planned = [(trial, trial.plan) for trial in trials if trial.plan is not None]
    if not planned:
        return Compared(against.name, against.definition, trials, None, None, None, None, 0.0, ())
    chosen, cheapest = min(planned, key=lambda pair: (_unmet(other, pair[1]), pair[1].objective_usd))
    bound = _bound_usd(trials, cheapest, plan if against.fleet is None else None)
    notes = list(_demand_note(fleet, other))
    saving: Saving | None = None
    if _same_unmet(_unmet(fleet, plan), _unmet(other, cheapest)):
        saving = Saving(
            usd=cheapest.objective_usd - plan.objective_usd,
            least_usd=bound - plan.objective_usd,
            most_usd=cheapest.objective_usd - plan.bound_usd,
            of_usd=cheapest.objective_usd,
        )
    else:
        notes.append("the two leave different demand unmet, so their TCOs are not comparable")
    return Compared(
        name=against.name,
        definition=against.definition,
        trials=trials,
        chosen=chosen,
        bound_usd=bound,
        saving=saving,
        difference=diff(cheapest, plan),
        stranded_usd=sum(use.usd for use in cheapest.pools if use.used_accelerators == 0),
        notes=tuple(notes),
    )


def _trials(
    fleet: Fleet, candidates: CandidateSet, against: Counterfactual, solver: _Solver, known: Plan | None
) -> tuple[OptionResult, ...]:
    """Solve all options; those proven more expensive than another one only to a gap of 5 %.

    Options that keep most of the plan's configurations come first, because they are likely the cheapest.
    """
    running = () if known is None else known.placements
    kept = {
        number: sum(row.accelerators for row in running if row.key in keys)
        for number, option in enumerate(against.options)
        for keys in [{each.key for each in candidates.candidates if option.keeps(each)}]
    }
    comparable = fleet.policy.unmet == "forbid" and fleet.objective == "tco" and counts_cost_alone(fleet)
    found: dict[int, OptionResult] = {}
    thresholds: CostThresholds | None = None
    for number in sorted(kept, key=lambda each: -kept[each]):
        trial = _trial(fleet, candidates, against, against.options[number], solver, known, thresholds)
        found[number] = trial
        plans = [each.plan.objective_usd for each in found.values() if each.plan is not None]
        if comparable and plans:
            thresholds = CostThresholds(-math.inf, min(plans), max(DEARER_GAP_RATIO, solver.limits.gap_ratio))
    return tuple(found[number] for number in sorted(found))


def _trial(
    fleet: Fleet,
    candidates: CandidateSet,
    against: Counterfactual,
    option: FleetOption,
    solver: _Solver,
    known: Plan | None,
    thresholds: CostThresholds | None,
) -> OptionResult:
    """Solve one option with the candidates it keeps, as far as it may be the cheapest.

    `known` is the plan with all candidates, if any; `thresholds` is the cost of another option.
    """
    kept = tuple(filter(option.keeps, candidates.candidates))
    if known is not None and not known.shortages and configurations_in_force(known) <= {c.key for c in kept}:
        # The unrestricted plan uses no removed candidate, so no plan of this option is better.
        return OptionResult(option.label, known, False, ())
    reasons = unservable(build_problem(fleet, kept))
    if reasons and fleet.policy.unmet == "forbid":
        return OptionResult(option.label, None, True, reasons)
    title = f"{against.name} {option.label}".rstrip()
    try:
        own = replace(candidates, candidates=kept)
        outcome = solver.solve(title, fleet, own, known, len(against.options) == 1, thresholds)
    except NoPlanFoundError as error:
        return OptionResult(option.label, None, False, (str(error),))
    if isinstance(outcome, Infeasible):
        more = [outcome.more_short] if outcome.more_short else []
        return OptionResult(option.label, None, True, (*map(_shortage_text, outcome.shortages), *more))
    dearer = (
        thresholds is not None
        and outcome.bound_usd >= thresholds.above_usd
        and outcome.gap > solver.limits.gap_ratio
    )
    return OptionResult(option.label, outcome, False, (), dearer)


def _bound_usd(trials: Sequence[OptionResult], cheapest: Plan, unrestricted: Plan | None) -> float:
    """Return a lower bound on the cost of every option. [USD]

    An option without a plan at its time limit has no bound, so the bound of the unrestricted plan holds: a
    restriction never lowers the cost.
    """
    bounds = [trial.plan.bound_usd for trial in trials if trial.plan is not None]
    if any(trial.plan is None and not trial.infeasible for trial in trials):
        bounds.append(0.0 if unrestricted is None else unrestricted.bound_usd)
    return min(*bounds, cheapest.objective_usd)


def _shortage_text(row: Shortage) -> str:
    text = f"{row.service} ({row.request_class}) in {row.region} {row.period}: {row.what_is_missing}"
    return f"{text}; additional capacity needed: {row.would_take}" if row.would_take else text


def _unmet(fleet: Fleet, plan: Plan) -> tuple[float, ...]:
    """Return the unmet demand by priority, in order of priority. [requests/s]"""
    priority = {service.name: service.priority for service in fleet.services}
    levels = sorted(set(priority.values()))
    return tuple(
        sum(row.requests_per_s for row in plan.unmet if priority[row.service] == level) for level in levels
    )


def _same_unmet(plan: Sequence[float], other: Sequence[float]) -> bool:
    most = max((*plan, *other), default=0.0)
    return len(plan) == len(other) and all(
        abs(a - b) <= UNMET_TOLERANCE_RATIO * most for a, b in zip(plan, other, strict=True)
    )


def _demand_note(fleet: Fleet, other: Fleet) -> tuple[str, ...]:
    """Return a note if a scenario serves a different demand; empty otherwise."""
    if _demands(fleet) == _demands(other):
        return ()
    own, its = (sum(sum(rates.values()) for rates in _demands(each).values()) for each in (fleet, other))
    return (
        f"it serves a different demand: {figure(its, 5)} instead of {figure(own, 5)} requests/s over all "
        "services and periods",
    )


def _demands(fleet: Fleet) -> dict[str, Mapping[tuple[str, str, str], float]]:
    return {service.name: service.demand.peak for service in fleet.services}


def _same_candidates(fleet: Fleet, other: Fleet) -> bool:
    """Return whether two fleets have the same candidates: only demand, prices and rules may differ."""
    return (
        same_hardware(fleet, other)
        and len(fleet.services) == len(other.services)
        and all(runs_alike(a, b) for a, b in zip(fleet.services, other.services, strict=True))
    )
