"""Folders of measured tables: that of the package, and newer ones in its layout that the user named.

`plan optables use DIR` stores the folder in the user's data folder. Its tables are then used beside those of
the package: for one version of a framework the folder named last, and among versions the newest, unless a
service or a fleet names one (`framework_version`).
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import platformdirs

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import write_whole
from fleetplan.fleet.input_files import is_folder
from fleetplan.fleet.packages import installed_version

PACKAGE: Final = "aiconfigurator-core"
FOLDER: Final = "folder"
"""Package name in provenance for tables in a folder of the user."""

BENEATH: Final = (".", "data", "systems/data", "aiconfigurator_core/systems/data")
"""Possible places of the systems in a folder: itself, or an unpacked package."""


MISSING_TABLES: Final = (
    "{parts}: no measured tables, as the package aiconfigurator-core is not installed (it has wheels for "
    "Python 3.11 to 3.13 on Linux, x86-64). Times come from the roofline; `plan optables use DIR` reads "
    "tables of a folder"
)
"""Message for parts with measured tables that cannot be read."""


@dataclass(frozen=True, slots=True)
class TableRoot:
    """A folder of systems.

    Attributes
    ----------
    path : Path
        It has one folder a system: h200_sxm and the like.
    package, version : str
        Package of the tables; the version of a user's folder is its path.
    """

    path: Path
    package: str
    version: str


@cache
def data_folder() -> Path | None:
    """Find the folder of the measured systems, once; None if the package is not installed."""
    spec = importlib.util.find_spec("aiconfigurator_core")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "systems" / "data"
    return folder if folder.is_dir() else None


def table_roots() -> tuple[TableRoot, ...]:
    """Return the folders of systems, those of the user before that of the package.

    Raises
    ------
    InputError
        A folder that was named is gone.
    """
    roots = [TableRoot(path, FOLDER, str(path)) for path in used_folders()]
    for root in roots:
        if not root.path.is_dir():
            hint = f"`plan optables forget {root.path}` leaves it out"
            raise InputError(
                [Issue(str(root.path), 0, 0, "", "this folder of tables no longer exists", hint)]
            )
    own = data_folder()
    if own is None:
        return tuple(roots)
    return (*roots, TableRoot(own, PACKAGE, installed_version(PACKAGE, "not recorded")))


def used_folders() -> tuple[Path, ...]:
    """Return the folders that the user named, the last one first."""
    try:
        known = json.loads(note_file().read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):  # The second where home is below a file.
        return ()
    return tuple(Path(each) for each in known)


def use_folder(folder: Path) -> None:
    """Write down a folder of systems, before all others."""
    _note([folder, *(each for each in used_folders() if each != folder)])


def forget_folder(folder: Path) -> None:
    """Leave a folder out from now on.

    Raises
    ------
    InputError
        It was not named.
    """
    known = used_folders()
    named = [each for each in known if each in {folder, folder.resolve(), *_beneath(folder)}]
    if not named:
        used = f"used are {', '.join(map(str, known))}" if known else "no folder is used"
        raise InputError([Issue(str(folder), 0, 0, "", "this folder of tables is not used", used)])
    _note([each for each in known if each not in named])


def systems_beneath(folder: Path) -> Path | None:
    """Return the folder of systems in a folder: itself, or in an unpacked package; None without one."""
    there = filter(is_folder, _beneath(folder))
    return next((each for each in there if any(each.glob("*/*/*/*/*_perf.parquet"))), None)


def own_tables_folder() -> Path:
    """Return the folder of the tables that this user measured and imported."""
    return Path(platformdirs.user_data_dir("fleetplan")) / "optables"


def note_file() -> Path:
    """Return the file with the list of folders."""
    return Path(platformdirs.user_data_dir("fleetplan")) / "table-folders.json"


def _beneath(folder: Path) -> list[Path]:
    return [(folder / each).resolve() for each in BENEATH]


def _note(folders: Sequence[Path]) -> None:
    write_whole(note_file(), json.dumps([str(each) for each in folders], indent=2) + "\n")
