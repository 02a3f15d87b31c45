"""The errors that a plan states are those of the published table."""

from __future__ import annotations

import re
from pathlib import Path

from fleetplan.fleet.catalog import model_catalog
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.predict import (
    BLIND_ERROR,
    FAR_FAMILIES,
    FAR_RATIO,
    OWN_TPOT_ERROR,
    RECENT_BLIND_ERROR,
    TPOT_ERROR,
)

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


def test_the_error_of_blind_rows_stands_in_the_accuracy_page() -> None:
    figures = f"{BLIND_ERROR.median_ratio * 100:.1f} / {BLIND_ERROR.p90_ratio * 100:.1f} ({BLIND_ERROR.rows})"
    assert f"| any part | {figures} |" in PAGE.read_text(encoding="utf-8")


def test_families_that_are_farther_off_than_others_are_those_of_the_accuracy_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    recent = RECENT_BLIND_ERROR
    figures = f"{recent.median_ratio * 100:.1f} / {recent.p90_ratio * 100:.1f} ({recent.rows})"
    assert f"| since 2025-07 | {figures} |" in page
    table = page.partition("| family, software since 2025-07 |")[2].partition("\n\n")[0]
    published = {name: tuple(map(float, rest)) for name, *rest in ROW.findall(table)}
    far = {name for name, (median, *_) in published.items() if median / 100 > FAR_RATIO * recent.median_ratio}
    assert far == set(FAR_FAMILIES)
    for name, error in FAR_FAMILIES.items():
        stated = round(error.median_ratio * 100, 1), round(error.p90_ratio * 100, 1), error.rows
        assert published[name] == stated


def test_models_with_operators_of_their_own_state_the_errors_of_their_own_rows() -> None:
    page = PAGE.read_text(encoding="utf-8")
    types = {load_architecture(name, Path()).model_type for name in model_catalog()}
    assert set(OWN_TPOT_ERROR) <= types
    for model_type, models in OWN_TPOT_ERROR.items():
        for name, error in models.items():
            assert load_architecture(name, Path()).model_type == model_type
            figures = f"{error.median_ratio * 100:.1f} / {error.p90_ratio * 100:.1f} ({error.rows})"
            assert f"| {name} | {figures} |" in page
