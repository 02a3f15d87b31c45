"""Separate cache folders for tests, with the imported operator tables of the user.

A test that must not believe what was computed before sets `XDG_CACHE_HOME` to a folder of its own. To import
the operator tables takes some 20 s of a CPU. The imports are named by the contents of what they import: they
stay in the folder of the user, and every such folder links to it.
"""

from __future__ import annotations

from pathlib import Path

from fleetplan.fleet.files import user_cache

KEPT_TABLES = user_cache("optables").resolve()
"""The user's folder of imported tables, as it was before any test set another."""


def own_cache_home(folder: Path) -> Path:
    """Make a folder for `XDG_CACHE_HOME` that is empty but for the imported tables; return it."""
    own = folder / "fleetplan" / "optables"
    own.parent.mkdir(parents=True)
    try:
        KEPT_TABLES.mkdir(parents=True, exist_ok=True)
        own.symlink_to(KEPT_TABLES, target_is_directory=True)
    except OSError:
        # No home, or no links on this file system: the tables are imported again.
        own.mkdir(exist_ok=True)
    return folder
