"""Compare predictions with published measurements.

python benchmarks/accuracy.py                        the rows that aiconfigurator-core carries itself
python benchmarks/accuracy.py --measurements FILE    a fuller table of measurements, static batches included
python benchmarks/accuracy.py --write                also write the result to docs/accuracy.md

Exit 0 if every bar is met, else 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.accuracy_bars import Bar, bars
from benchmarks.accuracy_peer import peer_errors
from benchmarks.accuracy_prediction import predicted
from benchmarks.accuracy_rows import packaged_file, published_rows
from benchmarks.accuracy_table import (
    bars_text,
    coverage_text,
    exclusions_text,
    peer_text,
    slices_text,
    worst_text,
)

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "docs" / "accuracy-notes.md"
RESULT = ROOT / "docs" / "accuracy.md"


def report(path: Path, with_peer: bool) -> tuple[str, list[Bar]]:
    """Return the whole result as Markdown, and the bars."""
    rows = predicted(published_rows(path), ROOT)
    found = bars(rows)
    sections = {
        "Bars": bars_text(found),
        "Coverage": coverage_text(rows),
        "Rows left out, by rule": exclusions_text(rows),
        "Errors by slice: median / 90th percentile of the absolute error in %, and rows": slices_text(rows),
        "What is worst": worst_text(rows),
    }
    if with_peer:
        best = rows[rows["quality"] == "A"]
        sections["Beside aiconfigurator"] = peer_text(best, peer_errors(best))
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return text, found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measurements", type=Path, help="CSV of measurements")
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md")
    parser.add_argument("--without-peer", action="store_true", help="do not run aiconfigurator")
    options = parser.parse_args()
    path = options.measurements or packaged_file()
    if path is None or not path.is_file():
        what = "aiconfigurator-core is not installed" if path is None else f"{path}: no such file"
        print(f"{what}; give a table by --measurements", file=sys.stderr)
        return 2
    text, found = report(path, not options.without_peer)
    print(text)
    if options.write:
        RESULT.write_text(f"{NOTES.read_text('utf-8')}\n{text}\n", "utf-8")
    return 0 if all(bar.met for bar in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
