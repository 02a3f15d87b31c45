"""Run `plan merge`: merge two versions of a fleet file, and report changes and conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from fleetplan.fleet.document import Document, KeyPath, YamlText, compose, read_document
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.document.three_way import MergeConflict, is_gone, merged
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import read_text
from fleetplan.planner.commands.fleet_file import write_fleet_file
from fleetplan.planner.commands.terminal import say_written

MOST_CHARACTERS = 60
"""Maximum length of a value in a message. [characters]"""


def run_merge(
    files: tuple[Path, Path, Path], out: Path, prefer: str | None, *, force: bool, errors: Console
) -> None:
    """Write the merged file, and print the changes from the other version.

    Parameters
    ----------
    files : tuple[Path, Path, Path]
        The common base and the two versions.
    out : Path
        Output file.
    prefer : str or None
        Version that wins a conflict, mine or theirs; None refuses conflicts.
    force : bool
        Whether to replace an existing file.
    errors : Console
        Console for conflicts decided by `prefer`.

    Raises
    ------
    InputError
        A file is unreadable, both versions changed the same value, or the result is not a fleet.
    """
    for path in files:
        # Reports mistakes in the file and in its imports.
        read_document(path)
    texts = [read_text(path) for path in files]
    base, mine, theirs = (_document(path, text) for path, text in zip(files, texts, strict=True))
    result = merged(_plain(base), _plain(mine), _plain(theirs), prefer_theirs=prefer == "theirs")
    if result.conflicts and prefer is None:
        raise InputError([_issue(each, base, mine, theirs) for each in result.conflicts])
    for each in result.conflicts:
        issue = _issue(each, base, mine, theirs)
        errors.print(
            f"{issue.key_path}: {prefer}; {issue.message}", style="yellow", markup=False, soft_wrap=True
        )
    value = result.value
    if not isinstance(value, Mapping):
        raise TypeError("a fleet file is a mapping")
    text, kept = _written(texts[1], value, _plain(mine))
    if not kept:
        errors.print("comments are lost: the layout of the file cannot be edited in place", style="yellow")
    write_fleet_file(out, text, over=force)
    for key_path, before, after in result.taken:
        typer.echo(f"{_label(key_path)}: {_shown(before)} -> {_shown(after)}")
    say_written(errors, out)


def _document(path: Path, text: str) -> Document:
    """Return a file without its imports."""
    root = compose(text, str(path), [])
    assert root is not None, "it has been read"
    return Document(path, root, {})


def _plain(document: Document) -> dict[str, Any]:
    plain = document.root.plain()
    assert isinstance(plain, dict)
    return plain


def _written(text: str, value: Mapping[str, object], now: Mapping[str, object]) -> tuple[str, bool]:
    """Return the text of a file with another value, and whether its comments are kept.

    Layouts that cannot be edited in place (merge keys, tabs within a flow) are rewritten.
    """
    edited = YamlText(text)
    edited.become(value, now)
    changed = edited.changed()
    root = compose(changed, "", [])
    if root is not None and root.plain() == value:
        return changed, True
    return yaml_text(dict(value), allow_unicode=True), False


def _issue(conflict: MergeConflict, base: Document, mine: Document, theirs: Document) -> Issue:
    """Return a conflict as an issue at its place in the other version."""
    place = theirs.place(_positions(theirs, conflict.key_path))
    here = mine.place(_positions(mine, conflict.key_path))
    message = (
        f"{_shown(conflict.theirs)} here, {_shown(conflict.mine)} in {here.file}:{here.line}, "
        f"{_shown(conflict.base)} in {base.path}"
    )
    hint = "change one of them, or take all with --prefer mine or theirs"
    return Issue(place.file, place.line, place.column, _label(conflict.key_path), message, hint)


def _positions(document: Document, key_path: KeyPath) -> KeyPath:
    """Return a key path with the positions of items instead of their names."""
    found: list[str | int] = []
    node = document.root
    for key in key_path:
        names = [item.name for item in node.items]
        step: str | int = names.index(str(key)) if key in names else key
        below = node.child(step)
        if below is None:
            break
        found.append(step)
        node = below
    return tuple(found)


def _label(key_path: Sequence[str | int]) -> str:
    return ".".join(str(key) for key in key_path)


def _shown(value: object) -> str:
    if is_gone(value):
        return "nothing"
    text = yaml_text(value, default_flow_style=True, width=10**6, allow_unicode=True)
    line = text.removesuffix("\n").removesuffix("\n...").strip()
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 3]}..."
