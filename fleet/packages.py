"""Package versions and source of the program that a result depends on; lazy imports of rooms."""

from __future__ import annotations

import ast
import hashlib
import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = ("fleetplan", "ortools", "highspy", "numpy", "scipy", "pandas", "aiconfigurator-core")
"""Packages that results depend on: the planner, its solvers, numerical libraries, and the measured tables."""


@cache
def installed_version(package: str, otherwise: str = "not installed") -> str:
    """Return the version of an installed package, cached because its metadata are parsed.

    Parameters
    ----------
    package : str
        Its name.
    otherwise : str
        Value for a package that is not installed.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise


def installed_versions() -> dict[str, str]:
    """Return the versions of all packages that results depend on."""
    return {package: installed_version(package) for package in PACKAGES}


def source_files(*rooms: str) -> list[Path]:
    """Return the modules and data files of rooms of the program: `fleet`, `planner/candidates` and so on."""
    root = Path(__file__).resolve().parents[1]
    return [
        path
        for room in rooms
        for path in sorted((root / room).rglob("*"))
        if path.suffix in {".py", ".yaml", ".csv"}
    ]


@cache
def source_sha256(*rooms: str) -> str:
    """Hash the source of rooms, named as in `source_files`."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    for path in source_files(*rooms):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def imported_when_asked(room: str) -> Callable[[str], Any]:
    """Return a `__getattr__` that imports the names of a room's `if TYPE_CHECKING` block on demand.

    People, type checkers and import contracts then read the `__init__` like any other, but each name imports
    only its own module.

    Parameters
    ----------
    room : str
        `__name__` of its `__init__`. No name may be that of a module of the room.
    """
    places: dict[str, str] = {}

    def get(name: str) -> Any:
        if not places:
            places.update(_places(Path(str(sys.modules[room].__file__))))
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    return get


def _places(face: Path) -> dict[str, str]:
    """Return the module of each name that an `__init__` imports for type checkers."""
    blocks = [node for node in ast.parse(face.read_bytes()).body if isinstance(node, ast.If)]
    return {
        alias.name: str(node.module)
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
