"""The errors that a plan states are those of the published table."""

from __future__ import annotations

import re
from pathlib import Path

from fleetplan.fleet.catalog import model_catalog
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.predict import TPOT_ERROR, UNCOMPARED

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


def test_what_was_compared_with_nothing_has_no_row_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    types = [(each, load_architecture(each.name, Path()).model_type) for each in model_catalog().values()]
    assert set(UNCOMPARED) <= {model_type for _, model_type in types}
    for facts, model_type in types:
        if model_type in UNCOMPARED:
            assert not [name for name in (facts.name, *facts.aliases) if f"| {name} |" in page]
