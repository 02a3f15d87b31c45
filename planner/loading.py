"""From files on disk to what the planner works on: a resolved fleet, a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import read_text
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.resolve import build_fleet
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.scenarios.expand import expand


def load_expanded_fleet(path: Path, scenarios: Sequence[str], assignments: Sequence[str]) -> Fleet:
    """Read a fleet file and apply scenarios, then assignments.

    Parameters
    ----------
    path : Path
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


def read_plan(path: Path) -> Plan:
    """Read a plan file.

    Raises
    ------
    InputError
        If it cannot be read or is not a plan of a known format.
    """
    with _plan_mistakes(path):
        return Plan.read(path)


def read_outcome(path: Path) -> Plan | Infeasible:
    """Read the plan.json of a plan, or of a fleet that has none.

    Raises
    ------
    InputError
        If it cannot be read or is neither.
    """
    with _plan_mistakes(path):
        text = read_text(path)
        try:
            return Infeasible.model_validate_json(text)
        except ValidationError:
            return Plan.model_validate_json(text)


@contextmanager
def _plan_mistakes(path: Path) -> Iterator[None]:
    """Turn what reading a file raises into the user's mistake."""
    try:
        yield
    except OSError as error:
        raise InputError([Issue(str(path), 1, 1, "", f"cannot be read: {error.strerror}")]) from error
    except (ValidationError, UnicodeDecodeError) as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            message = first["msg"]
        else:
            key, message = "", "is not UTF-8 text"
        raise InputError([Issue(str(path), 1, 1, key, f"is not a plan: {message}")]) from error
