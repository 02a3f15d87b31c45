"""Compare predictions with published measurements.

python benchmarks/accuracy.py                        the rows that aiconfigurator-core carries itself
python benchmarks/accuracy.py --measurements FILE    a fuller table of measurements, static batches included
python benchmarks/accuracy.py --serving FILE         also a table of saturation and of other benchmarks
python benchmarks/accuracy.py --write                also write accuracy_tables.md, docs/accuracy.md and the
                                                     bars of RESULTS.md; needs both FILEs

Exit 0 if every bar is met, else 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.accuracy_bars import AccuracyBar, bars
from benchmarks.accuracy_blind import blind_sections, predicted_blind
from benchmarks.accuracy_disaggregated import disaggregated_rows, pool_bars, pool_sections, predicted_pools
from benchmarks.accuracy_elsewhere import bars as elsewhere_bars
from benchmarks.accuracy_elsewhere import elsewhere_sections, predicted_elsewhere
from benchmarks.accuracy_newest import newest_sections, predicted_newest
from benchmarks.accuracy_page import PAGE, page_text, write_tables
from benchmarks.accuracy_peer import peer_errors
from benchmarks.accuracy_prediction import predicted
from benchmarks.accuracy_rows import packaged_file, published_rows
from benchmarks.accuracy_serving import serving_sections
from benchmarks.accuracy_table import (
    bars_text,
    coverage_text,
    exclusions_text,
    groups_text,
    peer_text,
    sections_text,
    slices,
    units_text,
    worst_text,
)

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "RESULTS.md"


def report(path: Path, with_peer: bool) -> tuple[dict[str, str], list[AccuracyBar]]:
    """Tabulate the errors on a table of measurements, and return the bars."""
    rows = predicted(published_rows(path), ROOT)
    found = bars(rows)
    pools = predicted_pools(disaggregated_rows(path), ROOT) if path == packaged_file() else None
    if pools is not None:
        found += pool_bars(pools)
    sections = {
        "Errors by group of rows": groups_text(found),
        "Coverage": coverage_text(rows),
        "Rows left out, by rule": exclusions_text(rows),
        **slices(rows),
        "Deployments with the largest errors": worst_text(rows),
    }
    if pools is not None:
        sections |= pool_sections(pools)
    units = units_text(rows)
    if units:
        sections["End-to-end latency where the unit of a throughput is ambiguous, read both ways"] = units
    if with_peer:
        best = rows[rows["quality"] == "A"]
        sections["Errors of aiconfigurator on the same rows"] = peer_text(best, peer_errors(best))
    return sections, found


PACKAGED: Final = "Rows of aiconfigurator-core 0.12.0"
FULLER: Final = "Fuller table"
SERVING: Final = "Saturation and other benchmarks than InferenceX"
ELSEWHERE: Final = "Figures of other pages"
BLIND: Final = "Blind figures"
NEWEST: Final = "DeepSeek-V4, MiniMax-M3 and Kimi-K3"
BARS: Final = ("<!-- bars of the accuracy page -->", "<!-- end of the bars -->")


def write(parts: Mapping[str, Mapping[str, str]], bars_of: Mapping[str, list[AccuracyBar]]) -> None:
    """Write the tables of every part, the page that shows some of them, and the bars."""
    write_tables(parts)
    PAGE.write_text(page_text(), "utf-8")
    verdicts = "\n\n".join(f"{name}:\n\n{bars_text(each)}" for name, each in bars_of.items())
    before, _, rest = RESULTS.read_text("utf-8").partition(BARS[0])
    RESULTS.write_text(f"{before}{BARS[0]}\n\n{verdicts}\n\n{BARS[1]}{rest.partition(BARS[1])[2]}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measurements", type=Path, help="CSV of measurements")
    parser.add_argument("--serving", type=Path, help="CSV of published serving")
    parser.add_argument("--write", action="store_true", help="write tables, docs/accuracy.md and bars")
    parser.add_argument("--without-peer", action="store_true", help="do not run aiconfigurator")
    options = parser.parse_args()
    packaged = packaged_file()
    path = options.measurements or packaged
    if path is None or not path.is_file():
        what = "aiconfigurator-core is not installed" if path is None else f"{path}: no such file"
        print(f"{what}; give a table by --measurements", file=sys.stderr)
        return 2
    if options.serving is not None and not options.serving.is_file():
        print(f"{options.serving}: no such file", file=sys.stderr)
        return 2
    if options.write and (packaged is None or options.measurements is None or options.serving is None):
        print("--write needs aiconfigurator-core, --measurements and --serving", file=sys.stderr)
        return 2
    title = PACKAGED if options.measurements is None else FULLER
    parts = {}
    parts[title], found = report(path, not options.without_peer)
    if options.serving is not None:
        parts[SERVING], further = serving_sections(options.serving)
        found += further
    others = predicted_elsewhere()
    found += elsewhere_bars(others)
    parts[ELSEWHERE] = elsewhere_sections(others)
    for each in parts.values():
        print(sections_text(each))
    print("## Bars", bars_text(found), sep="\n\n")
    if options.write:
        own_sections, own_bars = report(packaged, with_peer=True)
        parts = {PACKAGED: own_sections, **parts}
        parts[BLIND] = blind_sections(predicted_blind())
        parts[NEWEST] = newest_sections(predicted_newest())
        write(parts, {PACKAGED: own_bars, FULLER: found})
    return 0 if all(bar.met for bar in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
