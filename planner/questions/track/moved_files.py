"""Translate file references of a fleet file for a fleet file in another folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fleetplan.fleet.document import Document, KeyPath, Node

FILE_KEYS: Final = frozenset({"calibration", "engines", "lengths", "model", "optables"})
"""Keys whose value may be a file name, relative to the file that contains it."""
_CONFIG: Final = ".json"
"""Suffix of a model that is a file instead of a name."""


def moved_files(document: Document, folder: Path) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each value that names a file, with the file name relative to `folder`.

    Values that stay the same are left out.

    Parameters
    ----------
    document : Document
        A fleet file with its imports; each value records the file that contains it.
    folder : Path
        Folder of the new file.
    """
    yield from _moved(document.root, (), folder.resolve())


def _moved(node: Node, above: KeyPath, folder: Path) -> Iterator[tuple[KeyPath, str]]:
    for position, item in enumerate(node.items):
        yield from _moved(item, (*above, position), folder)
    for key, entry in node.entries.items():
        name, place = entry.node.value, entry.node.place
        if key not in FILE_KEYS or not isinstance(name, str):
            yield from _moved(entry.node, (*above, key), folder)
        elif key != "model" or name.endswith(_CONFIG):
            home = Path(place.file).parent.resolve()
            if home != folder and not Path(name).is_absolute():
                yield (*above, key), Path(os.path.relpath(home / name, folder)).as_posix()
