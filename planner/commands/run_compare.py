"""The work of `plan compare` between its options and its output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import written_together
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.export.files import write_plan
from fleetplan.planner.plan import Infeasible, read_plan
from fleetplan.planner.questions.comparison import Comparison
from fleetplan.planner.questions.counterfactuals import Counterfactual, Sources, counterfactual
from fleetplan.planner.questions.waited import Waited
from fleetplan.planner.report.compare_console import compared_text
from fleetplan.scenarios.load import load_fleet


def read_counterfactuals(
    texts: Sequence[str], fleet: Fleet, path: Path, scenarios: Sequence[str], assignments: Sequence[str]
) -> tuple[Counterfactual, ...]:
    """Parse the texts after `--against`.

    Parameters
    ----------
    texts : Sequence[str]
        Each once, in order.
    fleet : Fleet
        The fleet of the plan.
    path, scenarios, assignments : Path, Sequence[str], Sequence[str]
        What it was loaded from; a scenario comes after its scenarios, before its assignments.

    Raises
    ------
    InputError
        With everything that names nothing.
    """
    block = read_document(path).root.child("scenarios")
    sources = Sources(
        scenarios=() if block is None else tuple(block.entries),
        load_scenario=lambda name: load_fleet(path, [*scenarios, name], assignments),
        read_plan=read_plan,
    )
    found: list[Counterfactual] = []
    issues: list[Issue] = []
    for text in dict.fromkeys(texts):
        try:
            found.append(counterfactual(text, fleet, sources))
        except InputError as error:
            issues.extend(error.issues)
    if issues:
        raise InputError(issues)
    return tuple(found)


class KeptComparison:
    """Keeps a comparison as it is solved: tells its rows, and writes the plans so far.

    Parameters
    ----------
    count : int
        Counterfactuals.
    say : callable
        Told a line for each.
    out : Path or None
        Folder for the plans.

    Attributes
    ----------
    found : Comparison or None
        What is known so far.
    written : list[Path]
        The folders of the plans.
    """

    def __init__(self, count: int, say: Callable[[str], None], out: Path | None) -> None:
        self.found: Comparison | None = None
        self.written: list[Path] = []
        self._count, self._say, self._out = count, say, out
        self._waited: Waited | None = None

    def __call__(self, found: Comparison) -> None:
        """Keep what is known by now."""
        self.found = found
        if self._out is not None:
            self.written = write_comparison(found, self._out)
        if isinstance(found.outcome, Infeasible):
            return
        if self._waited is None:
            self._waited = Waited(self._count, noun="alternative fleet")
            self._say(self._waited.announced)
        else:
            self._say(f"{compared_text(found.rows[-1])} ({self._waited.next()})")

    @property
    def missing(self) -> str:
        """What is missing after Ctrl-C: `stopped: 1 of 3 alternative fleets are solved`."""
        done = 0 if self._waited is None else self._waited.done
        return f"stopped: {done} of {self._count} alternative fleets are solved"


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the plan, and the chosen plan of each counterfactual, each in a folder of its name.

    Parameters
    ----------
    comparison : Comparison
        What was solved.
    folder : Path
        Receives `plan/` and a folder for each counterfactual that has a plan.

    Returns
    -------
    list[Path]
        The folders written.
    """
    names = ["plan"]
    with written_together(folder) as parts:
        write_plan(comparison.outcome, parts / names[0])
        for row in comparison.rows:
            if row.chosen is None or row.chosen.plan is None:
                continue
            name = f"against-{re.sub(r'[^A-Za-z0-9._-]+', '-', row.name).strip('-.')}"
            while name in names:
                name = f"{name}-2"
            write_plan(row.chosen.plan, parts / name)
            names.append(name)
    return [folder / name for name in names]
