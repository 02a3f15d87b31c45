"""The registry of tables and its check."""

import pandas as pd
import pytest

from fleetplan.fleet.tables import TABLES, check, once_per_table


def engines() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "phase": ["decode"],
            "hardware": ["H100-SXM"],
            "accelerators_per_replica": [8],
            "config": ["TP8"],
            "requests_per_s": [3.5],
            "ttft_ms": [float("nan")],
            "tpot_ms": [25.0],
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
    check(engines(), "engines")
    check(engines().assign(more=1), "engines")
    check(engines().iloc[:0], "engines")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"accelerators_per_replica": [2.0]}, "accelerators_per_replica holds float64, not count"),
        ({"requests_per_s": ["many"]}, "requests_per_s holds .*, not number"),
        ({"requests_per_s": [float("nan")]}, "requests_per_s has missing values"),
        ({"phase": ["decoding"]}, "phase holds decoding; allowed: aggregated, prefill, decode"),
    ],
)
def test_a_table_that_is_wrong_is_refused(change: dict[str, list[object]], expected: str) -> None:
    with pytest.raises(ValueError, match=f"not a table of engines: {expected}"):
        check(engines().assign(**change), "engines")


def test_all_faults_come_at_once() -> None:
    frame = engines().drop(columns=["hardware", "config"])
    with pytest.raises(ValueError, match="the column hardware is missing; the column config is missing"):
        check(frame, "engines")


def test_a_table_that_many_name_is_looked_through_once() -> None:
    seen: list[pd.DataFrame] = []

    def count(table: pd.DataFrame) -> int:
        seen.append(table)
        return len(table)

    rows_in = once_per_table(count)
    first, alike = engines(), engines()
    assert [rows_in(table) for table in (first, first, alike, first)] == [1, 1, 1, 1]
    assert [id(table) for table in seen] == [id(first), id(alike)]
