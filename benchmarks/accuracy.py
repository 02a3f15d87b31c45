"""Compare predictions with published measurements.

python benchmarks/accuracy.py                        the rows that aiconfigurator-core carries itself
python benchmarks/accuracy.py --measurements FILE    a fuller table of measurements, static batches included
python benchmarks/accuracy.py --serving FILE         also a table of saturation and of other benchmarks
python benchmarks/accuracy.py --write                also write docs/accuracy.md; a fuller table adds its
                                                     part below that of the packaged rows

Exit 0 if every bar is met, else 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.accuracy_bars import AccuracyBar, bars
from benchmarks.accuracy_blind import blind_text, predicted_blind
from benchmarks.accuracy_disaggregated import disaggregated_rows, pool_bars, pools_text, predicted_pools
from benchmarks.accuracy_elsewhere import bars as elsewhere_bars
from benchmarks.accuracy_elsewhere import elsewhere_text, predicted_elsewhere
from benchmarks.accuracy_newest import newest_text, predicted_newest
from benchmarks.accuracy_peer import peer_errors
from benchmarks.accuracy_prediction import predicted
from benchmarks.accuracy_rows import packaged_file, published_rows
from benchmarks.accuracy_serving import serving_text
from benchmarks.accuracy_table import (
    bars_text,
    coverage_text,
    exclusions_text,
    groups_text,
    peer_text,
    slices_text,
    units_text,
    worst_text,
)

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "benchmarks" / "accuracy_notes.md"
RESULT = ROOT / "docs" / "accuracy.md"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"


def report(path: Path, with_peer: bool) -> tuple[str, list[AccuracyBar]]:
    """Return the page of errors as Markdown, and the bars."""
    rows = predicted(published_rows(path), ROOT)
    found = bars(rows)
    pools = predicted_pools(disaggregated_rows(path), ROOT) if path == packaged_file() else None
    if pools is not None:
        found += pool_bars(pools)
    sections = {
        "Errors by group of rows": groups_text(found),
        "Coverage": coverage_text(rows),
        "Rows left out, by rule": exclusions_text(rows),
        "Errors by slice: median / 90th percentile of the absolute error in %, and rows": slices_text(rows),
        "What is worst": worst_text(rows),
    }
    if pools is not None:
        sections["Disaggregated deployments that state their replicas"] = pools_text(pools)
    units = units_text(rows)
    if units:
        sections["End to end where the unit of a throughput is ambiguous, read both ways"] = units
    if with_peer:
        best = rows[rows["quality"] == "A"]
        sections["Beside aiconfigurator"] = peer_text(best, peer_errors(best))
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return text, found


PACKAGED: Final = "The rows that aiconfigurator-core 0.12.0 carries"
FULLER: Final = "A fuller table"
SERVING: Final = "Saturation and other benchmarks than InferenceX"
ELSEWHERE: Final = "Figures of other pages"
BLIND: Final = "Figures that were predicted before the model was changed with them in view"
NEWEST: Final = "DeepSeek-V4, MiniMax-M3 and Kimi-K3"
BARS: Final = ("<!-- bars of the accuracy page -->", "<!-- end of the bars -->")


def write(text: str, found: list[AccuracyBar], is_fuller: bool, serving: str, elsewhere: str) -> None:
    """Write docs/accuracy.md (the notes, the packaged rows, and what the other tables add) and the bars."""
    parts, bars_of = [NOTES.read_text("utf-8").rstrip()], {}
    packaged = packaged_file()
    if is_fuller and packaged is not None:
        whole, bars_of[PACKAGED] = report(packaged, with_peer=True)
        parts += [f"# {PACKAGED}", whole]
    title = FULLER if is_fuller else PACKAGED
    bars_of[title] = found
    parts += [f"# {title}", text]
    if serving:
        parts += [f"# {SERVING}", serving]
    parts += [f"# {ELSEWHERE}", elsewhere, f"# {BLIND}", blind_text(predicted_blind())]
    parts += [f"# {NEWEST}", newest_text(predicted_newest())]
    RESULT.write_text("\n\n".join(parts) + "\n", "utf-8")
    verdicts = "\n\n".join(f"{name}:\n\n{bars_text(each)}" for name, each in bars_of.items())
    before, _, rest = RESULTS.read_text("utf-8").partition(BARS[0])
    RESULTS.write_text(f"{before}{BARS[0]}\n\n{verdicts}\n\n{BARS[1]}{rest.partition(BARS[1])[2]}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measurements", type=Path, help="CSV of measurements")
    parser.add_argument("--serving", type=Path, help="CSV of published serving")
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md, the bars to RESULTS.md")
    parser.add_argument("--without-peer", action="store_true", help="do not run aiconfigurator")
    options = parser.parse_args()
    path = options.measurements or packaged_file()
    if path is None or not path.is_file():
        what = "aiconfigurator-core is not installed" if path is None else f"{path}: no such file"
        print(f"{what}; give a table by --measurements", file=sys.stderr)
        return 2
    if options.serving is not None and not options.serving.is_file():
        print(f"{options.serving}: no such file", file=sys.stderr)
        return 2
    text, found = report(path, not options.without_peer)
    print(text)
    serving = ""
    if options.serving is not None:
        serving, further = serving_text(options.serving)
        found += further
        print(serving)
    others = predicted_elsewhere()
    found += elsewhere_bars(others)
    elsewhere = elsewhere_text(others)
    print(elsewhere)
    print("## Bars", bars_text(found), sep="\n\n")
    if options.write:
        write(text, found, options.measurements is not None, serving, elsewhere)
    return 0 if all(bar.met for bar in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
