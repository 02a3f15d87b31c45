"""Candidates that were built before, kept in the user's cache folder beside the landscapes.

The name of a file is the SHA-256 of the resolved fleet, every file that evaluation reads, the operator tables
and the program: what changes any of them changes the name. The tables are known by name, size and time of
change, so that none is read. A file says what it is for, as those of landscapes do.
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

KEPT_FILES: Final = 256
"""Most candidate sets that are kept; the ones that were used longest ago go first. About 200 kB each."""

_DEPENDENCIES: Final = ("fleetplan", "numpy", "pandas")
_ROOMS: Final = ("fleet", "perfmodel", "planner/candidates", "planner/plan", "planner/problem")


class _Kept(BaseModel):
    """A file: candidates, and the hash of what they are for."""

    key: str
    found: CandidateSet


def candidates_folder() -> Path:
    """Folder of the candidates of this user."""
    return user_cache("candidates")


def kept_candidates(
    fleet: Fleet,
    announce: Callable[[str], None],
    keep: Collection[ConfigurationKey] = (),
    out_of_time: Callable[[], bool] = lambda: False,
) -> CandidateSet:
    """Return what `build_candidates` returns, from the cache where it is there; parameters are the same.

    Raises
    ------
    OutOfTimeError, InputError
        As `build_candidates`.
    """
    path = _path(fleet, keep)
    if path is not None and (known := _read(path)) is not None:
        return known
    # Half of the imports of a short command, which what is kept does not need.
    from fleetplan.planner.candidates.build import build_candidates  # noqa: PLC0415

    found = build_candidates(fleet, announce, keep, out_of_time)
    if path is not None:
        _write(found, path)
    return found


def found_before(fleet: Fleet, keep: Collection[ConfigurationKey] = ()) -> CandidateSet | None:
    """Return what `kept_candidates` finds in the cache for the same parameters; None where it would build."""
    path = _path(fleet, keep)
    return None if path is None else _read(path)


def _path(fleet: Fleet, keep: Collection[ConfigurationKey]) -> Path | None:
    """Where the candidates of a fleet are kept; None where nothing is."""
    # A file that cannot be read is an error of whoever needs it, who says where it is named.
    with contextlib.suppress(OSError):
        return candidates_folder() / f"{evaluation_key(fleet, keep)}.json" if is_cache_on() else None
    return None


def evaluation_key(fleet: Fleet, keep: Collection[ConfigurationKey] = ()) -> str:
    """Hash of everything that the candidates of a fleet depend on."""
    # Frozen dataclasses of numbers and names are written alike if they are equal, but for sets and tables.
    # The folder of the fleet file does not count: what the files of the fleet hold does.
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
    """Yield the hash of every file that a model of the fleet names; the catalogue is part of the program."""
    for service in fleet.services:
        for model in filter(None, (service.model, *(each.model for each in service.variants))):
            for name in (model, f"{model}/config.json"):
                if is_file(path := fleet.path.parent / name):
                    yield f"{name} {input_sha256(path)}"


def _table_files() -> Iterator[str]:
    """Yield name, size and time of change of every operator table, the user's own before the package's."""
    yield from _files_below(str(own_tables_folder()))
    for root in table_roots():
        yield from (
            _packaged_files(str(root.path)) if root.package == PACKAGE else _files_below(str(root.path))
        )


@cache
def _packaged_files(folder: str) -> tuple[str, ...]:
    """List the files of an installed package once: they stay as they are while a process runs."""
    return tuple(_files_below(folder))


def _files_below(folder: str) -> Iterator[str]:
    waiting = [folder]
    # A thousand files in as many folders: without `Path` and `os.walk` they take a third of the time.
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            # There are no tables of one's own, or nobody may read them.
            continue
        for each in entries:
            if not each.is_dir():
                state = each.stat()
                yield f"{folder} {each.name} {state.st_size} {state.st_mtime_ns}"
            elif not each.is_symlink():
                waiting.append(each.path)


def _read(path: Path) -> CandidateSet | None:
    """Return the candidates of a file; None where there is none that is for this question."""
    try:
        held = _Kept.model_validate_json(path.read_bytes())
        # The time of use decides what is forgotten first.
        os.utime(path)
    except (OSError, ValidationError):
        return None
    return held.found if held.key == path.stem else None


def _write(found: CandidateSet, path: Path) -> None:
    held = _Kept(key=path.stem, found=found)
    text = held.model_dump_json()
    # What does not come back as it is, such as an infinite figure, is not kept.
    with contextlib.suppress(OSError, ValidationError):
        if _Kept.model_validate_json(text).found == found:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
            forget_oldest(path.parent, "*.json", KEPT_FILES)
