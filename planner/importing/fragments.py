"""Fragments of a fleet file from supply importers: checked item by item, with their source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.errors import InputError, Issue, brief
from fleetplan.fleet.figures import counted
from fleetplan.fleet.printable import steering_character
from fleetplan.fleet.schema import mistakes_of
from fleetplan.planner.importing.records import RejectedRowError, RejectedRows

Block = Literal["pools", "offers"]

MOST_ACCELERATORS_PER_HOST: Final = 72
"""Maximum accelerators of a host on the market: some providers list a rack of 72 as one machine."""

_KINDS: Final[Mapping[Block, Literal["pool", "offer"]]] = {"pools": "pool", "offers": "offer"}


@dataclass(frozen=True, slots=True)
class ImportedSupply:
    """A fragment of a fleet file, the number of its rows, the rejected rows, and further notes."""

    text: str
    taken: int
    rejected: tuple[RejectedRows, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class SupplyFragment:
    """A fragment under construction.

    Attributes
    ----------
    path : str
        Source file.
    says : list[str]
        Comment lines: kind of file, date, omissions.
    notes : list[str]
        Notes that the command prints.
    """

    path: str
    says: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _items: dict[Block, list[dict[str, object]]] = field(default_factory=lambda: {"pools": [], "offers": []})
    _hardware: dict[str, dict[str, object]] = field(default_factory=dict)
    _rejected: list[RejectedRows] = field(default_factory=list)
    _tallied: Counter[str] = field(default_factory=Counter)
    _first: dict[str, str] = field(default_factory=dict)
    _not_asked: dict[str, Counter[str]] = field(default_factory=dict)
    _taken: int = 0
    _taken_rows: set[int] = field(default_factory=set)

    def take(
        self,
        block: Block,
        place: str,
        read: Callable[[], dict[str, object] | None],
        rows: int | Collection[int] = 1,
    ) -> None:
        """Add an item; one that a fleet file would not accept is rejected with its reason.

        Parameters
        ----------
        block : {"pools", "offers"}
            Block of the item.
        place : str
            Place in the source file.
        read : callable
            Returns the item, None for nothing, or raises RejectedRowError.
        rows : int or collection of int
            Number of source rows of the item, or their numbers if several items share rows.
        """
        try:
            found = read()
            if found is None:
                return
            if mistakes := mistakes_of(_KINDS[block], found):
                raise RejectedRowError("; ".join(mistakes))
            if any(each["name"] == found["name"] for each in self._items[block]):
                raise RejectedRowError(f"there is already a {found['name']!r}")
        except RejectedRowError as reason:
            many = rows if isinstance(rows, int) else len(rows)
            self._rejected.append(RejectedRows(place, brief(str(reason)), many))
            return
        self._items[block].append(found)
        if isinstance(rows, int):
            self._taken += rows
        else:
            self._taken_rows.update(rows)

    def reject(self, place: str, reason: str) -> None:
        """Reject a row; rows with the same reason are reported together, with their number."""
        self._tallied[reason] += 1
        self._first.setdefault(reason, place)

    def leave(self, option: str, name: str, rows: int = 1) -> None:
        """Leave out rows that an option excludes; they are reported together, with all names."""
        self._not_asked.setdefault(option, Counter())[name] += rows

    def host_kind(self, hardware: str, accelerators_each: int) -> str:
        """Return the hardware in hosts of a given size, as a new kind if the catalogue's hosts differ."""
        if accelerators_each == accelerators()[hardware].accelerators_per_host:
            return hardware
        if accelerators_each > MOST_ACCELERATORS_PER_HOST:
            raise RejectedRowError(f"{counted(accelerators_each, 'accelerator')}: no host has that many")
        name = f"{hardware}-x{accelerators_each}"
        self._hardware[name] = {"like": hardware, "accelerators_per_host": accelerators_each}
        return name

    def done(self) -> ImportedSupply:
        """Return the fragment as text."""
        head = [f"# From {self.path}: import it in a fleet file with `imports: [FILE]`."]
        head += [f"# {line}" for line in (*self.says, *self.notes)]
        blocks: dict[str, object] = {"hardware": self._hardware} if self._hardware else {}
        blocks |= {block: items for block, items in self._items.items() if items}
        text = "\n".join(head) + "\n" + yaml_text(blocks, allow_unicode=True)
        tallied = []
        for why, many in self._tallied.items():
            place = self._first[why]
            place = place if many == 1 else f"{place} and {many - 1} more"
            tallied.append(RejectedRows(place, brief(why), many))
        for option, found in self._not_asked.items():
            names = ", ".join(name or "none" for name in sorted(found))
            why = f"{option} excludes {names}"
            tallied.append(RejectedRows(counted(found.total(), "row"), brief(why), found.total()))
        taken = self._taken + len(self._taken_rows)
        return ImportedSupply(text, taken, (*self._rejected, *tallied), tuple(self.notes))


def check_characters(texts: Sequence[tuple[str, str]]) -> None:
    """Reject a row with control characters.

    Parameters
    ----------
    texts : sequence of (name, value)
        Fields that are written to the fragment.
    """
    for name, value in texts:
        found = steering_character(value)
        if found is not None:
            raise RejectedRowError(f"{name} contains the control character {found}")


def file_date(path: Path) -> str:
    """Return the modification date of a file, for files without a stated date.

    Raises
    ------
    InputError
        The file does not exist.
    """
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {reason}")]) from error


def refuse_file_name(option: str, name: str) -> None:
    """Raise an error for a name that is not valid for files and blocks of a fleet file.

    Raises
    ------
    InputError
        The name contains other characters.
    """
    if plain_name(name) != name.lower() or not name.strip("."):
        hint = "letters, digits, '.', '_' and '-'"
        raise InputError([Issue(option, 0, 0, "", f"{name!r} cannot be the name of files", hint)])


def plain_name(*parts: str) -> str:
    """Return a name of a pool or offer made of parts: lower case, without invalid characters."""
    joined = "-".join(part for part in parts if part).lower()
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in joined)
