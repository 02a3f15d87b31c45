"""Read a plan, or the shortages of an infeasible fleet, from a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import NotTextError, is_file, read_text
from fleetplan.fleet.printable import steering_character
from fleetplan.planner.plan.document import Plan
from fleetplan.planner.plan.infeasible import Infeasible

_STEERING_ESCAPE: Final = re.compile(
    r"\\(?:[bfr]|u00(?:0[0-8b-f]|1[0-9a-f]|7f|[89][0-9a-f])|u20(?:2[89a-e]|6[6-9]))", re.IGNORECASE
)
"""JSON escapes of the characters in `fleetplan.fleet.printable`, after escaped backslashes are removed."""

PLAN_FILE: Final = "plan.json"
"""File name of the plan in an output folder."""

FLEET_SUFFIXES: Final = (".yaml", ".yml")
FLEET_FILE_HINT: Final = "this looks like a fleet file; `plan FLEET.yaml --out DIR` writes DIR/plan.json"


def read_plan(path: Path) -> Plan:
    """Read a plan file.

    Raises
    ------
    InputError
        The file cannot be read, is not a plan of a known format, or states that the fleet is infeasible.
    """
    outcome = read_outcome(path)
    if isinstance(outcome, Infeasible):
        hint = f"plan explain {path} says which requirements are in conflict"
        raise InputError(
            [Issue(str(path), 1, 1, "status", "the fleet is infeasible, so there is no plan", hint)]
        )
    return outcome


def read_outcome(path: Path) -> Plan | Infeasible:
    """Read the plan.json of a plan or of an infeasible fleet.

    Raises
    ------
    InputError
        The file cannot be read or is neither.
    """
    with _plan_mistakes(path):
        text = _text(path)
        try:
            return Infeasible.model_validate_json(text)
        except ValidationError:
            return Plan.model_validate_json(text)


def _text(path: Path) -> str:
    """Return the text of a plan file, after a check for raw and escaped control characters in names."""
    text = read_text(path)
    found = steering_character(text) or _STEERING_ESCAPE.search(text.replace("\\\\", ""))
    if found:
        shown = found if isinstance(found, str) else found[0]
        message = f"is not a plan: the character {shown} is in one of its names"
        raise InputError([Issue(str(path), 1, 1, "", message)])
    return text


@contextmanager
def _plan_mistakes(path: Path) -> Iterator[None]:
    """Turn exceptions from reading a file into input errors."""
    try:
        yield
    except OSError as error:
        inside = path / PLAN_FILE
        hint = f"did you mean {inside}?" if is_file(inside) else ""
        raise InputError([Issue(str(path), 1, 1, "", f"cannot be read: {error.strerror}", hint)]) from error
    except (ValidationError, NotTextError) as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            message = first["msg"]
        else:
            key, message = "", str(error)
        hint = FLEET_FILE_HINT if path.suffix.lower() in FLEET_SUFFIXES else ""
        raise InputError([Issue(str(path), 1, 1, key, f"is not a plan: {message}", hint)]) from error
