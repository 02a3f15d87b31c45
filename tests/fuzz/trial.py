"""Trial of one random fleet: plan it, change it, ask about it, and report every failure."""

from __future__ import annotations

import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fleetplan.planner.plan import Plan
from tests.fuzz.commands import ask, questions
from tests.fuzz.enlarged import enlarged
from tests.fuzz.exported import export_faults
from tests.fuzz.fleets import Made, random_fleet
from tests.fuzz.laws import laws_of
from tests.fuzz.outcome import Outcome, broken, solved
from tests.fuzz.tampered import unnoticed

Found = TypeVar("Found")


@dataclass(frozen=True)
class TrialEffort:
    """Effort of a trial.

    Attributes
    ----------
    most_cells : int
        Regions, periods, slices and scenarios of a fleet together.
    time_limit_s, gap_ratio, workers
        Of each solve.
    laws, questions, tamperings : int
        How many of each.
    exports : int
        How many plans' exports are held to the plan: its own, and those of it with other hardware.
    explain : bool
        Whether it is found out of an infeasible fleet what is short.
    overrun_s : float or None
        How much longer than its limit a solve may take; None where other work may hold it up. [s]
    """

    most_cells: int = 4
    time_limit_s: float = 2.0
    gap_ratio: float = 0.001
    workers: int = 1
    laws: int = 1
    questions: int = 1
    tamperings: int = 0
    exports: int = 0
    explain: bool = False
    overrun_s: float | None = None


@dataclass
class Report:
    """Result of a trial: outcome, what was tried, and every failure."""

    seed: int
    kind: str = "none"
    tried: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def try_fleet(
    seed: int, effort: TrialEffort, folder: Path | None = None, services: int | None = None
) -> Report:
    """Return the trial of a seed's fleet.

    Parameters
    ----------
    seed : int
        Of the fleet, and of what is asked of it.
    effort : TrialEffort
        How much is done.
    folder : Path, optional
        Where its files are kept; nowhere if left out.
    services : int, optional
        How many services it has; a few if left out.
    """
    report = Report(seed)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        place = Path(scratch) if folder is None else folder
        made = random_fleet(seed, effort.most_cells, services=services)
        path = made.write(place)
        first = _guarded(report, "solve", lambda: solved(path, effort))
        if first is None:
            return report
        report.kind = first.kind
        _check_time(report, "solve", first, effort)
        dice = random.Random(seed)
        if isinstance(first.plan, Plan):
            _check_gap(report, first.plan, effort)
            _hold_to_laws(report, made, first, first.plan, place, effort)
            _tamper(report, first, first.plan, effort)
            _export(report, first.plan, place, effort)
        for question in list(questions(made, path, first.plan, dice))[: effort.questions]:
            report.tried[f"plan {question.command}"] += 1
            wrong = _guarded(report, str(question), lambda asked=question: ask(asked))  # type: ignore[misc]
            if wrong:
                report.failures.append(f"{question}: {wrong}")
    return report


def _hold_to_laws(
    report: Report, made: Made, first: Outcome, plan: Plan, place: Path, effort: TrialEffort
) -> None:
    for law in list(laws_of(made.file, made.tables, plan, random.Random(made.seed)))[: effort.laws]:
        changed = Made(made.seed, made.dice, file=law.file, tables=law.tables)
        # Each in a folder of its own, so that what is written can be tried again by hand.
        path = changed.write(place / law.name.replace(" ", "-").replace("/", "-"))
        second = _guarded(report, law.name, lambda at=path, by=law: solved(at, effort, by.baseline))  # type: ignore[misc]
        report.tried[law.law] += 1
        if second is None:
            continue
        _check_time(report, law.name, second, effort)
        wrong = broken(first, second, law)
        if wrong:
            report.failures.append(f"{law.name}: {wrong}")


def _tamper(report: Report, first: Outcome, plan: Plan, effort: TrialEffort) -> None:
    """Change fields of a plan one by one; a change that the verifier misses is a failure."""
    dice = random.Random(f"tampered {report.seed}")
    if not effort.tamperings or first.prepared is None:
        return
    candidates, problem = first.prepared

    def tried() -> list[str]:
        return list(unnoticed(candidates, problem, plan, dice, effort.tamperings))

    found = _guarded(report, "tampered", tried)
    report.failures += [f"not noticed: {each}" for each in found or ()]


def _export(report: Report, plan: Plan, place: Path, effort: TrialEffort) -> None:
    """Hold exports to the plan, and to what it would be on hardware and in layouts of large fleets."""
    dice = random.Random(f"exported {report.seed}")
    for number in range(effort.exports):
        exported = plan if number == 0 else enlarged(plan, dice)
        report.tried["exports of a plan" if number == 0 else "exports of an enlarged plan"] += 1
        found = _guarded(report, "exports", lambda each=exported: list(export_faults(each, place)))  # type: ignore[misc]
        report.failures += [f"export {number}: {each}" for each in found or ()]


def _check_time(report: Report, what: str, outcome: Outcome, effort: TrialEffort) -> None:
    if effort.overrun_s is not None and outcome.wall_s > effort.time_limit_s + effort.overrun_s:
        report.failures.append(
            f"{what}: {outcome.kind} after {outcome.wall_s:.0f} s of {effort.time_limit_s:g}"
        )


def _check_gap(report: Report, plan: Plan, effort: TrialEffort) -> None:
    """A plan that is said to be within the asked gap is so as it is stated."""
    if plan.status in ("optimal", "within_gap") and plan.open_gap > effort.gap_ratio:
        report.failures.append(f"solve: {plan.status} with a gap of {plan.open_gap}")


def _guarded(report: Report, what: str, act: Callable[[], Found]) -> Found | None:
    """Do something; an exception is a failure with the place that raised it."""
    try:
        return act()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        report.failures.append(f"{what}: {type(error).__name__} at {place}: {error}")
        return None
