"""Compose docs/accuracy.md from its prose and the tables that `benchmarks/accuracy.py --write` computes.

    python benchmarks/accuracy_page.py

benchmarks/accuracy_notes.md has the prose. Each of its lines `<!-- table: PART / SECTION -->` becomes that
section of benchmarks/accuracy_tables.md. Nothing is predicted: run this after a change of the prose.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.accuracy_table import sections_text

ROOT: Final = Path(__file__).resolve().parent.parent
NOTES: Final = ROOT / "benchmarks" / "accuracy_notes.md"
TABLES: Final = ROOT / "benchmarks" / "accuracy_tables.md"
PAGE: Final = ROOT / "docs" / "accuracy.md"

INTRODUCTION: Final = """\
# Errors of predictions, by set and model

`python benchmarks/accuracy.py --write` writes these tables; do not edit them.
[docs/accuracy.md](../docs/accuracy.md) explains the columns and shows the tables that a user needs."""

_TABLE: Final = re.compile(r"^<!-- table: (.+) / (.+) -->$", re.MULTILINE)


def write_tables(parts: Mapping[str, Mapping[str, str]]) -> None:
    """Write the sections of every part, by title, to benchmarks/accuracy_tables.md."""
    text = "\n\n".join(f"# {part}\n\n{sections_text(sections)}" for part, sections in parts.items())
    TABLES.write_text(f"{INTRODUCTION}\n\n{text}\n", "utf-8")


def page_text() -> str:
    """Return the page: the prose with its tables.

    Raises
    ------
    KeyError
        The prose names a part or a section that benchmarks/accuracy_tables.md lacks.
    """
    parts = {}
    for part in re.split(r"^# ", TABLES.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, *sections = re.split(r"^## ", part, flags=re.MULTILINE)
        parts[title.strip()] = {
            name: body.strip() for name, _, body in (section.partition("\n") for section in sections)
        }
    return _TABLE.sub(lambda found: parts[found[1]][found[2]], NOTES.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page_text(), "utf-8")
