"""Positions in the fleet file, for errors that only evaluation or modelling detects."""

from __future__ import annotations

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.expand import expand


def item_issue(fleet: Fleet, block: str, name: str, key: str, message: str, hint: str = "") -> Issue:
    """Return an issue at a key of a named item, with line and column.

    A resolved fleet has no positions, so its file is read again, with its scenarios and assignments.

    Parameters
    ----------
    fleet : Fleet
        Fleet to plan.
    block, name, key : str
        List in the file, name of its item, and key; the whole item without a key.
    message, hint : str
        What is wrong, and how to fix it.
    """
    label = f"{block}.{name}.{key}" if key else f"{block}.{name}"
    nowhere = Issue(str(fleet.path), 1, 1, label, message, hint)
    try:
        document = expand(read_document(fleet.path), fleet.scenarios, fleet.assignments)
    except InputError:
        # A fleet made in Python, or whose file is missing or has changed.
        return nowhere
    items = document.node((block,))
    names = [item.name for item in items.items] if items is not None else []
    if name not in names:
        return nowhere
    path = (block, names.index(name))
    return document.issue((*path, key) if key else path, message, hint)


def service_issue(fleet: Fleet, service: str, key: str, message: str, hint: str = "") -> Issue:
    """Return an issue at a key of a service, with line and column."""
    return item_issue(fleet, "services", service, key, message, hint)
