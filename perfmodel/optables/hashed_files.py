"""Names and hashes of the measured tables below some folders: what answers may depend on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from fleetplan.perfmodel.optables.cache import known_sha256
from fleetplan.perfmodel.optables.measured.folders import data_folder


def hashed_names(roots: Sequence[Path], systems: tuple[str, ...]) -> tuple[str, ...]:
    """Order of the root, name and SHA-256 of every table of some systems.

    Parameters
    ----------
    roots : Sequence[Path]
        Folders of systems, the first before the others.
    systems : tuple[str, ...]
        h200_sxm and the like.
    """
    package = data_folder()
    return tuple(
        name
        for order, root in enumerate(roots)
        for name in (_packaged_names if root == package else _names)(order, root, systems)
    )


def _names(order: int, root: Path, systems: tuple[str, ...]) -> tuple[str, ...]:
    """Order of the root, name and SHA-256 of the files of some systems."""
    files = {file for system in systems for file in _files_below(root / system)}
    return tuple(f"{order} {file.relative_to(root)} {known_sha256(file)}" for file in sorted(files))


@cache
def _packaged_names(order: int, root: Path, systems: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same for the package, which never changes; cached."""
    return _names(order, root, systems)


def _files_below(folder: Path) -> tuple[Path, ...]:
    """Return the tables below a folder; those of the package, which never change, are cached."""
    package = data_folder()
    if package is not None and folder.is_relative_to(package):
        return _packaged_files(folder)
    return tuple(_parquet_files(folder))


@cache
def _packaged_files(folder: Path) -> tuple[Path, ...]:
    return tuple(_parquet_files(folder))


def _parquet_files(folder: Path) -> Iterator[Path]:
    """Yield the tables below a folder; `os.walk` takes a third of the time of `Path.rglob`."""
    for here, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".parquet"):
                yield Path(here, name)
