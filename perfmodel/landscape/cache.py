"""Landscapes that were computed before, kept in the user's cache folder under a hash of all they depend on.

The name of a file is the SHA-256 of the model's shapes, the accelerator's figures, the precision, the
techniques, the request, the limits, the search space, the contents of every operator table that could be
read, and the program itself. What changes any of them changes the name, so a kept landscape never needs to
be compared with anything. Files are NumPy archives without pickled objects. They are written beside their
name and renamed: a reader sees a whole file or none, and of two writers the later one wins with the same
contents. A file holds the hash that it is for: one that lies under another name is computed anew, as is one
that cannot be read.

A process keeps its landscapes without their limits: tighter limits keep a subset of the rows, without
evaluation.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections import OrderedDict
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.fleet.files import cache_key, forget_oldest, is_cache_on, user_cache, written_whole
from fleetplan.fleet.packages import installed_version, source_sha256
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape.landscape import (
    Landscape,
    LandscapeQuestion,
    PendingLandscape,
    ask_landscape,
)
from fleetplan.perfmodel.landscape.phases import LatencyTarget, RequestShape
from fleetplan.perfmodel.landscape.search_space import SearchSpace
from fleetplan.perfmodel.optables import OperatorSource, TableSource
from fleetplan.perfmodel.serving import Scheduling
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups

CACHED_FILES: Final = 512
"""Most landscapes that are kept; the ones that were used longest ago go first. About half a MB each."""

MOST_REMEMBERED: Final = 256
"""Most landscapes that a process remembers, each of what differs in limits alone; those used last."""

_NOTE: Final = "note"
_LATE: Final = "late"
AnyArray = NDArray[np.bool_] | NDArray[np.int64] | NDArray[np.float64] | NDArray[np.uint8]

# Errors that zipfile and numpy raise for a damaged file.
_UNREADABLE: Final = (OSError, TypeError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
_DEPENDENCIES: Final = ("fleetplan", "numpy", "pandas")


def cache_folder() -> Path:
    """Return the folder of the landscapes of this user."""
    return user_cache("landscapes")


def cached_landscape(
    evaluator: Evaluator,
    request: RequestShape,
    target: LatencyTarget,
    space: SearchSpace,
    folder: Path | None = None,
    framework: str = "",
    scheduling: Scheduling | None = None,
) -> Landscape:
    """Return the usable rows of `service_landscape`, from the cache if possible.

    The other rows, most of them, are counted by their reasons.

    Parameters
    ----------
    evaluator, request, target, space, framework, scheduling
        As in `service_landscape`.
    folder : Path, optional
        Cache folder; that of the user by default.

    Raises
    ------
    UnsupportedArchitecture
        The model has layers that are not evaluated.
    """
    question = LandscapeQuestion(evaluator, request, target, space, framework, scheduling)
    return WaitingLandscape(question, SharedLookups(), folder).found()


class WaitingLandscape:
    """A landscape from the cache, or one whose operators wait for a look-up.

    Parameters
    ----------
    question : LandscapeQuestion
        Key of the landscape.
    lookups : SharedLookups
        Queue of operators, shared with other landscapes.
    folder : Path, optional
        As in `cached_landscape`, as are the errors.
    """

    def __init__(
        self, question: LandscapeQuestion, lookups: SharedLookups, folder: Path | None = None
    ) -> None:
        of = question
        self._source = of.evaluator.source
        self._target = of.target
        self._place = cache_folder() if folder is None else folder
        self._family = (
            family_key(of.evaluator, of.request, of.space, of.framework, of.scheduling)
            if is_cache_on()
            else None
        )
        self._asked: PendingLandscape | None = None
        self._found = self._known()
        if self._found is None:
            self._asked = ask_landscape(question, lookups)

    def found(self) -> Landscape:
        """Return the landscape: evaluated, unless another process did that since."""
        if self._found is None:
            self._found = self._known() or self._evaluated()
            self._asked = None
        return self._found

    def _known(self) -> Landscape | None:
        """Return the landscape from memory or from the cache folder; None without any."""
        if self._family is None:
            return None
        kept = _remembered(self._place, self._family, self._target) or _read(self._path(self._family))
        if kept is None:
            return None
        _remember(self._place, self._family, self._target, kept)
        if isinstance(self._source, OperatorSource):
            self._source.recall(kept[1])
        return kept[0]

    def _evaluated(self) -> Landscape:
        if self._asked is None:
            raise ValueError("nothing was asked for")
        found = self._asked.evaluated(usable_alone=True)
        if self._family is None or not isinstance(self._source, OperatorSource):
            return found
        # Tables that the source has read so far.
        read = self._source.table_sources()
        _remember(self._place, self._family, self._target, (found, read))
        # A full disk or a folder that cannot be written costs time, not the answer.
        with contextlib.suppress(OSError):
            _write(found, read, self._path(self._family))
            forget_oldest(self._place, "*.npz", CACHED_FILES)
        return found

    def _path(self, family: str) -> Path:
        return self._place / f"{file_key(family, self._target)}.npz"


def file_key(family: str, target: LatencyTarget) -> str:
    """Hash of all that a landscape depends on, by that of all but its limits."""
    return cache_key((family, repr(target)))


def family_key(
    evaluator: Evaluator,
    request: RequestShape,
    space: SearchSpace,
    framework: str,
    scheduling: Scheduling | None,
) -> str | None:
    """Return the hash of all inputs of a landscape except its limits; None if its source has no identity."""
    if not isinstance(evaluator.source, OperatorSource):
        return None
    parts = [*program_parts(), _source_sha256(evaluator.source.fingerprint())]
    # Frozen dataclasses of numbers and names: equal ones have equal texts.
    parts += [repr(evaluator.without_source), repr(request), repr(space), framework, repr(scheduling)]
    return cache_key(parts)


@lru_cache(maxsize=MOST_REMEMBERED)
def _source_sha256(fingerprint: tuple[str, ...]) -> str:
    """Hash the inputs of a source once: it has a thousand files and serves many landscapes."""
    return cache_key(fingerprint)


_Kept = tuple[Landscape, tuple[TableSource, ...]]
_memory: OrderedDict[tuple[Path, str], tuple[LatencyTarget, _Kept]] = OrderedDict()


def forget() -> None:
    """Forget the landscapes that this process remembers; those in the cache folder stay."""
    _memory.clear()


def _remembered(place: Path, family: str, target: LatencyTarget) -> _Kept | None:
    """Derive a landscape from one of this process with no tighter limits."""
    held = _memory.get((place, family))
    if held is None or not held[0].allows(target):
        return None
    landscape, sources = held[1]
    return (landscape if held[0] == target else landscape.within(target)), sources


def _remember(place: Path, family: str, target: LatencyTarget, kept: _Kept) -> None:
    """Remember a landscape unless one of no tighter limits is remembered."""
    key = place, family
    held = _memory.get(key)
    if held is None or not held[0].allows(target):
        _memory[key] = target, kept
    _memory.move_to_end(key)
    if len(_memory) > MOST_REMEMBERED:
        _memory.popitem(last=False)


def program_parts() -> list[str]:
    """Return the program and the versions of its numerical packages, as parts of a hash."""
    return [*(f"{name} {installed_version(name)}" for name in _DEPENDENCIES), program_sha256()]


def program_sha256() -> str:
    """Hash of the source of the performance model and of the catalogue's types."""
    return source_sha256("perfmodel", "fleet")


def _read(path: Path) -> tuple[Landscape, tuple[TableSource, ...]] | None:
    try:
        # NumPy leaves a file open that it cannot read; ours is closed in any case.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            blocks = {name: archive[name] for name in archive.files}
        late = blocks.pop(_LATE)
        note = json.loads(bytes(blocks.pop(_NOTE)).decode())
        # One array per type: opening some thirty columns separately took most of the time of a landscape.
        held = {
            name: column
            for kind, names in note["blocks"].items()
            for name, column in zip(names, blocks[kind], strict=True)
        }
        if note["key"] != path.stem:
            raise ValueError("this is the landscape of something else")
        sources = tuple(TableSource(**each) for each in note["table_sources"])
        counts = {str(reason): int(count) for reason, count in note["excluded"].items()}
        columns = {
            name: np.array(note["texts"][name], dtype=object)[held[name]]
            if name in note["texts"]
            else held[name]
            for name in note["columns"]
        }
        # The time of use decides which files are deleted first.
        os.utime(path)
    except _UNREADABLE:
        return None
    return Landscape(pd.DataFrame(columns), counts, late), sources


def _write(found: Landscape, sources: tuple[TableSource, ...], path: Path) -> None:
    table = found.table
    columns: dict[str, AnyArray] = {}
    by_type: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    for name in map(str, table.columns):
        column = table[name]
        if column.dtype.kind in "bifu":
            values = column.to_numpy()
        else:
            # Texts are numbered, and listed once in the note.
            values, distinct = pd.factorize(column.array)
            texts[name] = [str(text) for text in distinct]
        columns[name] = values
        by_type.setdefault(values.dtype.name, []).append(name)
    blocks: dict[str, NDArray[Any]] = {
        kind: np.stack([columns[name] for name in names]) for kind, names in by_type.items()
    }
    note = {
        "key": path.stem,
        "columns": list(columns),
        "blocks": by_type,
        "texts": texts,
        "excluded": dict(found.excluded_counts),
        "table_sources": [asdict(source) for source in sources],
    }
    blocks[_LATE] = found.late
    blocks[_NOTE] = np.frombuffer(json.dumps(note).encode(), dtype=np.uint8)
    with written_whole(path) as part, part.open("wb") as stream:
        # numpy's type hints take the names of the arrays for options.
        np.savez(stream, **blocks)  # type: ignore[arg-type]
