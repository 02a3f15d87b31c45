"""Cache of candidates in the user's cache folder, like that of landscapes.

A file is named by the SHA-256 of the resolved fleet, of every file that evaluation reads, of the operator
tables and of the program, so a change of any changes the name. Tables are identified by name, size and
modification time, so they need not be read. A file also contains its key, like those of landscapes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from fleetplan.fleet.files import cache_key, forget_oldest, is_cache_on, user_cache, write_whole
from fleetplan.fleet.input_files import input_sha256, is_file
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.packages import installed_version, source_sha256
from fleetplan.fleet.tables import once_per_table
from fleetplan.perfmodel.optables.measured.folders import PACKAGE, own_tables_folder, table_roots
from fleetplan.planner.candidates.candidate_set import CandidateSet
from fleetplan.planner.problem import ConfigurationKey

CACHED_FILES: Final = 256
"""Largest number of cached candidate sets; the least recently used are deleted first. About 200 kB each."""

_DEPENDENCIES: Final = ("fleetplan", "numpy", "pandas")
_ROOMS: Final = ("fleet", "perfmodel", "planner/candidates", "planner/plan", "planner/problem")


class _Kept(BaseModel):
    """Cache file: candidates and the hash of their inputs."""

    key: str
    found: CandidateSet


def candidates_folder() -> Path:
    """Return the folder of this user's candidates."""
    return user_cache("candidates")


def kept_candidates(
    fleet: Fleet,
    announce: Callable[[str], None],
    keep: Collection[ConfigurationKey] = (),
    out_of_time: Callable[[], bool] = lambda: False,
) -> CandidateSet:
    """Return the result of `build_candidates`, from the cache if present; parameters are the same.

    Raises
    ------
    OutOfTimeError, InputError
        As in `build_candidates`.
    """
    path = _path(fleet, keep)
    if path is not None and (known := _read(path)) is not None:
        return known
    # Imported here because it takes half of the imports of a short command, and cached candidates do not need
    # it.
    from fleetplan.planner.candidates.build import build_candidates  # noqa: PLC0415

    found = build_candidates(fleet, announce, keep, out_of_time)
    if path is not None:
        _write(found, path)
    return found


def found_before(fleet: Fleet, keep: Collection[ConfigurationKey] = ()) -> CandidateSet | None:
    """Return the cached result of `kept_candidates` for the same parameters; None if there is none."""
    path = _path(fleet, keep)
    return None if path is None else _read(path)


def _path(fleet: Fleet, keep: Collection[ConfigurationKey]) -> Path | None:
    """Return the path of a fleet's cached candidates; None if the cache is off."""
    # A file that cannot be read is an error for the code that needs it, which reports where it is named.
    with contextlib.suppress(OSError):
        return candidates_folder() / f"{evaluation_key(fleet, keep)}.json" if is_cache_on() else None
    return None


def evaluation_key(fleet: Fleet, keep: Collection[ConfigurationKey] = ()) -> str:
    """Return the hash of everything that a fleet's candidates depend on."""
    # Equal frozen dataclasses of numbers and names have equal text, except for sets and tables. The folder of
    # the fleet file does not count; the contents of its files do.
    pairs = fleet.policy.kv_pairs
    policy = replace(fleet.policy, kv_pairs=None)
    services = tuple(replace(service, engines=None) for service in fleet.services)
    parts = [repr(replace(fleet, path=Path(fleet.path.name), policy=policy, services=services))]
    as_csv = once_per_table(lambda table: table.to_csv())
    parts += [as_csv(service.engines) for service in fleet.services if service.engines is not None]
    parts += [repr(None if pairs is None else sorted(pairs)), repr(sorted(keep))]
    parts += [*_model_configs(fleet), *_table_files()]
    parts += [f"{name} {installed_version(name)}" for name in _DEPENDENCIES]
    parts.append(source_sha256(*_ROOMS))
    return cache_key(parts)


def _model_configs(fleet: Fleet) -> Iterator[str]:
    """Yield the hash of every file that a model names; the catalogue is part of the program."""
    for service in fleet.services:
        for model in filter(None, (service.model, *(each.model for each in service.variants))):
            for name in (model, f"{model}/config.json"):
                if is_file(path := fleet.path.parent / name):
                    yield f"{name} {input_sha256(path)}"


def _table_files() -> Iterator[str]:
    """Yield name, size and modification time of every operator table, the user's own first."""
    yield from _files_below(str(own_tables_folder()))
    for root in table_roots():
        yield from (
            _packaged_files(str(root.path)) if root.package == PACKAGE else _files_below(str(root.path))
        )


@cache
def _packaged_files(folder: str) -> tuple[str, ...]:
    """List the files of an installed package once: they do not change while a process runs."""
    return tuple(_files_below(folder))


def _files_below(folder: str) -> Iterator[str]:
    waiting = [folder]
    # A thousand files in as many folders take a third of the time without `Path` and `os.walk`.
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            # No tables, or no permission to read them.
            continue
        for each in entries:
            if not each.is_dir():
                state = each.stat()
                yield f"{folder} {each.name} {state.st_size} {state.st_mtime_ns}"
            elif not each.is_symlink():
                waiting.append(each.path)


def _read(path: Path) -> CandidateSet | None:
    """Return the candidates of a file; None if it is missing or has another key."""
    try:
        held = _Kept.model_validate_json(path.read_bytes())
        # The least recently used files are deleted first.
        os.utime(path)
    except (OSError, ValidationError):
        return None
    return held.found if held.key == path.stem else None


def _write(found: CandidateSet, path: Path) -> None:
    held = _Kept(key=path.stem, found=found)
    text = held.model_dump_json()
    # Values that do not survive a round trip, such as infinity, are not cached.
    with contextlib.suppress(OSError, ValidationError):
        if _Kept.model_validate_json(text).found == found:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
            forget_oldest(path.parent, "*.json", CACHED_FILES)
