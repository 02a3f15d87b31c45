"""Cores of a machine that a process may use, and the environment of the processes that it starts."""

from __future__ import annotations

import os
import sys


def usable_cores() -> int:
    """Count the cores that this process may use.

    Returns
    -------
    int
        At least one. Where the system does not say which ones it may use, as macOS and Windows do not, it is
        those of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def child_environment(**variables: str) -> dict[str, str]:
    """Return the environment of a process of Python that finds the modules which this one finds.

    Parameters
    ----------
    **variables : str
        What that process has besides, or in place of this one's.
    """
    found = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": found, **variables}
