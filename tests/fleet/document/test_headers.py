"""Errors in the header of a table have the same messages for every table."""

from __future__ import annotations

import pytest

from fleetplan.fleet.document.headers import check_header, header_issues
from fleetplan.fleet.errors import InputError

NEEDED, KNOWN = ("name", "hardware"), ("name", "hardware", "hosts")


@pytest.mark.parametrize(
    ("header", "closed", "said"),
    [
        (["name", "hardware", "hosts"], True, []),
        (["name", "hardware", "note"], False, []),
        (["name", "hardware", "host"], True, [
            "t.csv:1:10: host: unknown column; allowed: name, hardware, hosts; did you mean 'hosts'?",
        ]),
        (["name", "hardware", "name"], False, ["t.csv:1:10: name: the column is given twice"]),
        (["name", "hardwear"], False, [
            "t.csv:1:1: hardware: the column is missing; is it the column 'hardwear'?",
        ]),
        (["name"], True, ["t.csv:1:1: hardware: the column is missing"]),
        (["name;hardware;hosts"], True, [
            "t.csv:1:1: fields are divided by semicolons; divide them by commas; decimals have a point",
        ]),
        (["name", "hardware", ""], True, ["t.csv:1:10: a column has no name; delete it, or name it"]),
        (["name", "hardware", "", ""], False, []),
        ([], True, ["t.csv:1:1: is empty; a table has the columns name, hardware"]),
        (["name\thardware"], False, [
            "t.csv:1:1: fields are divided by tabs; divide them by commas; decimals have a point",
        ]),
    ],
)  # fmt: skip
def test_every_mistake_of_a_header_is_told(header: list[str], closed: bool, said: list[str]) -> None:
    starts = [1, 5, 10, 11][: len(header)]
    found = header_issues("t.csv", header, NEEDED, KNOWN, closed=closed, starts=starts)
    assert [str(each) for each in found] == said


def test_the_columns_of_another_tool_are_no_mistakes_one_by_one() -> None:
    """Unknown columns after the third are one error, which asks whether the file is the right one."""
    header = ["name", "hardware", *(f"BilledCost{k}" for k in range(12))]
    found = [str(each) for each in header_issues("t.csv", header, NEEDED, KNOWN, closed=True)]
    assert [each.split(": ")[2] for each in found[:3]] == ["unknown column; allowed"] * 3
    assert found[3:] == [
        "t.csv:1:1: further unknown columns (9): BilledCost3, BilledCost4, BilledCost5, BilledCost6, "
        "BilledCost7, BilledCost8, ...; is it the right file?"
    ]


def test_a_table_without_a_column_is_refused() -> None:
    check_header("t.csv", ("name", "hardware"), NEEDED)
    with pytest.raises(InputError, match="hardware: the column is missing"):
        check_header("t.csv", ("name",), NEEDED)
