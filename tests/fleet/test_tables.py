"""The registry of tables and its check."""

import pandas as pd
import pytest

from fleetplan.fleet.tables import TABLES, check


def placements() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "period": ["2027Q1"],
            "region": ["eu"],
            "pool": ["p"],
            "service": ["chat"],
            "phase": ["decode"],
            "config": ["TP8"],
            "replicas": [2],
            "accelerators": [16],
            "requests_per_s": [3.5],
            "utilisation": [0.8],
            "ttft_ms": [float("nan")],
            "tpot_ms": [25.0],
            "usd": [1e5],
        }
    )


@pytest.mark.parametrize("table", TABLES)
def test_every_column_says_what_it_is(table: str) -> None:
    columns = TABLES[table]
    assert len({column.name for column in columns}) == len(columns)
    for column in columns:
        assert column.meaning
        assert column.kind in ("text", "count", "number", "flag")
        for suffix, unit in (("_ms", "ms"), ("_kw", "kW"), ("_usd", "USD"), ("requests_per_s", "1/s")):
            if column.name.endswith(suffix):
                assert column.unit == unit


def test_a_table_that_is_right_passes() -> None:
    check(placements(), "placements")
    check(placements().assign(more=1), "placements")
    check(placements().iloc[:0], "placements")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"replicas": [2.0]}, "replicas holds float64, not count"),
        ({"usd": ["many"]}, "usd holds .*, not number"),
        ({"usd": [float("nan")]}, "usd has missing values"),
        ({"phase": ["decoding"]}, "phase holds decoding; allowed: aggregated, prefill, decode"),
    ],
)
def test_a_table_that_is_wrong_is_refused(change: dict[str, list[object]], expected: str) -> None:
    with pytest.raises(ValueError, match=f"not a table of placements: {expected}"):
        check(placements().assign(**change), "placements")


def test_all_faults_come_at_once() -> None:
    frame = placements().drop(columns=["pool", "config"])
    with pytest.raises(ValueError, match="the column pool is missing; the column config is missing"):
        check(frame, "placements")
