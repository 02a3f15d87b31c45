"""Where in its file a fleet states what only its evaluation or its model finds to be wrong."""

from __future__ import annotations

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.expand import expand


def item_issue(fleet: Fleet, block: str, name: str, key: str, message: str, hint: str = "") -> Issue:
    """Return an issue at a key of a named item, placed by line and column.

    The resolved fleet knows no places, so its file is read once more, with its scenarios and assignments.

    Parameters
    ----------
    fleet : Fleet
        What is planned.
    block, name, key : str
        List of the file, its item, and what of it is wrong; all of the item without a key.
    message, hint : str
        What is wrong, and how to mend it.
    """
    label = f"{block}.{name}.{key}" if key else f"{block}.{name}"
    nowhere = Issue(str(fleet.path), 1, 1, label, message, hint)
    try:
        document = expand(read_document(fleet.path), fleet.scenarios, fleet.assignments)
    except InputError:
        # A fleet that was made in Python, or whose file is gone or has changed since.
        return nowhere
    items = document.node((block,))
    names = [item.name for item in items.items] if items is not None else []
    if name not in names:
        return nowhere
    path = (block, names.index(name))
    return document.issue((*path, key) if key else path, message, hint)


def service_issue(fleet: Fleet, service: str, key: str, message: str, hint: str = "") -> Issue:
    """Return an issue at a key of a service, placed by line and column."""
    return item_issue(fleet, "services", service, key, message, hint)
