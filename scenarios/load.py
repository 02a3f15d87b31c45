"""From a fleet file, its scenarios and assignments to the resolved fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fleetplan.fleet.document import read_document
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.resolve import build_fleet
from fleetplan.scenarios.expand import expand


def load_fleet(path: Path | str, scenarios: Sequence[str] = (), assignments: Sequence[str] = ()) -> Fleet:
    """Read a fleet file and apply scenarios, then assignments.

    Parameters
    ----------
    path : Path or str
        The fleet file.
    scenarios : Sequence[str]
        Names of scenarios of the file, applied in order.
    assignments : Sequence[str]
        `key.path=value` texts, applied last.

    Raises
    ------
    InputError
        With everything that is wrong.
    """
    fleet = build_fleet(expand(read_document(path), scenarios, assignments))
    return replace(fleet, scenarios=tuple(scenarios), assignments=tuple(assignments))
