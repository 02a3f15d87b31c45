"""Run measurements: the rest of the plan, point by point, until the errors are small."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.microbench.adaptive import NodeError, next_points, node_errors, rows_of
from fleetplan.perfmodel.microbench.control import disturbed
from fleetplan.perfmodel.microbench.journal import Journal
from fleetplan.perfmodel.microbench.points import Measurement, Point, Unmeasurable
from fleetplan.perfmodel.microbench.sites import Extent, Site, first_points
from fleetplan.perfmodel.operators import OperatorKind

MeasurePoint = Callable[[Point], Measurement]
"""Measures one point; raises `Unmeasurable` if it cannot."""

MOST_ATTEMPTS: Final = 3
"""A point that is disturbed is measured so often in one run; then it is kept, and its row says so."""

_GROWING: Final = frozenset(
    {"m", "tokens", "batch", "new_tokens", "context_tokens", "traffic_bytes", "message_bytes"}
)


@dataclass(frozen=True, slots=True)
class MeasuringGoal:
    """End conditions of a run.

    Attributes
    ----------
    target_ratio : float
        Largest error of a measurement that its neighbours predict.
    budget_s : float or None
        Time after which no further point is begun; None without a limit. [s]
    extent : Extent
        Size of the measured steps.
    """

    target_ratio: float
    budget_s: float | None = None
    extent: Extent = field(default_factory=Extent)


@dataclass(frozen=True, slots=True)
class MeasuringOutcome:
    """Result of a measuring session.

    Attributes
    ----------
    new_points : int
        Points that this run measured.
    errors : tuple[NodeError, ...]
        Errors of all inner measurements, worst first.
    over_budget : bool
        Whether the time was up before the target was reached.
    disturbed : int
        Points that were measured while the machine was slower than in calm times.
    """

    new_points: int
    errors: tuple[NodeError, ...]
    over_budget: bool
    disturbed: int = 0


class MeasuringProgress:
    """Receives the progress of a run; this one ignores it."""

    def planned(self, points: int) -> None:
        """Set the number of points that are left."""

    def begins(self, next_point: Point) -> None:
        """A point is begun."""

    def ends(self, measurement: Measurement | None, reason: str) -> None:
        """It was measured, or left out for a reason."""


def run_session(
    sites: Sequence[Site],
    measure: MeasurePoint,
    journal: Journal,
    accelerator: Accelerator,
    goal: MeasuringGoal,
    progress: MeasuringProgress | None = None,
) -> MeasuringOutcome:
    """Measure the first points of all sites, then those beside the worst errors.

    After each sweep, points that were measured while the machine was slow are measured again.

    Parameters
    ----------
    sites : Sequence[Site]
        Sweeps.
    measure : MeasurePoint
        Measures one point.
    journal : Journal
        Contains known measurements and receives new ones.
    accelerator : Accelerator
        Hardware of the roofline for the errors.
    goal : MeasuringGoal
        End conditions.
    progress : MeasuringProgress, optional
        Told what happens.
    """
    started = time.monotonic()
    told = MeasuringProgress() if progress is None else progress

    def time_is_up() -> bool:
        return goal.budget_s is not None and time.monotonic() - started > goal.budget_s

    attempts: Counter[Point] = Counter()

    def points_in_turn(left: list[Point]) -> bool:
        for each in left:
            if time_is_up():
                return False
            _attempt(each, measure, journal, told)
        while again := _to_repeat(journal, attempts):
            told.planned(len(again))
            for each in again:
                if time_is_up():
                    return False
                _repeat(each, measure, journal, told)
        return True

    return _until_reached(sites, points_in_turn, journal, accelerator, goal, told)


def run_group_session(
    sites: Sequence[Site],
    measure_all: Callable[[list[Point]], None],
    journal: Journal,
    accelerator: Accelerator,
    goal: MeasuringGoal,
    progress: MeasuringProgress | None = None,
) -> MeasuringOutcome:
    """Do the same for points that several processes run together, and that are measured in one go.

    Parameters
    ----------
    measure_all : Callable
        Measures all of some points and keeps them in the journal.
    sites, journal, accelerator, goal, progress
        As in `run_session`. The time is checked between two points.
    """
    started = time.monotonic()

    def all_at_once(left: list[Point]) -> bool:
        if not left:
            return True
        if goal.budget_s is not None and time.monotonic() - started > goal.budget_s:
            return False
        measure_all(left)
        return True

    told = MeasuringProgress() if progress is None else progress
    return _until_reached(sites, all_at_once, journal, accelerator, goal, told)


def _until_reached(
    sites: Sequence[Site],
    attempt_all: Callable[[list[Point]], bool],
    journal: Journal,
    accelerator: Accelerator,
    goal: MeasuringGoal,
    told: MeasuringProgress,
) -> MeasuringOutcome:
    """Attempt the first points, then those beside the worst errors, until there are none or time is up."""
    before = len(journal.measured)
    asked = set(sites)
    wanted = _one_site_after_another([first_points(site, goal.extent) for site in sites])
    while True:
        left = [each for each in wanted if not journal.knows(each)]
        told.planned(len(left))
        reached = attempt_all(left)
        errors = _errors(journal, accelerator, asked)
        wanted = next_points(errors, journal.measured, goal.target_ratio, goal.extent)
        if not reached or all(journal.knows(each) for each in wanted):
            late = len(disturbed(journal.measured.values()))
            return MeasuringOutcome(len(journal.measured) - before, errors, not reached, late)


def _attempt(each: Point, measure: MeasurePoint, journal: Journal, told: MeasuringProgress) -> None:
    told.begins(each)
    reason = _larger_than_failed(each, journal.skipped)
    if not reason:
        try:
            measurement = measure(each)
        except Unmeasurable as error:
            reason = str(error)
        else:
            journal.add(measurement)
            told.ends(measurement, "")
            return
    journal.skip(each, reason)
    told.ends(None, reason)


def _to_repeat(journal: Journal, attempts: Counter[Point]) -> list[Point]:
    """Return the points that are disturbed and may be tried again; a further attempt is counted."""
    slow = [each.point for each in disturbed(journal.measured.values())]
    again = [each for each in slow if attempts[each] < MOST_ATTEMPTS - 1]
    attempts.update(again)
    return again


def _repeat(each: Point, measure: MeasurePoint, journal: Journal, told: MeasuringProgress) -> None:
    """Measure a disturbed point again; the calmer measurement is kept."""
    told.begins(each)
    before = journal.measured[each]
    try:
        again = measure(each)
    except Unmeasurable as error:
        # It could be measured before, so that is kept.
        told.ends(None, str(error))
        return
    if again.control_us is None or before.control_us is None or again.control_us < before.control_us:
        journal.add(again)
    told.ends(again, "")


def _larger_than_failed(each: Point, skipped: dict[Point, str]) -> str:
    """Return why a point need not be tried: one that is no larger in any dimension could not be measured."""
    for failed, reason in skipped.items():
        if failed.table == each.table and all(
            value >= failed[name] if name in _GROWING else value == failed[name] for name, value in each.dims
        ):
            return reason
    return ""


def _one_site_after_another(sweeps: Iterable[list[Point]]) -> list[Point]:
    """Return the points of all sweeps, small kinds first, so that an early end leaves whole sweeps."""
    order = list(OperatorKind)
    return sorted((each for sweep in sweeps for each in sweep), key=lambda each: order.index(each.kind))


def _errors(journal: Journal, accelerator: Accelerator, sites: set[Site]) -> tuple[NodeError, ...]:
    found = [
        error
        for rows in rows_of(journal.measured.values())
        for error in node_errors(accelerator, rows)
        if error.site in sites
    ]
    return tuple(sorted(found, key=lambda each: -each.ratio))
