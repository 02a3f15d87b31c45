"""Versions of the packages and the source of the program that a result depends on; faces of its rooms."""

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
"""What answers depend on: the planner, its solvers, what they compute with, and the measured tables."""


@cache
def installed_version(package: str, otherwise: str = "not installed") -> str:
    """Version of an installed package, looked up once: its file is parsed for it.

    Parameters
    ----------
    package : str
        Its name.
    otherwise : str
        What is said of a package that is not installed.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise


def installed_versions() -> dict[str, str]:
    """Version of every package that answers depend on."""
    return {package: installed_version(package) for package in PACKAGES}


def source_files(*rooms: str) -> list[Path]:
    """Return modules and data of some rooms of the program: `fleet`, `planner/candidates` and the like."""
    root = Path(__file__).resolve().parents[1]
    return [
        path
        for room in rooms
        for path in sorted((root / room).rglob("*"))
        if path.suffix in {".py", ".yaml", ".csv"}
    ]


@cache
def source_sha256(*rooms: str) -> str:
    """Hash of the source of some rooms, as `source_files` names them."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    for path in source_files(*rooms):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def imported_when_asked(room: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a room, which imports what its face names under `if TYPE_CHECKING`.

    A face is then read by people, type checkers and import contracts as any other, and who asks for one name
    pays for its module alone.

    Parameters
    ----------
    room : str
        `__name__` of its `__init__`. No name of the face is that of a module of the room.
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
    """Module of each name that a face imports for type checkers."""
    blocks = [node for node in ast.parse(face.read_bytes()).body if isinstance(node, ast.If)]
    return {
        alias.name: str(node.module)
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
