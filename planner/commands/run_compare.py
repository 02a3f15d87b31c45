"""Run `plan compare`: parse counterfactuals and write plans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import written_together
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.export.files import write_plan
from fleetplan.planner.plan import read_plan
from fleetplan.planner.questions.comparison import Comparison
from fleetplan.planner.questions.counterfactuals import Counterfactual, Sources, counterfactual
from fleetplan.scenarios.load import load_fleet


def read_counterfactuals(
    texts: Sequence[str], fleet: Fleet, path: Path, scenarios: Sequence[str], assignments: Sequence[str]
) -> tuple[Counterfactual, ...]:
    """Parse the values of `--against`.

    Parameters
    ----------
    texts : Sequence[str]
        Distinct texts, in order.
    fleet : Fleet
        Fleet of the plan.
    path, scenarios, assignments : Path, Sequence[str], Sequence[str]
        Source of the fleet; a counterfactual scenario is applied after its scenarios, before its assignments.

    Raises
    ------
    InputError
        Lists every text that names nothing.
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


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the plan, and the chosen plan of each counterfactual, each in its own folder.

    Parameters
    ----------
    comparison : Comparison
        Solved comparison.
    folder : Path
        Receives `plan/` and a folder for each counterfactual that has a plan.

    Returns
    -------
    list[Path]
        Folders that were written.
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
