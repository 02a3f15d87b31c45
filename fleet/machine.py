"""Cores that a process may use, and the environment of its child processes."""

from __future__ import annotations

import os
import sys


def usable_cores() -> int:
    """Count the cores that this process may use.

    Returns
    -------
    int
        At least one. On systems without CPU affinity, such as macOS and Windows, all cores of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def child_environment(**variables: str) -> dict[str, str]:
    """Return the environment of a Python process that finds the same modules as this one.

    Parameters
    ----------
    **variables : str
        Further variables of that process, which take precedence.
    """
    found = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": found, **variables}
