"""Compose YAML events into a tree with places, by the strict rules of `fleetplan.fleet.document.source`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn

import yaml

from fleetplan.fleet.document.document import Entry, Node, Scalar, SourcePlace
from fleetplan.fleet.document.number_hints import point_between_thousands
from fleetplan.fleet.document.plain import LOADER
from fleetplan.fleet.errors import Issue
from fleetplan.fleet.printable import steering_character

# A fleet of 300 services, 100 pools and 8 quarters has some 20,000 values. Beyond these limits a file is
# an accident or an attack (nested aliases double with every line), not a fleet.
MAX_NODES: Final = 1_000_000
MAX_DEPTH: Final = 64
_NESTED: Final = f"nested deeper than {MAX_DEPTH} levels"
# Integers beyond 15 digits are not exact as the 64-bit floats that arithmetic uses.
MAX_INTEGER_DIGITS: Final = 15

_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.?(?:nan|inf|infinity)", re.IGNORECASE)
_CONSTANTS: Final[dict[str, bool | None]] = {"": None, "~": None, "null": None, "true": True, "false": False}
_NULLS: Final = frozenset(text for text, value in _CONSTANTS.items() if value is None)
_MERGE_KEY: Final = "<<"
_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""Message of PyYAML 6.0.4's C scanner, which reads ahead and may fail before a node is complete."""
_STANDARD_TAG: Final = re.compile(r"tag:yaml\.org,2002:(\w+)")
"""A tag of YAML itself, which files write as `!!int`."""
NO_BREAK_SPACE: Final = "\u00a0"
NO_BREAK_SPACE_HINT: Final = "a space there is a no-break space (U+00A0); type a plain one"
_CONFLICT: Final = re.compile(r"(<{7}|={7}|>{7})( |$)")
"""A line with which git marks what two sides changed."""
_CLOSED: Final = frozenset(
    ("while scanning a quoted scalar", "while parsing a flow mapping", "while parsing a flow sequence")
)
"""What quotes or brackets close, in words of PyYAML's message."""
_MENDED_BY: Final = {
    "could not find expected ':'": "write `key: value`, with a space after the colon",
    "mapping values are not allowed": "write one `key: value` a line, and quote text that holds `: `",
    "did not find expected '-' indicator": "items of a list begin in the same column, with `- `",
    "did not find expected key": "keys of a mapping begin in the same column",
}
"""Hint by words of PyYAML's message."""


def compose(text: str, name: str, issues: list[Issue]) -> Node | None:
    """Return the single document in `text`, or None if it contains none; issues are appended."""
    composer = _Composer(text, name, issues)
    try:
        return composer.document()
    except _Stop:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        about = " ".join(part for part in (_begun(error), error.problem) if part)
        message = _NESTED if _TOO_DEEP in about else f"not valid YAML: {about}"
        issues.append(Issue(name, line, column, "", message, _mend(text, line, about)))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = f"U+{error.character:04X}" if isinstance(error.character, int) else repr(error.character)
        issues.append(Issue(name, line, 1, "", f"not valid YAML: the character {character} is not allowed"))
    return None


def _begun(error: yaml.MarkedYAMLError) -> str:
    """What the parser was reading, and the line of quotes or brackets that have no end."""
    begin, end = error.context_mark, error.problem_mark
    if error.context not in _CLOSED or begin is None or end is None or begin.line == end.line:
        return error.context or ""
    return f"{error.context} from line {begin.line + 1} on"


def _mend(text: str, line: int, about: str) -> str:
    """Return a hint for a syntax error; empty if the parser's message is sufficient."""
    near = text.splitlines()[max(line - 2, 0) : line] if line else []
    if any(NO_BREAK_SPACE in each for each in near):
        return NO_BREAK_SPACE_HINT
    if any(_CONFLICT.match(each) for each in near):
        return "a merge left its conflict there: keep one side, and remove the lines of <, = and >"
    last = near[-1] if near else ""
    if "\t" in last[: len(last) - len(last.lstrip())]:
        return "indent with spaces; YAML takes no tabs"
    return next((hint for words, hint in _MENDED_BY.items() if words in about), "")


def _tag_refused(tag: str) -> tuple[str, str]:
    """Return the message and the hint for a tag."""
    known = _STANDARD_TAG.fullmatch(tag)
    if known is None:
        return f"the tag {tag} is not allowed", ""
    mend = "quote the value" if known[1] == "str" else "leave it out"
    return f"the tag !!{known[1]} is not allowed", f"{mend}: a value is read as what it looks like"


class _Stop(Exception):  # noqa: N818 - not an error: the issue it leaves behind is
    """The rest of the text is unreadable; the issue has been noted."""


class _Composer:
    """Builds the tree from the parser's events, with recursion limited to `MAX_DEPTH`."""

    def __init__(self, text: str, name: str, issues: list[Issue]) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=LOADER)
        self._name = name
        self._issues = issues
        self._anchors: dict[str, Node | None] = {}
        # Keys and positions from the root to the node being built, for messages.
        self._path: list[str] = []

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._fail(self._place(event), "a file holds one document", "remove the line `---`")
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, 0)
        return root

    def _node(self, event: yaml.Event, depth: int) -> Node:
        place = self._place(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), place)
        assert isinstance(event, yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent)
        if depth > MAX_DEPTH:
            self._fail(place, _NESTED)
        # A quoted scalar has the tag "!" or none; the file asks for any other tag by name.
        if event.tag not in (None, "!"):
            self._fail(place, *_tag_refused(event.tag))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, place)
            grouped = isinstance(value, float) and point_between_thousands(event.value)
            node = Node(value, place, written=event.value if grouped else "")
        elif isinstance(event, yaml.SequenceStartEvent):
            node = Node.of_items(self._children(depth), place)
        else:
            node = self._mapping(place, depth)
        if node.size > MAX_NODES:
            self._fail(place, f"more than {MAX_NODES} values when every alias is written out")
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, anchor: str, place: SourcePlace) -> Node:
        if anchor not in self._anchors:
            self._fail(place, f"the alias *{anchor} has no anchor &{anchor} before it")
        node = self._anchors[anchor]
        if node is None:
            self._fail(place, f"the alias *{anchor} is inside the value it refers to")
        # The values keep the place of the anchor, where the user can correct them.
        return node

    def _children(self, depth: int) -> Iterator[Node]:
        for position, event in enumerate(self._events):
            if isinstance(event, yaml.SequenceEndEvent):
                return
            self._path.append(f"[{position}]")
            yield self._node(event, depth + 1)
            self._path.pop()

    def _mapping(self, place: SourcePlace, depth: int) -> Node:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key_place = self._place(event)
            if not isinstance(event, yaml.ScalarEvent):
                self._fail(key_place, "a key must be plain text")
            if event.implicit[0] and event.value in _NULLS:
                self._fail(key_place, "a key must be text, not nothing", "quote it if it is a name")
            self._check_characters(event.value, key_place)
            self._path.append(f".{event.value}")
            value = self._node(next(self._events), depth + 1)
            if event.value == _MERGE_KEY and event.implicit[0]:
                merged.extend(value.items or (value,))
            elif event.value in entries:
                first = entries[event.value].key_place
                message = f"the key {event.value!r} is given twice"
                self._note(key_place, message, f"first given in line {first.line}")
            else:
                entries[event.value] = Entry(key_place, value)
            self._path.pop()
        for node in merged:
            if not isinstance(node.value, Mapping):
                self._fail(node.place, "`<<` takes a mapping or a list of mappings")
            entries.update({key: entry for key, entry in node.value.items() if key not in entries})
        return Node.of_entries(entries, place)

    def _scalar(self, event: yaml.ScalarEvent, place: SourcePlace) -> Scalar:
        text: str = event.value
        self._check_characters(text, place)
        quoted = not event.implicit[0]
        if quoted:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NOT_FINITE.fullmatch(text):
            self._note(place, f"{text} is not a finite number", "give a number, or quote it if it is a name")
            return None
        return self._number(text, place) if _NUMBER.fullmatch(text) else text

    def _check_characters(self, text: str, place: SourcePlace) -> None:
        found = steering_character(text)
        if found is not None:
            self._note(place, f"the character {found} is not allowed", "it is a control character; remove it")

    def _number(self, text: str, place: SourcePlace) -> int | float | None:
        if _INTEGER.fullmatch(text):
            if len(text.lstrip("+-0")) <= MAX_INTEGER_DIGITS:
                return int(text)
            self._note(place, f"{text[:24]} has more than {MAX_INTEGER_DIGITS} digits")
            return None
        number = float(text)
        if math.isfinite(number):
            return number
        self._note(place, f"{text[:24]} is too large for a number")
        return None

    def _place(self, event: yaml.Event) -> SourcePlace:
        mark = event.start_mark
        assert mark is not None, "a parser always sets the mark"
        return SourcePlace(self._name, mark.line + 1, mark.column + 1)

    def _note(self, place: SourcePlace, message: str, hint: str = "") -> None:
        key_path = "".join(self._path).removeprefix(".")
        self._issues.append(Issue(place.file, place.line, place.column, key_path, message, hint))

    def _fail(self, place: SourcePlace, message: str, hint: str = "") -> NoReturn:
        self._note(place, message, hint)
        raise _Stop
