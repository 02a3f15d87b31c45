"""From a file on disk to a plan, or to what a fleet without one is short of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.plan.document import Infeasible, Plan


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
        text = path.read_text(encoding="utf-8")
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
