"""The errors that a plan states are those of the published table."""

from __future__ import annotations

import re
from pathlib import Path

from fleetplan.perfmodel.predict import TPOT_ERROR

PAGE = Path(__file__).parents[3] / "docs" / "accuracy.md"
ROW = re.compile(r"^\| ([\w-]+) \| ([\d.]+) / ([\d.]+) \((\d+)\) \|", re.MULTILINE)


def test_the_stated_errors_stand_in_the_accuracy_page() -> None:
    published = {
        (name, float(median), float(p90), int(rows))
        for name, median, p90, rows in ROW.findall(PAGE.read_text(encoding="utf-8"))
    }
    for name, error in TPOT_ERROR.items():
        row = (name, round(error.median_ratio * 100, 1), round(error.p90_ratio * 100, 1), error.rows)
        assert row in published
