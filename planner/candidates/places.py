"""Where in its file a service says what only the evaluation of its configurations finds to be wrong."""

from __future__ import annotations

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.expand import expand


def service_issue(fleet: Fleet, service: str, key: str, message: str, hint: str = "") -> Issue:
    """Return an issue at a key of a service, placed by line and column.

    The resolved fleet knows no places, so its file is read once more.

    Parameters
    ----------
    fleet : Fleet
        What is planned.
    service, key : str
        Name of the service, and what of it is wrong.
    message, hint : str
        What is wrong, and how to mend it.
    """
    nowhere = Issue(str(fleet.path), 1, 1, f"services.{service}.{key}", message, hint)
    try:
        document = expand(read_document(fleet.path), fleet.scenarios, fleet.assignments)
    except InputError:
        # A fleet that was made in Python, or whose file is gone or has changed since.
        return nowhere
    services = document.node(("services",))
    names = [item.name for item in services.items] if services is not None else []
    if service not in names:
        return nowhere
    return document.issue(("services", names.index(service), key), message, hint)
