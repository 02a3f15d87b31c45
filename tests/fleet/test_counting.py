"""Numbers and the nouns and verbs after them agree, in every message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fleetplan.fleet.figures import agreeing, counted, plural

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        ((0, "host"), "0 hosts"),
        ((1, "host"), "1 host"),
        ((2, "host"), "2 hosts"),
        ((1200, "smaller change"), "1,200 smaller changes"),
        ((1, "smaller change"), "1 smaller change"),
        ((1, "accelerator", "start"), "1 accelerator starts"),
        ((2, "accelerator", "start"), "2 accelerators start"),
        ((1, "statement", "are"), "1 statement is"),
        ((1, "point", "were"), "1 point was"),
        ((1.0, "request"), "1 request"),
        ((1.5, "request"), "1.5 requests"),
    ],
)
def test_nouns_and_verbs_agree_with_their_number(count: tuple[int, str], words: str) -> None:
    assert counted(*count) == words


def test_plurals() -> None:
    assert [plural(noun) for noun in ("class", "query", "day", "batch", "box")] == [
        "classes",
        "queries",
        "days",
        "batches",
        "boxes",
    ]
    assert [agreeing(1, verb) for verb in ("do", "have", "repeat")] == ["does", "has", "repeats"]


NOUNS = (
    "accelerator|alternative|block|candidate|change|column|configuration|fleet|host|kind|limit|node|order"
    "|pair|period|plan|point|pool|quarter|region|replica|requirement|row|service|solve|unit"
)
COUNTED = re.compile(r"\{\s*(?:len|sum)\(")
"""What a module holds that writes a number so; the others are not parsed."""
FOLLOWED = re.compile(rf" ((?:[a-z-]+ )?(?:{NOUNS})s)\b(?!/)")


def _written_by_hand(path: Path) -> Iterator[str]:
    """Yield f-strings of a module that write a number before a plural."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if COUNTED.search(text) else ():
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, after in pairwise(parts):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            is_number = isinstance(value.value, ast.Call) and ast.unparse(value.value).startswith(
                ("len(", "sum(")
            )
            found = FOLLOWED.match(str(after.value))
            if is_number and found:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(value.value)}{found[0]}"


def test_no_message_writes_a_plural_after_whatever_is_counted() -> None:
    """Messages inflect nouns by `counted`, never by hand."""
    rooms = [ROOT / name for name in ("fleet", "perfmodel", "planner", "scenarios")]
    by_hand = [line for room in rooms for path in room.rglob("*.py") for line in _written_by_hand(path)]
    assert by_hand == []
