"""Reproduce the case studies of Meta, Optimizing Deployment Configurations for LLM Inference.

python benchmarks/paper.py          print every bar with our figure; exit 0 if all are met, else 1
python benchmarks/paper.py --page   print the figures without the bars, as docs/paper.md has them
python benchmarks/paper.py --fit    refit the roofline constants of its hardware and print them
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone; the figures of the tables are with the tests.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.paper_bars import Check, table_checks
from benchmarks.paper_cases import HARDWARE, Catalogue, catalogue, continuous_rates, disaggregated_rates
from benchmarks.paper_fit import fit, report
from benchmarks.paper_search import search_checks

BAR_HEAD: Final = "   bar"


def all_checks(parts: Catalogue) -> list[Check]:
    """Every bar, with the constants of the catalogue."""
    disaggregated = disaggregated_rates(parts, HARDWARE)
    continuous = continuous_rates(parts, HARDWARE)
    return [*table_checks(parts, disaggregated, continuous), *search_checks(parts)]


def table(checks: Sequence[Check], judged: bool = True) -> str:
    """Return the figures as text, one row each, by section; with their bars if these are to be judged."""
    lines = []
    for section, rows in groupby(checks, key=lambda check: check.section):
        lines += ["", section, f"  {'':<58}{'ours':>9}{'paper':>9}{'error':>9}{BAR_HEAD if judged else ''}"]
        lines += [_line(check, judged) for check in rows]
    counted = [check for check in checks if check.counts]
    missed = [check for check in counted if not check.met]
    if judged:
        lines += ["", f"{len(counted) - len(missed)} of {len(counted)} bars met"]
        lines += [f"missed: {check.section}: {check.name}" for check in missed]
    refused = [check for check in checks if not check.counts]
    if refused:
        lines += [
            "",
            f"{len(refused)} figures are of layouts that plan predict refuses, and are not counted:",
        ]
        lines += [f"  {reason}" for reason in dict.fromkeys(check.refused for check in refused)]
    return "\n".join(lines)


def _line(check: Check, judged: bool) -> str:
    paper = "" if check.paper is None else f"{check.paper:.4g}"
    error = "" if check.error is None else f"{check.error:+.1%}"
    verdict = ("met" if check.met else "MISSED") if check.counts else "refused"
    figures = f"  {check.name:<58}{check.ours:>9.4g}{paper:>9}{error:>9}"
    return f"{figures}   {_bar(check):<18} {verdict}" if judged else figures.rstrip()


def _bar(check: Check) -> str:
    if check.low == check.high:
        return f"{check.low:.4g}"
    if check.high == math.inf:
        return f"at least {check.low:.4g}"
    if check.low == 0.0:
        return f"at most {check.high:.4g}"
    return f"{check.low:.4g} to {check.high:.4g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the bars or the refitted constants; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="refit the constants and print them")
    parser.add_argument("--page", action="store_true", help="print the figures without the bars")
    options = parser.parse_args(arguments)
    if options.fit:
        sys.stdout.write(report(fit(catalogue())) + "\n")
        return 0
    checks = all_checks(catalogue())
    sys.stdout.write(table(checks, judged=not options.page) + "\n")
    return 0 if all(check.met for check in checks if check.counts) else 1


if __name__ == "__main__":
    sys.exit(main())
