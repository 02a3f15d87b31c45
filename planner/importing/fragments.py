"""Blocks of a fleet file that importers of supply write: checked item by item, with where they come from."""

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
from fleetplan.planner.importing.records import Rejected, RejectedRowError

Block = Literal["pools", "offers"]

MOST_ACCELERATORS_PER_HOST: Final = 72
"""Of any host that is sold: some list a rack of 72 as one machine."""

_KINDS: Final[Mapping[Block, Literal["pool", "offer"]]] = {"pools": "pool", "offers": "offer"}


@dataclass(frozen=True, slots=True)
class ImportedSupply:
    """A fragment of a fleet file, the number of rows in it, the rows that are not, and further notes."""

    text: str
    taken: int
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class SupplyFragment:
    """A fragment that grows item by item.

    Attributes
    ----------
    path : str
        The file that is read.
    says : list[str]
        Lines of comment: what the file is, its date, what was left out.
    notes : list[str]
        Those that the importer is told at once.
    """

    path: str
    says: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _items: dict[Block, list[dict[str, object]]] = field(default_factory=lambda: {"pools": [], "offers": []})
    _hardware: dict[str, dict[str, object]] = field(default_factory=dict)
    _rejected: list[Rejected] = field(default_factory=list)
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
        """Add what is read; what a fleet file would not take is rejected with its reason.

        Parameters
        ----------
        block : {"pools", "offers"}
            Where it belongs.
        place : str
            Where it stands in the file.
        read : callable
            Returns the item, None for nothing, or raises RejectedRowError.
        rows : int or collection of int
            How many rows of the file the item is made of, or which, where several items have one row.
        """
        try:
            found = read()
            if found is None:
                return
            if mistakes := mistakes_of(_KINDS[block], found):
                raise RejectedRowError("; ".join(mistakes))
            if any(each["name"] == found["name"] for each in self._items[block]):
                raise RejectedRowError(f"there is a {found['name']!r} already")
        except RejectedRowError as reason:
            many = rows if isinstance(rows, int) else len(rows)
            self._rejected.append(Rejected(place, brief(str(reason)), many))
            return
        self._items[block].append(found)
        if isinstance(rows, int):
            self._taken += rows
        else:
            self._taken_rows.update(rows)

    def reject(self, place: str, reason: str) -> None:
        """Leave a row out; rows with one reason are told once, with their number."""
        self._tallied[reason] += 1
        self._first.setdefault(reason, place)

    def leave(self, option: str, name: str, rows: int = 1) -> None:
        """Leave rows out that an option does not ask for; they are told once, with all their names."""
        self._not_asked.setdefault(option, Counter())[name] += rows

    def host_kind(self, hardware: str, accelerators_each: int) -> str:
        """Return hardware in hosts of so many accelerators: a kind of its own where the hosts are others."""
        if accelerators_each == accelerators()[hardware].accelerators_per_host:
            return hardware
        if accelerators_each > MOST_ACCELERATORS_PER_HOST:
            raise RejectedRowError(f"{counted(accelerators_each, 'accelerator')}: no host has so many")
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
            tallied.append(Rejected(place, brief(why), many))
        for option, found in self._not_asked.items():
            names = ", ".join(name or "none" for name in sorted(found))
            why = f"{option} does not ask for {names}"
            tallied.append(Rejected(counted(found.total(), "row"), brief(why), found.total()))
        taken = self._taken + len(self._taken_rows)
        return ImportedSupply(text, taken, (*self._rejected, *tallied), tuple(self.notes))


def check_characters(texts: Sequence[tuple[str, str]]) -> None:
    """Reject a row with a character that steers a terminal.

    Parameters
    ----------
    texts : sequence of (name, value)
        Fields that are written on.
    """
    for name, value in texts:
        found = steering_character(value)
        if found is not None:
            raise RejectedRowError(f"{name} holds the character {found}, which steers a terminal")


def file_date(path: Path) -> str:
    """Return the day a file was last written, for what a file does not say itself.

    Raises
    ------
    InputError
        There is no such file.
    """
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {reason}")]) from error


def refuse_file_name(option: str, name: str) -> None:
    """Refuse a name that no file can have, or no block of a fleet file.

    Raises
    ------
    InputError
        It has other letters.
    """
    if plain_name(name) != name.lower() or not name.strip("."):
        hint = "letters, digits, '.', '_' and '-'"
        raise InputError([Issue(option, 0, 0, "", f"{name!r} cannot be the name of files", hint)])


def plain_name(*parts: str) -> str:
    """Return a name of a pool or offer made of others: lower case, without what names may not hold."""
    joined = "-".join(part for part in parts if part).lower()
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in joined)
